/* What the sources of prompts share. */
#ifndef SF_BENCH_DATASET_PRIV_H
#define SF_BENCH_DATASET_PRIV_H

#include "bench/dataset.h"

/* Takes value, which may be NULL (out of memory). */
SF_CHECKED sf_code sf_bench_add(sf_bench_dataset *d, json_t *value, int64_t input_tokens, int output_tokens,
                                sf_err *err);
/* [{"role": "user", "content": text}]; takes text. NULL: out of memory. */
json_t *sf_bench_messages(json_t *text);

/* dataset_files.c: at most c->n prompts. */
SF_CHECKED sf_code sf_bench_read_sharegpt(const sf_bench_dataset_config *c, sf_bench_dataset *d, sf_err *err);
SF_CHECKED sf_code sf_bench_read_custom(const sf_bench_dataset_config *c, sf_bench_dataset *d, sf_err *err);

#endif
