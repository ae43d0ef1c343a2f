#include "bench/run.h"

#include "api/json.h"
#include "base/progress.h"
#include "bench/sse.h"

#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TICK_US   50000
#define ERROR_MAX 4096 /* bytes kept of an error answer */

typedef struct run run;

typedef struct slot { /* one request */
    run *r;
    sf_bench_record *record;
    sf_bench_sse sse;
    sf_buf refusal; /* body of an answer other than 200 */
    char *body;
} slot;

struct run {
    const sf_bench_run_config *c;
    const sf_bench_send *sends;
    slot *slots; /* [n] */
    int n, arrived, sent, ended;
    bool pumping, stopping, no_timer;
    double start_s, end_s;
    struct event *arrival, *tick;
    sf_progress line;
    int64_t chunks; /* so far */
    double ttft_s;  /* sum of the completed */
    int completed;
};

/* ---- the body ---- */

static bool put_settings(const sf_bench_run_config *c, const sf_bench_send *s, json_t *o) {
    const sf_bench_prompt *p = &c->prompts->v[s->prompt];
    bool ok = true;
    if (c->fields && json_object_update(o, (json_t *)(uintptr_t)c->fields) != 0) ok = false;
    sf_json_put(o, "model", json_string(c->model), &ok);
    sf_json_put(o, c->chat ? "messages" : "prompt", json_incref(p->value), &ok);
    sf_json_put(o, c->chat ? "max_completion_tokens" : "max_tokens", json_integer(p->output_tokens), &ok);
    sf_json_put(o, "stream", json_true(), &ok);
    sf_json_put(o, "stream_options", json_pack("{s:b}", "include_usage", 1), &ok);
    if (c->seeded) {
        const uint64_t seed = (uint64_t)c->seed + (uint64_t)s->prompt;
        sf_json_put(o, "seed", json_integer((json_int_t)seed), &ok);
    }
    if (s->kind != SF_BENCH_UNMARKED)
        sf_json_put(o, "is_deterministic", json_boolean(s->kind == SF_BENCH_DETERMINISTIC), &ok);
    if (c->extra && json_object_update(o, (json_t *)(uintptr_t)c->extra) != 0) ok = false;
    return ok;
}

char *sf_bench_body(const sf_bench_run_config *c, const sf_bench_send *s) {
    json_t *o = json_object();
    char *text = o && put_settings(c, s, o) ? sf_json_dump(o) : NULL;
    json_decref(o);
    return text;
}

/* ---- an answer ---- */

static bool on_event(void *ctx, const char *data, size_t len) {
    slot *s = ctx;
    sf_err err;
    const int64_t before = s->record->chunks;
    if (sf_bench_record_event(s->record, data, len, sf_now_s(), &err) != SF_OK) {
        sf_bench_record_fail(s->record, err.msg);
        return false;
    }
    s->r->chunks += s->record->chunks - before;
    return true;
}

static bool on_bytes(void *ctx, int status, const char *data, size_t len) {
    slot *s = ctx;
    sf_err err;
    if (status != 200) {
        const size_t room = s->refusal.len < ERROR_MAX ? ERROR_MAX - s->refusal.len : 0;
        return sf_buf_append(&s->refusal, data, len < room ? len : room, &err) == SF_OK;
    }
    if (sf_bench_sse_feed(&s->sse, data, len, on_event, s, &err) == SF_OK) return true;
    if (!s->record->error[0]) sf_bench_record_fail(s->record, err.msg);
    return false;
}

static void judge(slot *s, int status, const char *error) {
    sf_bench_record *rec = s->record;
    char text[300];
    sf_err err;
    if (rec->error[0]) return;
    if (error) {
        sf_bench_record_fail(rec, error);
    } else if (status != 200) {
        sf_bench_error_text(s->refusal.data ? s->refusal.data : "", s->refusal.len, text, sizeof text);
        snprintf(rec->error, sizeof rec->error, "HTTP %d%s%s", status, text[0] ? ": " : "", text);
    } else if (sf_bench_sse_end(&s->sse, on_event, s, &err) != SF_OK && !rec->error[0]) {
        sf_bench_record_fail(rec, err.msg);
    }
}

static void pump(run *r);

static void on_done(void *ctx, int status, const char *error) {
    slot *s = ctx;
    run *r = s->r;
    s->record->cut = r->stopping;
    judge(s, status, error);
    if (s->record->error[0]) s->record->ended = false;
    sf_bench_record_end(s->record);
    if (s->record->success) {
        r->completed++;
        r->ttft_s += s->record->ttft_s;
    }
    sf_bench_sse_fini(&s->sse);
    sf_buf_fini(&s->refusal);
    free(s->body);
    s->body = NULL;
    r->ended++;
    r->end_s = sf_now_s();
    pump(r);
}

/* ---- the run ---- */

