/* cuBLASLt, opened at run time, for the fast class only: its choices follow the whole shape and its version.
 * The part of its interface (version 12 and later) that we use. */
#ifndef SF_DEVICE_CUDA_CUBLASLT_H
#define SF_DEVICE_CUDA_CUBLASLT_H

#include "device/cuda/cu_api.h"

typedef struct cublasLtContext *cublasLtHandle;
typedef void *cublasLtMatmulDesc;
typedef void *cublasLtMatrixLayout;
typedef void *cublasLtMatmulPreference;

enum { CUBLAS_STATUS_SUCCESS = 0, CUBLAS_STATUS_NOT_SUPPORTED = 15 };
enum { CUDA_R_32F = 0, CUDA_R_16BF = 14, CUBLAS_COMPUTE_32F = 68 };
enum { CUBLAS_OP_T = 1 };
enum {
    CUBLASLT_MATMUL_DESC_TRANSA = 3,
    CUBLASLT_MATMUL_DESC_EPILOGUE = 7,
    CUBLASLT_MATMUL_DESC_BIAS_POINTER = 8,
    CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE = 26
};
enum { CUBLASLT_EPILOGUE_BIAS = 4 };
enum { CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES = 1 };

typedef struct cublasLtMatmulAlgo {
    uint64_t data[8];
} cublasLtMatmulAlgo;

typedef struct cublasLtMatmulHeuristicResult {
    cublasLtMatmulAlgo algo;
    size_t workspaceSize;
    int state; /* the rest holds where it is CUBLAS_STATUS_SUCCESS */
    float wavesCount;
    int reserved[4];
} cublasLtMatmulHeuristicResult;

_Static_assert(sizeof(cublasLtMatmulHeuristicResult) == 96, "the layout of cuBLASLt's interface");

typedef struct sf_cublaslt {
    size_t (*cublasLtGetVersion)(void);
    const char *(*cublasLtGetStatusName)(int status);
    const char *(*cublasLtGetStatusString)(int status);
    int (*cublasLtCreate)(cublasLtHandle *h);
    int (*cublasLtDestroy)(cublasLtHandle h);
    int (*cublasLtMatmulDescCreate)(cublasLtMatmulDesc *d, int compute_type, int scale_type);
    int (*cublasLtMatmulDescDestroy)(cublasLtMatmulDesc d);
    int (*cublasLtMatmulDescSetAttribute)(cublasLtMatmulDesc d, int attribute, const void *value,
                                          size_t size);
    int (*cublasLtMatrixLayoutCreate)(cublasLtMatrixLayout *l, int type, uint64_t rows, uint64_t cols,
                                      int64_t ld);
    int (*cublasLtMatrixLayoutDestroy)(cublasLtMatrixLayout l);
    int (*cublasLtMatmulPreferenceCreate)(cublasLtMatmulPreference *p);
    int (*cublasLtMatmulPreferenceDestroy)(cublasLtMatmulPreference p);
    int (*cublasLtMatmulPreferenceSetAttribute)(cublasLtMatmulPreference p, int attribute, const void *value,
                                                size_t size);
    int (*cublasLtMatmulAlgoGetHeuristic)(cublasLtHandle h, cublasLtMatmulDesc d, cublasLtMatrixLayout a,
                                          cublasLtMatrixLayout b, cublasLtMatrixLayout c,
                                          cublasLtMatrixLayout to, cublasLtMatmulPreference p, int wanted,
                                          cublasLtMatmulHeuristicResult *results, int *n);
    int (*cublasLtMatmul)(cublasLtHandle h, cublasLtMatmulDesc d, const void *alpha, const void *a,
                          cublasLtMatrixLayout a_layout, const void *b, cublasLtMatrixLayout b_layout,
                          const void *beta, const void *c, cublasLtMatrixLayout c_layout, void *to,
                          cublasLtMatrixLayout to_layout, const cublasLtMatmulAlgo *algo, void *workspace,
                          size_t workspace_bytes, CUstream stream);

    void *lib;
    size_t version; /* 10000 * major + 100 * minor + patch */
} sf_cublaslt;

/* Errors: SF_UNSUPPORTED names the library or the function that is missing, or the version that is too old.
 */
SF_CHECKED sf_code sf_cublaslt_open(sf_cublaslt *b, sf_err *err);
/* The same over other file names (ended by NULL): tests. */
SF_CHECKED sf_code sf_cublaslt_open_names(sf_cublaslt *b, const char *const *names, sf_err *err);
void sf_cublaslt_close(sf_cublaslt *b);

/* SF_OK for success; otherwise fills err with the call and cuBLASLt's name and text. Errors: SF_UNSUPPORTED,
 * SF_DEVICE. */
SF_CHECKED sf_code sf_cublaslt_check(const sf_cublaslt *b, int status, const char *call, sf_loc src,
                                     sf_err *err);

#endif
