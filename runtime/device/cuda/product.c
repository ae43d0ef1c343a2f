#include "device/cuda/product.h"

#include <stdlib.h>

#include "base/num.h"

static sf_code set(const sf_product *p, int attribute, const void *value, size_t size, sf_err *err) {
    return sf_cublaslt_check(p->lt, p->lt->cublasLtMatmulDescSetAttribute(p->desc, attribute, value, size),
                             "cublasLtMatmulDescSetAttribute", SF_SRC, err);
}

static sf_code layout(const sf_product *p, int type, int rows, int cols, cublasLtMatrixLayout *out,
                      sf_err *err) {
    return sf_cublaslt_check(
        p->lt, p->lt->cublasLtMatrixLayoutCreate(out, type, (uint64_t)rows, (uint64_t)cols, rows),
        "cublasLtMatrixLayoutCreate", SF_SRC, err);
}

/* Both operands are rows of k, which a column-major library calls columns: only the weight is transposed. */
static sf_code describe(sf_product *p, sf_err *err) {
    const int transposed = CUBLAS_OP_T, bias = CUBLASLT_EPILOGUE_BIAS, fp32 = CUDA_R_32F;
    SF_TRY(sf_cublaslt_check(p->lt, p->lt->cublasLtMatmulDescCreate(&p->desc, CUBLAS_COMPUTE_32F, CUDA_R_32F),
                             "cublasLtMatmulDescCreate", SF_SRC, err));
    SF_TRY(set(p, CUBLASLT_MATMUL_DESC_TRANSA, &transposed, sizeof transposed, err));
    if (p->cfg.has_bias) {
        SF_TRY(set(p, CUBLASLT_MATMUL_DESC_EPILOGUE, &bias, sizeof bias, err));
        SF_TRY(set(p, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, &fp32, sizeof fp32, err));
    }
    return layout(p, CUDA_R_16BF, p->cfg.k, p->cfg.n, &p->weight, err);
}

static sf_code look_up(const sf_product *p, cublasLtMatmulPreference preference, int rows,
                       sf_product_shape *s, sf_err *err) {
    cublasLtMatmulHeuristicResult best = {.state = CUBLAS_STATUS_NOT_SUPPORTED};
    int found = 0;
    SF_TRY(layout(p, CUDA_R_16BF, p->cfg.k, rows, &s->in, err));
    SF_TRY(layout(p, p->cfg.out_bf16 ? CUDA_R_16BF : CUDA_R_32F, p->cfg.n, rows, &s->out, err));
    const int status = p->lt->cublasLtMatmulAlgoGetHeuristic(p->handle, p->desc, p->weight, s->in, s->out,
                                                             s->out, preference, 1, &best, &found);
    SF_TRY(sf_cublaslt_check(p->lt, status, "cublasLtMatmulAlgoGetHeuristic", SF_SRC, err));
    if (found < 1 || best.state != CUBLAS_STATUS_SUCCESS)
        return SF_FAIL(err, SF_UNSUPPORTED, "cuBLASLt knows no product [%d, %d] x [%d, %d]^T", rows, p->cfg.k,
                       p->cfg.n, p->cfg.k);
    s->algo = best.algo;
    return SF_OK;
}

static sf_code look_up_all(sf_product *p, sf_err *err) {
    const sf_cublaslt *lt = p->lt;
    cublasLtMatmulPreference preference = NULL;
    SF_TRY(sf_cublaslt_check(lt, lt->cublasLtMatmulPreferenceCreate(&preference),
                             "cublasLtMatmulPreferenceCreate", SF_SRC, err));
    sf_code rc = sf_cublaslt_check(
        lt,
        lt->cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                                 &p->cfg.workspace_bytes, sizeof p->cfg.workspace_bytes),
        "cublasLtMatmulPreferenceSetAttribute", SF_SRC, err);
    for (int i = 0; rc == SF_OK && i < p->n_shapes; i++) {
        const int rows = sf_min_int((p->first + i + 1) * SF_PRODUCT_ROWS, p->cfg.rows_max);
        rc = look_up(p, preference, rows, p->shapes + i, err);
    }
    lt->cublasLtMatmulPreferenceDestroy(preference);
    return rc;
}

sf_code sf_product_open(const sf_cublaslt *lt, cublasLtHandle handle, const sf_product_config *cfg,
                        sf_product *out, sf_err *err) {
    sf_product p = {.lt = lt, .handle = handle, .cfg = *cfg};
    p.first = (cfg->rows_min - 1) / SF_PRODUCT_ROWS;
    p.n_shapes = (cfg->rows_max + SF_PRODUCT_ROWS - 1) / SF_PRODUCT_ROWS - p.first;
    p.shapes = calloc((size_t)p.n_shapes, sizeof *p.shapes);
    sf_code rc = p.shapes ? SF_OK : SF_FAIL(err, SF_NOMEM, "no memory for %d row counts", p.n_shapes);
    if (rc == SF_OK) rc = describe(&p, err);
    if (rc == SF_OK) rc = look_up_all(&p, err);
    if (rc == SF_OK)
        *out = p;
    else
        sf_product_close(&p);
    return rc;
}

void sf_product_close(sf_product *p) {
    for (int i = 0; p->shapes && i < p->n_shapes; i++) {
        if (p->shapes[i].in) p->lt->cublasLtMatrixLayoutDestroy(p->shapes[i].in);
        if (p->shapes[i].out) p->lt->cublasLtMatrixLayoutDestroy(p->shapes[i].out);
    }
    if (p->weight) p->lt->cublasLtMatrixLayoutDestroy(p->weight);
    if (p->desc) p->lt->cublasLtMatmulDescDestroy(p->desc);
    free(p->shapes);
    *p = (sf_product){0};
}

sf_code sf_product_run(const sf_product *p, int rows, const sf_cuda_args *args, CUstream stream,
                       sf_err *err) {
    const float one = 1, beta = p->cfg.adds ? 1 : 0;
    if (rows < p->cfg.rows_min || rows > p->cfg.rows_max)
        return SF_FAIL(err, SF_INVALID, "a product of %d rows, expected %d..%d", rows, p->cfg.rows_min,
                       p->cfg.rows_max);
    const sf_product_shape *s = p->shapes + (rows - 1) / SF_PRODUCT_ROWS - p->first;
    if (p->cfg.has_bias)
        SF_TRY(set(p, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &args->bias, sizeof args->bias, err));
    const int status = p->lt->cublasLtMatmul(
        p->handle, p->desc, &one, args->weight, p->weight, args->in, s->in, &beta, args->out, s->out,
        args->out, s->out, &s->algo, (void *)(uintptr_t)p->cfg.workspace, p->cfg.workspace_bytes, stream);
    return sf_cublaslt_check(p->lt, status, "cublasLtMatmul", SF_SRC, err);
}
