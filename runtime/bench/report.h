/* The report: vLLM's table and its result file's keys, and what is ours after them. */
#ifndef SF_BENCH_REPORT_H
#define SF_BENCH_REPORT_H

#include "bench/bench.h"

#include <stdio.h>

/* What the report shows beside the means. */
typedef struct sf_bench_wishes {
    double percentiles[SF_BENCH_PERCENTILES_MAX]; /* in 0..100 */
    int n_percentiles;
    double goals_ms[SF_BENCH_METRICS]; /* 0: none */
    bool metrics[SF_BENCH_METRICS];    /* those that are shown */
} sf_bench_wishes;

typedef struct sf_bench_report {
    const sf_bench_config *config;
    const sf_bench_outcome *outcome;
    const sf_bench_wishes *wishes;
    sf_bench_results results;
    sf_bench_summary all, by_kind[SF_BENCH_KINDS];
    sf_bench_determinism determinism;
} sf_bench_report;

/* percentiles "50,95,99.9"; goals "ttft:500,e2el:2000" or NULL; metrics "ttft,tpot,itl,e2el" or NULL for all.
 * Errors: SF_INVALID. */
SF_CHECKED sf_code sf_bench_wishes_read(const char *percentiles, const char *goals, const char *metrics,
                                        sf_bench_wishes *out, sf_err *err);
/* All borrowed, and must outlive the report. Errors: SF_NOMEM. */
SF_CHECKED sf_code sf_bench_report_make(const sf_bench_config *c, const sf_bench_outcome *o,
                                        const sf_bench_wishes *w, sf_bench_report *out, sf_err *err);
/* The table, and the line on determinism. */
void sf_bench_report_print(const sf_bench_report *r, FILE *f);
/* What went wrong with the first few that failed. */
void sf_bench_report_failures(const sf_bench_report *r, FILE *f);
/* The result file as JSON text on one line; the caller frees it. date: YYYYMMDD-HHMMSS. detailed: with lists
 * of a value for each request. NULL: out of memory. */
char *sf_bench_report_json(const sf_bench_report *r, const char *date, bool detailed);
bool sf_bench_report_has_goals(const sf_bench_report *r);
/* Whether marked requests of both kinds ran. */
bool sf_bench_report_both(const sf_bench_report *r);

#endif
