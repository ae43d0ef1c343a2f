/* Prompts from files: ShareGPT's JSON, and JSON lines. */
#include "api/json.h"
#include "bench/dataset_priv.h"
#include "bench/draw.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What vLLM's benchmark keeps of ShareGPT. */
#define LEAST_TOKENS    4
#define MOST_PROMPT     1024
#define MOST_TOKENS     2048
#define BYTES_PER_TOKEN 4 /* without a tokenizer */
#define CUSTOM_OUTPUT   256
#define OUTPUT_MAX      (1 << 24)
#define FILE_MAX        ((size_t)4 << 30)

static sf_code count_tokens(const sf_bench_dataset_config *c, const json_t *text, int64_t *out, sf_err *err) {
    const size_t len = json_string_length(text);
    sf_ids ids = {0};
    if (!c->tokenizer) {
        *out = (int64_t)((len + BYTES_PER_TOKEN - 1) / BYTES_PER_TOKEN);
        return SF_OK;
    }
    sf_code rc = sf_tokenizer_encode(c->tokenizer, json_string_value(text), len, NULL, &ids, err);
    *out = (int64_t)ids.len;
    sf_ids_fini(&ids);
    return rc;
}

/* ---- ShareGPT ---- */

static const json_t *turn(const json_t *entry, size_t i) {
    const json_t *turns = json_object_get(entry, "conversations");
    const json_t *value = json_object_get(json_array_get(turns, i), "value");
    return json_is_string(value) ? value : NULL;
}

static sf_code add_conversation(const sf_bench_dataset_config *c, const json_t *entry, sf_bench_dataset *d,
                                sf_err *err) {
    const json_t *prompt = turn(entry, 0), *answer = turn(entry, 1);
    int64_t in, out = c->output_len;
    if (!prompt || !answer) return SF_OK;
    /* Counting a book's tokens takes long, and no token is longer than this many bytes on average. */
    if (json_string_length(prompt) > (size_t)MOST_PROMPT * 64) return SF_OK;
    SF_TRY(count_tokens(c, prompt, &in, err));
    if (!c->output_len) SF_TRY(count_tokens(c, answer, &out, err));
    const bool short_answer = !c->output_len && out < LEAST_TOKENS;
    if (in < LEAST_TOKENS || short_answer || in > MOST_PROMPT || in + out > MOST_TOKENS) return SF_OK;
    json_t *text = json_incref((json_t *)(uintptr_t)prompt);
    return sf_bench_add(d, c->chat ? sf_bench_messages(text) : text, c->tokenizer ? in : 0, (int)out, err);
}

static sf_code add_shuffled(const sf_bench_dataset_config *c, const json_t *all, sf_bench_dataset *d,
                            sf_err *err) {
    const size_t n = json_array_size(all);
    sf_bench_draw draw = sf_bench_draw_init(c->seed, SF_BENCH_DRAW_SHUFFLE);
    size_t *order = malloc((n ? n : 1) * sizeof *order);
    if (!order) return SF_FAIL(err, SF_NOMEM, "out of memory for %zu conversations", n);
    for (size_t i = 0; i < n; i++)
        order[i] = i;
    sf_code rc = SF_OK;
    for (size_t i = 0; rc == SF_OK && i < n && d->n < c->n; i++) {
        const size_t k = i + (size_t)sf_bench_draw_below(&draw, (int64_t)(n - i)), entry = order[k];
        order[k] = order[i];
        rc = add_conversation(c, json_array_get(all, entry), d, err);
    }
    free(order);
    return rc;
}

sf_code sf_bench_read_sharegpt(const sf_bench_dataset_config *c, sf_bench_dataset *d, sf_err *err) {
    json_error_t why;
    FILE *f = fopen(c->path, "rbe");
    if (!f) return SF_FAIL_AT(err, SF_IO, ((sf_loc){c->path, 0, 0}), "%s", strerror(errno));
    json_t *all = json_loadf(f, JSON_ALLOW_NUL, &why);
    const bool broken = ferror(f);
    fclose(f);
    sf_code rc;
    if (broken)
        rc = SF_FAIL_AT(err, SF_IO, ((sf_loc){c->path, 0, 0}), "cannot be read");
    else if (!all)
        rc = SF_FAIL_AT(err, SF_FORMAT, ((sf_loc){c->path, why.line, why.column}), "not valid JSON: %s",
                        why.text);
    else if (!json_is_array(all))
        rc = SF_FAIL_AT(err, SF_FORMAT, ((sf_loc){c->path, 1, 0}), "expected a list of conversations");
    else
        rc = add_shuffled(c, all, d, err);
    json_decref(all);
    return rc;
}

