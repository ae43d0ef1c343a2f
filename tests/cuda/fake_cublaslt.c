#include "cuda/fake_cublaslt.h"

#include <stdlib.h>
#include <string.h>

fake_lt fake_blas;

/* The library's own types are opaque. */
struct desc {
    int transposed, epilogue, bias_type;
    const void *bias;
};
struct layout {
    int type;
    uint64_t rows, cols;
    int64_t ld;
};

static const char *text_of(int status) {
    return status ? "CUBLAS_STATUS_SOMETHING" : "CUBLAS_STATUS_SUCCESS";
}
static int create(cublasLtHandle *h) {
    if (fake_blas.create != CUBLAS_STATUS_SUCCESS) return fake_blas.create;
    fake_blas.handles++;
    *h = (cublasLtHandle)(uintptr_t)&fake_blas;
    return CUBLAS_STATUS_SUCCESS;
}
static int destroy(cublasLtHandle h) {
    (void)h;
    fake_blas.handles--;
    return CUBLAS_STATUS_SUCCESS;
}
static int desc_create(cublasLtMatmulDesc *d, int compute, int scale) {
    if (compute != CUBLAS_COMPUTE_32F || scale != CUDA_R_32F) return CUBLAS_STATUS_NOT_SUPPORTED;
    *d = calloc(1, sizeof(struct desc));
    fake_blas.descs++;
    return CUBLAS_STATUS_SUCCESS;
}
static int desc_destroy(cublasLtMatmulDesc d) {
    free(d);
    fake_blas.descs--;
    return CUBLAS_STATUS_SUCCESS;
}
static int desc_set(cublasLtMatmulDesc d, int attribute, const void *value, size_t size) {
    struct desc *to = d;
    void *field = attribute == CUBLASLT_MATMUL_DESC_TRANSA           ? (void *)&to->transposed
                  : attribute == CUBLASLT_MATMUL_DESC_EPILOGUE       ? (void *)&to->epilogue
                  : attribute == CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE ? (void *)&to->bias_type
                  : attribute == CUBLASLT_MATMUL_DESC_BIAS_POINTER   ? (void *)&to->bias
                                                                     : NULL;
    if (!field || size != (field == &to->bias ? sizeof to->bias : sizeof(int)))
        return CUBLAS_STATUS_NOT_SUPPORTED;
    memcpy(field, value, size);
    return CUBLAS_STATUS_SUCCESS;
}
static int layout_create(cublasLtMatrixLayout *l, int type, uint64_t rows, uint64_t cols, int64_t ld) {
    struct layout *made = calloc(1, sizeof *made);
    if (!made) return CUBLAS_STATUS_NOT_SUPPORTED;
    *made = (struct layout){type, rows, cols, ld};
    *l = made;
    fake_blas.layouts++;
    return CUBLAS_STATUS_SUCCESS;
}
static int layout_destroy(cublasLtMatrixLayout l) {
    free(l);
    fake_blas.layouts--;
    return CUBLAS_STATUS_SUCCESS;
}
static int preference_create(cublasLtMatmulPreference *p) {
    fake_blas.preferences++;
    *p = &fake_blas;
    return CUBLAS_STATUS_SUCCESS;
}
static int preference_destroy(cublasLtMatmulPreference p) {
    (void)p;
    fake_blas.preferences--;
    return CUBLAS_STATUS_SUCCESS;
}
static int preference_set(cublasLtMatmulPreference p, int attribute, const void *value, size_t size) {
    (void)p, (void)value;
    return attribute == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES && size == sizeof(size_t)
               ? CUBLAS_STATUS_SUCCESS
               : CUBLAS_STATUS_NOT_SUPPORTED;
}
/* The algorithm is the row count, so that a product shows by which it was made. */
static int heuristic(cublasLtHandle h, cublasLtMatmulDesc d, cublasLtMatrixLayout a, cublasLtMatrixLayout b,
                     cublasLtMatrixLayout c, cublasLtMatrixLayout to, cublasLtMatmulPreference p, int wanted,
                     cublasLtMatmulHeuristicResult *results, int *n) {
    (void)h, (void)d, (void)a, (void)c, (void)to, (void)p;
    const struct layout *in = b;
    if (fake_blas.lookups < FAKE_LT_ROWS_MAX) fake_blas.looked_up[fake_blas.lookups] = in->cols;
    fake_blas.lookups++;
    *n = in->cols == fake_blas.unknown ? 0 : wanted;
    if (*n > 0) *results = (cublasLtMatmulHeuristicResult){.algo = {.data = {in->cols}}};
    return CUBLAS_STATUS_SUCCESS;
}
static int matmul(cublasLtHandle h, cublasLtMatmulDesc d, const void *alpha, const void *a,
                  cublasLtMatrixLayout a_layout, const void *b, cublasLtMatrixLayout b_layout,
                  const void *beta, const void *c, cublasLtMatrixLayout c_layout, void *to,
                  cublasLtMatrixLayout to_layout, const cublasLtMatmulAlgo *algo, void *workspace,
                  size_t workspace_bytes, CUstream stream) {
    (void)h, (void)workspace, (void)workspace_bytes;
    const struct desc *desc = d;
    const struct layout *w = a_layout, *in = b_layout, *out = to_layout;
    if (fake_blas.matmul != CUBLAS_STATUS_SUCCESS) return fake_blas.matmul;
    /* the shapes of a product: [k, n]^T [k, rows] = [n, rows], each without gaps */
    if (desc->transposed != CUBLAS_OP_T || w->rows != in->rows || out->rows != w->cols ||
        out->cols != in->cols || w->ld != (int64_t)w->rows || in->ld != (int64_t)in->rows ||
        out->ld != (int64_t)out->rows || c != to || c_layout != to_layout)
        return CUBLAS_STATUS_NOT_SUPPORTED;
    fake_blas.products++;
    fake_blas.rows = out->cols;
    fake_blas.n = out->rows;
    fake_blas.k = in->rows;
    fake_blas.algo = algo->data[0];
    fake_blas.epilogue = desc->epilogue;
    fake_blas.bias = desc->bias;
    fake_blas.in_type = in->type;
    fake_blas.out_type = out->type;
    memcpy(&fake_blas.alpha, alpha, sizeof fake_blas.alpha);
    memcpy(&fake_blas.beta, beta, sizeof fake_blas.beta);
    fake_blas.weight = a;
    fake_blas.in = b;
    fake_blas.out = to;
    fake_blas.stream = stream;
    if (fake_blas.on_product) fake_blas.on_product();
    return CUBLAS_STATUS_SUCCESS;
}

void fake_cublaslt_init(sf_cublaslt *lt) {
    fake_blas = (fake_lt){0};
    *lt = (sf_cublaslt){.cublasLtGetStatusName = text_of,
                        .cublasLtGetStatusString = text_of,
                        .cublasLtCreate = create,
                        .cublasLtDestroy = destroy,
                        .cublasLtMatmulDescCreate = desc_create,
                        .cublasLtMatmulDescDestroy = desc_destroy,
                        .cublasLtMatmulDescSetAttribute = desc_set,
                        .cublasLtMatrixLayoutCreate = layout_create,
                        .cublasLtMatrixLayoutDestroy = layout_destroy,
                        .cublasLtMatmulPreferenceCreate = preference_create,
                        .cublasLtMatmulPreferenceDestroy = preference_destroy,
                        .cublasLtMatmulPreferenceSetAttribute = preference_set,
                        .cublasLtMatmulAlgoGetHeuristic = heuristic,
                        .cublasLtMatmul = matmul,
                        .version = 130001};
}
