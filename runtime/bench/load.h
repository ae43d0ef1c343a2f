/* Which request is sent when: arrival times, copies of prompts spread through the run, and which prompts are
 * marked deterministic. All by the seed. */
#ifndef SF_BENCH_LOAD_H
#define SF_BENCH_LOAD_H

#include "base/err.h"

typedef enum sf_bench_kind {
    SF_BENCH_UNMARKED, /* the field is not sent */
    SF_BENCH_ORDINARY,
    SF_BENCH_DETERMINISTIC,
    SF_BENCH_KINDS
} sf_bench_kind;

typedef struct sf_bench_send {
    int prompt, copy;
    sf_bench_kind kind;
    double at_s; /* after the start */
} sf_bench_send;

typedef struct sf_bench_load_config {
    int n_prompts, copies;
    double rate; /* requests per second; infinite: all at once */
    double
        burstiness; /* shape of the gamma distribution of gaps: 1 is a Poisson process, infinite even gaps */
    double deterministic_ratio; /* of the prompts; negative: none is marked */
    int64_t seed;
} sf_bench_load_config;

/* n_prompts * copies requests, in the order of their arrival. A prompt's copies have its kind. Gaps come from
 * the gamma distribution of mean 1 / rate and are then scaled, as vLLM does, so that the last request is sent
 * after n / rate seconds. The caller frees *out. Errors: SF_NOMEM. */
SF_CHECKED sf_code sf_bench_load_make(const sf_bench_load_config *c, sf_bench_send **out, sf_err *err);

#endif
