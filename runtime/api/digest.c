#include "api/digest.h"

#include "base/hash.h"

#include <string.h>

static void add_u32(sf_sha256 *h, uint32_t v) {
    uint8_t b[4] = {(uint8_t)v, (uint8_t)(v >> 8), (uint8_t)(v >> 16), (uint8_t)(v >> 24)};
    sf_sha256_add(h, b, sizeof b);
}

static void add_u64(sf_sha256 *h, uint64_t v) {
    add_u32(h, (uint32_t)v);
    add_u32(h, (uint32_t)(v >> 32));
}

static void add_i32(sf_sha256 *h, int32_t v) {
    add_u32(h, (uint32_t)v);
}

static void add_f32(sf_sha256 *h, float v) {
    uint32_t u;
    memcpy(&u, &v, sizeof u);
    add_u32(h, u);
}

static void add_str(sf_sha256 *h, const char *s) {
    size_t len = strlen(s);
    add_u64(h, len);
    sf_sha256_add(h, s, len);
}

static void add_params(sf_sha256 *h, const sf_params *p) {
    add_f32(h, p->temperature);
    add_i32(h, p->top_k);
    add_f32(h, p->top_p);
    add_f32(h, p->min_p);
    add_f32(h, p->repetition_penalty);
    add_f32(h, p->frequency_penalty);
    add_f32(h, p->presence_penalty);
    add_u64(h, (uint64_t)p->seed);
    add_i32(h, p->n);
    add_i32(h, p->max_tokens);
    add_i32(h, p->min_tokens);
    add_u32(h, p->ignore_eos);
    add_u32(h, (uint32_t)p->n_stop);
    for (int i = 0; i < p->n_stop; i++)
        add_str(h, p->stop[i]);
    add_u32(h, (uint32_t)p->n_stop_ids);
    for (int i = 0; i < p->n_stop_ids; i++)
        add_i32(h, p->stop_ids[i]);
    add_u32(h, (uint32_t)p->n_bias);
    for (int i = 0; i < p->n_bias; i++) {
        add_i32(h, p->bias[i].token);
        add_f32(h, p->bias[i].bias);
    }
}

static void add_token(sf_sha256 *h, const sf_token *t) {
    add_i32(h, t->id);
    add_f32(h, t->logprob);
    add_u32(h, (uint32_t)t->n_top);
    for (int i = 0; i < t->n_top; i++) {
        add_i32(h, t->top_id[i]);
        add_f32(h, t->top_logprob[i]);
    }
}

bool sf_api_digest(const char *fingerprint, const sf_api_answer *a, char out[65]) {
    sf_sha256 *h = sf_sha256_create();
    if (!h) return false;
    add_str(h, "steadfast digest 1");
    add_str(h, fingerprint);
    add_u32(h, (uint32_t)a->n_prompt);
    for (int i = 0; i < a->n_prompt; i++)
        add_i32(h, a->prompt[i]);
    add_params(h, a->params);
    add_u32(h, (uint32_t)a->n_choices);
    for (int c = 0; c < a->n_choices; c++) {
        add_u32(h, (uint32_t)a->choices[c].finish);
        add_u32(h, (uint32_t)a->choices[c].n_tokens);
        for (int i = 0; i < a->choices[c].n_tokens; i++)
            add_token(h, &a->choices[c].tokens[i]);
    }
    add_u32(h, a->prompt_logprobs ? (uint32_t)a->n_prompt : 0);
    for (int i = 1; a->prompt_logprobs && i < a->n_prompt; i++)
        add_token(h, &a->prompt_logprobs[i]);
    sf_sha256_hex(h, out);
    sf_sha256_destroy(h);
    return true;
}
