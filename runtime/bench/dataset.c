#include "bench/dataset.h"

#include "api/answer.h"
#include "api/json.h"
#include "bench/dataset_priv.h"
#include "bench/draw.h"

#include <math.h>
#include <stdlib.h>

#define RANDOM_OUTPUT 128

void sf_bench_dataset_fini(sf_bench_dataset *d) {
    for (int i = 0; i < d->n; i++)
        json_decref(d->v[i].value);
    free(d->v);
    *d = (sf_bench_dataset){0};
}

sf_code sf_bench_add(sf_bench_dataset *d, json_t *value, int64_t input_tokens, int output_tokens,
                     sf_err *err) {
    /* full at 0 and at powers of two */
    const bool full = (d->n & (d->n - 1)) == 0;
    sf_bench_prompt *more =
        full && value ? realloc(d->v, (size_t)(d->n ? d->n * 2 : 1) * sizeof *more) : d->v;
    if (!value || !more) {
        json_decref(value);
        return SF_FAIL(err, SF_NOMEM, "out of memory for the prompts");
    }
    d->v = more;
    d->v[d->n++] = (sf_bench_prompt){value, input_tokens, output_tokens};
    return SF_OK;
}

json_t *sf_bench_messages(json_t *text) {
    json_t *m = json_object(), *list = json_array();
    bool ok = m && list;
    sf_json_put(m, "role", json_string("user"), &ok);
    sf_json_put(m, "content", text, &ok);
    sf_json_push(list, m, &ok);
    return sf_json_done(list, ok);
}

static bool is_special(const sf_bench_dataset_config *c, int32_t id) {
    if (c->tokenizer) return sf_tokenizer_is_special(c->tokenizer, id);
    for (int i = 0; i < c->n_avoid; i++)
        if (c->avoid[i] == id) return true;
    return false;
}

static sf_code draw_tokens(const sf_bench_dataset_config *c, sf_bench_draw *d, int n, sf_ids *out,
                           sf_err *err) {
    for (int i = 0; i < n; i++) {
        int32_t id;
        do
            id = (int32_t)sf_bench_draw_below(d, c->vocab);
        while (is_special(c, id));
        SF_TRY(sf_ids_push(out, id, err));
    }
    return SF_OK;
}

/* Uniform in length * (1 -+ range_ratio), the bounds rounded outwards. */
static int draw_length(const sf_bench_dataset_config *c, sf_bench_draw *d, int length, int least) {
    int low = (int)floor(length * (1 - c->range_ratio)), high = (int)ceil(length * (1 + c->range_ratio));
    if (low < least) low = least;
    if (high < low) high = low;
    return low + (int)sf_bench_draw_below(d, (int64_t)high - low + 1);
}

static sf_code random_value(const sf_bench_dataset_config *c, const sf_ids *ids, json_t **out, sf_err *err) {
    if (!c->chat) {
        *out = sf_api_ids_json(ids->data, (int)ids->len);
        return SF_OK;
    }
    sf_buf text = {0};
    sf_code rc = sf_tokenizer_decode(c->tokenizer, ids->data, ids->len, false, &text, err);
    if (rc == SF_OK) *out = sf_bench_messages(sf_json_text(text.data ? text.data : "", text.len));
    sf_buf_fini(&text);
    return rc;
}

static sf_code make_random(const sf_bench_dataset_config *c, sf_bench_dataset *d, sf_err *err) {
    sf_bench_draw lengths = sf_bench_draw_init(c->seed, SF_BENCH_DRAW_LENGTHS),
                  prefix = sf_bench_draw_init(c->seed, SF_BENCH_DRAW_PREFIX),
                  tokens = sf_bench_draw_init(c->seed, SF_BENCH_DRAW_TOKENS);
    const int output = c->output_len ? c->output_len : RANDOM_OUTPUT, least = c->prefix_len > 0 ? 0 : 1;
    sf_ids ids = {0};
    if (c->chat && !c->tokenizer)
        return SF_FAIL(err, SF_INVALID, "random prompts for chats need a tokenizer: give --weights");
    sf_code rc = draw_tokens(c, &prefix, c->prefix_len, &ids, err);
    while (rc == SF_OK && d->n < c->n) {
        json_t *value = NULL;
        const int in = draw_length(c, &lengths, c->input_len, least),
                  out = draw_length(c, &lengths, output, 1);
        ids.len = (size_t)c->prefix_len;
        rc = draw_tokens(c, &tokens, in, &ids, err);
        if (rc == SF_OK) rc = random_value(c, &ids, &value, err);
        if (rc == SF_OK) rc = sf_bench_add(d, value, c->prefix_len + in, out, err);
    }
    sf_ids_fini(&ids);
    return rc;
}

/* From the beginning again, as often as it takes. */
static sf_code fill(const sf_bench_dataset_config *c, sf_bench_dataset *d, sf_err *err) {
    const int have = d->n;
    if (have == 0) return SF_FAIL_AT(err, SF_FORMAT, ((sf_loc){c->path, 0, 0}), "no prompt to be used in it");
    while (d->n < c->n) {
        const sf_bench_prompt p = d->v[d->n % have];
        SF_TRY(sf_bench_add(d, json_incref(p.value), p.input_tokens, p.output_tokens, err));
    }
    return SF_OK;
}

sf_code sf_bench_dataset_make(const sf_bench_dataset_config *c, sf_bench_dataset *out, sf_err *err) {
    sf_bench_dataset d = {0};
    sf_code rc = SF_INVALID;
    switch (c->source) { /* without a default: the compiler asks for a new source */
    case SF_BENCH_RANDOM:
        rc = make_random(c, &d, err);
        break;
    case SF_BENCH_SHAREGPT:
        rc = sf_bench_read_sharegpt(c, &d, err);
        break;
    case SF_BENCH_CUSTOM:
        rc = sf_bench_read_custom(c, &d, err);
        break;
    }
    if (rc == SF_OK && c->source != SF_BENCH_RANDOM) rc = fill(c, &d, err);
    if (rc != SF_OK) {
        sf_bench_dataset_fini(&d);
        return rc;
    }
    *out = d;
    return SF_OK;
}
