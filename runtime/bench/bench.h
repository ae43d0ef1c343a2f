/* A benchmark from its settings to its records. */
#ifndef SF_BENCH_BENCH_H
#define SF_BENCH_BENCH_H

#include "bench/determinism.h"
#include "bench/run.h"

typedef struct sf_bench_config {
    sf_bench_target *target; /* gets its address */
    int ready_timeout_s;     /* to wait for the server, each try a second at least; 0: it must be there */
    sf_bench_load_config load;
    sf_bench_run_config run; /* the client is set by sf_bench; model NULL: the server's first */
    int warmups;             /* requests of the first prompt before the start; nothing of them is counted */
} sf_bench_config;

typedef struct sf_bench_outcome { /* sf_bench_outcome_fini frees */
    char model[256];
    sf_bench_send *sends;     /* [n] */
    sf_bench_record *records; /* [n] */
    int n, warmups_failed;
    double duration_s;
    sf_bench_counters before, after;
} sf_bench_outcome;

/* out is to be freed after an error too. Errors: SF_IO (no server, or it does not say what model it has),
 * SF_NOT_FOUND (it refuses to say), SF_CANCELLED (stopped before the measured requests), SF_NOMEM. A request
 * that fails is no error. */
SF_CHECKED sf_code sf_bench(const sf_bench_config *c, sf_bench_outcome *out, sf_err *err);
void sf_bench_outcome_fini(sf_bench_outcome *o);

#endif
