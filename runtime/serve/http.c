/* Routing, keys, CORS, and answers in one piece. */
#include "serve/http_priv.h"
#include "serve/serve_priv.h"

#include "api/json.h"
#include "base/buf.h"

#include <event2/buffer.h>
#include <event2/keyvalq_struct.h>
#include <openssl/crypto.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

/* clang-format off */
const sf_endpoint sf_endpoints[] = {
    {"/", "GET,HEAD", true, true, sf_handle_page, "text/html", "a page to try the server with"},
    {"/health", "GET,HEAD", true, true, sf_handle_health, "status", "200 when requests are served, else 503"},
    {"/live", "GET,HEAD", true, true, sf_handle_live, "status", "200 while the process runs"},
    {"/version", "GET,HEAD", true, true, sf_handle_version, "version", "the version of the server"},
    {"/metrics", "GET,HEAD", true, false, sf_handle_metrics, "text/plain", "counters for Prometheus"},
    {"/openapi.json", "GET,HEAD", true, false, sf_handle_openapi, "any", "this description"},
    {"/v1/models", "GET,HEAD", false, false, sf_handle_models, "models", "the model that is served"},
    {"/v1/models/", "GET,HEAD", false, false, sf_handle_models, "model", "a model by its name"},
    {"/v1/completions", "POST", false, false, sf_handle_completions, "completion", "the continuation of a prompt"},
    {"/v1/chat/completions", "POST", false, false, sf_handle_chat, "chat", "the answer to a conversation"},
    {"/v1/audit", "POST", false, false, sf_handle_audit, "audit", "whether this engine would have given that answer: its tokens and, where they are there, text, log-probabilities, finish_reason, seed and digest"},
    {"/tokenize", "POST", false, false, sf_handle_tokenize, "tokens", "text or messages to token ids"},
    {"/detokenize", "POST", false, false, sf_handle_detokenize, "text", "token ids to text"},
};
/* clang-format on */
const int sf_n_endpoints = (int)(sizeof sf_endpoints / sizeof *sf_endpoints);

static const struct {
    int status;
    const char *reason;
} reasons[] = {{200, "OK"},
               {204, "No Content"},
               {400, "Bad Request"},
               {401, "Unauthorized"},
               {404, "Not Found"},
               {405, "Method Not Allowed"},
               {408, "Request Timeout"},
               {413, "Content Too Large"},
               {417, "Expectation Failed"},
               {429, "Too Many Requests"},
               {431, "Request Header Fields Too Large"},
               {500, "Internal Server Error"},
               {501, "Not Implemented"},
               {503, "Service Unavailable"}};

const char *sf_http_reason(int status) {
    for (size_t i = 0; i < sizeof reasons / sizeof *reasons; i++)
        if (reasons[i].status == status) return reasons[i].reason;
    return "Error";
}

void sf_new_id(const char *prefix, char out[48]) {
    static atomic_uint count; /* tells ids apart where the system has no randomness to give */
    uint8_t raw[12] = {0};
    if (getrandom(raw, sizeof raw, GRND_NONBLOCK) < 0)
        memcpy(raw, &(unsigned){atomic_fetch_add(&count, 1)}, sizeof(unsigned));
    size_t at = (size_t)snprintf(out, 48, "%.20s", prefix);
    for (size_t i = 0; i < sizeof raw; i++)
        at += (size_t)snprintf(out + at, 48 - at, "%02x", raw[i]);
}

void sf_http_headers(sf_server *s, struct evhttp_request *req) {
    struct evkeyvalq *h = evhttp_request_get_output_headers(req);
    const sf_conn *c = sf_conn_find(s, req);
    if (c) evhttp_add_header(h, "X-Request-Id", *c->ticket.client_id ? c->ticket.client_id : c->ticket.id);
    evhttp_add_header(h, "Server", "steadfast");
    if (s->cfg->allowed_origin) {
        evhttp_add_header(h, "Access-Control-Allow-Origin", s->cfg->allowed_origin);
        evhttp_add_header(h, "Vary", "Origin");
    }
}

void sf_http_text(sf_server *s, struct evhttp_request *req, int status, const char *type, const char *text,
                  size_t len) {
    struct evkeyvalq *h = evhttp_request_get_output_headers(req);
    struct evbuffer *body = evbuffer_new();
    sf_http_headers(s, req);
    if (len > 0) evhttp_add_header(h, "Content-Type", type);
    if (evhttp_request_get_command(req) == EVHTTP_REQ_HEAD) { /* only how long it is; evhttp would send it */
        char length[24];
        snprintf(length, sizeof length, "%zu", len);
        evhttp_add_header(h, "Content-Length", length);
    } else if (body) {
        evbuffer_add(body, text, len);
    }
    evhttp_send_reply(req, status, sf_http_reason(status), body);
    if (body) evbuffer_free(body);
}

