#include "api/audit.h"

#include "api/json.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- reading ---- */

/* Choice i of the answer, borrowed; an answer of `run` with one choice is that choice. */
static const json_t *choice_of(const json_t *answer, int i) {
    const json_t *list = json_object_get(answer, "choices");
    if (!list) return i == 0 ? answer : NULL;
    return json_array_get(list, (size_t)i);
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
    *answer = json_incref(said);
    return SF_OK;
}

static sf_code expect(const json_t *answer, int index, int choice, sf_request *r, sf_api_error *err) {
    const json_t *list = json_object_get(choice_of(answer, index), "token_ids");
    sf_ids ids = {0};
    sf_err below;
    sf_code rc = SF_OK;
    size_t i;
    const json_t *v;
    json_array_foreach(list, i, v) {
        const json_int_t id = json_integer_value(v);
        if (!json_is_integer(v) || id < 0 || id > INT32_MAX) {
            rc = sf_api_fail(err, "answer", "invalid_value", "token_ids[%zu] of choice %d is not a token id",
                             i, choice);
            break;
        }
        rc = sf_ids_push(&ids, (int32_t)id, &below);
        if (rc != SF_OK) {
            sf_api_error_from(&below, err);
            break;
        }
    }
    if (rc == SF_OK) {
        rc = sf_request_expect(r, choice, ids.data, (int)ids.len, &below);
        if (rc != SF_OK) sf_api_error_from(&below, err);
    }
    sf_ids_fini(&ids);
    return rc;
}

sf_code sf_api_audit_expect(const json_t *answer, int prompt, sf_request *r, sf_api_error *err) {
    const int n = sf_request_params(r)->n;
    for (int k = 0; k < n; k++)
        SF_TRY(expect(answer, prompt * n + k, k, r, err));
    return SF_OK;
}

/* ---- comparing ---- */

/* The answer's log-probability of token i, in either form; false: it has none. */
static bool logprob_of(const json_t *choice, size_t i, size_t echoed, float *out) {
    const json_t *all = json_object_get(choice, "logprobs"), *v;
    const json_t *list = json_object_get(all, "token_logprobs");
    v = list ? json_array_get(list, echoed + i)
             : json_object_get(json_array_get(json_object_get(all, "content"), i), "logprob");
    if (!json_is_number(v)) return false;
    const double d = json_number_value(v);
    *out = d <= -9999 ? -INFINITY : (float)d;
    return true;
}

static json_t *told(const char *key, json_t *value, bool *ok) {
    json_t *o = json_object();
    sf_json_put(o, key, value, ok);
    return o;
}

static json_t *mismatch(int position, const char *what, json_t *answer, json_t *replay, bool *ok) {
    json_t *o = json_object();
    sf_json_put(o, "position", json_integer(position), ok);
    sf_json_put(o, "what", json_string(what), ok);
    sf_json_put(o, "answer", answer, ok);
    sf_json_put(o, "replay", replay, ok);
    return o;
}

static json_t *first_other_token(const json_t *choice, const sf_choice *c, size_t echoed, bool *ok) {
    const json_t *ids = json_object_get(choice, "token_ids");
    const int n = (int)json_array_size(ids);
    for (int i = 0; i < c->n_tokens; i++) {
        const json_int_t id = i < n ? json_integer_value(json_array_get(ids, (size_t)i)) : -1;
        float logprob;
        if (id != c->tokens[i].id)
            return mismatch(i, i < n ? "token" : "length",
                            i < n ? told("token_id", json_integer(id), ok) : json_null(),
                            told("token_id", json_integer(c->tokens[i].id), ok), ok);
        if (logprob_of(choice, (size_t)i, echoed, &logprob) &&
            memcmp(&logprob, &c->tokens[i].logprob, sizeof logprob) != 0)
            return mismatch(i, "logprob", told("logprob", sf_json_logprob(logprob), ok),
                            told("logprob", sf_json_logprob(c->tokens[i].logprob), ok), ok);
    }
    if (c->n_tokens < n)
        return mismatch(
            c->n_tokens, "length",
            told("token_id", json_integer(json_integer_value(json_array_get(ids, (size_t)c->n_tokens))), ok),
            json_null(), ok);
    return NULL;
}

