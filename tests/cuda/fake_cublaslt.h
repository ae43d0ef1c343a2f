/* A cuBLASLt that multiplies nothing and records what it was asked for. */
#ifndef SF_TESTS_CUDA_FAKE_CUBLASLT_H
#define SF_TESTS_CUDA_FAKE_CUBLASLT_H

#include "device/cuda/cublaslt.h"

#define FAKE_LT_ROWS_MAX 64

typedef struct fake_lt {
    int handles, descs, layouts, preferences; /* alive now */
    int lookups;
    uint64_t looked_up[FAKE_LT_ROWS_MAX]; /* row counts, in order */
    uint64_t unknown;                     /* a row count that it knows no way for */
    int create, matmul;                   /* what these calls answer */
    int products;
    /* of the last product */
    uint64_t rows, n, k, algo;
    int epilogue, in_type, out_type;
    float alpha, beta;
    const void *weight, *in, *out, *bias;
    CUstream stream;
    void (*on_product)(void);
} fake_lt;

extern fake_lt fake_blas;

/* Clears `fake_blas` and fills the functions. */
void fake_cublaslt_init(sf_cublaslt *lt);

#endif
