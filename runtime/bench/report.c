#include "bench/report.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define WIDTH      50 /* of the table */
#define LABEL      40
#define FAILED_MAX 10 /* that are named */

static const char *const names[SF_BENCH_METRICS] = {"TTFT", "TPOT", "ITL", "E2EL"};
static const char *const heads[SF_BENCH_METRICS] = {"Time to First Token",
                                                    "Time per Output Token (excl. 1st token)",
                                                    "Inter-token Latency", "End-to-end Latency"};

sf_code sf_bench_report_make(const sf_bench_config *c, const sf_bench_outcome *o, const sf_bench_wishes *w,
                             sf_bench_report *out, sf_err *err) {
    sf_bench_report r = {.config = c,
                         .outcome = o,
                         .wishes = w,
                         .results = {.sends = o->sends,
                                     .records = o->records,
                                     .n = o->n,
                                     .duration_s = o->duration_s,
                                     .percentiles = w->percentiles,
                                     .n_percentiles = w->n_percentiles}};
    memcpy(r.results.goals_ms, w->goals_ms, sizeof w->goals_ms);
    SF_TRY(sf_bench_summarize(&r.results, SF_BENCH_KINDS, &r.all, err));
    for (int k = 0; k < SF_BENCH_KINDS; k++)
        SF_TRY(sf_bench_summarize(&r.results, (sf_bench_kind)k, &r.by_kind[k], err));
    SF_TRY(sf_bench_compare(&r.results, c->load.copies, &o->before, &o->after, &r.determinism, err));
    *out = r;
    return SF_OK;
}

bool sf_bench_report_both(const sf_bench_report *r) {
    return r->by_kind[SF_BENCH_ORDINARY].completed > 0 && r->by_kind[SF_BENCH_DETERMINISTIC].completed > 0;
}

bool sf_bench_report_has_goals(const sf_bench_report *r) {
    for (int m = 0; m < SF_BENCH_METRICS; m++)
        if (r->wishes->goals_ms[m] > 0) return true;
    return false;
}

/* ---- the table ---- */

static void put_head(FILE *f, const char *head, char fill) {
    const int len = (int)strlen(head), left = (WIDTH - len) / 2;
    for (int i = 0; i < left; i++)
        fputc(fill, f);
    fputs(head, f);
    for (int i = left + len; i < WIDTH; i++)
        fputc(fill, f);
    fputc('\n', f);
}

static void put_count(FILE *f, const char *label, long long v) {
    fprintf(f, "%-*s %-10lld\n", LABEL, label, v);
}

static void put_number(FILE *f, const char *label, double v) {
    fprintf(f, "%-*s %-10.2f\n", LABEL, label, v);
}

static void put_metric(const sf_bench_report *r, FILE *f, int m) {
    const sf_bench_figures *v = &r->all.of[m];
    char label[64];
    put_head(f, heads[m], '-');
    snprintf(label, sizeof label, "Mean %s (ms):", names[m]);
    put_number(f, label, v->mean);
    snprintf(label, sizeof label, "Median %s (ms):", names[m]);
    put_number(f, label, v->median);
    for (int p = 0; p < r->results.n_percentiles; p++) {
        snprintf(label, sizeof label, "P%g %s (ms):", r->results.percentiles[p], names[m]);
        put_number(f, label, v->percentiles[p]);
    }
}

static void put_apart(const sf_bench_report *r, FILE *f) {
    static const int shown[] = {SF_BENCH_TTFT, SF_BENCH_TPOT, SF_BENCH_E2EL};
    static const char *const kinds[SF_BENCH_KINDS] = {
        [SF_BENCH_ORDINARY] = "ordinary", [SF_BENCH_DETERMINISTIC] = "deterministic"};
    char label[64];
    if (!sf_bench_report_both(r)) return;
    put_head(f, "Deterministic and Ordinary Requests", '-');
    for (int k = SF_BENCH_DETERMINISTIC; k >= SF_BENCH_ORDINARY; k--) {
        const sf_bench_summary *s = &r->by_kind[k];
        snprintf(label, sizeof label, "Successful, %s:", kinds[k]);
        put_count(f, label, s->completed);
        for (size_t i = 0; i < sizeof shown / sizeof *shown; i++) {
            snprintf(label, sizeof label, "Mean %s, %s (ms):", names[shown[i]], kinds[k]);
            put_number(f, label, s->of[shown[i]].mean);
            snprintf(label, sizeof label, "Median %s, %s (ms):", names[shown[i]], kinds[k]);
            put_number(f, label, s->of[shown[i]].median);
        }
    }
}

