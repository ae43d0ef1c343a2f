#include "api/audit.h"

#include "api/audit_priv.h"
#include "api/json.h"

#include <stdio.h>
#include <string.h>

/* ---- reading ---- */

/* Choice i of the answer, borrowed; an answer of `run` with one choice is that choice. */
static const json_t *choice_of(const json_t *answer, int i) {
    const json_t *list = json_object_get(answer, "choices");
    if (!list) return i == 0 ? answer : NULL;
    return json_array_get(list, (size_t)i);
}

/* Whether what is said of each prompt stands in lists. */
static bool in_list(const sf_api_request *req) {
    return req->n_prompts > 1;
}

/* What the answer reports of a prompt, borrowed, or NULL. */
static const json_t *determinism_of(const sf_api_request *req, const json_t *answer, int prompt) {
    const json_t *all = json_object_get(answer, "determinism");
    return in_list(req) ? json_array_get(all, (size_t)prompt) : all;
}

static sf_code part(json_t *body, const char *name, json_t **out, sf_api_error *err) {
    char found[80];
    *out = json_object_get(body, name);
    if (json_is_object(*out)) return SF_OK;
    if (!*out) return sf_api_fail(err, name, "missing", "%s is missing, expected an object", name);
    return sf_api_fail(err, name, "invalid_type", "%s is %s, expected an object", name,
                       sf_json_describe(*out, found, sizeof found));
}

static sf_code check_choices(const sf_api_request *req, const json_t *answer, sf_api_error *err) {
    const int n = req->n_prompts * req->params.n;
    const json_t *list = json_object_get(answer, "choices");
    const size_t have = list ? json_array_size(list) : 1;
    if (have != (size_t)n)
        return sf_api_fail(err, "answer", "invalid_value", "answer has %zu choices, the request asks for %d",
                           have, n);
    for (int i = 0; i < n; i++)
        if (!json_is_array(json_object_get(choice_of(answer, i), "token_ids")))
            return sf_api_fail(
                err, "answer", "missing",
                "choice %d of answer has no token_ids: they come with return_token_ids in the request", i);
    return SF_OK;
}

/* A request without a seed got the one that its answer reports. */
static sf_code take_seed(const sf_api_model *m, const json_t *answer, sf_api_request *req,
                         sf_api_error *err) {
    const json_t *seed = json_object_get(determinism_of(req, answer, 0), "seed");
    char found[80];
    if (sf_api_request_seeded(req)) return SF_OK;
    req->params.seed = m->seed;
    if (!seed || json_is_null(seed)) return SF_OK;
    if (!json_is_integer(seed))
        return sf_api_fail(err, "answer", "invalid_type", "determinism.seed is %s, expected a 64-bit integer",
                           sf_json_describe(seed, found, sizeof found));
    req->params.seed = json_integer_value(seed);
    return SF_OK;
}

sf_code sf_api_audit_read(const sf_api_model *m, json_t *body, sf_api_request *out, json_t **answer,
                          sf_api_error *err) {
    json_t *request, *said; /* both the body's */
    SF_TRY(part(body, "request", &request, err));
    SF_TRY(part(body, "answer", &said, err));
    SF_TRY(sf_api_request_read(m, SF_API_RUN, request, out, err));
    SF_TRY(sf_api_request_prompts(m, out, err));
    out->params.deterministic = true;
    out->stream = false;
    SF_TRY(check_choices(out, said, err));
    SF_TRY(take_seed(m, said, out, err));
    *answer = json_incref(said);
    return SF_OK;
}

static sf_code expect(const sf_api_model *m, const json_t *answer, int index, int choice, sf_request *r,
                      sf_api_error *err) {
    const json_t *one = choice_of(answer, index), *list = json_object_get(one, "token_ids");
    char name[40] = "token_ids";
    sf_ids ids = {0};
    sf_err below;
    if (one != answer) snprintf(name, sizeof name, "choices[%d].token_ids", index);
    sf_code rc = sf_api_read_ids(m, name, list, &ids, err);
    if (rc == SF_OK) {
        rc = sf_request_expect(r, choice, ids.data, (int)ids.len, &below);
        if (rc != SF_OK) sf_api_error_from(&below, err);
    }
    sf_ids_fini(&ids);
    return rc;
}

