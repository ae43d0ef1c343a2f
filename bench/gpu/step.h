/* Passes of a CUDA engine made up for timing, and what they take. */
#ifndef SF_BENCH_GPU_STEP_H
#define SF_BENCH_GPU_STEP_H

#include "device/cuda/cuda.h"
#include "engine/engine.h"

typedef struct step_bench {
    sf_engine *engine;
    sf_device *cuda;
    const sf_plan *plan;
    sf_pass pass; /* arrays below */
    int32_t *tokens, *pages, *logit_row;
    sf_segment *segs;
    sf_sample *samples;
    sf_row_out *out;
} step_bench;

/* The classes, and the fast class by our own kernels alone. */
typedef enum step_way {
    STEP_FAST = SF_CLASS_FAST,
    STEP_PINNED = SF_CLASS_PINNED,
    STEP_OWN,
    STEP_WAYS
} step_way;

/* One op beside its roofline: bytes at the plan's bandwidth or FLOPs at its rate, whichever takes longer, KV
 * that attention reads included. */
typedef struct step_op {
    sf_cuda_op_time time;
    double roof_us;
} step_op;

SF_CHECKED sf_code step_open(step_bench *b, const sf_engine_config *cfg, sf_err *err);
void step_close(step_bench *b);

/* A pass of `groups` segments of `rows` rows each, the last row at position context - 1, greedy, every row
 * (as far as the plan lets) a logit row; each segment has pages of its own. */
SF_CHECKED sf_code step_prepare(step_bench *b, int groups, int rows, int context, sf_err *err);
/* Median microseconds on the GPU of the prepared pass each way, by turns; STEP_OWN is 0 where no library
 * serves. */
SF_CHECKED sf_code step_time_ways(step_bench *b, int repeats, double us[STEP_WAYS], sf_err *err);
/* Prefill of `prompts` prompts of `tokens` each in passes as large as the plan has: median of the sums. */
SF_CHECKED sf_code step_time_prefill(step_bench *b, step_way way, int prompts, int tokens, int repeats,
                                     double *us, sf_err *err);
SF_CHECKED sf_code step_time_op(step_bench *b, sf_class cls, int op, step_op *out, sf_err *err);

#endif
