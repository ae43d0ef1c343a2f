/* What the report is to show, from the flags. */
#include "bench/report.h"

#include <stdlib.h>
#include <string.h>

/* The metric whose name is these bytes, or SF_BENCH_METRICS. */
static int find_metric(const char *s, size_t len) {
    int m = 0;
    while (m < SF_BENCH_METRICS &&
           (strlen(sf_bench_metric_names[m]) != len || memcmp(sf_bench_metric_names[m], s, len) != 0))
        m++;
    return m;
}

/* A number in least..most and what follows it: a comma or the end. NULL: there is none. */
static const char *read_number(const char *s, double least, double most, double *out) {
    char *end;
    if (*s < '0' || *s > '9') return NULL;
    *out = strtod(s, &end);
    return (*end == ',' || *end == 0) && *out >= least && *out <= most ? end : NULL;
}

static sf_code read_percentiles(const char *text, sf_bench_wishes *w, sf_err *err) {
    for (const char *s = text; s; s = *s ? s + 1 : NULL) {
        double p;
        s = read_number(s, 0, 100, &p);
        if (!s || w->n_percentiles == SF_BENCH_PERCENTILES_MAX)
            return SF_FAIL(err, SF_INVALID,
                           "--metric-percentiles is \"%.60s\", expected at most %d of 0..100, as 50,99", text,
                           SF_BENCH_PERCENTILES_MAX);
        w->percentiles[w->n_percentiles++] = p;
        if (!*s) break;
    }
    return SF_OK;
}

static sf_code read_goals(const char *text, sf_bench_wishes *w, sf_err *err) {
    for (const char *s = text; s;) {
        const size_t len = strcspn(s, ":");
        const int m = find_metric(s, len);
        double ms;
        s = m < SF_BENCH_METRICS && m != SF_BENCH_ITL && s[len] ? read_number(s + len + 1, 1e-6, 1e12, &ms)
                                                                : NULL;
        if (!s)
            return SF_FAIL(
                err, SF_INVALID,
                "--goodput is \"%.60s\", expected milliseconds of ttft, tpot or e2el, as ttft:500,e2el:2000",
                text);
        w->goals_ms[m] = ms;
        s = *s ? s + 1 : NULL;
    }
    return SF_OK;
}

static sf_code read_metrics(const char *text, sf_bench_wishes *w, sf_err *err) {
    for (const char *s = text; s;) {
        const size_t len = strcspn(s, ",");
        const int m = find_metric(s, len);
        if (m == SF_BENCH_METRICS)
            return SF_FAIL(err, SF_INVALID,
                           "--percentile-metrics is \"%.60s\", expected some of ttft,tpot,itl,e2el", text);
        w->metrics[m] = true;
        s = s[len] ? s + len + 1 : NULL;
    }
    return SF_OK;
}

sf_code sf_bench_wishes_read(const char *percentiles, const char *goals, const char *metrics,
                             sf_bench_wishes *out, sf_err *err) {
    sf_bench_wishes w = {0};
    SF_TRY(read_percentiles(percentiles, &w, err));
    SF_TRY(read_goals(goals, &w, err));
    SF_TRY(read_metrics(metrics ? metrics : "ttft,tpot,itl,e2el", &w, err));
    *out = w;
    return SF_OK;
}
