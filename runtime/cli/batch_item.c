#include "api/audit.h"
#include "api/fields.h"
#include "api/json.h"
#include "cli/batch_priv.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static sf_code no_memory(sf_err *err) {
    return SF_FAIL(err, SF_NOMEM, "out of memory for a request");
}

void batch_item_destroy(batch_item *it) {
    if (!it) return;
    sf_request_destroy(it->req);
    sf_api_request_fini(&it->api);
    json_decref(it->answer);
    json_decref(it->id);
    free(it->text);
    free(it);
}

/* {"id", "line", "error"}: the item is finished, as a failure. */
static sf_code finish_error(batch_item *it, const sf_api_error *why, sf_err *err) {
    json_t *o = json_object();
    bool ok = o != NULL;
    sf_json_put(o, "id", it->id ? json_incref(it->id) : json_null(), &ok);
    sf_json_put(o, "line", json_integer(it->line), &ok);
    sf_json_put(o, "error", sf_api_error_json(why), &ok);
    it->text = ok ? sf_json_dump(o) : NULL;
    json_decref(o);
    sf_request_destroy(it->req);
    it->req = NULL;
    sf_api_request_fini(&it->api); /* the line's body need not wait until its turn to be written */
    it->failed = true;
    return it->text ? SF_OK : no_memory(err);
}

static sf_code finish_below(batch_item *it, const sf_err *why, sf_err *err) {
    sf_api_error e;
    sf_api_error_from(why, &e);
    return finish_error(it, &e, err);
}

/* Request fields given as flags hold for lines that do not set them, by whichever name. */
static sf_code add_flags(json_t *body, json_t *flags, sf_api_error *why) {
    const char *key;
    json_t *v;
    json_object_foreach(flags, key, v) {
        const char *alias = sf_api_field_alias(sf_api_field_find(key));
        if (json_object_get(body, key) || (alias && json_object_get(body, alias))) continue;
        if (json_object_set(body, key, v) != 0) return sf_api_nomem(why);
    }
    return SF_OK;
}

/* The line's id, from text where the line could not be read (body NULL). Owned by the caller, or NULL. */
static json_t *line_id(const json_t *body, sf_text text) {
    static const char *const names[] = {"id", "custom_id"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        json_t *id = body ? json_incref(json_object_get(body, names[i]))
                          : sf_json_salvage(text.data, text.len, names[i]);
        if (sf_api_id_usable(id)) return id;
        json_decref(id);
    }
    return NULL;
}

/* Puts a line of --answers beside its request, as an audit's body has them. Takes request. */
static sf_code join_answer(json_t **body, const sf_text *answer, const char *what, sf_api_error *why) {
    json_t *said = NULL, *both = json_object();
    bool ok = both != NULL;
    sf_code rc = sf_json_parse(answer->data, answer->len, what, &said, why);
    sf_json_put(both, "request", *body, &ok);
    if (rc == SF_OK) sf_json_put(both, "answer", said, &ok);
    *body = both;
    return rc == SF_OK && !ok ? sf_api_nomem(why) : rc;
}

static sf_code read_body(const sf_api_model *m, const sf_cli_opts *o, batch_item *it, json_t *body,
                         sf_api_error *why) {
    if (o->verb == SF_VERB_AUDIT) return sf_api_audit_read(m, body, &it->api, &it->answer, why);
    SF_TRY(add_flags(body, o->fields, why));
    SF_TRY(sf_api_request_read(m, SF_API_RUN, body, &it->api, why));
    return sf_api_request_prompts(m, &it->api, why);
}

static sf_code read_request(const sf_api_model *m, const sf_cli_opts *o, batch_item *it, sf_text text,
                            const sf_text *answer, sf_api_error *why) {
    json_t *body = NULL;
    char what[48];
    snprintf(what, sizeof what, "line %lld", (long long)it->line);
    sf_code rc = sf_json_parse(text.data, text.len, what, &body, why);
    it->id = line_id(rc == SF_OK ? body : NULL, text);
    if (rc != SF_OK) return rc;
    snprintf(what, sizeof what, "line %lld of the answers", (long long)it->line);
    if (answer) rc = join_answer(&body, answer, what, why);
    if (rc == SF_OK) rc = read_body(m, o, it, body, why);
    json_decref(body);
    if (rc == SF_OK && it->api.n_prompts != 1) {
        rc = sf_api_fail(why, "prompt", "invalid_value", "prompt lists %d prompts, expected one in a line",
                         it->api.n_prompts);
    }
    return rc;
}

