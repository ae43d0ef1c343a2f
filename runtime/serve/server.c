#include "serve/serve.h"
#include "serve/http_priv.h"
#include "serve/serve_priv.h"

#include "base/progress.h"

#include <errno.h>
#include <event2/listener.h>
#include <event2/thread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>

#define PING_S  15
#define FLUSH_S 2 /* for the last answers to leave */

/* ---- the HTTP thread ---- */

static bool has_unsent(const sf_server *s) {
    for (const sf_conn *c = s->conns; c; c = c->next)
        if (sf_conn_unsent(c) > 0) return true;
    return false;
}

void sf_server_try_stop(sf_server *s) {
    if (atomic_load(&s->state) == SF_DRAINING && s->n_calls == 0) sf_driver_stop(s->driver);
}

static void on_wake(evutil_socket_t fd, short what, void *ctx) {
    sf_server *s = ctx;
    (void)fd, (void)what;
    if (s->driver) sf_calls_wake(s);
}

static void on_tick(evutil_socket_t fd, short what, void *ctx) {
    sf_server *s = ctx;
    const double now = sf_now_s();
    (void)fd, (void)what;
    sf_conns_sweep(s);
    evconnlistener_enable(s->listener);
    if (now - s->pinged_s >= PING_S) {
        s->pinged_s = now;
        sf_calls_ping(s);
    }
    if (atomic_load(&s->state) == SF_DRAINING) {
        if (now > s->drain_until_s) sf_calls_cancel(s);
        sf_server_try_stop(s);
    }
    if (atomic_load(&s->closing) && (!has_unsent(s) || now > s->close_by_s)) event_base_loopbreak(s->base);
}

/* The first signal drains; the next one has its usual effect, as the first has while nothing is served yet.
 */
static void on_signal(evutil_socket_t number, short what, void *ctx) {
    sf_server *s = ctx;
    int ready = SF_READY;
    (void)what;
    event_del(s->sigterm);
    event_del(s->sigint);
    if (!atomic_compare_exchange_strong(&s->state, &ready, SF_DRAINING)) {
        raise((int)number);
        return;
    }
    s->drain_until_s = sf_now_s() + s->cfg->shutdown_timeout_s;
    sf_log_event(s, "shutting down: %d requests are given %d s to end", s->n_calls,
                 s->cfg->shutdown_timeout_s);
    sf_server_try_stop(s);
}

static void *serve_http(void *ctx) {
    sf_server *s = ctx;
    event_base_dispatch(s->base);
    return NULL;
}

/* ---- beginning ---- */

/* As many connections as the system lets a process have. */
static void raise_limit(void) {
    struct rlimit l;
    if (getrlimit(RLIMIT_NOFILE, &l) != 0) return;
    l.rlim_cur = l.rlim_max;
    (void)setrlimit(RLIMIT_NOFILE, &l);
}

/* Most likely no descriptor is free: the socket would stay readable, so it is left alone until the next tick.
 */
static void on_accept_error(struct evconnlistener *listener, void *http) {
    (void)http;
    fprintf(stderr, "steadfast: cannot accept a connection: %s\n", strerror(errno));
    evconnlistener_disable(listener);
}

static sf_code bind_port(sf_server *s, sf_err *err) {
    struct sockaddr_storage a;
    socklen_t len = sizeof a;
    errno = 0;
    struct evhttp_bound_socket *b =
        evhttp_bind_socket_with_handle(s->http, s->cfg->host, (ev_uint16_t)s->cfg->port);
    if (!b)
        return SF_FAIL(err, SF_IO, "cannot listen on %s port %d: %s", s->cfg->host, s->cfg->port,
                       errno ? strerror(errno) : "no such host");
    s->listener = evhttp_bound_socket_get_listener(b);
    evconnlistener_set_error_cb(s->listener, on_accept_error);
    if (getsockname(evhttp_bound_socket_get_fd(b), (struct sockaddr *)&a, &len) == 0)
        s->port = ntohs(a.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&a)->sin6_port
                                                : ((struct sockaddr_in *)&a)->sin_port);
    return SF_OK;
}

