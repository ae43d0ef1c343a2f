/* Inside of the server. Everything here belongs to the HTTP thread unless it says otherwise. */
#ifndef SF_SERVE_SERVE_PRIV_H
#define SF_SERVE_SERVE_PRIV_H

#include "serve/driver.h"
#include "serve/serve.h"

#include "api/answer.h"
#include "api/json.h"

#include <event2/buffer.h>
#include <event2/event.h>
#include <event2/http.h>
#include <pthread.h>
#include <stdatomic.h>

struct ssl_ctx_st;

typedef enum sf_serve_state { SF_LOADING, SF_READY, SF_DRAINING, SF_FAILED } sf_serve_state;

#define SF_CLIENT_ID_MAX 128

/* What a request is known by, in its answer's head and in the log. */
typedef struct sf_ticket {
    char id[48];
    char client_id[SF_CLIENT_ID_MAX + 1]; /* the client's X-Request-Id; empty: none */
    double arrived_s;                     /* when it was whole */
} sf_ticket;

/* A client's connection, from its acceptance on. */
typedef struct sf_conn {
    struct sf_server *server;
    struct bufferevent *bev; /* a reference is held */
    double accepted_s;
    double reading_s;           /* when the request being read began; 0: none is */
    size_t head_bytes;          /* of that request, until its head is over */
    bool head_over, line_empty; /* line_empty: the last byte but for CRs ended a line */
    bool busy;                  /* a request is being answered */
    sf_ticket ticket;           /* that request's */
    int refused;                /* cut.c's reason to end the connection; 0: none */
    bool lingers;               /* a sweep has seen that */
    bool rewriting;             /* cut.c */
    struct sf_call *call;       /* that request, where its answer takes time */
    struct sf_conn *prev, *next;
} sf_conn;

/* What a choice's stream has told so far. */
typedef struct sf_told {
    int64_t chars; /* characters of its log-probabilities' tokens */
    bool begun;
} sf_told;

/* The last two are also the kinds by which their bodies are read. */
typedef enum sf_call_kind {
    SF_CALL_AUDIT,
    SF_CALL_COMPLETION = SF_API_COMPLETION,
    SF_CALL_CHAT = SF_API_CHAT
} sf_call_kind;

/* A completion, chat or audit on its way: one job for each prompt. */
typedef struct sf_call {
    struct sf_server *server;
    struct evhttp_request *req;
    sf_conn *conn; /* NULL: the client has gone */
    sf_call_kind kind;
    sf_ticket ticket;
    sf_api_request api;
    json_t *answer;  /* an audit: what is to be replayed; else NULL */
    int64_t created; /* Unix time */
    sf_job **jobs;   /* [n_jobs] */
    int n_jobs, n_submitted, n_done;
    bool streaming; /* the head of a stream has been sent */
    sf_told *told;  /* stream: [n_jobs * n] */
    bool stalled;   /* stream: the client reads too slowly; news wait */
    bool answered;  /* an error has been sent, nothing more follows */
    struct sf_call *prev, *next;
} sf_call;

static inline bool sf_call_is_chat(const sf_call *c) {
    return c->kind == SF_CALL_CHAT;
}

struct sf_server {
    const sf_serve_config *cfg;
    struct event_base *base;
    struct evhttp *http;
    struct event *wake, *again, *tick, *sigterm, *sigint;
    struct evconnlistener *listener; /* evhttp's */
    struct ssl_ctx_st *tls;
    pthread_t thread;
    bool thread_runs;
    int port;
    sf_metrics *metrics;
    char label[160]; /* the model's name as a label of Prometheus */
    /* set by sf_server_run before the state says READY */
    sf_engine *engine;
    const sf_api_model *model;
    sf_driver *driver;
    atomic_int state; /* sf_serve_state */
    sf_err failure;   /* written before state says FAILED */
    sf_conn *conns;
    sf_call *calls;
    int n_calls;
    int64_t started;                /* Unix time */
    double drain_until_s, pinged_s; /* sf_now_s */
    atomic_bool closing;            /* the HTTP thread is to end, once all is sent */
    double close_by_s;              /* or at this time; written before closing */
};

/* ---- server.c ---- */
/* Stops the driver once a draining server has nothing left to answer. */
void sf_server_try_stop(sf_server *s);

/* ---- conn.c: connections ---- */
SF_CHECKED sf_code sf_conns_init(sf_server *s, sf_err *err); /* TLS, if configured, and evhttp's hooks */
void sf_conns_fini(sf_server *s);
void sf_conns_sweep(sf_server *s); /* ends those that take too long over a request; each second */
/* A request has just been read: its connection is busy with it, and it has a ticket. */
void sf_conn_begin(sf_server *s, struct evhttp_request *req);
/* The connection of a request; NULL: there was no memory for its record. */
sf_conn *sf_conn_find(const sf_server *s, struct evhttp_request *req);
/* From now on the answer takes time: the client's going away is noticed (sf_call_gone). */
void sf_conn_wait(sf_conn *c, sf_call *call);
size_t sf_conn_unsent(const sf_conn *c); /* bytes */

/* ---- cut.c ---- */
void sf_conn_hang_up(sf_conn *c); /* evhttp then sees its end and frees it */
/* Refuses the request that is being read, with HTTP's status and an error object, and hangs up. */
void sf_conn_cut(sf_conn *c, int status);
/* Of the output of ctx, a sf_conn: what is written while no request is being answered is a page of evhttp's
 * own, which an error object replaces. */
void sf_conn_on_output(struct evbuffer *buf, const struct evbuffer_cb_info *info, void *ctx);

/* ---- call.c, stream.c: completions, chats, audits ---- */
void sf_calls_wake(sf_server *s);   /* takes what the driver has ready */
void sf_calls_ping(sf_server *s);   /* keeps idle streams open */
void sf_calls_cancel(sf_server *s); /* all of them */
void sf_call_gone(sf_call *c);      /* the client has closed the connection */
void sf_stream_begin(sf_call *c);
void sf_stream_news(sf_call *c, sf_job *j); /* sends what job j has committed, if the client keeps up */
void sf_stream_end(sf_call *c);
void sf_stream_error(sf_call *c, const sf_api_error *e);
void sf_call_drop(sf_call *c);    /* frees it as it is, when neither thread runs any more */
bool sf_call_try_end(sf_call *c); /* ends and frees the call once all its jobs are done */

/* ---- forms.c: JSON of answers ---- */
json_t *sf_form_head(const sf_call *c,
                     const char *object); /* id, object, created, model, system_fingerprint */
json_t *sf_form_answer(sf_call *c);
json_t *sf_form_usage(const sf_call *c); /* of all jobs */
/* Of choice i of a, null if none are asked for; chars as in sf_api_logprobs_json. */
json_t *sf_form_logprobs(const sf_call *c, const sf_api_answer *a, int i, bool echo, int64_t *chars);

/* ---- log.c ---- */
void sf_log_call(const sf_call *c, int status, const char *outcome);
/* A request that is no call. t NULL: not known; req NULL: it never came whole. */
void sf_log_request(const sf_server *s, const sf_ticket *t, struct evhttp_request *req, int status,
                    const char *outcome);
void sf_log_event(const sf_server *s, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
