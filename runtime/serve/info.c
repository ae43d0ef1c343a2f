/* Models, health, version, metrics, tokens. */
#include "serve/http_priv.h"
#include "serve/serve_priv.h"

#include "api/answer.h"
#include "api/json.h"
#include "serve/page.h"

#include <string.h>

/* /tokenize takes longer texts than can be answered, but the HTTP thread serves nobody else meanwhile. */
#define COUNTED_CONTEXTS 8

static json_t *card(const sf_server *s) {
    const char *name = s->cfg->model;
    json_t *o = json_object();
    bool ok = o != NULL;
    sf_json_put(o, "id", json_string(name), &ok);
    sf_json_put(o, "object", json_string("model"), &ok);
    sf_json_put(o, "created", json_integer(s->started), &ok);
    sf_json_put(o, "owned_by", json_string("steadfast"), &ok);
    sf_json_put(o, "root", json_string(name), &ok);
    sf_json_put(o, "parent", json_null(), &ok);
    sf_json_put(o, "max_model_len", json_integer(s->model->max_context), &ok);
    return sf_json_done(o, ok);
}

void sf_handle_models(sf_server *s, struct evhttp_request *req) {
    static const char head[] = "/v1/models/";
    const char *path = evhttp_uri_get_path(evhttp_request_get_evhttp_uri(req));
    if (strncmp(path, head, sizeof head - 1) == 0) {
        char *name = evhttp_uridecode(path + sizeof head - 1, 0, NULL);
        const bool known = name && strcmp(name, s->cfg->model) == 0;
        if (known)
            sf_http_ok(s, req, card(s));
        else
            sf_http_fail(s, req, 404, "invalid_request_error", "model_not_found",
                         "model is \"%.100s\", this server has %s", name ? name : "", s->cfg->model);
        free(name);
        return;
    }
    json_t *o = json_object(), *data = json_array();
    bool ok = o && data;
    sf_json_push(data, card(s), &ok);
    sf_json_put(o, "object", json_string("list"), &ok);
    sf_json_put(o, "data", data, &ok);
    sf_http_ok(s, req, sf_json_done(o, ok));
}

void sf_handle_page(sf_server *s, struct evhttp_request *req) {
    struct evkeyvalq *h = evhttp_request_get_output_headers(req);
    evhttp_add_header(
        h, "Content-Security-Policy",
        "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src 'self'");
    evhttp_add_header(h, "X-Content-Type-Options", "nosniff");
    sf_http_text(s, req, 200, "text/html; charset=utf-8", sf_page, sf_page_size);
}

void sf_handle_health(sf_server *s, struct evhttp_request *req) {
    static const char *const names[] = {
        [SF_LOADING] = "loading", [SF_READY] = "ok", [SF_DRAINING] = "draining", [SF_FAILED] = "failed"};
    const int state = atomic_load(&s->state);
    json_t *o = json_object();
    bool ok = o != NULL;
    sf_json_put(o, "status", json_string(names[state]), &ok);
    const char *refused = state == SF_READY ? sf_engine_sched_config(s->engine)->refuse_deterministic : NULL;
    if (refused)
        sf_json_put(o, "deterministic_requests_refused", sf_json_text(refused, strlen(refused)), &ok);
    (void)sf_http_json(s, req, state == SF_READY ? 200 : 503, sf_json_done(o, ok));
}

void sf_handle_live(sf_server *s, struct evhttp_request *req) {
    (void)sf_http_json(s, req, 200, json_pack("{s:s}", "status", "ok"));
}

void sf_handle_version(sf_server *s, struct evhttp_request *req) {
    sf_http_ok(s, req, json_pack("{s:s}", "version", s->cfg->version));
}

void sf_handle_metrics(sf_server *s, struct evhttp_request *req) {
    sf_buf text = {0};
    sf_err err;
    sf_sched_stats stats;
    sf_sched_stats_get(sf_engine_sched(s->engine), &stats);
    if (sf_metrics_text(s->metrics, &stats, s->label, &text, &err) == SF_OK)
        sf_http_text(s, req, 200, "text/plain; version=0.0.4; charset=utf-8", text.data, text.len);
    else
        sf_http_fail(s, req, 500, "server_error", "out_of_memory", "out of memory");
    sf_buf_fini(&text);
}

/* ---- tokens ---- */

/* Another name for a field: the first that is there moves to the second. */
static void rename_field(json_t *body, const char *from, const char *to) {
    json_t *v = json_object_get(body, from);
    if (!v || json_object_get(body, to)) return;
    if (json_object_set(body, to, v) == 0) json_object_del(body, from);
}

