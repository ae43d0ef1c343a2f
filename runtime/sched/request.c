#include "sched/request.h"
#include "sched/seq_priv.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Eos ids are banned beside the stop ids before min_tokens, within SF_STOP_MAX. */
#define MAX_STOP_IDS (SF_STOP_MAX - 8)

void sf_params_default(sf_params *p) {
    *p = (sf_params){.temperature = 1.0f,
                     .top_p = 1.0f,
                     .repetition_penalty = 1.0f,
                     .n = 1,
                     .max_tokens = -1,
                     .logprobs = -1,
                     .prompt_logprobs = -1};
}

static sf_code check_sampling(const sf_params *p, sf_err *err) {
    if (!(p->temperature >= 0.0f && isfinite(p->temperature)))
        return SF_FAIL(err, SF_INVALID, "temperature is %g, expected a finite number >= 0",
                       (double)p->temperature);
    if (p->top_k < 0) return SF_FAIL(err, SF_INVALID, "top_k is %d, expected >= 0", p->top_k);
    if (!(p->top_p > 0.0f && p->top_p <= 1.0f))
        return SF_FAIL(err, SF_INVALID, "top_p is %g, expected (0, 1]", (double)p->top_p);
    if (!(p->min_p >= 0.0f && p->min_p <= 1.0f))
        return SF_FAIL(err, SF_INVALID, "min_p is %g, expected [0, 1]", (double)p->min_p);
    if (!(p->repetition_penalty > 0.0f && isfinite(p->repetition_penalty)))
        return SF_FAIL(err, SF_INVALID, "repetition_penalty is %g, expected a finite number > 0",
                       (double)p->repetition_penalty);
    if (!(fabsf(p->frequency_penalty) <= 2.0f))
        return SF_FAIL(err, SF_INVALID, "frequency_penalty is %g, expected [-2, 2]",
                       (double)p->frequency_penalty);
    if (!(fabsf(p->presence_penalty) <= 2.0f))
        return SF_FAIL(err, SF_INVALID, "presence_penalty is %g, expected [-2, 2]",
                       (double)p->presence_penalty);
    if (p->n_bias < 0 || p->n_bias > SF_BIAS_MAX)
        return SF_FAIL(err, SF_INVALID, "logit_bias has %d entries, expected 0..%d", p->n_bias, SF_BIAS_MAX);
    for (int i = 0; i < p->n_bias; i++)
        if (!isfinite(p->bias[i].bias))
            return SF_FAIL(err, SF_INVALID, "logit_bias of token %d is %g, expected a finite number",
                           p->bias[i].token, (double)p->bias[i].bias);
    return SF_OK;
}

static sf_code check_counts(const sf_params *p, int n_prompt, sf_err *err) {
    if (p->n < 1 || p->n > SF_N_MAX)
        return SF_FAIL(err, SF_INVALID, "n is %d, expected 1..%d", p->n, SF_N_MAX);
    if (p->max_tokens < -1)
        return SF_FAIL(err, SF_INVALID, "max_tokens is %d, expected >= 0, or -1 for the context limit",
                       p->max_tokens);
    if (p->min_tokens < 0) return SF_FAIL(err, SF_INVALID, "min_tokens is %d, expected >= 0", p->min_tokens);
    if (p->max_tokens >= 0 && p->min_tokens > p->max_tokens)
        return SF_FAIL(err, SF_INVALID, "min_tokens is %d, expected at most max_tokens (%d)", p->min_tokens,
                       p->max_tokens);
    if (p->logprobs < -1 || p->logprobs > SF_TOP_MAX)
        return SF_FAIL(err, SF_INVALID, "logprobs is %d, expected 0..%d, or -1 for none", p->logprobs,
                       SF_TOP_MAX);
    if (p->prompt_logprobs < -1 || p->prompt_logprobs > SF_TOP_MAX)
        return SF_FAIL(err, SF_INVALID, "prompt_logprobs is %d, expected 0..%d, or -1 for none",
                       p->prompt_logprobs, SF_TOP_MAX);
    if (p->n_stop_ids < 0 || p->n_stop_ids > MAX_STOP_IDS)
        return SF_FAIL(err, SF_INVALID, "stop_token_ids has %d entries, expected 0..%d", p->n_stop_ids,
                       MAX_STOP_IDS);
    if (n_prompt < 0) return SF_FAIL(err, SF_INVALID, "prompt has %d tokens, expected >= 0", n_prompt);
    return SF_OK;
}

