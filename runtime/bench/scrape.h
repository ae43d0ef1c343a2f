/* Counters of a server's /metrics. */
#ifndef SF_BENCH_SCRAPE_H
#define SF_BENCH_SCRAPE_H

#include "bench/client.h"

typedef enum sf_bench_counter {
    SF_BENCH_VERIFY_PASSES,
    SF_BENCH_VERIFY_ROWS,
    SF_BENCH_ROLLBACKS,
    SF_BENCH_ROLLED_BACK,
    SF_BENCH_COUNTERS
} sf_bench_counter;

typedef struct sf_bench_counters {
    bool there; /* the server has them */
    double v[SF_BENCH_COUNTERS];
} sf_bench_counters;

/* From Prometheus' text form: the sum over the label sets of each, as far as they are finite. */
void sf_bench_counters_read(const char *text, sf_bench_counters *out);
/* From the server; one without them, or without /metrics, has none. */
void sf_bench_counters_get(sf_bench_client *c, int limit_s, int (*stopped)(void), sf_bench_counters *out);

#endif
