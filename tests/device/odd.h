/* Kernel bodies at odd shapes, and the vector functions, compiled once for each instruction set (odd.c), so
 * that one test can compare them all. */
#ifndef SF_TESTS_DEVICE_ODD_H
#define SF_TESTS_DEVICE_ODD_H

#include "device/cpu/cpu.h"
#include "device/cpu/kernel.h"
#include "snippets/attention.h"

/* name, n, k, epilogue, bias, rows and blocks of the tile, flavour */
#define ODD_GEMMS(X)                                                                                         \
    X(odd_r1, 37, 51, GEMM_STORE, 1, 1, 6, GEMM_PINNED)                                                      \
    X(odd_r2, 37, 51, GEMM_STORE, 1, 2, 6, GEMM_PINNED)                                                      \
    X(odd_r4, 37, 51, GEMM_STORE, 1, 4, 6, GEMM_PINNED)                                                      \
    X(odd_r12, 37, 51, GEMM_STORE, 1, 12, 2, GEMM_PINNED)                                                    \
    X(add_r12, 100, 33, GEMM_ADD, 0, 12, 2, GEMM_PINNED)                                                     \
    X(add_r1, 100, 33, GEMM_ADD, 0, 1, 6, GEMM_PINNED)                                                       \
    X(act_r12, 46, 19, GEMM_SWIGLU, 0, 12, 2, GEMM_PINNED)                                                   \
    X(act_r1, 46, 19, GEMM_SWIGLU, 0, 1, 6, GEMM_PINNED)                                                     \
    X(one_k, 5, 1, GEMM_STORE, 0, 12, 2, GEMM_PINNED)                                                        \
    X(split_r1, 37, 51, GEMM_STORE, 1, 1, 6, GEMM_SPLIT)                                                     \
    X(split_r2, 46, 20, GEMM_SWIGLU, 0, 2, 6, GEMM_SPLIT)

/* name, heads, KV heads, head_dim, page, loose */
#define ODD_ATTENTIONS(X)                                                                                    \
    X(alone, 4, 4, 20, 32, 0)                                                                                \
    X(crowd, 14, 1, 8, 48, 0)                                                                                \
    X(loose, 6, 2, 34, 16, 1)

#define ODD_COUNT(...) +1
enum { ODD_GEMM_COUNT = 0 ODD_GEMMS(ODD_COUNT), ODD_ATTENTION_COUNT = 0 ODD_ATTENTIONS(ODD_COUNT) };

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
    sf_cpu_kernel_fn *sample; /* the template as it stands, vocabulary 49152 */
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
