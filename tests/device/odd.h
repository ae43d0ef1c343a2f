/* Kernel bodies at odd shapes, and the vector functions, compiled once for each instruction set (odd.c), so
 * that one test can compare them all. */
#ifndef SF_TESTS_DEVICE_ODD_H
#define SF_TESTS_DEVICE_ODD_H

#include "device/cpu/cpu.h"
#include "device/cpu/kernel.h"
#include "snippets/attention.h"

enum { ODD_GEMM_COUNT = 11, ODD_ATTENTION_COUNT = 3 };

typedef struct odd_gemm {
    const char *name;
    gemm_shape shape;
    sf_cpu_kernel_fn *fn;
} odd_gemm;

typedef struct odd_attention {
    const char *name;
    attn_shape shape;
    sf_cpu_kernel_fn *fn;
} odd_attention;

typedef struct odd_set {
    sf_isa isa;
    odd_gemm gemm[ODD_GEMM_COUNT];
    odd_attention attention[ODD_ATTENTION_COUNT];
    sf_cpu_kernel_fn *sample;      /* the template as it stands, vocabulary 49152 */
    sf_cpu_kernel_fn *rope_append; /* likewise, 9 heads over 3 KV heads of 64, no norms */
    void (*exp)(const float x[16], float y[16]);
    void (*log)(const float x[16], float y[16]);
    void (*gumbel)(const uint32_t w[16], float y[16]);
    void (*operand)(const float x[16], float y[16]);
    void (*philox)(uint32_t w[4][16], uint32_t key0, uint32_t key1);
    float (*sum)(const float x[16]);
} odd_set;

/* The sets that this machine runs; returns how many. */
int odd_sets(const odd_set *out[SF_ISA_COUNT]);

#endif
