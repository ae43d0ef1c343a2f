/* Requests sent when the load says so, and what came of each. */
#ifndef SF_BENCH_RUN_H
#define SF_BENCH_RUN_H

#include "bench/client.h"
#include "bench/dataset.h"
#include "bench/load.h"
#include "bench/record.h"

typedef struct sf_bench_run_config {
    sf_bench_client *client;
    const sf_bench_dataset *prompts;
    const char *endpoint, *model;
    bool chat;
    const json_t *fields, *extra; /* put into every request; extra last. NULL: none */
    bool seeded;                  /* every request has a seed: seed + the prompt's number */
    int64_t seed;
    int max_concurrency;  /* 0: no limit */
    const char *progress; /* label of the progress line; NULL: none */
    int (*stopped)(void); /* nonzero: end now. NULL: never */
} sf_bench_run_config;

/* The request's body as JSON text; the caller frees it. NULL: out of memory. */
char *sf_bench_body(const sf_bench_run_config *c, const sf_bench_send *s);
/* Sends n requests and waits for their ends. records [n], zeroed before; the caller frees their contents,
 * also after an error. *duration_s: from the start to the last end. Errors: SF_NOMEM. */
SF_CHECKED sf_code sf_bench_run(const sf_bench_run_config *c, const sf_bench_send *sends, int n,
                                sf_bench_record *records, double *duration_s, sf_err *err);

#endif