/* NULL: it is exactly what this engine would have said. */
static json_t *compare(const json_t *choice, const sf_choice *c, size_t echoed, bool *ok) {
    json_t *found = first_other_token(choice, c, echoed, ok);
    const char *said = json_string_value(json_object_get(choice, "finish_reason")),
               *would = sf_api_finish_name(c->finish);
    if (found || !said || strcmp(said, would) == 0) return found;
    return mismatch(c->n_tokens, "finish_reason", told("finish_reason", json_string(said), ok),
                    told("finish_reason", json_string(would), ok), ok);
}

static json_t *choice_json(const sf_api_request *req, const json_t *answer, const sf_api_answer *replay,
                           int prompt, int k, bool *all, bool *ok) {
    const int index = prompt * replay->n_choices + k;
    const size_t echoed = req->echo ? (size_t)replay->n_prompt : 0;
    json_t *o = json_object(), *found = compare(choice_of(answer, index), &replay->choices[k], echoed, ok);
    *all = *all && !found;
    sf_json_put(o, "index", json_integer(index), ok);
    sf_json_put(o, "match", json_boolean(!found), ok);
    sf_json_put(o, "tokens", json_integer(replay->choices[k].n_tokens), ok);
    sf_json_put(o, "mismatch", found ? found : json_null(), ok);
    return o;
}

/* Puts key: whether the answer's value is ours, null where it has none; returns false where it isn't. */
static bool put_same(json_t *o, const char *key, const json_t *said, const char *ours, bool *ok) {
    const char *text = json_string_value(said);
    const bool same = text && strcmp(text, ours) == 0;
    sf_json_put(o, key, text ? json_boolean(same) : json_null(), ok);
    return !text || same;
}

/* Whether the digests are the same, or cannot be for they are of two fingerprints. */
static bool put_digest(const sf_api_model *m, const json_t *answer, const sf_api_answer *replay,
                       bool same_build, json_t *o, bool *ok) {
    json_t *ours = sf_api_determinism_json(m, replay), *digest = json_object_get(ours, "digest");
    const json_t *said = json_object_get(json_object_get(answer, "determinism"), "digest");
    bool same = true;
    sf_json_put(o, "digest", json_incref(digest), ok);
    if (digest) same = put_same(o, "digest_match", said, json_string_value(digest), ok);
    json_decref(ours);
    return same || !same_build;
}

sf_code sf_api_audit_json(const sf_api_model *m, const sf_api_request *req, const json_t *answer,
                          const sf_request *const *replays, json_t **out, sf_api_error *err) {
    json_t *o = json_object(), *choices = json_array(), *usage = json_object();
    bool ok = o && choices && usage, all = true;
    int64_t prompt = 0, tokens = 0;
    sf_json_put(o, "object", json_string("audit"), &ok);
    sf_json_put(o, "system_fingerprint", json_string(m->fingerprint), &ok);
    const bool same_build =
        put_same(o, "fingerprint_match", json_object_get(answer, "system_fingerprint"), m->fingerprint, &ok);
    for (int i = 0; i < req->n_prompts; i++) {
        sf_choice store[SF_N_MAX];
        sf_api_answer replay;
        sf_api_answer_of(replays[i], store, &replay);
        for (int k = 0; k < replay.n_choices; k++) {
            sf_json_push(choices, choice_json(req, answer, &replay, i, k, &all, &ok), &ok);
            tokens += replay.choices[k].n_tokens;
        }
        prompt += replay.n_prompt;
        if (req->n_prompts == 1) all = put_digest(m, answer, &replay, same_build, o, &ok) && all;
    }
    sf_json_put(o, "match", json_boolean(all), &ok);
    sf_json_put(o, "choices", choices, &ok);
    sf_json_put(usage, "prompt_tokens", json_integer(prompt), &ok);
    sf_json_put(usage, "completion_tokens", json_integer(tokens), &ok);
    sf_json_put(usage, "total_tokens", json_integer(prompt + tokens), &ok);
    sf_json_put(o, "usage", usage, &ok);
    if (ok) {
        *out = o;
        return SF_OK;
    }
    json_decref(o);
    return sf_api_nomem(err);
}
