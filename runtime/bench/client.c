#include "bench/client_priv.h"

#include <event2/buffer.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void free_call(sf_bench_call *a) {
    sf_bench_client *c = a->client;
    if (a->prev)
        a->prev->next = a->next;
    else
        c->calls = a->next;
    if (a->next) a->next->prev = a->prev;
    if (a->timer) event_free(a->timer);
    free(a);
}

/* Ends the call; its connection is used again if it is at rest. */
static void finish(sf_bench_call *a, bool at_rest, const char *error) {
    sf_bench_conn *n = a->conn;
    const sf_bench_exchange x = a->x;
    const int status = a->status;
    if (n) {
        n->call = NULL;
        n->used = true;
        if (at_rest && !n->closed) {
            sf_bench_conn_keep(n);
        } else {
            sf_bench_conn_bury(n);
        }
    }
    free_call(a);
    x.done(x.ctx, status, error);
}

static const char *fault_of(const sf_bench_conn *n, const sf_bench_call *a) {
    const char *untrusted = sf_bench_conn_untrusted(n);
    if (untrusted) return untrusted;
    if (a->fault) return a->fault;
    return n->ssl ? "no connection, or no TLS on it" : "no connection";
}

static void on_error(enum evhttp_request_error error, void *ctx) {
    sf_bench_call *a = ((sf_bench_conn *)ctx)->call;
    static const char *const texts[] = {
        [EVREQ_HTTP_TIMEOUT] = "timed out",
        [EVREQ_HTTP_EOF] = "the connection was closed within the answer",
        [EVREQ_HTTP_INVALID_HEADER] = "the answer is not HTTP",
        [EVREQ_HTTP_BUFFER_ERROR] = "the connection broke",
        [EVREQ_HTTP_REQUEST_CANCEL] = "cancelled",
        [EVREQ_HTTP_DATA_TOO_LONG] = "the answer is too long, or not HTTP",
    };
    if (!a) return;
    a->fault = (size_t)error < sizeof texts / sizeof *texts ? texts[error] : "the connection broke";
    a->closed = error == EVREQ_HTTP_EOF;
    if (a->closed && !a->answered) a->fault = "the connection was closed without an answer";
}

static bool send_call(sf_bench_call *a);

static void on_answer(struct evhttp_request *req, void *ctx) {
    sf_bench_conn *n = ctx;
    sf_bench_call *a = n->call;
    if (!a) return;
    const int status = req ? evhttp_request_get_response_code(req) : 0;
    if (status > 0) {
        a->status = status;
        finish(a, true, NULL);
    } else if (n->used && a->closed && !a->answered) { /* closed by the server just as it was used again */
        a->conn = NULL;
        a->closed = false;
        a->fault = NULL;
        sf_bench_conn_bury(n);
        if (!send_call(a)) finish(a, false, "out of memory");
    } else {
        finish(a, false, fault_of(n, a));
    }
}

static int on_header(struct evhttp_request *req, void *ctx) {
    sf_bench_call *a = ((sf_bench_conn *)ctx)->call;
    if (!a) return 0;
    a->answered = true;
    a->status = evhttp_request_get_response_code(req);
    return 0;
}

static void on_chunk(struct evhttp_request *req, void *ctx) {
    sf_bench_conn *n = ctx;
    struct evbuffer *in = evhttp_request_get_input_buffer(req);
    char data[4096];
    int len;
    while (n->call && (len = evbuffer_remove(in, data, sizeof data)) > 0) {
        sf_bench_call *a = n->call;
        a->status = evhttp_request_get_response_code(req);
        if (a->x.bytes(a->x.ctx, a->status, data, (size_t)len)) continue;
        finish(a, false, NULL);
    }
}

static int limit_of(const sf_bench_call *a) {
    return a->x.limit_s > 0 ? a->x.limit_s : a->client->target->timeout_s;
}

static void on_late(evutil_socket_t fd, short what, void *ctx) {
    sf_bench_call *a = ctx;
    char text[64];
    (void)fd;
    (void)what;
    snprintf(text, sizeof text, "no whole answer within %d s%s", limit_of(a),
             a->x.limit_s > 0 ? "" : " (--timeout)");
    finish(a, false, text);
}

