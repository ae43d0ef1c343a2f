/* Connections: TLS, time limits on requests being read, and clients that go away. evhttp stops reading once
 * it has a request, so for answers that take time reading is turned on again, to see the other side close.
 * One that only ends its sending (shutdown, half-close) sends the same FIN, and nothing more can be told
 * before bytes are sent to it, which an answer in one piece does at its very end: it is taken to have left.
 */
#include "serve/http_priv.h"
#include "serve/serve_priv.h"

#include "base/progress.h"

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/bufferevent_ssl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define IDLE_S     65         /* between requests, and between two bytes of one */
#define STALL_S    30         /* a client that takes no byte of its answer for so long is let go */
#define UNREAD_MAX (64 << 10) /* bytes that a client may send ahead while it is being answered */
#define BODY_MIN                                                                                             \
    (4 << 20) /* the limit of bodies is POSITION_MAX for each position of the context, between these */
#define BODY_MAX     (32 << 20)
#define POSITION_MAX (2 << 10) /* the answer in an audit: a token with its 20 likeliest, in any form */
#define HEADERS_MAX  (64 << 10)

static void conn_release(sf_conn *c) {
    sf_server *s = c->server;
    if (c->prev)
        c->prev->next = c->next;
    else
        s->conns = c->next;
    if (c->next) c->next->prev = c->prev;
    bufferevent_decref(c->bev);
    free(c);
}

/* The client's own id comes back, if it is one: printable, and not too long. */
static void read_client_id(struct evhttp_request *req, char out[SF_CLIENT_ID_MAX + 1]) {
    const char *id = evhttp_find_header(evhttp_request_get_input_headers(req), "X-Request-Id");
    *out = 0;
    if (!id || strlen(id) > SF_CLIENT_ID_MAX) return;
    for (const char *s = id; *s; s++)
        if (*s < '!' || *s > '~') return;
    memcpy(out, id, strlen(id) + 1);
}

/* Reads the last n bytes of buf on until the head of a request ends: two ends of lines with nothing between.
 */
static void follow_head(sf_conn *c, struct evbuffer *buf, size_t n) {
    char part[4096];
    struct evbuffer_ptr at;
    if (evbuffer_ptr_set(buf, &at, evbuffer_get_length(buf) - n, EVBUFFER_PTR_SET) != 0) return;
    while (n > 0 && !c->head_over) {
        const size_t most = n < sizeof part ? n : sizeof part;
        const ev_ssize_t got = evbuffer_copyout_from(buf, &at, part, most);
        if (got <= 0) return;
        for (ev_ssize_t i = 0; i < got && !c->head_over; i++, c->head_bytes++) {
            c->head_over = part[i] == '\n' && c->line_empty;
            if (part[i] != '\r') c->line_empty = part[i] == '\n';
        }
        n -= (size_t)got;
        (void)evbuffer_ptr_set(buf, &at, (size_t)got, EVBUFFER_PTR_ADD);
    }
}

static void on_input(struct evbuffer *buf, const struct evbuffer_cb_info *info, void *ctx) {
    sf_conn *c = ctx;
    if (info->n_added == 0) return;
    /* Past its limit nothing is read, and so the client's going away is not seen. */
    if (c->busy && !c->refused && evbuffer_get_length(buf) >= UNREAD_MAX) sf_conn_hang_up(c);
    if (c->busy) return;
    if (c->reading_s == 0) c->reading_s = sf_now_s();
    if (!c->head_over) follow_head(c, buf, info->n_added);
    /* evhttp has a limit too, and calls what is over it a bad request. */
    if (!c->head_over && c->head_bytes > HEADERS_MAX) sf_conn_cut(c, 431);
}