static void send_one(run *r, int i) {
    slot *s = &r->slots[i];
    const sf_bench_prompt *p = &r->c->prompts->v[r->sends[i].prompt];
    sf_err err;
    s->body = sf_bench_body(r->c, &r->sends[i]);
    s->record->input_tokens = p->input_tokens;
    const sf_bench_exchange x = {.path = r->c->endpoint,
                                 .body = s->body ? s->body : "",
                                 .body_len = s->body ? strlen(s->body) : 0,
                                 .bytes = on_bytes,
                                 .done = on_done,
                                 .ctx = s};
    s->record->start_s = sf_now_s();
    s->record->queue_s = s->record->start_s - (r->start_s + r->sends[i].at_s);
    if (!s->body || sf_bench_client_start(r->c->client, &x, &err) != SF_OK)
        on_done(s, 0, "out of memory for the request");
}

/* A request may end before the call that sends it returns: such ends do not send the next from within. */
static void pump(run *r) {
    const int most = r->c->max_concurrency > 0 ? r->c->max_concurrency : r->n;
    if (r->pumping) return;
    r->pumping = true;
    while (!r->stopping && r->sent < r->arrived && r->sent - r->ended < most)
        send_one(r, r->sent++);
    r->pumping = false;
    if (r->ended == r->n || (r->stopping && r->ended == r->sent))
        event_base_loopbreak(sf_bench_client_base(r->c->client));
}

/* Without the timer nothing more would be sent, and the loop would not end. */
static void give_up(run *r) {
    r->no_timer = r->stopping = true;
    sf_bench_client_abort(r->c->client);
    pump(r);
}

static void on_arrival(evutil_socket_t fd, short what, void *ctx) {
    run *r = ctx;
    const double now = sf_now_s() - r->start_s;
    (void)fd;
    (void)what;
    while (r->arrived < r->n && r->sends[r->arrived].at_s <= now)
        r->arrived++;
    pump(r);
    if (r->arrived == r->n || r->stopping) return;
    double wait = r->sends[r->arrived].at_s - (sf_now_s() - r->start_s);
    if (wait < 0) wait = 0;
    const struct timeval next = {(time_t)wait, (suseconds_t)((wait - (double)(time_t)wait) * 1e6)};
    if (evtimer_add(r->arrival, &next) != 0) give_up(r);
}

static void on_tick(evutil_socket_t fd, short what, void *ctx) {
    run *r = ctx;
    char note[96];
    const double spent = sf_now_s() - r->start_s;
    (void)fd;
    (void)what;
    snprintf(note, sizeof note, "%d running  %.0f tok/s  mean TTFT %.0f ms", r->sent - r->ended,
             spent > 0 ? (double)r->chunks / spent : 0, r->completed ? r->ttft_s / r->completed * 1e3 : 0);
    if (r->c->progress) sf_progress_note(&r->line, (uint64_t)r->ended, note);
    if (!r->c->stopped || !r->c->stopped() || r->stopping) return;
    r->stopping = true;
    sf_bench_client_abort(r->c->client);
    pump(r);
}

static void loop(run *r) {
    const struct timeval tick = {0, TICK_US};
    if (r->c->progress) sf_progress_init(&r->line, r->c->progress, "req", (uint64_t)r->n);
    r->start_s = r->end_s = sf_now_s();
    if (event_add(r->tick, &tick) == 0)
        on_arrival(-1, 0, r);
    else
        r->no_timer = r->stopping = true;
    if (r->stopping ? r->ended < r->sent : r->ended < r->n)
        event_base_dispatch(sf_bench_client_base(r->c->client));
    if (r->c->progress) sf_progress_fini(&r->line);
}

sf_code sf_bench_run(const sf_bench_run_config *c, const sf_bench_send *sends, int n,
                     sf_bench_record *records, double *duration_s, sf_err *err) {
    struct event_base *base = sf_bench_client_base(c->client);
    run r = {.c = c, .sends = sends, .n = n, .slots = calloc((size_t)n, sizeof *r.slots)};
    sf_code rc = SF_OK;
    r.arrival = evtimer_new(base, on_arrival, &r);
    r.tick = event_new(base, -1, EV_PERSIST, on_tick, &r);
    if (!r.slots || !r.arrival || !r.tick) {
        rc = SF_FAIL(err, SF_NOMEM, "out of memory for %d requests", n);
        goto done;
    }
    for (int i = 0; i < n; i++)
        r.slots[i] = (slot){.r = &r, .record = &records[i]};
    loop(&r);
    if (r.no_timer) rc = SF_FAIL(err, SF_NOMEM, "out of memory for a timer");
    for (int i = r.sent; i < n; i++) /* never sent */
        records[i].cut = true;
    *duration_s = r.end_s - r.start_s;
done:
    if (r.arrival) event_free(r.arrival);
    if (r.tick) event_free(r.tick);
    free(r.slots);
    return rc;
}
