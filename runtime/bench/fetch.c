/* One exchange that is waited for. */
#include "bench/client_priv.h"

#include "bench/record.h"

#include <event2/event.h>
#include <stdio.h>

#define BODY_MAX ((size_t)16 << 20)
#define SLICE_US 100000 /* between looks at whether the user has had enough */

typedef struct fetch {
    sf_buf *body;
    int status;
    bool done, too_long;
    char error[200];
} fetch;

static bool on_bytes(void *ctx, int status, const char *data, size_t len) {
    fetch *f = ctx;
    sf_err err;
    (void)status;
    f->too_long = f->body->len + len > BODY_MAX || sf_buf_append(f->body, data, len, &err) != SF_OK;
    return !f->too_long;
}

static void on_done(void *ctx, int status, const char *error) {
    fetch *f = ctx;
    f->done = true;
    f->status = status;
    snprintf(f->error, sizeof f->error, "%s", error ? error : "");
}

static void on_slice(evutil_socket_t fd, short what, void *ctx) {
    (void)fd;
    (void)what;
    (void)ctx;
}

static bool is_final(int status) {
    return status >= 400 && status < 500 && status != 408 && status != 425 && status != 429;
}

sf_code sf_bench_client_get(sf_bench_client *c, const char *path, int limit_s, int (*stopped)(void),
                            sf_buf *body, sf_err *err) {
    const struct timeval slice = {0, SLICE_US};
    fetch f = {.body = body};
    const sf_bench_exchange x = {
        .path = path, .limit_s = limit_s, .bytes = on_bytes, .done = on_done, .ctx = &f};
    struct event *tick = event_new(c->base, -1, EV_PERSIST, on_slice, NULL);
    sf_code rc = tick && event_add(tick, &slice) == 0 ? sf_bench_client_start(c, &x, err)
                                                      : SF_FAIL(err, SF_NOMEM, "out of memory for a timer");
    while (rc == SF_OK && !f.done) {
        event_base_loop(c->base, EVLOOP_ONCE);
        if (stopped && stopped()) sf_bench_client_abort(c);
    }
    if (tick) event_free(tick);
    if (rc != SF_OK) return rc;
    if (f.error[0]) return SF_FAIL(err, SF_IO, "%s: %s", path, f.error);
    if (f.too_long) return SF_FAIL(err, SF_IO, "%s: an answer of more than 16 MiB", path);
    if (f.status == 200) return SF_OK;
    char text[300];
    return SF_FAIL(err, is_final(f.status) ? SF_NOT_FOUND : SF_IO, "%s: HTTP %d: %s", path, f.status,
                   sf_bench_error_text(body->data ? body->data : "", body->len, text, sizeof text));
}