static struct bufferevent *new_bev(sf_server *s) {
    if (!s->tls) return bufferevent_socket_new(s->base, -1, BEV_OPT_CLOSE_ON_FREE);
    SSL *ssl = SSL_new(s->tls);
    if (!ssl) return NULL;
    struct bufferevent *bev =
        bufferevent_openssl_socket_new(s->base, -1, ssl, BUFFEREVENT_SSL_ACCEPTING, BEV_OPT_CLOSE_ON_FREE);
    if (bev) bufferevent_openssl_set_allow_dirty_shutdown(bev, 1); /* clients rarely close TLS in form */
    return bev;
}

/* Without memory for the record evhttp makes a bufferevent of its own, which only misses the time limit. */
static struct bufferevent *accept_one(struct event_base *base, void *ctx) {
    sf_server *s = ctx;
    (void)base;
    struct bufferevent *bev = new_bev(s);
    sf_conn *c = bev ? calloc(1, sizeof *c) : NULL;
    if (!c) return bev;
    c->server = s;
    c->bev = bev;
    c->accepted_s = sf_now_s();
    c->next = s->conns;
    if (s->conns) s->conns->prev = c;
    s->conns = c;
    bufferevent_incref(bev);
    evbuffer_add_cb(bufferevent_get_input(bev), on_input, c);
    evbuffer_add_cb(bufferevent_get_output(bev), sf_conn_on_output, c);
    return bev;
}

static sf_code tls_fail(sf_err *err, const char *what, const char *path) {
    char why[160];
    ERR_error_string_n(ERR_get_error(), why, sizeof why);
    return SF_FAIL(err, SF_INVALID, "%s %s: %s", what, path, why);
}

static sf_code tls_init(sf_server *s, sf_err *err) {
    const sf_serve_config *c = s->cfg;
    s->tls = SSL_CTX_new(TLS_server_method());
    if (!s->tls) return SF_FAIL(err, SF_NOMEM, "no memory for TLS");
    SSL_CTX_set_min_proto_version(s->tls, TLS1_2_VERSION);
    if (SSL_CTX_use_certificate_chain_file(s->tls, c->ssl_cert) != 1)
        return tls_fail(err, "ssl_certfile", c->ssl_cert);
    if (SSL_CTX_use_PrivateKey_file(s->tls, c->ssl_key, SSL_FILETYPE_PEM) != 1)
        return tls_fail(err, "ssl_keyfile", c->ssl_key);
    if (SSL_CTX_check_private_key(s->tls) != 1) return tls_fail(err, "ssl_keyfile", c->ssl_key);
    return SF_OK;
}

/* Reading a body of ids takes time and many times its bytes, before it can be told that they are too many. */
static int body_max(int max_context) {
    if (max_context > BODY_MAX / POSITION_MAX) return BODY_MAX;
    return max_context < BODY_MIN / POSITION_MAX ? BODY_MIN : max_context * POSITION_MAX;
}

sf_code sf_conns_init(sf_server *s, sf_err *err) {
    if (s->cfg->ssl_cert) SF_TRY(tls_init(s, err));
    evhttp_set_bevcb(s->http, accept_one, s);
    evhttp_set_timeout(s->http, IDLE_S);
    evhttp_set_max_body_size(s->http, body_max(s->cfg->max_context));
    evhttp_set_max_headers_size(s->http, HEADERS_MAX + (32 << 10)); /* on_input is the first to see */
    evhttp_set_allowed_methods(s->http, EVHTTP_REQ_GET | EVHTTP_REQ_POST | EVHTTP_REQ_HEAD | EVHTTP_REQ_PUT |
                                            EVHTTP_REQ_DELETE | EVHTTP_REQ_OPTIONS | EVHTTP_REQ_TRACE |
                                            EVHTTP_REQ_PATCH);
    return SF_OK;
}

void sf_conns_fini(sf_server *s) {
    while (s->conns)
        conn_release(s->conns);
    SSL_CTX_free(s->tls);
}

/* evhttp has let go of it: only our reference is left. */
static bool is_dead(const sf_conn *c) {
    bufferevent_data_cb read, write;
    bufferevent_event_cb event;
    bufferevent_getcb(c->bev, &read, &write, &event, NULL);
    return !event;
}