static sf_code events(sf_server *s, sf_err *err) {
    static const struct timeval second = {1, 0};
    s->wake = event_new(s->base, -1, EV_PERSIST, on_wake, s);
    s->again = event_new(s->base, -1, 0, on_wake, s);
    s->tick = event_new(s->base, -1, EV_PERSIST, on_tick, s);
    s->sigterm = evsignal_new(s->base, SIGTERM, on_signal, s);
    s->sigint = evsignal_new(s->base, SIGINT, on_signal, s);
    if (!s->wake || !s->again || !s->tick || !s->sigterm || !s->sigint || event_add(s->tick, &second) != 0 ||
        event_add(s->sigterm, NULL) != 0 || event_add(s->sigint, NULL) != 0)
        return SF_FAIL(err, SF_NOMEM, "no memory for the server's events");
    return SF_OK;
}

/* A label of Prometheus: backslash, quote and newline are escaped. */
static void make_label(sf_server *s) {
    size_t at = 0;
    for (const char *m = s->cfg->model; *m && at + 3 < sizeof s->label; m++) {
        if (*m == '\\' || *m == '"' || *m == '\n') s->label[at++] = '\\';
        s->label[at++] = *m == '\n' ? 'n' : *m;
    }
    s->label[at] = 0;
}

static sf_code start(sf_server *s, sf_err *err) {
    s->base = evthread_use_pthreads() == 0 ? event_base_new() : NULL;
    s->http = s->base ? evhttp_new(s->base) : NULL;
    if (!s->http) return SF_FAIL(err, SF_NOMEM, "no memory for the server");
    SF_TRY(sf_metrics_create(&s->metrics, err));
    SF_TRY(sf_conns_init(s, err));
    evhttp_set_gencb(s->http, sf_http_dispatch, s);
    SF_TRY(events(s, err));
    SF_TRY(bind_port(s, err));
    make_label(s);
    if (pthread_create(&s->thread, NULL, serve_http, s) != 0)
        return SF_FAIL(err, SF_NOMEM, "cannot start the thread that serves HTTP");
    s->thread_runs = true;
    return SF_OK;
}

sf_code sf_server_create(const sf_serve_config *cfg, sf_server **out, sf_err *err) {
    sf_server *s = calloc(1, sizeof *s);
    if (!s) return SF_FAIL(err, SF_NOMEM, "no memory for the server");
    s->cfg = cfg;
    s->started = (int64_t)time(NULL);
    signal(SIGPIPE, SIG_IGN);
    raise_limit();
    const sf_code rc = start(s, err);
    if (rc != SF_OK) {
        sf_server_destroy(s);
        return rc;
    }
    *out = s;
    return SF_OK;
}

int sf_server_port(const sf_server *s) {
    return s->port;
}

/* ---- running and ending ---- */

static void wake(void *ctx) {
    sf_server *s = ctx;
    event_active(s->wake, EV_READ, 0);
}

sf_code sf_server_run(sf_server *s, sf_engine *e, const sf_api_model *m, sf_err *err) {
    SF_TRY(sf_driver_create(e, s->metrics, wake, s, &s->driver, err));
    s->engine = e;
    s->model = m;
    atomic_store(&s->state, SF_READY);
    sf_log_event(s, "serving %.200s on %s://%.100s:%d", s->cfg->model, s->tls ? "https" : "http",
                 s->cfg->host, s->port);
    const sf_code rc = sf_driver_run(s->driver, &s->failure);
    if (rc == SF_OK) return SF_OK;
    atomic_store(&s->state, SF_FAILED);
    *err = s->failure;
    return rc;
}

void sf_server_destroy(sf_server *s) {
    if (!s) return;
    if (s->thread_runs) {
        static const struct timeval soon = {0, 20000};
        s->close_by_s = sf_now_s() + FLUSH_S;
        atomic_store(&s->closing, true);
        event_add(s->tick, &soon);
        pthread_join(s->thread, NULL);
    }
    while (s->calls)
        sf_call_drop(s->calls);
    if (s->http) evhttp_free(s->http); /* which tells of every connection that it closes */
    sf_conns_fini(s);
    struct event *const all[] = {s->wake, s->again, s->tick, s->sigterm, s->sigint};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (all[i]) event_free(all[i]);
    sf_driver_destroy(s->driver);
    sf_metrics_destroy(s->metrics);
    if (s->base) event_base_free(s->base);
    free(s);
}
