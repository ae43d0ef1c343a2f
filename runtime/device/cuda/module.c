#include "device/cuda/module.h"

#include <stdio.h>

#define THREADS_MAX 1024 /* of a thread block, on every GPU so far */

static sf_code read_launch(const sf_gpu *gpu, sf_cuda_kernel *k, sf_err *err) {
    sf_cu *cu = gpu->cu;
    char symbol[256];
    CUdeviceptr at = 0;
    size_t size = 0;
    snprintf(symbol, sizeof symbol, "%s_launch", k->name);
    const CUresult r = cu->cuLibraryGetGlobal(&at, &size, k->lib, symbol);
    if (r == CUDA_ERROR_NOT_FOUND)
        return SF_FAIL(err, SF_INVALID, "kernel %s does not export its launch constant %s", k->name, symbol);
    SF_TRY(sf_cu_check(cu, r, "cuLibraryGetGlobal", k->name, SF_SRC, err));
    if (size != sizeof k->launch)
        return SF_FAIL(err, SF_INVALID, "the launch constant of kernel %s has %zu bytes, expected %zu",
                       k->name, size, sizeof k->launch);
    return sf_cu_check(cu, cu->cuMemcpyDtoH(&k->launch, at, size), "cuMemcpyDtoH of the launch constant",
                       k->name, SF_SRC, err);
}

static sf_code check_launch(const sf_gpu *gpu, const sf_cuda_kernel *k, sf_err *err) {
    const sf_cuda_launch *l = &k->launch;
    if (l->grid < 1 || l->threads < 1 || l->threads > THREADS_MAX)
        return SF_FAIL(err, SF_INVALID, "kernel %s asks for %d thread blocks of %d, expected 1.. of 1..%d",
                       k->name, l->grid, l->threads, THREADS_MAX);
    if (l->cluster < 0 || (l->cluster > 0 && l->grid % l->cluster != 0))
        return SF_FAIL(err, SF_INVALID,
                       "kernel %s asks for %d thread blocks in clusters of %d, expected a divisor", k->name,
                       l->grid, l->cluster);
    if (l->shared < 0 || l->shared > gpu->shared_max - k->shared)
        return SF_FAIL(err, SF_INVALID,
                       "kernel %s asks for %d bytes of shared memory on top of %d, the GPU has %d", k->name,
                       l->shared, k->shared, gpu->shared_max);
    return SF_OK;
}

static sf_code prepare(const sf_gpu *gpu, sf_cuda_kernel *k, sf_err *err) {
    sf_cu *cu = gpu->cu;
    CUkernel kernel = NULL;
    SF_TRY(sf_cu_check(cu, cu->cuLibraryGetKernel(&kernel, k->lib, k->name), "cuLibraryGetKernel", k->name,
                       SF_SRC, err));
    SF_TRY(sf_cu_check(cu, cu->cuKernelGetFunction(&k->fn, kernel), "cuKernelGetFunction", k->name, SF_SRC,
                       err));
    SF_TRY(sf_cu_check(cu,
                       cu->cuKernelGetAttribute(&k->registers, CU_FUNC_ATTRIBUTE_NUM_REGS, kernel, gpu->dev),
                       "cuKernelGetAttribute", k->name, SF_SRC, err));
    SF_TRY(sf_cu_check(
        cu, cu->cuKernelGetAttribute(&k->shared, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, kernel, gpu->dev),
        "cuKernelGetAttribute", k->name, SF_SRC, err));
    SF_TRY(read_launch(gpu, k, err));
    SF_TRY(check_launch(gpu, k, err));
    return sf_cu_check(cu,
                       cu->cuKernelSetAttribute(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                                k->launch.shared, kernel, gpu->dev),
                       "cuKernelSetAttribute", k->name, SF_SRC, err);
}

sf_code sf_cuda_kernel_load(const sf_gpu *gpu, const char *name, const void *code, sf_cuda_kernel *out,
                            sf_err *err) {
    sf_cu *cu = gpu->cu;
    sf_cuda_kernel k = {.name = name};
    SF_TRY(sf_cu_check(cu, cu->cuLibraryLoadData(&k.lib, code, NULL, NULL, 0, NULL, NULL, 0),
                       "cuLibraryLoadData", name, SF_SRC, err));
    const sf_code rc = prepare(gpu, &k, err);
    if (rc != SF_OK) {
        cu->cuLibraryUnload(k.lib);
        return rc;
    }
    *out = k;
    return SF_OK;
}

void sf_cuda_kernel_unload(const sf_gpu *gpu, sf_cuda_kernel *k) {
    if (k->lib) gpu->cu->cuLibraryUnload(k->lib);
    *k = (sf_cuda_kernel){0};
}

static unsigned attributes_of(const sf_cuda_launch *l, CUlaunchAttribute attrs[2]) {
    unsigned n = 0;
    if (l->pdl) {
        attrs[n] = (CUlaunchAttribute){.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION};
        attrs[n++].value.programmaticStreamSerializationAllowed = 1;
    }
    if (l->cluster > 0) {
        attrs[n] = (CUlaunchAttribute){.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION};
        attrs[n].value.clusterDim.x = (unsigned)l->cluster;
        attrs[n].value.clusterDim.y = attrs[n].value.clusterDim.z = 1;
        n++;
    }
    return n;
}

sf_code sf_cuda_kernel_queue(const sf_gpu *gpu, const sf_cuda_kernel *k, CUstream stream, void **params,
                             sf_err *err) {
    CUlaunchAttribute attrs[2];
    const CUlaunchConfig config = {.gridDimX = (unsigned)k->launch.grid,
                                   .gridDimY = 1,
                                   .gridDimZ = 1,
                                   .blockDimX = (unsigned)k->launch.threads,
                                   .blockDimY = 1,
                                   .blockDimZ = 1,
                                   .sharedMemBytes = (unsigned)k->launch.shared,
                                   .hStream = stream,
                                   .attrs = attrs,
                                   .numAttrs = attributes_of(&k->launch, attrs)};
    return sf_cu_check(gpu->cu, gpu->cu->cuLaunchKernelEx(&config, k->fn, params, NULL), "cuLaunchKernelEx",
                       k->name, SF_SRC, err);
}

sf_code sf_cuda_kernel_launch(const sf_gpu *gpu, const sf_cuda_kernel *k, const sf_cuda_args *args,
                              sf_err *err) {
    sf_cuda_args copy = *args; /* the driver takes a pointer to non-const, and copies in turn */
    void *params[] = {&copy};
    return sf_cuda_kernel_queue(gpu, k, gpu->stream, params, err);
}
