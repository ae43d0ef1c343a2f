/* The figures of a run from its records, by vLLM's formulas (0.33, benchmarks/serve.py, calculate_metrics):
 * TPOT = (latency - TTFT) / (output tokens - 1), of requests with more than one output token; ITLs of all
 * requests in one list; throughputs over the duration of the whole run. */
#ifndef SF_BENCH_METRICS_H
#define SF_BENCH_METRICS_H

#include "bench/load.h"
#include "bench/record.h"

#define SF_BENCH_PERCENTILES_MAX 16

typedef enum sf_bench_metric {
    SF_BENCH_TTFT,
    SF_BENCH_TPOT,
    SF_BENCH_ITL,
    SF_BENCH_E2EL,
    SF_BENCH_METRICS
} sf_bench_metric;

/* As flags and the result file write them. */
extern const char *const sf_bench_metric_names[SF_BENCH_METRICS];

typedef struct sf_bench_figures { /* milliseconds */
    double mean, median, std, percentiles[SF_BENCH_PERCENTILES_MAX];
} sf_bench_figures;

typedef struct sf_bench_summary {
    int completed, failed, cut;
    int64_t input_tokens, output_tokens;
    double duration_s, requests_per_s, good_per_s, output_per_s, tokens_per_s;
    double peak_output_per_s; /* chunks in the fullest second */
    int peak_concurrency;     /* of requests that completed; exact, as vLLM has it after 0.33 */
    sf_bench_figures of[SF_BENCH_METRICS];
} sf_bench_summary;

typedef struct sf_bench_results {
    const sf_bench_send *sends;     /* [n] */
    const sf_bench_record *records; /* [n] */
    int n;
    double duration_s;
    const double *percentiles; /* [n_percentiles], in 0..100 */
    int n_percentiles;
    double
        goals_ms[SF_BENCH_METRICS]; /* a request is good that keeps all of them (ITL has none); 0: no goal */
} sf_bench_results;

/* Of the requests of one kind, or of all (SF_BENCH_KINDS). Errors: SF_NOMEM. */
SF_CHECKED sf_code sf_bench_summarize(const sf_bench_results *r, sf_bench_kind kind, sf_bench_summary *out,
                                      sf_err *err);

#endif
