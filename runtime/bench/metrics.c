#include "bench/metrics.h"

#include <math.h>
#include <stdlib.h>

const char *const sf_bench_metric_names[SF_BENCH_METRICS] = {
    [SF_BENCH_TTFT] = "ttft", [SF_BENCH_TPOT] = "tpot", [SF_BENCH_ITL] = "itl", [SF_BENCH_E2EL] = "e2el"};

static bool is_in(const sf_bench_results *r, int i, sf_bench_kind kind) {
    return r->records[i].success && (kind == SF_BENCH_KINDS || r->sends[i].kind == kind);
}

/* A single token takes no time per token. */
static double tpot_of(const sf_bench_record *rec) {
    return rec->output_tokens > 1 ? (rec->latency_s - rec->ttft_s) / (double)(rec->output_tokens - 1) : 0;
}

static bool is_good(const sf_bench_results *r, const sf_bench_record *rec) {
    const double ms[SF_BENCH_METRICS] = {[SF_BENCH_TTFT] = rec->ttft_s * 1e3,
                                         [SF_BENCH_TPOT] = tpot_of(rec) * 1e3,
                                         [SF_BENCH_E2EL] = rec->latency_s * 1e3};
    for (int m = 0; m < SF_BENCH_METRICS; m++)
        if (r->goals_ms[m] > 0 && ms[m] > r->goals_ms[m]) return false;
    return true;
}

static sf_code collect(const sf_bench_results *r, sf_bench_kind kind, sf_bench_list lists[SF_BENCH_METRICS],
                       sf_err *err) {
    for (int i = 0; i < r->n; i++) {
        const sf_bench_record *rec = &r->records[i];
        if (!is_in(r, i, kind)) continue;
        SF_TRY(sf_bench_list_push(&lists[SF_BENCH_TTFT], rec->ttft_s, err));
        SF_TRY(sf_bench_list_push(&lists[SF_BENCH_E2EL], rec->latency_s, err));
        if (rec->output_tokens > 1) SF_TRY(sf_bench_list_push(&lists[SF_BENCH_TPOT], tpot_of(rec), err));
        for (size_t k = 0; k < rec->itl.n; k++)
            SF_TRY(sf_bench_list_push(&lists[SF_BENCH_ITL], rec->itl.v[k], err));
    }
    return SF_OK;
}

static void figures(const sf_bench_results *r, sf_bench_list *l, sf_bench_figures *out) {
    out->mean = sf_bench_mean(l) * 1e3;
    out->std = sf_bench_std(l) * 1e3;
    sf_bench_sort(l);
    out->median = sf_bench_percentile(l, 50) * 1e3;
    for (int p = 0; p < r->n_percentiles; p++)
        out->percentiles[p] = sf_bench_percentile(l, r->percentiles[p]) * 1e3;
}

/* Chunks by whole seconds after the first start. */
static sf_code peak_output(const sf_bench_results *r, sf_bench_kind kind, sf_bench_summary *s, sf_err *err) {
    double first = INFINITY, last = -INFINITY;
    for (int i = 0; i < r->n; i++) {
        if (!is_in(r, i, kind)) continue;
        first = fmin(first, r->records[i].start_s);
        last = fmax(last, r->records[i].start_s + r->records[i].latency_s);
    }
    if (!(last >= first)) return SF_OK;
    const size_t n = (size_t)ceil(last - first) + 1;
    int64_t *seconds = calloc(n, sizeof *seconds);
    if (!seconds) return SF_FAIL(err, SF_NOMEM, "out of memory for %zu seconds", n);
    for (int i = 0; i < r->n; i++) {
        const sf_bench_record *rec = &r->records[i];
        if (!is_in(r, i, kind)) continue;
        double at = rec->start_s + rec->ttft_s - first;
        for (size_t k = 0;; k++) {
            if (at >= 0 && (size_t)at < n) seconds[(size_t)at]++;
            if (k == rec->itl.n) break;
            at += rec->itl.v[k];
        }
    }
    for (size_t k = 0; k < n; k++)
        s->peak_output_per_s = fmax(s->peak_output_per_s, (double)seconds[k]);
    free(seconds);
    return SF_OK;
}

/* Requests in progress at once: a sweep over starts and ends, where an end comes before a start. */
static sf_code peak_concurrency(const sf_bench_results *r, sf_bench_kind kind, sf_bench_summary *s,
                                sf_err *err) {
    sf_bench_list starts = {0}, ends = {0};
    sf_code rc = SF_OK;
    for (int i = 0; rc == SF_OK && i < r->n; i++) {
        const sf_bench_record *rec = &r->records[i];
        if (!is_in(r, i, kind)) continue;
        rc = sf_bench_list_push(&starts, rec->start_s, err);
        if (rc == SF_OK) rc = sf_bench_list_push(&ends, rec->start_s + rec->latency_s, err);
    }
    sf_bench_sort(&starts);
    sf_bench_sort(&ends);
    int open = 0;
    for (size_t i = 0, k = 0; rc == SF_OK && i < starts.n; i++) {
        for (; k < ends.n && ends.v[k] <= starts.v[i]; k++)
            open--;
        open++;
        if (open > s->peak_concurrency) s->peak_concurrency = open;
    }
    sf_bench_list_fini(&starts);
    sf_bench_list_fini(&ends);
    return rc;
}

static void count(const sf_bench_results *r, sf_bench_kind kind, sf_bench_summary *s) {
    int good = 0;
    for (int i = 0; i < r->n; i++) {
        const sf_bench_record *rec = &r->records[i];
        if (kind != SF_BENCH_KINDS && r->sends[i].kind != kind) continue;
        s->completed += rec->success;
        s->cut += rec->cut;
        s->failed += !rec->success && !rec->cut;
        if (!rec->success) continue;
        s->input_tokens += rec->input_tokens;
        s->output_tokens += rec->output_tokens;
        good += is_good(r, rec);
    }
    s->duration_s = r->duration_s;
    if (r->duration_s <= 0) return;
    s->requests_per_s = s->completed / r->duration_s;
    s->good_per_s = good / r->duration_s;
    s->output_per_s = (double)s->output_tokens / r->duration_s;
    s->tokens_per_s = (double)(s->input_tokens + s->output_tokens) / r->duration_s;
}

sf_code sf_bench_summarize(const sf_bench_results *r, sf_bench_kind kind, sf_bench_summary *out,
                           sf_err *err) {
    sf_bench_list lists[SF_BENCH_METRICS] = {{0}};
    sf_bench_summary s = {0};
    count(r, kind, &s);
    sf_code rc = collect(r, kind, lists, err);
    if (rc == SF_OK) rc = peak_output(r, kind, &s, err);
    if (rc == SF_OK) rc = peak_concurrency(r, kind, &s, err);
    for (int m = 0; m < SF_BENCH_METRICS; m++) {
        figures(r, &lists[m], &s.of[m]);
        sf_bench_list_fini(&lists[m]);
    }
    if (rc == SF_OK) *out = s;
    return rc;
}
