/* Connections: made, kept, checked for whom they go to, and freed outside of evhttp's callbacks. */
#include "bench/client_priv.h"

#include <errno.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/bufferevent_ssl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/x509v3.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define HEADERS_MAX (64 << 10)

static void free_conns(sf_bench_conn **list) {
    for (sf_bench_conn *n = *list, *next; n; n = next) {
        next = n->next;
        evhttp_connection_free(n->evcon);
        free(n);
    }
    *list = NULL;
}

static void on_reap(evutil_socket_t fd, short what, void *ctx) {
    sf_bench_client *c = ctx;
    (void)fd;
    (void)what;
    free_conns(&c->dead);
}

void sf_bench_conn_bury(sf_bench_conn *n) {
    sf_bench_client *c = n->client;
    n->call = NULL;
    n->next = c->dead;
    c->dead = n;
    event_active(c->reaper, EV_TIMEOUT, 0);
}

static void on_close(struct evhttp_connection *evcon, void *ctx) {
    sf_bench_conn *n = ctx;
    (void)evcon;
    n->closed = true;
}

/* A request of several segments must not wait for an acknowledgement of the first. Before evhttp writes one
 * there is no socket to tell. */
static void on_output(struct evbuffer *buf, const struct evbuffer_cb_info *info, void *ctx) {
    sf_bench_conn *n = ctx;
    const int fd = bufferevent_getfd(evhttp_connection_get_bufferevent(n->evcon)), one = 1;
    (void)buf;
    if (n->quick || fd < 0 || info->n_added == 0) return;
    n->quick = setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one) == 0;
}

static SSL *new_ssl(const sf_bench_client *c) {
    SSL *ssl = SSL_new(c->tls);
    const char *host = c->target->host;
    /* An address is checked as such; a name also tells the server which certificate is wanted. */
    bool ok = ssl && X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), host) == 1;
    if (ssl && !ok) ok = SSL_set1_host(ssl, host) == 1 && SSL_set_tlsext_host_name(ssl, host) == 1;
    if (ok) return ssl;
    SSL_free(ssl);
    return NULL;
}

static struct bufferevent *new_bev(sf_bench_client *c, SSL **ssl) {
    *ssl = NULL;
    if (!c->tls) return bufferevent_socket_new(c->base, -1, BEV_OPT_CLOSE_ON_FREE);
    *ssl = new_ssl(c);
    if (!*ssl) return NULL;
    struct bufferevent *bev = bufferevent_openssl_socket_new(c->base, -1, *ssl, BUFFEREVENT_SSL_CONNECTING,
                                                             BEV_OPT_CLOSE_ON_FREE | BEV_OPT_DEFER_CALLBACKS);
    if (bev) bufferevent_openssl_set_allow_dirty_shutdown(bev, 1);
    return bev;
}

static sf_bench_conn *new_conn(sf_bench_client *c) {
    const sf_bench_target *t = c->target;
    sf_bench_conn *n = calloc(1, sizeof *n);
    struct bufferevent *bev = n ? new_bev(c, &n->ssl) : NULL;
    if (bev)
        n->evcon =
            evhttp_connection_base_bufferevent_new(c->base, NULL, bev, t->address, (unsigned short)t->port);
    if (!n || !n->evcon) {
        if (bev) bufferevent_free(bev);
        free(n);
        return NULL;
    }
    n->client = c;
    evhttp_connection_set_timeout(n->evcon, t->timeout_s + 5); /* the call's own limit comes before */
    evhttp_connection_set_max_headers_size(n->evcon, HEADERS_MAX);
    evhttp_connection_set_closecb(n->evcon, on_close, n);
    evbuffer_add_cb(bufferevent_get_output(bev), on_output, n); /* without memory for it: a slower request */
    return n;
}

/* An open one that is idle, or a new one. */
sf_bench_conn *sf_bench_conn_get(sf_bench_client *c) {
    while (c->idle) {
        sf_bench_conn *n = c->idle;
        c->idle = n->next;
        if (!n->closed) return n;
        sf_bench_conn_bury(n);
    }
    return new_conn(c);
}

static sf_code tls_init(sf_bench_client *c, sf_err *err) {
    c->tls = SSL_CTX_new(TLS_client_method());
    if (!c->tls) return SF_FAIL(err, SF_NOMEM, "no memory for TLS");
    SSL_CTX_set_min_proto_version(c->tls, TLS1_2_VERSION);
    if (c->target->insecure) return SF_OK;
    SSL_CTX_set_verify(c->tls, SSL_VERIFY_PEER, NULL);
    if (SSL_CTX_set_default_verify_paths(c->tls) == 1) return SF_OK;
    return SF_FAIL(err, SF_IO, "no certificates of authorities (SSL_CERT_FILE names some; --insecure)");
}

sf_code sf_bench_conns_init(sf_bench_client *c, sf_err *err) {
    c->base = event_base_new();
    c->reaper = c->base ? event_new(c->base, -1, 0, on_reap, c) : NULL;
    if (!c->reaper) return SF_FAIL(err, SF_IO, "no event loop: %s", strerror(errno));
    return c->target->tls ? tls_init(c, err) : SF_OK;
}

void sf_bench_conns_fini(sf_bench_client *c) {
    free_conns(&c->idle);
    free_conns(&c->dead);
    if (c->reaper) event_free(c->reaper);
    if (c->base) event_base_free(c->base);
    SSL_CTX_free(c->tls);
}

void sf_bench_conn_keep(sf_bench_conn *n) {
    n->next = n->client->idle;
    n->client->idle = n;
}

const char *sf_bench_conn_untrusted(const sf_bench_conn *n) {
    if (!n->ssl || n->client->target->insecure) return NULL;
    const long why = SSL_get_verify_result(n->ssl);
    return why == X509_V_OK ? NULL : X509_verify_cert_error_string(why);
}