static bool fill_request(const sf_bench_call *a, struct evhttp_request *req) {
    const sf_bench_client *c = a->client;
    struct evkeyvalq *h = evhttp_request_get_output_headers(req);
    bool ok = evhttp_add_header(h, "Host", c->host) == 0;
    ok = ok && evhttp_add_header(h, "User-Agent", "steadfast-bench") == 0;
    if (c->authorization[0]) ok = ok && evhttp_add_header(h, "Authorization", c->authorization) == 0;
    if (!a->x.body) return ok;
    return ok && evhttp_add_header(h, "Content-Type", "application/json") == 0 &&
           evbuffer_add(evhttp_request_get_output_buffer(req), a->x.body, a->x.body_len) == 0;
}

static struct evhttp_request *new_request(const sf_bench_call *a) {
    struct evhttp_request *req = evhttp_request_new(on_answer, a->conn);
    if (!req) return NULL;
    evhttp_request_set_chunked_cb(req, on_chunk);
    evhttp_request_set_header_cb(req, on_header);
    evhttp_request_set_error_cb(req, on_error);
    if (fill_request(a, req)) return req;
    evhttp_request_free(req);
    return NULL;
}

/* False: out of memory; the call stays. */
static bool send_call(sf_bench_call *a) {
    char path[1024];
    a->conn = sf_bench_conn_get(a->client);
    if (!a->conn) return false;
    struct evhttp_request *req = new_request(a);
    if (!req) return false;
    a->conn->call = a;
    snprintf(path, sizeof path, "%s%s", a->client->target->prefix, a->x.path);
    /* What goes wrong at once is told through the callbacks. */
    return evhttp_make_request(a->conn->evcon, req, a->x.body ? EVHTTP_REQ_POST : EVHTTP_REQ_GET, path) == 0;
}

/* ---- what the rest of the benchmark calls ---- */

sf_code sf_bench_client_start(sf_bench_client *c, const sf_bench_exchange *x, sf_err *err) {
    sf_bench_call *a = calloc(1, sizeof *a);
    if (!a) return SF_FAIL(err, SF_NOMEM, "out of memory for a request");
    *a = (sf_bench_call){.client = c, .x = *x, .next = c->calls};
    if (c->calls) c->calls->prev = a;
    c->calls = a;
    const struct timeval limit = {limit_of(a), 0};
    a->timer = evtimer_new(c->base, on_late, a);
    if (a->timer && evtimer_add(a->timer, &limit) == 0 && send_call(a)) return SF_OK;
    if (a->conn) sf_bench_conn_bury(a->conn);
    free_call(a);
    return SF_FAIL(err, SF_NOMEM, "out of memory for a request");
}

void sf_bench_client_abort(sf_bench_client *c) {
    while (c->calls)
        finish(c->calls, false, "interrupted");
}

struct event_base *sf_bench_client_base(sf_bench_client *c) {
    return c->base;
}

sf_code sf_bench_client_create(const sf_bench_target *t, sf_bench_client **out, sf_err *err) {
    sf_bench_client *c = calloc(1, sizeof *c);
    if (!c) return SF_FAIL(err, SF_NOMEM, "no memory for the client");
    const bool v6 = strchr(t->host, ':') != NULL;
    c->target = t;
    snprintf(c->host, sizeof c->host, "%s%s%s:%d", v6 ? "[" : "", t->host, v6 ? "]" : "", t->port);
    if (t->api_key) snprintf(c->authorization, sizeof c->authorization, "Bearer %s", t->api_key);
    sf_code rc = sf_bench_conns_init(c, err);
    if (rc != SF_OK)
        sf_bench_client_destroy(c);
    else
        *out = c;
    return rc;
}

void sf_bench_client_destroy(sf_bench_client *c) {
    if (!c) return;
    while (c->calls) {
        if (c->calls->conn) sf_bench_conn_bury(c->calls->conn);
        free_call(c->calls);
    }
    sf_bench_conns_fini(c);
    free(c);
}
