/* The CPU device's own record, shared by its files. */
#ifndef SF_DEVICE_CPU_CPU_PRIV_H
#define SF_DEVICE_CPU_CPU_PRIV_H

#include "base/pool.h"
#include "device/cpu/cpu.h"
#include "device/cpu/kernel.h"

typedef struct sf_cpu {
    sf_device base;
    sf_isa isa;
    sf_pool *pool;
    const void **weights;    /* [n_weights][layers]; slots that are not per layer repeat */
    sf_cpu_kernel_fn **fn;   /* [n_ops] the pass's kernels */
    void *buf[SF_BUF_COUNT]; /* activations, sized by the plan */
    uint8_t *kv;             /* [n_pages][layers][kv_heads] as kernel.h says */
    size_t layer_bytes, page_bytes;
    float *rope; /* [max_context][head_dim/2][2] */
    uint8_t *scratch;
    size_t scratch_stride;
    sf_cpu_row *rows; /* [max_rows] */
    sf_pass pass;     /* the pass in flight */
    bool pending;
} sf_cpu;

/* The plan's own consistency: what sf_cpu_run_pass relies on. Errors: SF_UNSUPPORTED. */
SF_CHECKED sf_code sf_cpu_check_plan(const sf_plan *plan, sf_err *err);
/* Runs d->pass to its end. */
void sf_cpu_run_pass(sf_cpu *d);

#endif
