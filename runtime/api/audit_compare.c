/* Comparing one choice of an answer with its replay. What the replay says is written as an answer would have
 * it, so that whatever an answer may hold is compared in one way. */
#include "api/audit_priv.h"

#include "api/json.h"

#include <string.h>

/* A member of log-probabilities, in the lists of a completion and in the entries of a chat. */
typedef struct part {
    const char *name, *list, *entry;
} part;

static const part parts[] = {{"logprob", "token_logprobs", "logprob"},
                             {"top_logprobs", "top_logprobs", "top_logprobs"},
                             {"token", "tokens", "token"},
                             {"bytes", NULL, "bytes"},
                             {"text_offset", "text_offset", NULL},
                             {"logprobs.token_ids", "token_ids", NULL}};

/* Numbers are compared as fp32: an answer's decimals are another double than the value they were made from.
 */
static bool same(const json_t *a, const json_t *b) {
    const char *key;
    const json_t *v;
    size_t i;
    if (json_is_integer(a) && json_is_integer(b)) return json_integer_value(a) == json_integer_value(b);
    if (json_is_number(a) && json_is_number(b))
        return (float)json_number_value(a) == (float)json_number_value(b);
    if (json_is_array(a) && json_array_size(a) == json_array_size(b)) {
        json_array_foreach(a, i, v) if (!same(v, json_array_get(b, i))) return false;
        return json_is_array(b);
    }
    if (json_is_object(a) && json_object_size(a) == json_object_size(b)) {
        json_object_foreach((json_t *)(uintptr_t)a, key,
                            v) if (!same(v, json_object_get(b, key))) return false;
        return json_is_object(b);
    }
    return json_equal(a, b);
}