sf_code sf_api_audit_expect(const sf_api_model *m, const json_t *answer, int prompt, sf_request *r,
                            sf_api_error *err) {
    const int n = sf_request_params(r)->n;
    for (int k = 0; k < n; k++)
        SF_TRY(expect(m, answer, prompt * n + k, k, r, err));
    return SF_OK;
}

/* ---- comparing ---- */

static json_t *choice_json(const sf_api_model *m, const sf_api_request *req, const json_t *answer,
                           const sf_api_answer *replay, int prompt, int k, bool *all, bool *ok) {
    const int index = prompt * replay->n_choices + k;
    audit_said said = {.choice = choice_of(answer, index),
                       .seed = json_object_get(determinism_of(req, answer, prompt), "seed")};
    said.prompt_logprobs = json_object_get(said.choice, "prompt_logprobs");
    if (!said.prompt_logprobs && k == 0) said.prompt_logprobs = json_object_get(answer, "prompt_logprobs");
    json_t *o = json_object(), *found = audit_compare(m, req, &said, replay, k, ok);
    *all = *all && !found;
    sf_json_put(o, "index", json_integer(index), ok);
    sf_json_put(o, "match", json_boolean(!found), ok);
    sf_json_put(o, "tokens", json_integer(replay->choices[k].n_tokens), ok);
    sf_json_put(o, "mismatch", found ? found : json_null(), ok);
    return o;
}

/* Whether the answer's value is ours; null where it has none. Clears *all where it isn't. */
static json_t *same_json(const json_t *said, const char *ours, bool *all) {
    const char *text = json_string_value(said);
    const bool same = text && strcmp(text, ours) == 0;
    *all = *all && (same || !text);
    return text ? json_boolean(same) : json_null();
}

/* Puts value under key: of a list of prompts, into the list there. */
static void put_each(const sf_api_request *req, json_t *o, const char *key, json_t *value, bool *ok) {
    if (!in_list(req)) {
        sf_json_put(o, key, value, ok);
        return;
    }
    json_t *list = json_object_get(o, key);
    if (!list) {
        list = json_array();
        sf_json_put(o, key, list, ok);
    }
    sf_json_push(list, value, ok);
}

static void put_digest(const sf_api_model *m, const sf_api_request *req, const json_t *answer, int prompt,
                       const sf_api_answer *replay, json_t *o, bool *all, bool *ok) {
    json_t *ours = sf_api_determinism_json(m, replay), *digest = json_object_get(ours, "digest");
    const json_t *said = json_object_get(determinism_of(req, answer, prompt), "digest");
    if (!digest) *ok = false;
    if (digest) {
        put_each(req, o, "digest", json_incref(digest), ok);
        put_each(req, o, "digest_match", same_json(said, json_string_value(digest), all), ok);
    }
    json_decref(ours);
}

sf_code sf_api_audit_json(const sf_api_model *m, const sf_api_request *req, const json_t *answer,
                          const sf_request *const *replays, json_t **out, sf_api_error *err) {
    json_t *o = json_object(), *choices = json_array();
    bool ok = o && choices, all = true, same_build = true, same_digests = true;
    int64_t prompt = 0, tokens = 0;
    sf_json_put(o, "object", json_string("audit"), &ok);
    sf_json_put(o, "system_fingerprint", json_string(m->fingerprint), &ok);
    sf_json_put(o, "fingerprint_match",
                same_json(json_object_get(answer, "system_fingerprint"), m->fingerprint, &same_build), &ok);
    for (int i = 0; i < req->n_prompts; i++) {
        sf_choice store[SF_N_MAX];
        sf_api_answer replay;
        sf_api_answer_of(replays[i], store, &replay);
        for (int k = 0; k < replay.n_choices; k++) {
            sf_json_push(choices, choice_json(m, req, answer, &replay, i, k, &all, &ok), &ok);
            tokens += replay.choices[k].n_tokens;
        }
        prompt += replay.n_prompt;
        put_digest(m, req, answer, i, &replay, o, &same_digests, &ok);
    }
    /* The digest is over the fingerprint too: another build's cannot be ours. */
    sf_json_put(o, "match", json_boolean(all && (same_digests || !same_build)), &ok);
    sf_json_put(o, "choices", choices, &ok);
    sf_json_put(o, "usage", sf_api_usage_json(prompt, tokens), &ok);
    if (ok) {
        *out = o;
        return SF_OK;
    }
    json_decref(o);
    return sf_api_nomem(err);
}
