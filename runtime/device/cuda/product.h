/* An op's matrix product by cuBLASLt, as its heuristics choose for each row count: looked up once, so that a
 * pass asks for nothing. out [rows, n] fp32 or bf16 = in [rows, k] bf16 * weight [n, k]^T bf16 (+ bias [n]
 * fp32), or added to out. */
#ifndef SF_DEVICE_CUDA_PRODUCT_H
#define SF_DEVICE_CUDA_PRODUCT_H

#include "device/cuda/cublaslt.h"
#include "device/cuda/pass_block.h"

#define SF_PRODUCT_ROWS                                                                                      \
    128 /* row counts are rounded up to these: a tile of the library's kernels or more                       \
         */

typedef struct sf_product_config {
    int n, k;
    int rows_min, rows_max; /* the row counts it will be asked for; buffers hold rows_max */
    bool adds, has_bias;
    bool out_bf16; /* else fp32 */
    CUdeviceptr workspace;
    size_t workspace_bytes;
} sf_product_config;

/* A row count: as cuBLASLt, whose matrices are column-major, sees activations and results. */
typedef struct sf_product_shape {
    cublasLtMatrixLayout in, out;
    cublasLtMatmulAlgo algo;
} sf_product_shape;

typedef struct sf_product {
    const sf_cublaslt *lt; /* borrowed, as the handle is */
    cublasLtHandle handle;
    sf_product_config cfg;
    cublasLtMatmulDesc desc;
    cublasLtMatrixLayout weight;
    int first, n_shapes;      /* shape i is for (first + i + 1) * SF_PRODUCT_ROWS rows, rows_max at most */
    sf_product_shape *shapes; /* [n_shapes] */
} sf_product;                 /* zero: none */

/* Errors: SF_UNSUPPORTED: cuBLASLt knows no way for one of the row counts; SF_NOMEM; SF_DEVICE. */
SF_CHECKED sf_code sf_product_open(const sf_cublaslt *lt, cublasLtHandle handle, const sf_product_config *cfg,
                                   sf_product *out, sf_err *err);
void sf_product_close(sf_product *p); /* a zeroed one is fine */

/* Queues it: args' in, out, weight (row-major [n, k]) and bias. It is computed for rows rounded up; rows past
 * the pass's hold what was left there. Errors: SF_INVALID: rows outside the configuration's; those of
 * sf_cublaslt_check. */
SF_CHECKED sf_code sf_product_run(const sf_product *p, int rows, const sf_cuda_args *args, CUstream stream,
                                  sf_err *err);

#endif
