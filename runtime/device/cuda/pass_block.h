/* The pass as kernels see it: one block of device memory, refreshed by one copy in the stream before each
 * pass, so that a captured graph holds no value that changes. Shared by C (layout, filling) and by the
 * kernels (NVRTC): plain int types only. Capacities are the plan's; arrays follow the header at the offsets
 * it names (bytes from its start, 16-byte aligned), so that only the used part is copied. */
#ifndef SF_DEVICE_CUDA_PASS_BLOCK_H
#define SF_DEVICE_CUDA_PASS_BLOCK_H

/* How one logit row is sampled: sf_sample (device/device.h) with its pointers as ranges of the block's pool.
 */
typedef struct sf_cuda_sample {
    float temperature, top_p, min_p, repetition_penalty, frequency_penalty, presence_penalty;
    int top_k, n_top, target, draw;
    unsigned seed_low, seed_high, choice, position;
    int prompt, n_prompt; /* pool[prompt .. prompt + n_prompt) */
    int output, n_output;
    int banned, n_banned;
    int bias, n_bias; /* pool pairs: token id, float bits */
} sf_cuda_sample;

/* A segment: rows first_row.. at positions pos0.. of one sequence; its page ids are pool[pages ..). */
typedef struct sf_cuda_segment {
    int first_row, rows, pos0, pages;
} sf_cuda_segment;

typedef struct sf_cuda_block {
    int rows, n_segs, n_logits, n_fresh;
    int tokens;     /* int [rows] */
    int positions;  /* int [rows] */
    int row_segs;   /* int [rows]: segment of each row */
    int segs;       /* sf_cuda_segment [n_segs] */
    int logit_rows; /* int [n_logits] */
    int samples;    /* sf_cuda_sample [n_logits] */
    int fresh;      /* int [n_fresh]: pages to zero */
    int pool;       /* int [...]: page ids, histories, bias pairs */
} sf_cuda_block;

/* What every kernel is given, by value: all of it constant for the life of a captured graph. */
typedef struct sf_cuda_args {
    const sf_cuda_block *block;
    const void *in;
    void *out;
    const void *weight; /* packed matrix, or fp32 vector (norm) */
    const float *bias;
    void *kv;    /* this layer's part of the KV pool (kv_layout.h) */
    void *extra; /* rope table, attention partials, sampler output: by op */
} sf_cuda_args;

/* How a kernel wants to be launched: every CUDA template defines, from its constants,
 * `extern "C" __device__ const sf_cuda_launch KERNEL_LAUNCH = {...}` (KERNEL_LAUNCH is its name with _launch
 * appended), which the runtime reads when it loads the cubin: so the arithmetic stays in the template's
 * constexpr and nobody repeats it. */
typedef struct sf_cuda_launch {
    int grid, threads, shared; /* thread blocks; threads each; dynamic shared memory in bytes */
    int pdl;                   /* 1: launched with programmatic stream serialization */
    int cluster;               /* blocks of a cluster, a divisor of grid; 0: no clusters */
    int row_blocks; /* blocks that a row can use: fewer rows are launched with fewer; 0: always grid */
    unsigned long long
        workspace; /* bytes that args.extra must have, zeroed once; 0: extra is something else */
} sf_cuda_launch;

#endif
