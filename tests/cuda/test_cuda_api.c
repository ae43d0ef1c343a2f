#include "cuda/cuda_test.h"

#include "device/cuda/cu_api.h"
#include "device/cuda/cublaslt.h"
#include "device/cuda/dl.h"
#include "device/cuda/gpu.h"
#include "device/cuda/nvrtc.h"

static void a_missing_library_is_named(void **state) {
    (void)state;
    static const char *const names[] = {"libcuda-nosuch.so.1", NULL};
    sf_cu cu = {.version = 7};
    sf_nvrtc nvrtc = {.major = 7};
    sf_cublaslt lt = {.version = 7};
    sf_err err;
    assert_fails(sf_cu_open_names(&cu, names, &err), &err, SF_UNSUPPORTED,
                 "libcuda-nosuch.so.1 is not on this machine: libcuda-nosuch.so.1: cannot open");
    assert_fails(sf_nvrtc_open_names(&nvrtc, names, &err), &err, SF_UNSUPPORTED,
                 "libcuda-nosuch.so.1 is not");
    assert_fails(sf_cublaslt_open_names(&lt, names, &err), &err, SF_UNSUPPORTED,
                 "libcuda-nosuch.so.1 is not");
    assert_true(cu.version == 7 && nvrtc.major == 7 && lt.version == 7); /* a failed call touches nothing */
}

static void a_missing_function_is_named_with_its_library(void **state) {
    (void)state;
    static const char *const names[] = {"libm.so.6", NULL}; /* on every machine, and no CUDA library */
    sf_cu cu;
    sf_nvrtc nvrtc;
    sf_cublaslt lt;
    sf_err err;
    assert_fails(sf_cu_open_names(&cu, names, &err), &err, SF_UNSUPPORTED, "libm.so.6 lacks cuInit");
    assert_fails(sf_nvrtc_open_names(&nvrtc, names, &err), &err, SF_UNSUPPORTED,
                 "libm.so.6 lacks nvrtcVersion");
    assert_fails(sf_cublaslt_open_names(&lt, names, &err), &err, SF_UNSUPPORTED,
                 "libm.so.6 lacks cublasLtGetVersion");
}

static void the_first_library_that_is_there_serves(void **state) {
    (void)state;
    static const char *const names[] = {"libnosuch.so.1", "libm.so.6", NULL};
    static const sf_dl_symbol symbols[] = {{"cos", 0}};
    double (*cosine)(double) = NULL;
    void *lib = NULL;
    sf_err err;
    assert_int_equal(sf_dl_open(names, symbols, 1, &cosine, &lib, &err), SF_OK);
    assert_true(cosine(0.0) == 1.0);
    sf_dl_close(lib);
}

static void a_whole_driver_opens(void **state) {
    (void)state;
    static const char *const names[] = {FAKE_OK, NULL};
    sf_cu cu;
    sf_gpu gpu;
    sf_err err;
    assert_int_equal(sf_cu_open_names(&cu, names, &err), SF_OK);
    assert_int_equal(cu.version, 13000);
    assert_false(cu.dead);
    assert_fails(sf_gpu_open(&cu, 2, &gpu, &err), &err, SF_INVALID, "GPU 2 was asked for, expected 0..1");
    assert_fails(sf_gpu_open(&cu, 0, &gpu, &err), &err, SF_UNSUPPORTED,
                 "capability 0.0, expected 9.0 or later");
    sf_cu_close(&cu);
}

static void an_old_driver_and_no_gpu_are_refused(void **state) {
    (void)state;
    static const char *const old[] = {FAKE_OLD, NULL}, *const nogpu[] = {FAKE_NOGPU, NULL};
    sf_cu cu;
    sf_err err;
    assert_fails(sf_cu_open_names(&cu, old, &err), &err, SF_UNSUPPORTED,
                 "speaks CUDA 11.4, expected 12.3 or later");
    assert_fails(sf_cu_open_names(&cu, nogpu, &err), &err, SF_UNSUPPORTED, "cuInit");
}

/* ---- errors ---- */

static CUresult name_of(CUresult r, const char **text) {
    *text = r == CUDA_ERROR_ILLEGAL_ADDRESS ? "CUDA_ERROR_ILLEGAL_ADDRESS" : "CUDA_ERROR_SOMETHING";
    return CUDA_SUCCESS;
}