static json_t *pieces_json(const sf_api_model *m, const sf_ids *ids, bool *ok) {
    json_t *list = json_array();
    for (size_t i = 0; i < ids->len; i++) {
        size_t len = 0;
        const char *piece = sf_tokenizer_piece(m->tokenizer, ids->data[i], &len);
        json_t *o = json_object(), *text = piece ? json_stringn(piece, len) : NULL;
        if (!text) { /* part of a character: its bytes */
            text = json_array();
            for (size_t k = 0; k < len; k++)
                sf_json_push(text, json_integer((unsigned char)piece[k]), ok);
        }
        sf_json_put(o, "id", json_integer(ids->data[i]), ok);
        sf_json_put(o, "piece", text, ok);
        sf_json_push(list, o, ok);
    }
    return list;
}

static json_t *tokens_json(const sf_server *s, const sf_ids *ids, bool with_pieces) {
    json_t *o = json_object();
    bool ok = o != NULL;
    sf_json_put(o, "count", json_integer((json_int_t)ids->len), &ok);
    sf_json_put(o, "max_model_len", json_integer(s->model->max_context), &ok);
    sf_json_put(o, "tokens",
                with_pieces && s->model->tokenizer ? pieces_json(s->model, ids, &ok)
                                                   : sf_api_ids_json(ids->data, (int)ids->len),
                &ok);
    return sf_json_done(o, ok);
}

/* The prompt is longer than what is counted. */
static sf_code fail_uncounted(const sf_server *s, const sf_api_model *m, sf_api_error *err) {
    const sf_api_error e = *err;
    const sf_code rc = sf_api_fail(err, e.param, "context_length_exceeded",
                                   "%s has %s%d tokens, expected at most %d: %d times the context of %d",
                                   e.param, e.at_least ? "at least " : "", e.n_prompt_tokens, m->max_context,
                                   COUNTED_CONTEXTS, s->model->max_context);
    err->n_prompt_tokens = e.n_prompt_tokens;
    err->n_ctx = s->model->max_context;
    return rc;
}

void sf_handle_tokenize(sf_server *s, struct evhttp_request *req) {
    json_t *body = NULL;
    sf_api_request r = {0};
    sf_api_error err;
    sf_api_model m = *s->model;
    m.max_context =
        m.max_context < INT32_MAX / COUNTED_CONTEXTS ? m.max_context * COUNTED_CONTEXTS : INT32_MAX;
    m.strict = false;
    sf_code rc = sf_http_body(req, &body, &err);
    rename_field(body, "content", "prompt");
    rename_field(body, "add_special", "add_special_tokens");
    const bool pieces = json_is_true(json_object_get(body, "with_pieces"));
    const unsigned kind = json_object_get(body, "messages") ? SF_API_CHAT : SF_API_COMPLETION;
    if (rc == SF_OK) rc = sf_api_request_read(&m, kind, body, &r, &err);
    r.params.max_tokens = 0; /* none is to come after them */
    r.prompt_only = true;
    if (rc == SF_OK) rc = sf_api_request_prompts(&m, &r, &err);
    if (rc != SF_OK && err.n_ctx > 0) rc = fail_uncounted(s, &m, &err);
    if (rc == SF_OK && r.n_prompts != 1)
        rc = sf_api_fail(&err, "prompt", "invalid_value", "prompt lists %d prompts, expected one",
                         r.n_prompts);
    if (rc == SF_OK)
        sf_http_ok(s, req, tokens_json(s, &r.prompts[0], pieces));
    else
        sf_http_error(s, req, &err);
    sf_api_request_fini(&r);
    json_decref(body);
}

static sf_code read_tokens(const sf_api_model *m, const json_t *body, sf_ids *out, sf_api_error *err) {
    const json_t *list = json_object_get(body, "tokens");
    SF_TRY(sf_api_read_ids(m, "tokens", list, out, err));
    return m->tokenizer ? SF_OK
                        : sf_api_fail(err, NULL, "no_tokenizer", "no tokenizer came with the weights");
}

void sf_handle_detokenize(sf_server *s, struct evhttp_request *req) {
    json_t *body = NULL;
    sf_ids ids = {0};
    sf_buf text = {0};
    sf_api_error err;
    sf_err below;
    sf_code rc = sf_http_body(req, &body, &err);
    if (rc == SF_OK) rc = read_tokens(s->model, body, &ids, &err);
    if (rc == SF_OK &&
        sf_tokenizer_decode(s->model->tokenizer, ids.data, ids.len, true, &text, &below) != SF_OK)
        rc = sf_api_nomem(&err);
    if (rc == SF_OK) {
        json_t *o = json_object();
        bool ok = o != NULL;
        json_t *t = sf_json_text(text.data ? text.data : "", text.len);
        sf_json_put(o, "prompt", t ? json_incref(t) : NULL, &ok);
        sf_json_put(o, "content", t, &ok);
        sf_http_ok(s, req, sf_json_done(o, ok));
    } else {
        sf_http_error(s, req, &err);
    }
    sf_ids_fini(&ids);
    sf_buf_fini(&text);
    json_decref(body);
}
