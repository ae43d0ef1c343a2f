#include "serve/metrics.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define BOUNDS_MAX 24
#define BUCKETS    16 /* passes by rows: up to 1, 2, 4, ... */

typedef struct histogram {
    const char *name, *help;
    double bounds[BOUNDS_MAX]; /* ascending, ended by 0 */
    int64_t counts[BOUNDS_MAX + 1], total;
    double sum;
} histogram;

enum { TTFT, TPOT, E2E, QUEUE, ITERATION, HISTOGRAMS };

#define LATENCY                                                                                              \
    { 0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40, 80 }

static const histogram blank[HISTOGRAMS] = {
    [TTFT] = {.name = "time_to_first_token_seconds",
              .help = "From arrival to the first committed token.",
              .bounds = LATENCY},
    [TPOT] = {.name = "time_per_output_token_seconds",
              .help = "Mean time between a request's tokens after the first.",
              .bounds = {0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.5, 1,
                         2.5}},
    [E2E] = {.name = "e2e_request_latency_seconds",
             .help = "From arrival to the end.",
             .bounds = {0.01, 0.05, 0.1, 0.3, 0.5, 0.8, 1,  1.5, 2,   2.5,
                        5,    10,   15,  20,  30,  40,  60, 120, 240, 480}},
    [QUEUE] = {.name = "request_queue_time_seconds", .help = "From arrival to admission.", .bounds = LATENCY},
    [ITERATION] = {.name = "iteration_tokens_total",
                   .help = "Rows of a pass.",
                   .bounds = {1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192}},
};

/* How vLLM names the ends. */
static const char *const reasons[] = {"stop", "length", "abort", "error"};
enum { N_REASONS = sizeof reasons / sizeof *reasons };

struct sf_metrics {
    pthread_mutex_t lock;
    histogram h[HISTOGRAMS];
    int64_t ended[N_REASONS], passes[SF_CLASS_COUNT][BUCKETS];
    double pass_s[SF_CLASS_COUNT][BUCKETS];
};

sf_code sf_metrics_create(sf_metrics **out, sf_err *err) {
    sf_metrics *m = calloc(1, sizeof *m);
    if (!m) return SF_FAIL(err, SF_NOMEM, "no memory for the metrics");
    pthread_mutex_init(&m->lock, NULL);
    memcpy(m->h, blank, sizeof m->h);
    *out = m;
    return SF_OK;
}

void sf_metrics_destroy(sf_metrics *m) {
    if (!m) return;
    pthread_mutex_destroy(&m->lock);
    free(m);
}

static int n_bounds(const histogram *h) {
    int n = 0;
    while (n < BOUNDS_MAX && h->bounds[n] > 0)
        n++;
    return n;
}

static void observe(histogram *h, double v) {
    if (v < 0) return;
    int i = 0;
    const int n = n_bounds(h);
    while (i < n && v > h->bounds[i])
        i++;
    h->counts[i]++;
    h->total++;
    h->sum += v;
}

static int bucket_of(int rows) {
    int b = 0;
    while (b + 1 < BUCKETS && (1 << b) < rows)
        b++;
    return b;
}

void sf_metrics_pass(sf_metrics *m, sf_class cls, int rows, double seconds) {
    pthread_mutex_lock(&m->lock);
    m->passes[cls][bucket_of(rows)]++;
    m->pass_s[cls][bucket_of(rows)] += seconds;
    observe(&m->h[ITERATION], rows);
    pthread_mutex_unlock(&m->lock);
}

void sf_metrics_request(sf_metrics *m, const sf_request_times *t) {
    const int reason = t->finish == SF_FINISH_STOP     ? 0
                       : t->finish == SF_FINISH_LENGTH ? 1
                       : t->finish == SF_FINISH_ERROR  ? 3
                                                       : 2;
    pthread_mutex_lock(&m->lock);
    m->ended[reason]++;
    observe(&m->h[TTFT], t->first_token);
    observe(&m->h[TPOT], t->per_token);
    observe(&m->h[E2E], t->whole);
    observe(&m->h[QUEUE], t->queued);
    pthread_mutex_unlock(&m->lock);
}

/* ---- the text ---- */

typedef struct writer {
    sf_buf *out;
    sf_err *err;
    sf_code rc;
    const char *model;
} writer;

#define PUT(w, ...) ((w)->rc = (w)->rc == SF_OK ? sf_buf_printf((w)->out, (w)->err, __VA_ARGS__) : (w)->rc)

static void head(writer *w, const char *name, const char *kind, const char *help) {
    PUT(w, "# HELP steadfast:%s %s\n# TYPE steadfast:%s %s\n", name, help, name, kind);
}

