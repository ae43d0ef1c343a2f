/* What a CPU kernel is given. Kernels are pure: they read `in`, weights and KV, and write `out` (or KV, or
 * the logit rows' results) for the share that `part` of `parts` names. Shares are cut along outputs only. */
#ifndef SF_DEVICE_CPU_KERNEL_H
#define SF_DEVICE_CPU_KERNEL_H

#include "device/device.h"

#include <stddef.h>

/* GEMM kernels expand activations of this many rows at a time. */
#define SF_CPU_PANEL_ROWS 96
/* Attention kernels hold this many queries (rows x heads) in registers. */
#define SF_CPU_QUERIES 12

/* One row of the pass. */
typedef struct sf_cpu_row {
    int32_t pos;          /* absolute position */
    int32_t seg;          /* index of its segment: equal for rows of one sequence that stand together */
    const int32_t *pages; /* page ids of positions 0.. */
} sf_cpu_row;

typedef struct sf_cpu_args {
    int rows;                 /* rows of this op: of the pass, or its logit rows for a HEAD op */
    const void *in;           /* the op's input buffer */
    void *out;                /* its output buffer */
    const void *weight;       /* SF_W_BF16 or SF_W_F32, as the op's weight says */
    const float *bias;        /* [n] or NULL */
    const int32_t *gather;    /* [rows] the pass's row of each logit row; HEAD ops */
    const sf_cpu_row *row;    /* [rows of the pass] */
    uint8_t *kv;              /* this layer's part of page 0 */
    size_t page_stride;       /* bytes from a page to the next */
    const float *rope;        /* [max_context][head_dim/2][2]: cos, sin */
    const sf_sample *samples; /* [rows]; SAMPLE */
    sf_row_out *results;      /* [rows]; SAMPLE */
    uint8_t *scratch;         /* 64-byte aligned; each part has its own scratch_stride bytes */
    size_t scratch_stride;
} sf_cpu_args;

/* KV of one layer and KV head in one page, as bf16. K holds 16 keys as a vector's lanes, V 16 dims, each with
 * two consecutive terms of its sum in a 32-bit word (the layout of SF_W_BF16):
 * K [page_size/16][head_dim/2][16][2], then V [dims_pad/16][page_size/2][16][2]. */
static inline int sf_cpu_kv_dims_pad(int head_dim) {
    return (head_dim + 15) / 16 * 16;
}
static inline size_t sf_cpu_kv_k_size(int page_size, int head_dim) {
    return (size_t)page_size * (size_t)head_dim;
}
static inline size_t sf_cpu_kv_head_size(int page_size, int head_dim) { /* in bf16 values, K and V */
    return (size_t)page_size * (size_t)(head_dim + sf_cpu_kv_dims_pad(head_dim));
}
static inline size_t sf_cpu_kv_k_at(int head_dim, int offset,
                                    int d) { /* index of K's element d at a position */
    return (((size_t)(offset / 16) * (size_t)(head_dim / 2) + (size_t)(d / 2)) * 16 + (size_t)(offset % 16)) *
               2 +
           (size_t)(d % 2);
}
static inline size_t sf_cpu_kv_v_at(int page_size, int offset, int d) { /* from V's beginning */
    return (((size_t)(d / 16) * (size_t)(page_size / 2) + (size_t)(offset / 2)) * 16 + (size_t)(d % 16)) * 2 +
           (size_t)(offset % 2);
}

/* Bytes of scratch that a part needs: of GEMM over k inputs, of attention, of sampling. */
static inline size_t sf_cpu_scratch_gemm(int k) {
    return (size_t)(SF_CPU_PANEL_ROWS + 16) * (size_t)(k + 1) * sizeof(float);
}
static inline size_t sf_cpu_scratch_attention(int max_context, int head_dim) {
    const size_t per_query =
        (size_t)(max_context + 15) / 16 * 16 + (size_t)(head_dim + sf_cpu_kv_dims_pad(head_dim));
    return SF_CPU_QUERIES * per_query * sizeof(float);
}
static inline size_t sf_cpu_scratch_sample(int vocab) {
    return (size_t)(vocab + 15) / 16 * 16 * 4 * sizeof(float);
}

/* Defines a kernel: SF_CPU_KERNEL(KERNEL_NAME) { ... }. The instruction set becomes part of its name. */
#ifndef SF_ISA
#define SF_ISA generic
#endif
#define SF_CPU_KERNEL(name)            SF_CPU_KERNEL_NAMED(name, SF_ISA)
#define SF_CPU_KERNEL_NAMED(name, isa) SF_CPU_KERNEL_PASTE(name, isa)
#define SF_CPU_KERNEL_PASTE(name, isa)                                                                       \
    void name##__##isa(const struct sf_cpu_args *a, int part, int parts);                                    \
    void name##__##isa(const struct sf_cpu_args *a, int part, int parts)

#endif