/* Nothing of a handshake shows in the input: a client that never ends it would stay for ever. */
static bool in_handshake(const sf_conn *c) {
    return c->server->tls && !SSL_is_init_finished(bufferevent_openssl_get_ssl(c->bev));
}

static bool is_late(const sf_conn *c) {
    const double began = in_handshake(c) ? c->accepted_s : c->reading_s;
    return !c->busy && began > 0 && sf_now_s() - began > c->server->cfg->receive_timeout_s;
}

void sf_conns_sweep(sf_server *s) {
    for (sf_conn *c = s->conns, *next; c; c = next) {
        next = c->next;
        if (c->refused && !c->lingers) /* what the client still sends must not cost it the answer */
            c->lingers = true;
        else if (is_dead(c))
            conn_release(c);
        else if (c->refused)
            sf_conn_hang_up(c);
        else if (is_late(c))
            sf_conn_cut(c, 408);
    }
}

static void on_close(struct evhttp_connection *evcon, void *ctx) {
    sf_conn *c = ctx;
    (void)evcon;
    evbuffer_remove_cb(bufferevent_get_input(c->bev), on_input, c);
    evbuffer_remove_cb(bufferevent_get_output(c->bev), sf_conn_on_output, c);
    if (c->call) sf_call_gone(c->call);
    conn_release(c);
}

/* The answer is out: the next request may come. */
static void on_complete(struct evhttp_request *req, void *ctx) {
    sf_conn *c = ctx;
    struct evhttp_connection *evcon = evhttp_request_get_connection(req);
    c->busy = false;
    c->call = NULL;
    bufferevent_setwatermark(c->bev, EV_READ, 0, 0);
    if (evcon) evhttp_connection_set_timeout(evcon, IDLE_S);
    c->head_bytes = 0;
    c->line_empty = false;
    /* Of a request that was sent ahead nothing was followed: evhttp's limit is left to it. */
    c->head_over = evbuffer_get_length(bufferevent_get_input(c->bev)) > 0;
    if (c->head_over) c->reading_s = sf_now_s();
}

/* Else an event of a stream waits until the client has acknowledged the one before: for 40 ms, as often as
 * not. */
static void send_at_once(int fd) {
    const int one = 1;
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
}

sf_conn *sf_conn_find(const sf_server *s, struct evhttp_request *req) {
    struct evhttp_connection *evcon = evhttp_request_get_connection(req);
    struct bufferevent *bev = evcon ? evhttp_connection_get_bufferevent(evcon) : NULL;
    sf_conn *c = s->conns;
    while (c && c->bev != bev)
        c = c->next;
    return c;
}

void sf_conn_begin(sf_server *s, struct evhttp_request *req) {
    sf_conn *c = sf_conn_find(s, req);
    if (!c) return;
    c->busy = true;
    c->reading_s = 0;
    c->ticket.arrived_s = sf_now_s();
    sf_new_id("req-", c->ticket.id);
    read_client_id(req, c->ticket.client_id);
    send_at_once(bufferevent_getfd(c->bev));
    evhttp_connection_set_closecb(evhttp_request_get_connection(req), on_close, c);
    evhttp_request_set_on_complete_cb(req, on_complete, c);
}

void sf_conn_wait(sf_conn *c, sf_call *call) {
    static const struct timeval stall = {STALL_S, 0};
    bufferevent_data_cb read, write;
    bufferevent_event_cb event;
    void *arg;
    c->call = call;
    bufferevent_getcb(c->bev, &read, &write, &event, &arg);
    bufferevent_setcb(c->bev, NULL, write, event, arg); /* what comes now belongs to the next request */
    bufferevent_setwatermark(c->bev, EV_READ, 0, UNREAD_MAX);
    bufferevent_set_timeouts(c->bev, NULL, &stall);
    bufferevent_enable(c->bev, EV_READ);
}

size_t sf_conn_unsent(const sf_conn *c) {
    return evbuffer_get_length(bufferevent_get_output(c->bev));
}
