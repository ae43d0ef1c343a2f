#include "device/cuda/cublaslt.h"

#include "device/cuda/dl.h"

#define VERSION_MIN 120000 /* the first that knows the H100 and H200 well */

static const sf_dl_symbol symbols[] = {
    {"cublasLtGetVersion", offsetof(sf_cublaslt, cublasLtGetVersion)},
    {"cublasLtGetStatusName", offsetof(sf_cublaslt, cublasLtGetStatusName)},
    {"cublasLtGetStatusString", offsetof(sf_cublaslt, cublasLtGetStatusString)},
    {"cublasLtCreate", offsetof(sf_cublaslt, cublasLtCreate)},
    {"cublasLtDestroy", offsetof(sf_cublaslt, cublasLtDestroy)},
    {"cublasLtMatmulDescCreate", offsetof(sf_cublaslt, cublasLtMatmulDescCreate)},
    {"cublasLtMatmulDescDestroy", offsetof(sf_cublaslt, cublasLtMatmulDescDestroy)},
    {"cublasLtMatmulDescSetAttribute", offsetof(sf_cublaslt, cublasLtMatmulDescSetAttribute)},
    {"cublasLtMatrixLayoutCreate", offsetof(sf_cublaslt, cublasLtMatrixLayoutCreate)},
    {"cublasLtMatrixLayoutDestroy", offsetof(sf_cublaslt, cublasLtMatrixLayoutDestroy)},
    {"cublasLtMatmulPreferenceCreate", offsetof(sf_cublaslt, cublasLtMatmulPreferenceCreate)},
    {"cublasLtMatmulPreferenceDestroy", offsetof(sf_cublaslt, cublasLtMatmulPreferenceDestroy)},
    {"cublasLtMatmulPreferenceSetAttribute", offsetof(sf_cublaslt, cublasLtMatmulPreferenceSetAttribute)},
    {"cublasLtMatmulAlgoGetHeuristic", offsetof(sf_cublaslt, cublasLtMatmulAlgoGetHeuristic)},
    {"cublasLtMatmul", offsetof(sf_cublaslt, cublasLtMatmul)},
};

sf_code sf_cublaslt_open(sf_cublaslt *b, sf_err *err) {
    static const char *const names[] = {"libcublasLt.so.13", "/usr/local/cuda/lib64/libcublasLt.so.13",
                                        "libcublasLt.so.12", "/usr/local/cuda/lib64/libcublasLt.so.12", NULL};
    return sf_cublaslt_open_names(b, names, err);
}

sf_code sf_cublaslt_open_names(sf_cublaslt *b, const char *const *names, sf_err *err) {
    sf_cublaslt o = {0};
    SF_TRY(sf_dl_open(names, symbols, (int)(sizeof symbols / sizeof *symbols), &o, &o.lib, err));
    o.version = o.cublasLtGetVersion();
    if (o.version < VERSION_MIN) {
        sf_dl_close(o.lib);
        return SF_FAIL(err, SF_UNSUPPORTED, "cuBLASLt is version %zu, expected %d or later", o.version,
                       VERSION_MIN);
    }
    *b = o;
    return SF_OK;
}

void sf_cublaslt_close(sf_cublaslt *b) {
    sf_dl_close(b->lib);
    *b = (sf_cublaslt){0};
}

sf_code sf_cublaslt_check(const sf_cublaslt *b, int status, const char *call, sf_loc src, sf_err *err) {
    if (status == CUBLAS_STATUS_SUCCESS) return SF_OK;
    return sf_err_set(err, status == CUBLAS_STATUS_NOT_SUPPORTED ? SF_UNSUPPORTED : SF_DEVICE, (sf_loc){0},
                      src, "%s: %s (%d): %s", call, b->cublasLtGetStatusName(status), status,
                      b->cublasLtGetStatusString(status));
}