const char sf_http_nomem[] = "{\"error\":{\"message\":\"out of memory\",\"type\":\"server_error\","
                             "\"param\":null,\"code\":\"out_of_memory\"}}";

int sf_http_json(sf_server *s, struct evhttp_request *req, int status, json_t *body) {
    char *text = body ? sf_json_dump(body) : NULL;
    json_decref(body);
    if (!text) {
        sf_http_text(s, req, 500, "application/json", sf_http_nomem, sizeof sf_http_nomem - 1);
        return 500;
    }
    sf_http_text(s, req, status, "application/json", text, strlen(text));
    free(text);
    return status;
}

static const sf_ticket *ticket_of(const sf_server *s, struct evhttp_request *req) {
    const sf_conn *c = sf_conn_find(s, req);
    return c ? &c->ticket : NULL;
}

/* The line is written first: what is sent may be gone at once. */
void sf_http_ok(sf_server *s, struct evhttp_request *req, json_t *body) {
    sf_log_request(s, ticket_of(s, req), req, body ? 200 : 500, body ? "ok" : "out_of_memory");
    (void)sf_http_json(s, req, 200, body);
}

int sf_http_refuse(sf_server *s, struct evhttp_request *req, const sf_api_error *e) {
    json_t *o = json_object();
    bool ok = o != NULL;
    sf_json_put(o, "error", sf_api_error_json(e), &ok);
    struct evkeyvalq *h = evhttp_request_get_output_headers(req);
    if (e->status == 429 || e->status == 503) evhttp_add_header(h, "Retry-After", "1");
    if (e->status == 401) evhttp_add_header(h, "WWW-Authenticate", "Bearer");
    return sf_http_json(s, req, e->status, sf_json_done(o, ok));
}

void sf_http_error(sf_server *s, struct evhttp_request *req, const sf_api_error *e) {
    sf_log_request(s, ticket_of(s, req), req, e->status, e->reason ? e->reason : e->type);
    (void)sf_http_refuse(s, req, e);
}

void sf_http_fail(sf_server *s, struct evhttp_request *req, int status, const char *type, const char *reason,
                  const char *fmt, ...) {
    sf_api_error e = {.code = SF_INVALID, .status = status, .type = type, .reason = reason};
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(e.message, sizeof e.message, fmt, ap);
    va_end(ap);
    sf_http_error(s, req, &e);
}

sf_code sf_http_body(struct evhttp_request *req, json_t **out, sf_api_error *err) {
    struct evbuffer *in = evhttp_request_get_input_buffer(req);
    const size_t len = evbuffer_get_length(in);
    const char *text = len > 0 ? (const char *)evbuffer_pullup(in, -1) : "";
    return text ? sf_json_parse(text, len, "the body", out, err) : sf_api_nomem(err);
}

/* ---- who may ---- */

/* In the same time whatever the key is, but for its length. */
static bool key_is(const char *given, const char *key) {
    const size_t len = strlen(key);
    return strlen(given) == len && CRYPTO_memcmp(given, key, len) == 0;
}

static bool is_allowed(const sf_server *s, struct evhttp_request *req) {
    static const char scheme[] = "Bearer ";
    if (s->cfg->n_api_keys == 0) return true;
    const char *auth = evhttp_find_header(evhttp_request_get_input_headers(req), "Authorization");
    bool found = false;
    if (!auth || evutil_ascii_strncasecmp(auth, scheme, sizeof scheme - 1) != 0) return false;
    for (int i = 0; i < s->cfg->n_api_keys; i++)
        found = key_is(auth + sizeof scheme - 1, s->cfg->api_keys[i]) || found;
    return found;
}