static const char *plural(int64_t n) {
    return n == 1 ? "" : "s";
}

static void put_determinism(const sf_bench_report *r, FILE *f) {
    const sf_bench_determinism *d = &r->determinism;
    const sf_bench_copies *det = &d->deterministic, *ord = &d->ordinary;
    const bool both = det->prompts > 0 && ord->prompts > 0;
    const int most = det->most > ord->most ? det->most : ord->most;
    if (det->prompts + ord->prompts + d->answers == 0) return;
    fputs("Determinism: ", f);
    if (det->prompts > 0) fprintf(f, "%s%d of %d", both ? "deterministic " : "", det->same, det->prompts);
    if (ord->prompts > 0) fprintf(f, "%s%d of %d", both ? ", ordinary " : "", ord->same, ord->prompts);
    if (det->prompts + ord->prompts > 0) {
        fprintf(f, " prompts one output each (%d copies, %s compared", d->copies,
                d->by_digest ? "digests" : "texts");
        if (most > 1) fprintf(f, ", up to %d outputs", most);
        fputc(')', f);
    } else {
        fprintf(f, "%d deterministic answer%s", d->answers, plural(d->answers));
    }
    if (d->answers > 0)
        fprintf(f, ", %lld rollback%s, %lld token%s rolled back, recompute ratio %.3f",
                (long long)d->rollbacks, plural(d->rollbacks), (long long)d->tokens_rolled_back,
                plural(d->tokens_rolled_back), d->recompute_ratio);
    if (d->counters.there) fprintf(f, ", %.0f verify passes", d->counters.v[SF_BENCH_VERIFY_PASSES]);
    fputc('\n', f);
}

void sf_bench_report_print(const sf_bench_report *r, FILE *f) {
    const sf_bench_summary *s = &r->all;
    const sf_bench_config *c = r->config;
    put_head(f, " Serving Benchmark Result ", '=');
    put_count(f, "Successful requests:", s->completed);
    put_count(f, "Failed requests:", s->failed);
    if (s->cut > 0) put_count(f, "Interrupted requests:", s->cut);
    if (c->run.max_concurrency > 0) put_count(f, "Maximum request concurrency:", c->run.max_concurrency);
    if (!isinf(c->load.rate)) put_number(f, "Request rate configured (RPS):", c->load.rate);
    put_number(f, "Benchmark duration (s):", s->duration_s);
    put_count(f, "Total input tokens:", s->input_tokens);
    put_count(f, "Total generated tokens:", s->output_tokens);
    put_number(f, "Request throughput (req/s):", s->requests_per_s);
    if (sf_bench_report_has_goals(r)) put_number(f, "Request goodput (req/s):", s->good_per_s);
    put_number(f, "Output token throughput (tok/s):", s->output_per_s);
    put_number(f, "Peak output token throughput (tok/s):", s->peak_output_per_s);
    put_number(f, "Peak concurrent requests:", s->peak_concurrency);
    put_number(f, "Total token throughput (tok/s):", s->tokens_per_s);
    for (int m = 0; m < SF_BENCH_METRICS; m++)
        if (r->wishes->metrics[m]) put_metric(r, f, m);
    put_apart(r, f);
    put_head(f, "", '=');
    put_determinism(r, f);
}

void sf_bench_report_failures(const sf_bench_report *r, FILE *f) {
    int named = 0;
    for (int i = 0; i < r->results.n && named < FAILED_MAX; i++) {
        const sf_bench_record *rec = &r->results.records[i];
        if (rec->success || rec->cut) continue;
        fprintf(f, "request %d: %s\n", i, rec->error);
        named++;
    }
    if (r->all.failed > named) fprintf(f, "and %d more that failed\n", r->all.failed - named);
}
