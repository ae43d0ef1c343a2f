/* The report: vLLM's table and its result file's keys, and what is ours after them. */
#ifndef SF_BENCH_REPORT_H
#define SF_BENCH_REPORT_H

#include "bench/bench.h"

#include <stdio.h>

typedef struct sf_bench_report {
    const sf_bench_config *config;
    const sf_bench_outcome *outcome;
    sf_bench_results results;
    sf_bench_summary all, by_kind[SF_BENCH_KINDS];
    sf_bench_determinism determinism;
} sf_bench_report;

/* "50,95,99.9" into out [SF_BENCH_PERCENTILES_MAX]. Errors: SF_INVALID. */
SF_CHECKED sf_code sf_bench_percentiles_read(const char *text, double *out, int *n, sf_err *err);
/* All borrowed, and must outlive the report. Errors: SF_NOMEM. */
SF_CHECKED sf_code sf_bench_report_make(const sf_bench_config *c, const sf_bench_outcome *o,
                                        const double *percentiles, int n_percentiles, sf_bench_report *out,
                                        sf_err *err);
/* The table, and the line on determinism. */
void sf_bench_report_print(const sf_bench_report *r, FILE *f);
/* What went wrong with the first few that failed. */
void sf_bench_report_failures(const sf_bench_report *r, FILE *f);
/* The result file as JSON text on one line; the caller frees it. date: YYYYMMDD-HHMMSS. detailed: with lists
 * of a value for each request. NULL: out of memory. */
char *sf_bench_report_json(const sf_bench_report *r, const char *date, bool detailed);
/* Whether marked requests of both kinds ran. */
bool sf_bench_report_both(const sf_bench_report *r);

#endif