static void single(writer *w, const char *name, const char *kind, const char *help, double v) {
    head(w, name, kind, help);
    PUT(w, "steadfast:%s{model_name=\"%s\"} %.17g\n", name, w->model, v);
}

static void put_histogram(writer *w, const histogram *h) {
    int64_t sum = 0;
    const int n = n_bounds(h);
    head(w, h->name, "histogram", h->help);
    for (int i = 0; i < n; i++) {
        sum += h->counts[i];
        PUT(w, "steadfast:%s_bucket{model_name=\"%s\",le=\"%.10g\"} %lld\n", h->name, w->model, h->bounds[i],
            (long long)sum);
    }
    PUT(w, "steadfast:%s_bucket{model_name=\"%s\",le=\"+Inf\"} %lld\n", h->name, w->model,
        (long long)h->total);
    PUT(w, "steadfast:%s_sum{model_name=\"%s\"} %.17g\n", h->name, w->model, h->sum);
    PUT(w, "steadfast:%s_count{model_name=\"%s\"} %lld\n", h->name, w->model, (long long)h->total);
}

static void put_passes(writer *w, const sf_metrics *m) {
    static const char *const classes[SF_CLASS_COUNT] = {
        [SF_CLASS_PINNED] = "pinned", [SF_CLASS_FAST] = "fast"};
    head(w, "pass_seconds", "summary", "Time on the device of passes of up to so many rows.");
    for (int c = 0; c < SF_CLASS_COUNT; c++)
        for (int b = 0; b < BUCKETS; b++) {
            if (m->passes[c][b] == 0) continue;
            PUT(w, "steadfast:pass_seconds_sum{model_name=\"%s\",class=\"%s\",bucket=\"%d\"} %.17g\n",
                w->model, classes[c], 1 << b, m->pass_s[c][b]);
            PUT(w, "steadfast:pass_seconds_count{model_name=\"%s\",class=\"%s\",bucket=\"%d\"} %lld\n",
                w->model, classes[c], 1 << b, (long long)m->passes[c][b]);
        }
}

static void put_scheduler(writer *w, const sf_sched_stats *s) {
    const double used = s->pages_total > 0 ? (double)(s->pages_total - s->pages_free) / s->pages_total : 0;
    single(w, "num_requests_running", "gauge", "Answers in progress.", s->running);
    single(w, "num_requests_waiting", "gauge", "Answers in the queue.", s->waiting);
    single(w, "kv_cache_usage_perc", "gauge", "KV pages in use, 1 is all.", used);
    single(w, "num_preemptions_total", "counter", "Answers sent back to the queue.", 0);
    single(w, "prefix_cache_queries_total", "counter", "Prompt tokens looked up in the prefix cache.", 0);
    single(w, "prefix_cache_hits_total", "counter", "Prompt tokens found there.", 0);
    single(w, "prompt_tokens_total", "counter", "Prompt tokens computed.", (double)s->prompt_tokens);
    single(w, "generation_tokens_total", "counter", "Tokens committed.",
           (double)(s->committed_tokens + s->ordinary_tokens));
    single(w, "verify_passes_total", "counter", "Pinned passes with a verify window.",
           (double)s->verify_passes);
    single(w, "verify_rows_total", "counter", "Rows of verify windows.", (double)s->verify_rows);
    single(w, "rollbacks_total", "counter", "Windows that disagreed with their draft.", (double)s->rollbacks);
    single(w, "rolled_back_tokens_total", "counter", "Candidates thrown away.",
           (double)s->tokens_rolled_back);
    single(w, "ride_along_rows_total", "counter", "Ordinary decode rows in pinned passes.",
           (double)s->ride_along_rows);
}

sf_code sf_metrics_text(sf_metrics *m, const sf_sched_stats *s, const char *model, sf_buf *out, sf_err *err) {
    writer w = {.out = out, .err = err, .rc = SF_OK, .model = model};
    put_scheduler(&w, s);
    pthread_mutex_lock(&m->lock);
    head(&w, "request_success_total", "counter", "Requests that have ended.");
    for (int i = 0; i < N_REASONS; i++)
        PUT(&w, "steadfast:request_success_total{model_name=\"%s\",finished_reason=\"%s\"} %lld\n", model,
            reasons[i], (long long)m->ended[i]);
    for (int i = 0; i < HISTOGRAMS; i++)
        put_histogram(&w, &m->h[i]);
    put_passes(&w, m);
    pthread_mutex_unlock(&m->lock);
    return w.rc;
}