/* A copy of n elements; *out stays NULL when n is 0. */
static bool copy_array(void *out, const void *src, int n, size_t size) {
    void *p = NULL;
    if (n > 0) {
        p = malloc((size_t)n * size);
        if (!p) return false;
        memcpy(p, src, (size_t)n * size);
    }
    memcpy(out, &p, sizeof p);
    return true;
}

static bool copy_all(sf_request *r, const sf_params *p, const int32_t *prompt, int n_prompt) {
    bool ok = copy_array(&r->prompt, prompt, n_prompt, sizeof *prompt) &&
              copy_array(&r->params.stop_ids, p->stop_ids, p->n_stop_ids, sizeof *p->stop_ids) &&
              copy_array(&r->params.bias, p->bias, p->n_bias, sizeof *p->bias);
    r->banned = calloc(SF_STOP_MAX, sizeof *r->banned);
    r->seqs = calloc((size_t)p->n, sizeof *r->seqs);
    if (p->prompt_logprobs >= 0 && n_prompt > 0) {
        r->prompt_lp = calloc((size_t)n_prompt, sizeof *r->prompt_lp);
        ok = ok && r->prompt_lp;
    }
    return ok && r->banned && r->seqs;
}

sf_code sf_request_create(const sf_params *p, const int32_t *prompt, int n_prompt, sf_request **out,
                          sf_err *err) {
    sf_code rc = check_sampling(p, err);
    if (rc == SF_OK) rc = check_counts(p, n_prompt, err);
    if (rc != SF_OK) return rc;

    sf_request *r = calloc(1, sizeof *r);
    if (!r) return SF_FAIL(err, SF_NOMEM, "a request of %zu bytes", sizeof *r);
    r->params = *p;
    r->params.stop_ids = NULL;
    r->params.bias = NULL;
    r->params.stop = NULL;
    r->n_prompt = n_prompt;
    atomic_init(&r->cancel, false);
    rc = sf_stops_init(&r->stops, p->n_stop, p->stop, err);
    if (rc != SF_OK) goto done;
    if (!copy_all(r, p, prompt, n_prompt)) {
        rc = SF_FAIL(err, SF_NOMEM, "a request of %d prompt tokens and %d choices", n_prompt, p->n);
        goto done;
    }
    r->params.stop = (const char *const *)r->stops.text;
    for (int i = 0; i < p->n; i++) {
        r->seqs[i].req = r;
        r->seqs[i].index = i;
    }
    *out = r;
done:
    if (rc != SF_OK) sf_request_destroy(r);
    return rc;
}

void sf_request_destroy(sf_request *r) {
    if (!r) return;
    for (int i = 0; r->seqs && i < r->params.n; i++)
        sf_seq_fini(&r->seqs[i]);
    sf_stops_fini(&r->stops);
    free(r->seqs);
    free(r->prompt_lp);
    free(r->banned);
    free(r->prompt);
    free((void *)(uintptr_t)r->params.stop_ids);
    free((void *)(uintptr_t)r->params.bias);
    free(r);
}

void sf_request_fail(sf_request *r, const sf_err *err) {
    if (r->failed) return;
    r->failed = true;
    r->error = *err;
}

const sf_params *sf_request_params(const sf_request *r) {
    return &r->params;
}

const int32_t *sf_request_prompt(const sf_request *r, int *n) {
    *n = r->n_prompt;
    return r->prompt;
}

void sf_request_choice(const sf_request *r, int i, sf_choice *out) {
    const sf_seq *q = &r->seqs[i];
    *out = (sf_choice){.tokens = q->tokens,
                       .n_tokens = q->committed.n_tokens,
                       .text = q->shown.data ? q->shown.data : "",
                       .text_len = q->shown.len,
                       .finish = q->committed.finish};
}

const sf_token *sf_request_prompt_logprobs(const sf_request *r) {
    return r->prompt_lp_done ? r->prompt_lp : NULL;
}

void sf_request_stats_get(const sf_request *r, sf_request_stats *out) {
    *out = r->stats;
}

bool sf_request_admitted(const sf_request *r) {
    return r->n_admitted > 0;
}

bool sf_request_done(const sf_request *r) {
    return r->n_done == r->params.n;
}

const sf_err *sf_request_error(const sf_request *r) {
    return r->failed ? &r->error : NULL;
}

void sf_request_set_user(sf_request *r, void *user) {
    r->user = user;
}

void *sf_request_user(const sf_request *r) {
    return r->user;
}
