#include "api/answer.h"

#include "api/digest.h"
#include "api/json.h"

#include <stdlib.h>
#include <string.h>

void sf_api_answer_of(const sf_request *r, sf_choice *store, sf_api_answer *out) {
    *out = (sf_api_answer){.params = sf_request_params(r), .choices = store};
    out->prompt = sf_request_prompt(r, &out->n_prompt);
    out->prompt_logprobs = sf_request_prompt_logprobs(r);
    out->n_choices = out->params->n;
    for (int i = 0; i < out->n_choices; i++)
        sf_request_choice(r, i, &store[i]);
    sf_request_stats_get(r, &out->stats);
}

const char *sf_api_finish_name(sf_finish f) {
    switch (f) {
    case SF_FINISH_NONE:
        return NULL;
    case SF_FINISH_STOP:
        return "stop";
    case SF_FINISH_LENGTH:
        return "length";
    case SF_FINISH_CANCELLED:
        return "cancelled";
    case SF_FINISH_ERROR:
        return "error";
    }
    return NULL;
}

json_t *sf_api_ids_json(const int32_t *ids, int n) {
    json_t *list = json_array();
    bool ok = list != NULL;
    for (int i = 0; i < n; i++)
        sf_json_push(list, json_integer(ids[i]), &ok);
    return sf_json_done(list, ok);
}

json_t *sf_api_tokens_json(const sf_token *tokens, int n) {
    json_t *list = json_array();
    bool ok = list != NULL;
    for (int i = 0; i < n; i++)
        sf_json_push(list, json_integer(tokens[i].id), &ok);
    return sf_json_done(list, ok);
}

json_t *sf_api_usage_json(int64_t prompt_tokens, int64_t completion_tokens) {
    json_t *o = json_object();
    bool ok = o != NULL;
    sf_json_put(o, "prompt_tokens", json_integer(prompt_tokens), &ok);
    sf_json_put(o, "completion_tokens", json_integer(completion_tokens), &ok);
    sf_json_put(o, "total_tokens", json_integer(prompt_tokens + completion_tokens), &ok);
    return sf_json_done(o, ok);
}

json_t *sf_api_progress_json(const sf_params *params, const sf_request_stats *stats) {
    json_t *o = json_object();
    bool ok = o != NULL;
    sf_json_put(o, "class", json_string(params->deterministic ? "pinned" : "fast"), &ok);
    sf_json_put(o, "seed", json_integer(params->seed), &ok);
    sf_json_put(o, "windows_verified", json_integer(stats->windows_verified), &ok);
    sf_json_put(o, "rollbacks", json_integer(stats->rollbacks), &ok);
    sf_json_put(o, "tokens_rolled_back", json_integer(stats->tokens_rolled_back), &ok);
    return sf_json_done(o, ok);
}

json_t *sf_api_determinism_json(const sf_api_model *m, const sf_api_answer *a) {
    char digest[65];
    json_t *o = sf_api_progress_json(a->params, &a->stats);
    bool ok = o != NULL && sf_api_digest(m->fingerprint, a, digest);
    if (ok) sf_json_put(o, "digest", json_string(digest), &ok);
    return sf_json_done(o, ok);
}

json_t *sf_api_text_json(const sf_api_model *m, const sf_api_answer *a, const char *part, size_t len,
                         bool with_prompt) {
    if (!with_prompt || !m->tokenizer) return sf_json_text(part, len);
    sf_buf all = {0};
    sf_err e;
    json_t *text = NULL;
    if (sf_tokenizer_decode(m->tokenizer, a->prompt, (size_t)a->n_prompt, false, &all, &e) == SF_OK &&
        sf_buf_append(&all, part, len, &e) == SF_OK)
        text = sf_json_text(all.data ? all.data : "", all.len);
    sf_buf_fini(&all);
    return text;
}

static void put_choice(const sf_api_model *m, const sf_api_request *req, const sf_api_answer *a, int i,
                       json_t *o, bool *ok) {
    const sf_choice *c = &a->choices[i];
    const char *finish = sf_api_finish_name(c->finish);
    int64_t chars = 0;
    sf_json_put(o, "text", sf_api_text_json(m, a, c->text, c->text_len, req->echo), ok);
    sf_json_put(o, "token_ids", sf_api_tokens_json(c->tokens, c->n_tokens), ok);
    sf_json_put(o, "finish_reason", finish ? json_string(finish) : json_null(), ok);
    if (req->logprobs >= 0)
        sf_json_put(o, "logprobs", sf_api_logprobs_json(m, req, a, i, req->echo, &chars), ok);
}

static json_t *choices_json(const sf_api_model *m, const sf_api_request *req, const sf_api_answer *a) {
    json_t *list = json_array();
    bool ok = list != NULL;
    for (int i = 0; i < a->n_choices; i++) {
        json_t *o = json_object();
        sf_json_put(o, "index", json_integer(i), &ok);
        put_choice(m, req, a, i, o, &ok);
        sf_json_push(list, o, &ok);
    }
    return sf_json_done(list, ok);
}

sf_code sf_api_answer_json(const sf_api_model *m, const sf_api_request *req, const sf_api_answer *a,
                           json_t **out, sf_api_error *err) {
    json_t *o = json_object();
    bool ok = o != NULL;
    int64_t tokens = 0;
    for (int i = 0; i < a->n_choices; i++)
        tokens += a->choices[i].n_tokens;
    sf_json_put(o, "id", req->id ? json_incref(req->id) : json_null(), &ok);
    if (a->n_choices == 1) {
        put_choice(m, req, a, 0, o, &ok);
    } else {
        sf_json_put(o, "choices", choices_json(m, req, a), &ok);
    }
    if (req->prompt_logprobs >= 0 && a->prompt_logprobs)
        sf_json_put(o, "prompt_logprobs", sf_api_prompt_logprobs_json(m, req, a), &ok);
    if (req->return_token_ids)
        sf_json_put(o, "prompt_token_ids", sf_api_ids_json(a->prompt, a->n_prompt), &ok);
    sf_json_put(o, "usage", sf_api_usage_json(a->n_prompt, tokens), &ok);
    sf_json_put(o, "determinism", sf_api_determinism_json(m, a), &ok);
    sf_json_put(o, "system_fingerprint", json_string(m->fingerprint), &ok);
    if (ok) {
        *out = o;
        return SF_OK;
    }
    json_decref(o);
    return sf_api_nomem(err);
}