static json_t *told(const char *key, const json_t *value, bool *ok) {
    json_t *o = json_object();
    sf_json_put(o, key, json_incref((json_t *)(uintptr_t)value), ok);
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

/* NULL where the answer does not have it, or has the same. */
static json_t *other(int position, const char *what, const json_t *said, const json_t *would, bool *ok) {
    if (!said || json_is_null(said) || same(said, would)) return NULL;
    return mismatch(position, what, told(what, said, ok), told(what, would, ok), ok);
}

static bool is_chat_form(const json_t *logprobs) {
    return json_is_array(json_object_get(logprobs, "content"));
}

/* Part p of entry i, null past the end. NULL: these log-probabilities have no such part. */
static const json_t *entry_of(const json_t *logprobs, const part *p, size_t i) {
    if (is_chat_form(logprobs)) {
        const json_t *entry = json_array_get(json_object_get(logprobs, "content"), i);
        if (!p->entry || !entry) return p->entry ? json_null() : NULL;
        return json_object_get(entry, p->entry);
    }
    const json_t *list = p->list ? json_object_get(logprobs, p->list) : NULL;
    if (!json_is_array(list)) return NULL;
    const json_t *v = json_array_get(list, i);
    return v ? v : json_null();
}

static json_t *other_logprob(const json_t *said, const json_t *would, size_t i, int position, bool *ok) {
    for (size_t p = 0; p < sizeof parts / sizeof *parts; p++) {
        const json_t *a = entry_of(said, &parts[p], i), *b = entry_of(would, &parts[p], i);
        if (a && !same(a, b))
            return mismatch(position, parts[p].name, told(parts[p].name, a, ok), told(parts[p].name, b, ok),
                            ok);
    }
    return NULL;
}

static json_t *other_id(const json_t *ids, const sf_choice *c, int i, bool *ok) {
    const json_t *said = json_array_get(ids, (size_t)i);
    if (i < c->n_tokens && said && json_integer_value(said) == c->tokens[i].id) return NULL;
    json_t *would = i < c->n_tokens ? json_integer(c->tokens[i].id) : NULL;
    json_t *o =
        mismatch(i, said && would ? "token" : "length", said ? told("token_id", said, ok) : json_null(),
                 would ? told("token_id", would, ok) : json_null(), ok);
    json_decref(would);
    return o;
}

/* The first token that is another one, or has another log-probability, in the order of positions: before 0
 * are the echoed prompt's. */
static json_t *other_token(const json_t *choice, const json_t *would, const sf_choice *c, int echoed,
                           bool *ok) {
    const json_t *ids = json_object_get(choice, "token_ids"), *said = json_object_get(choice, "logprobs");
    const int n = (int)json_array_size(ids) > c->n_tokens ? (int)json_array_size(ids) : c->n_tokens;
    json_t *found = NULL;
    for (int i = -echoed; i <= n && !found; i++) {
        if (i >= 0 && i < n) found = other_id(ids, c, i, ok);
        if (!found && json_is_object(said)) found = other_logprob(said, would, (size_t)(i + echoed), i, ok);
    }
    return found;
}

static json_t *logprobs_json(const sf_api_model *m, const sf_api_request *req, const json_t *said,
                             const sf_api_answer *replay, int k) {
    const sf_choice *c = &replay->choices[k];
    int64_t chars = 0;
    if (!json_is_object(said)) return json_null();
    if (is_chat_form(said)) return sf_api_chat_logprobs_json(m, req, c->tokens, c->n_tokens);
    return sf_api_logprobs_json(m, req, replay, k, req->echo, &chars);
}

static json_t *other_tokens(const sf_api_model *m, const sf_api_request *req, const json_t *choice,
                            const sf_api_answer *replay, int k, bool *ok) {
    const json_t *said = json_object_get(choice, "logprobs");
    const bool echoed = req->echo && json_is_object(said) && !is_chat_form(said);
    json_t *would = logprobs_json(m, req, said, replay, k), *found = NULL;
    if (!would) *ok = false;
    if (would) found = other_token(choice, would, &replay->choices[k], echoed ? replay->n_prompt : 0, ok);
    json_decref(would);
    return found;
}

static json_t *other_prompt(const sf_api_model *m, const sf_api_request *req, const json_t *said,
                            const sf_api_answer *replay, bool *ok) {
    if (!json_is_array(said)) return NULL;
    json_t *would = replay->prompt_logprobs ? sf_api_prompt_logprobs_json(m, req, replay) : json_array(),
           *found = NULL;
    const size_t n =
        json_array_size(said) > json_array_size(would) ? json_array_size(said) : json_array_size(would);
    if (!would) *ok = false;
    for (size_t i = 0; would && i < n && !found; i++) {
        const json_t *a = json_array_get(said, i), *b = json_array_get(would, i);
        if (!a || !b || !same(a, b))
            found = mismatch((int)i, "prompt_logprobs", a ? told("prompt_logprobs", a, ok) : json_null(),
                             b ? told("prompt_logprobs", b, ok) : json_null(), ok);
    }
    json_decref(would);
    return found;
}

static json_t *other_text(const sf_api_model *m, const sf_api_request *req, const json_t *choice,
                          const sf_api_answer *replay, int k, bool *ok) {
    const sf_choice *c = &replay->choices[k];
    const json_t *text = json_object_get(choice, "text"),
                 *content = json_object_get(json_object_get(choice, "message"), "content");
    json_t *would = sf_api_text_json(m, replay, c->text, c->text_len, text && req->echo);
    if (!would) *ok = false;
    json_t *found = would ? other(c->n_tokens, "text", text ? text : content, would, ok) : NULL;
    json_decref(would);
    return found;
}

json_t *audit_compare(const sf_api_model *m, const sf_api_request *req, const audit_said *said,
                      const sf_api_answer *replay, int k, bool *ok) {
    const sf_choice *c = &replay->choices[k];
    json_t *seed = json_integer(replay->params->seed), *finish = json_string(sf_api_finish_name(c->finish));
    if (!seed || !finish) *ok = false;
    json_t *found = *ok ? other(0, "seed", said->seed, seed, ok) : NULL;
    if (*ok && !found) found = other_prompt(m, req, said->prompt_logprobs, replay, ok);
    if (*ok && !found) found = other_tokens(m, req, said->choice, replay, k, ok);
    if (*ok && !found)
        found =
            other(c->n_tokens, "finish_reason", json_object_get(said->choice, "finish_reason"), finish, ok);
    if (*ok && !found) found = other_text(m, req, said->choice, replay, k, ok);
    json_decref(seed);
    json_decref(finish);
    return found;
}