static sf_code new_item(int64_t line, batch_item **out, sf_err *err) {
    *out = calloc(1, sizeof **out);
    if (!*out) return no_memory(err);
    (*out)->line = line;
    return SF_OK;
}

sf_code batch_item_reject(int64_t line, const char *message, batch_item **out, sf_err *err) {
    batch_item *it;
    SF_TRY(new_item(line, &it, err));
    sf_api_error why;
    sf_code rc = sf_api_fail(&why, NULL, "invalid_json", "%s", message);
    rc = finish_error(it, &why, err);
    if (rc != SF_OK) {
        batch_item_destroy(it);
        return rc;
    }
    *out = it;
    return SF_OK;
}

static sf_code create_request(const sf_api_model *m, batch_item *it, sf_api_error *why) {
    sf_err below;
    const sf_ids *ids = &it->api.prompts[0];
    it->n_prompt = (int)ids->len;
    sf_code rc = sf_request_create(&it->api.params, ids->data, it->n_prompt, &it->req, &below);
    if (rc != SF_OK) {
        sf_api_error_from(&below, why);
        return rc;
    }
    return it->answer ? sf_api_audit_expect(m, it->answer, 0, it->req, why) : SF_OK;
}

sf_code batch_item_create(const sf_api_model *m, const sf_cli_opts *o, int64_t line, sf_text text,
                          const sf_text *answer, batch_item **out, sf_err *err) {
    batch_item *it;
    SF_TRY(new_item(line, &it, err));
    sf_api_error why;
    sf_code rc = read_request(m, o, it, text, answer, &why);
    if (rc == SF_OK) rc = create_request(m, it, &why);
    rc = rc == SF_OK ? SF_OK : finish_error(it, &why, err);
    if (rc != SF_OK) {
        batch_item_destroy(it);
        return rc;
    }
    *out = it;
    return SF_OK;
}

sf_code batch_item_submit(sf_engine *e, batch_item *it, bool *full, sf_err *err) {
    sf_err why;
    sf_code rc = sf_sched_submit(sf_engine_sched(e), it->req, &why);
    *full = rc == SF_FULL;
    return rc == SF_OK || *full ? SF_OK : finish_below(it, &why, err);
}

/* The verdict, with the line's id; one that isn't a match counts as failed. */
static sf_code verdict(const sf_api_model *m, batch_item *it, json_t **out, sf_api_error *why) {
    const sf_request *replay = it->req;
    bool ok = true;
    SF_TRY(sf_api_audit_json(m, &it->api, it->answer, &replay, out, why));
    sf_json_put(*out, "id", it->id ? json_incref(it->id) : json_null(), &ok);
    it->failed = !json_is_true(json_object_get(*out, "match"));
    return ok ? SF_OK : sf_api_nomem(why);
}

sf_code batch_item_finish(const sf_api_model *m, batch_item *it, sf_err *err) {
    const sf_err *failed = sf_request_error(it->req);
    if (failed) return finish_below(it, failed, err);
    sf_choice choices[SF_N_MAX];
    sf_api_answer a;
    sf_api_answer_of(it->req, choices, &a);
    for (int i = 0; i < a.n_choices; i++)
        it->n_output += a.choices[i].n_tokens;
    json_t *o = NULL;
    sf_api_error why;
    const sf_code rc = it->answer ? verdict(m, it, &o, &why) : sf_api_answer_json(m, &it->api, &a, &o, &why);
    it->text = rc == SF_OK ? sf_json_dump(o) : NULL;
    json_decref(o);
    if (rc != SF_OK) return finish_error(it, &why, err);
    sf_request_destroy(it->req);
    it->req = NULL;
    sf_api_request_fini(&it->api); /* the answer is a line now: keep no more of it */
    json_decref(it->answer);
    it->answer = NULL;
    return it->text ? SF_OK : no_memory(err);
}