const char *sf_http_method(struct evhttp_request *req) {
    static const struct {
        enum evhttp_cmd_type type;
        const char *name;
    } all[] = {{EVHTTP_REQ_GET, "GET"},     {EVHTTP_REQ_HEAD, "HEAD"},     {EVHTTP_REQ_POST, "POST"},
               {EVHTTP_REQ_PUT, "PUT"},     {EVHTTP_REQ_DELETE, "DELETE"}, {EVHTTP_REQ_OPTIONS, "OPTIONS"},
               {EVHTTP_REQ_TRACE, "TRACE"}, {EVHTTP_REQ_PATCH, "PATCH"}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (all[i].type == evhttp_request_get_command(req)) return all[i].name;
    return "another method";
}

/* Whether the comma-separated list has the word. */
static bool lists(const char *list, const char *word) {
    const size_t len = strlen(word);
    for (const char *at = strstr(list, word); at; at = strstr(at + 1, word))
        if ((at == list || at[-1] == ',') && (at[len] == 0 || at[len] == ',')) return true;
    return false;
}

static const sf_endpoint *find_route(const char *path) {
    for (int i = 0; i < sf_n_endpoints; i++) {
        const size_t len = strlen(sf_endpoints[i].path);
        const bool below = len > 1 && sf_endpoints[i].path[len - 1] == '/';
        if (below ? strncmp(path, sf_endpoints[i].path, len) == 0 : strcmp(path, sf_endpoints[i].path) == 0)
            return &sf_endpoints[i];
    }
    return NULL;
}

static void preflight(sf_server *s, struct evhttp_request *req) {
    struct evkeyvalq *h = evhttp_request_get_output_headers(req);
    if (s->cfg->allowed_origin) {
        evhttp_add_header(h, "Access-Control-Allow-Methods", "GET, POST, OPTIONS");
        evhttp_add_header(h, "Access-Control-Allow-Headers", "Authorization, Content-Type, X-Request-Id");
        evhttp_add_header(h, "Access-Control-Max-Age", "600");
    }
    sf_http_text(s, req, 204, "text/plain", "", 0);
}

/* Whether the server is in a state to take requests; else says so. */
static bool is_ready(sf_server *s, struct evhttp_request *req) {
    switch ((sf_serve_state)atomic_load(&s->state)) {
    case SF_READY:
        return true;
    case SF_LOADING:
        sf_http_fail(s, req, 503, "server_error", "loading", "the model is still being loaded");
        return false;
    case SF_DRAINING:
        sf_http_fail(s, req, 503, "server_error", "draining", "the server is shutting down");
        return false;
    case SF_FAILED:
        sf_http_fail(s, req, 503, "server_error", "device", "the device has failed: %s", s->failure.msg);
        return false;
    }
    return false;
}

/* Another program on the way might see the body end elsewhere (RFC 9112, section 6.3): evhttp takes the first
 * of several lengths, signs before one, and a length beside chunks. */
static bool is_framed(struct evhttp_request *req) {
    const struct evkeyval *h;
    int lengths = 0, encodings = 0;
    for (h = evhttp_request_get_input_headers(req)->tqh_first; h; h = h->next.tqe_next) {
        if (evutil_ascii_strcasecmp(h->key, "Transfer-Encoding") == 0) encodings++;
        if (evutil_ascii_strcasecmp(h->key, "Content-Length") != 0) continue;
        lengths++;
        if (!*h->value || h->value[strspn(h->value, "0123456789")]) return false;
    }
    return lengths + encodings <= 1;
}

static void refuse_frame(sf_server *s, struct evhttp_request *req) {
    evhttp_add_header(evhttp_request_get_output_headers(req), "Connection", "close");
    sf_http_fail(s, req, 400, "invalid_request_error", "invalid_length",
                 "expected one Content-Length of digits, or one Transfer-Encoding");
}

void sf_http_dispatch(struct evhttp_request *req, void *ctx) {
    sf_server *s = ctx;
    const struct evhttp_uri *uri = evhttp_request_get_evhttp_uri(req);
    const char *path = uri ? evhttp_uri_get_path(uri) : NULL, *method = sf_http_method(req);
    const sf_endpoint *r = path ? find_route(path) : NULL;
    sf_conn_begin(s, req);
    if (!is_framed(req))
        refuse_frame(s, req);
    else if (strcmp(method, "OPTIONS") == 0)
        preflight(s, req);
    else if (!r)
        sf_http_fail(s, req, 404, "invalid_request_error", "not_found", "%.200s: no such path",
                     path ? path : "");
    else if (!lists(r->methods, method)) {
        evhttp_add_header(evhttp_request_get_output_headers(req), "Allow", r->methods);
        sf_http_fail(s, req, 405, "invalid_request_error", "method_not_allowed", "%s takes %s, not %s",
                     r->path, r->methods, method);
    } else if (!r->open && !is_allowed(s, req))
        sf_http_fail(s, req, 401, "invalid_request_error", "invalid_api_key",
                     "give one of the server's keys as Authorization: Bearer KEY");
    else if (r->early || is_ready(s, req))
        r->handle(s, req);
}
