/* What the client's files share. */
#ifndef SF_BENCH_CLIENT_PRIV_H
#define SF_BENCH_CLIENT_PRIV_H

#include "bench/client.h"

#include <event2/event.h>
#include <event2/http.h>
#include <openssl/ssl.h>

typedef struct sf_bench_call sf_bench_call;

typedef struct sf_bench_conn {
    sf_bench_client *client;
    struct evhttp_connection *evcon;
    SSL *ssl; /* its bufferevent's; NULL: no TLS */
    sf_bench_call *call;
    struct sf_bench_conn *next; /* of the idle ones, or of those to be freed */
    bool closed, used, quick;   /* used: it has served a call before; quick: no small packet of it waits */
} sf_bench_conn;

struct sf_bench_call {
    sf_bench_client *client;
    sf_bench_exchange x;
    sf_bench_conn *conn;
    struct event *timer;
    sf_bench_call *prev, *next;
    int status;
    bool answered;     /* something of an answer came */
    const char *fault; /* what evhttp said */
    bool closed;       /* by the server */
};

struct sf_bench_client {
    const sf_bench_target *target;
    struct event_base *base;
    struct event *reaper; /* evhttp must not be freed from its own callbacks */
    SSL_CTX *tls;
    sf_bench_conn *idle, *dead;
    sf_bench_call *calls;
    char host[300], authorization[SF_BENCH_KEY_MAX + 8];
};

/* conn.c */
SF_CHECKED sf_code sf_bench_conns_init(sf_bench_client *c, sf_err *err);
void sf_bench_conns_fini(sf_bench_client *c);
/* An open one that is idle, or a new one. NULL: out of memory. */
sf_bench_conn *sf_bench_conn_get(sf_bench_client *c);
/* Back to the idle ones. */
void sf_bench_conn_keep(sf_bench_conn *n);
/* Frees it soon, whatever it is doing; its callbacks find no call. */
void sf_bench_conn_bury(sf_bench_conn *n);
/* Why its certificate was not taken, or NULL. */
const char *sf_bench_conn_untrusted(const sf_bench_conn *n);

#endif