/* ---- JSON lines ---- */

static bool is_ids(const json_t *v) {
    size_t i;
    const json_t *id;
    if (json_array_size(v) == 0) return false;
    json_array_foreach(v, i, id) if (!json_is_integer(id) || json_integer_value(id) < 0) return false;
    return true;
}

static sf_code custom_value(const sf_bench_dataset_config *c, const json_t *o, sf_loc at, json_t **out,
                            sf_err *err) {
    json_t *prompt = json_object_get(o, "prompt"), *messages = json_object_get(o, "messages");
    const bool text = json_is_string(prompt) && json_string_length(prompt) > 0, ids = is_ids(prompt);
    if (!prompt == !messages) return SF_FAIL_AT(err, SF_FORMAT, at, "expected one of prompt and messages");
    if (messages && json_array_size(messages) == 0)
        return SF_FAIL_AT(err, SF_FORMAT, at, "messages is no list of messages");
    if (messages && !c->chat)
        return SF_FAIL_AT(err, SF_FORMAT, at, "messages need --endpoint /v1/chat/completions");
    if (prompt && !text && !ids)
        return SF_FAIL_AT(err, SF_FORMAT, at, "prompt is neither text nor a list of token ids");
    if (ids && c->chat) return SF_FAIL_AT(err, SF_FORMAT, at, "a chat needs text, not token ids");
    *out = json_incref(messages ? messages : prompt);
    if (text && c->chat) *out = sf_bench_messages(*out);
    return SF_OK;
}

static sf_code add_line(const sf_bench_dataset_config *c, const json_t *o, sf_loc at, sf_bench_dataset *d,
                        sf_err *err) {
    const json_t *wanted = json_object_get(o, "output_tokens");
    const json_int_t out = json_integer_value(wanted);
    json_t *value = NULL;
    if (wanted && (!json_is_integer(wanted) || out < 1 || out > OUTPUT_MAX))
        return SF_FAIL_AT(err, SF_FORMAT, at, "output_tokens is not an integer in 1..%d", OUTPUT_MAX);
    SF_TRY(custom_value(c, o, at, &value, err));
    const int fallback = c->output_len ? c->output_len : CUSTOM_OUTPUT;
    const int64_t in = is_ids(value) ? (int64_t)json_array_size(value) : 0;
    return sf_bench_add(d, value, in, wanted && !c->output_len ? (int)out : fallback, err);
}

static sf_code read_line(const sf_bench_dataset_config *c, const char *line, size_t len, int number,
                         sf_bench_dataset *d, sf_err *err) {
    const sf_loc at = {c->path, number, 0};
    sf_api_error why;
    json_t *o = NULL;
    if (strspn(line, " \t\r") >= len) return SF_OK;
    if (sf_json_parse(line, len, "the line", &o, &why) != SF_OK)
        return SF_FAIL_AT(err, SF_FORMAT, at, "%s", why.message);
    sf_code rc = add_line(c, o, at, d, err);
    json_decref(o);
    return rc;
}

sf_code sf_bench_read_custom(const sf_bench_dataset_config *c, sf_bench_dataset *d, sf_err *err) {
    sf_buf text = {0};
    sf_code rc = sf_buf_read_file(&text, c->path, FILE_MAX, err);
    const char *at = text.data, *end = rc == SF_OK ? at + text.len : at;
    for (int number = 1; rc == SF_OK && at < end && d->n < c->n; number++) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        if (!stop) stop = end;
        rc = read_line(c, at, (size_t)(stop - at), number, d, err);
        at = stop + 1;
    }
    sf_buf_fini(&text);
    return rc;
}
