#include "bench/record.h"

#include "base/utf8.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

#define COUNT_MAX ((json_int_t)1 << 40)

void sf_bench_record_fini(sf_bench_record *r) {
    sf_bench_list_fini(&r->itl);
    sf_buf_fini(&r->text);
}

static sf_code append_text(sf_bench_record *r, const json_t *text, sf_err *err) {
    if (!json_is_string(text)) return SF_OK;
    return sf_buf_append(&r->text, json_string_value(text), json_string_length(text), err);
}

static bool has(const json_t *delta, const char *key) {
    const json_t *v = json_object_get(delta, key);
    return json_string_length(v) > 0 || json_array_size(v) > 0 || json_object_size(v) > 0;
}

/* A chat begins with a role and may end with a reason alone; an empty text without a role is a token. */
static bool is_token(const json_t *choice) {
    static const char *const keys[] = {"content", "reasoning", "reasoning_content", "tool_calls",
                                       "function_call"};
    const json_t *delta = json_object_get(choice, "delta");
    if (!delta) return true;
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (has(delta, keys[i])) return true;
    return json_is_string(json_object_get(delta, "content")) && !json_object_get(delta, "role");
}

static sf_code take_time(sf_bench_record *r, double now_s, sf_err *err) {
    if (r->chunks == 0)
        r->ttft_s = now_s - r->start_s;
    else
        SF_TRY(sf_bench_list_push(&r->itl, now_s - r->last_s, err));
    r->chunks++;
    r->last_s = now_s;
    r->latency_s = now_s - r->start_s;
    return SF_OK;
}

static sf_code take_choice(sf_bench_record *r, const json_t *choice, double now_s, sf_err *err) {
    const json_t *delta = json_object_get(choice, "delta");
    if (is_token(choice)) SF_TRY(take_time(r, now_s, err));
    if (json_is_string(json_object_get(choice, "finish_reason"))) r->ended = true;
    SF_TRY(append_text(r, json_object_get(choice, "text"), err));
    SF_TRY(append_text(r, json_object_get(delta, "reasoning_content"), err));
    SF_TRY(append_text(r, json_object_get(delta, "reasoning"), err));
    return append_text(r, json_object_get(delta, "content"), err);
}

/* A server may say anything: what is no sensible count is none. */
static int64_t count_of(const json_t *v) {
    const json_int_t n = json_integer_value(v);
    return n > 0 && n <= COUNT_MAX ? n : 0;
}

static void take_usage(sf_bench_record *r, const json_t *usage) {
    const json_t *in = json_object_get(usage, "prompt_tokens"),
                 *out = json_object_get(usage, "completion_tokens");
    if (count_of(in) > 0) r->input_tokens = count_of(in);
    if (count_of(out) > 0) r->output_tokens = count_of(out);
}

static void take_determinism(sf_bench_record *r, const json_t *d) {
    const char *digest = json_string_value(json_object_get(d, "digest")),
               *class = json_string_value(json_object_get(d, "class"));
    if (!json_is_object(d)) return;
    r->has_determinism = true;
    r->pinned = class && strcmp(class, "pinned") == 0;
    snprintf(r->digest, sizeof r->digest, "%s", digest && strlen(digest) < sizeof r->digest ? digest : "");
    r->windows = count_of(json_object_get(d, "windows_verified"));
    r->rollbacks = count_of(json_object_get(d, "rollbacks"));
    r->tokens_rolled_back = count_of(json_object_get(d, "tokens_rolled_back"));
}

/* The message in an error object, borrowed; NULL: there is none. */
static const char *message_in(const json_t *o) {
    static const char *const keys[] = {"error", "message", "detail"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        const json_t *v = json_object_get(o, keys[i]);
        if (json_is_object(v)) v = json_object_get(v, "message");
        if (json_is_string(v)) return json_string_value(v);
    }
    return NULL;
}

static sf_code take_object(sf_bench_record *r, const json_t *o, double now_s, sf_err *err) {
    const json_t *choices = json_object_get(o, "choices"), *error = json_object_get(o, "error");
    if (error && !json_is_null(error)) {
        const char *message = message_in(o);
        return SF_FAIL(err, SF_DEVICE, "%.300s", message ? message : "an error without a message");
    }
    if (json_array_size(choices) > 0) SF_TRY(take_choice(r, json_array_get(choices, 0), now_s, err));
    take_usage(r, json_object_get(o, "usage"));
    take_determinism(r, json_object_get(o, "determinism"));
    return SF_OK;
}

sf_code sf_bench_record_event(sf_bench_record *r, const char *data, size_t len, double now_s, sf_err *err) {
    json_error_t why;
    if (strcmp(data, "[DONE]") == 0) {
        r->ended = true;
        return SF_OK;
    }
    json_t *o = json_loadb(data, len, JSON_ALLOW_NUL, &why);
    if (!json_is_object(o)) {
        json_decref(o);
        return SF_FAIL(err, SF_FORMAT, "an event of the stream is not a JSON object: %.60s", data);
    }
    sf_code rc = take_object(r, o, now_s, err);
    json_decref(o);
    return rc;
}

void sf_bench_record_fail(sf_bench_record *r, const char *text) {
    snprintf(r->error, sizeof r->error, "%s", text);
    sf_utf8_one_line(r->error);
}

void sf_bench_record_end(sf_bench_record *r) {
    r->success = r->ended && r->chunks > 0;
    if (r->success && r->output_tokens == 0) r->output_tokens = r->chunks;
    if (r->success || r->error[0]) return;
    sf_bench_record_fail(r, r->chunks > 0 ? "the stream broke off: neither finish_reason nor [DONE] came"
                            : r->ended    ? "the stream ended without a token"
                                          : "no event came: the answer is no stream of completions");
}

const char *sf_bench_error_text(const char *body, size_t len, char *buf, size_t size) {
    json_error_t why;
    json_t *o = json_loadb(body, len, 0, &why);
    const char *message = message_in(o);
    snprintf(buf, size, "%.*s", message ? (int)size : (int)(len < 200 ? strnlen(body, len) : 200),
             message ? message : body);
    sf_utf8_one_line(buf);
    json_decref(o);
    return buf;
}