static CUresult text_of(CUresult r, const char **text) {
    (void)r;
    *text = "the text";
    return CUDA_SUCCESS;
}

static CUresult unnamed(CUresult r, const char **text) {
    (void)r;
    *text = NULL;
    return CUDA_ERROR_INVALID_VALUE;
}

static void an_error_names_call_and_kernel(void **state) {
    (void)state;
    sf_cu cu = {.cuGetErrorName = name_of, .cuGetErrorString = text_of};
    sf_err err = {0};
    assert_int_equal(sf_cu_check(&cu, CUDA_SUCCESS, "cuInit", NULL, SF_SRC, &err), SF_OK);
    assert_int_equal(err.code, SF_OK);
    assert_fails(sf_cu_check(&cu, CUDA_ERROR_INVALID_VALUE, "cuLaunchKernelEx", "gemm_x", SF_SRC, &err), &err,
                 SF_DEVICE, "cuLaunchKernelEx of kernel gemm_x: CUDA_ERROR_SOMETHING (1): the text");
    assert_non_null(strstr(err.src.file, "test_cuda_api.c"));
    assert_fails(sf_cu_check(&cu, CUDA_ERROR_OUT_OF_MEMORY, "cuMemAlloc", NULL, SF_SRC, &err), &err, SF_NOMEM,
                 "cuMemAlloc: ");
    assert_fails(sf_cu_check(&cu, CUDA_ERROR_NO_BINARY_FOR_GPU, "x", NULL, SF_SRC, &err), &err,
                 SF_UNSUPPORTED, "x: ");
    assert_false(cu.dead);
    assert_int_equal(sf_cu_check(&cu, CUDA_ERROR_INVALID_VALUE, "x", NULL, SF_SRC, NULL), SF_DEVICE);
}

static void an_error_that_the_driver_cannot_name_is_told(void **state) {
    (void)state;
    sf_cu cu = {.cuGetErrorName = unnamed, .cuGetErrorString = unnamed};
    sf_err err;
    assert_fails(sf_cu_check(&cu, (CUresult)4711, "cuInit", NULL, SF_SRC, &err), &err, SF_DEVICE,
                 "does not name (4711)");
}

static void a_sticky_error_loses_the_gpu_and_stays_the_cause(void **state) {
    (void)state;
    sf_cu cu = {.cuGetErrorName = name_of, .cuGetErrorString = text_of};
    sf_err err;
    assert_fails(sf_cu_check(&cu, CUDA_ERROR_ILLEGAL_ADDRESS, "cuStreamSynchronize", NULL, SF_SRC, &err),
                 &err, SF_DEVICE,
                 "CUDA_ERROR_ILLEGAL_ADDRESS (700): the text; the GPU is lost to this process");
    assert_true(cu.dead);
    assert_fails(sf_cu_check(&cu, CUDA_ERROR_OUT_OF_MEMORY, "cuMemAlloc", NULL, SF_SRC, &err), &err,
                 SF_DEVICE,
                 "the GPU is lost since cuStreamSynchronize: CUDA_ERROR_ILLEGAL_ADDRESS (700): the text; now "
                 "cuMemAlloc");
    assert_fails(sf_cu_check(&cu, CUDA_ERROR_LAUNCH_FAILED, "cuMemFree", NULL, SF_SRC, &err), &err, SF_DEVICE,
                 "since cuStreamSynchronize");
    assert_true(sf_cu_sticky(CUDA_ERROR_ECC_UNCORRECTABLE) && sf_cu_sticky(CUDA_ERROR_LAUNCH_FAILED));
    assert_false(sf_cu_sticky(CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES) || sf_cu_sticky(CUDA_ERROR_NOT_READY));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_missing_library_is_named),
        cmocka_unit_test(a_missing_function_is_named_with_its_library),
        cmocka_unit_test(the_first_library_that_is_there_serves),
        cmocka_unit_test(a_whole_driver_opens),
        cmocka_unit_test(an_old_driver_and_no_gpu_are_refused),
        cmocka_unit_test(an_error_names_call_and_kernel),
        cmocka_unit_test(an_error_that_the_driver_cannot_name_is_told),
        cmocka_unit_test(a_sticky_error_loses_the_gpu_and_stays_the_cause),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
