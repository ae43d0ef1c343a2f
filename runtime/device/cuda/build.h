/* Compiles the kernels of an engine, in parallel, through the disk cache. */
#ifndef SF_DEVICE_CUDA_BUILD_H
#define SF_DEVICE_CUDA_BUILD_H

#include "device/cuda/cache.h"

typedef struct sf_cuda_build {
    const sf_nvrtc *nvrtc;
    sf_cubin_cache *cache; /* may be NULL: everything is compiled */
    const char *arch;      /* "sm_90a" */
    const sf_cuda_header *headers;
    int n_headers;
    int threads; /* 1..256 */
} sf_cuda_build;

/* out [n], zero-initialised; each is the caller's to sf_cubin_fini, also after an error. Draws a progress
 * line. Errors: of the first source that fails, those of sf_nvrtc_compile and of sf_cuda_report_check (a
 * kernel that spills, uses local memory or has its wgmma serialised is refused); SF_NOMEM. */
SF_CHECKED sf_code sf_cuda_build_all(const sf_cuda_build *b, const sf_cuda_source *sources, int n,
                                     sf_cubin *out, sf_err *err);

#endif
