#include "device/cuda/gpu.h"

#include <stdio.h>

static sf_code attribute(sf_gpu *g, CUdevice_attribute a, int *value, sf_err *err) {
    return sf_cu_check(g->cu, g->cu->cuDeviceGetAttribute(value, a, g->dev), "cuDeviceGetAttribute", NULL,
                       SF_SRC, err);
}

static sf_code describe(sf_gpu *g, sf_err *err) {
    int major = 0, minor = 0;
    sf_cu *cu = g->cu;
    SF_TRY(sf_cu_check(cu, cu->cuDeviceGetName(g->name, sizeof g->name, g->dev), "cuDeviceGetName", NULL,
                       SF_SRC, err));
    SF_TRY(sf_cu_check(cu, cu->cuDeviceTotalMem(&g->memory, g->dev), "cuDeviceTotalMem", NULL, SF_SRC, err));
    SF_TRY(attribute(g, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, &major, err));
    SF_TRY(attribute(g, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, &minor, err));
    SF_TRY(attribute(g, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, &g->sms, err));
    SF_TRY(attribute(g, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, &g->shared_max, err));
    SF_TRY(attribute(g, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, &g->l2, err));
    if (major < 9)
        return SF_FAIL(err, SF_UNSUPPORTED, "GPU %s has compute capability %d.%d, expected 9.0 or later",
                       g->name, major, minor);
    /* the `a` set holds wgmma and its like; it runs on this very architecture only, as a cubin does anyway */
    snprintf(g->arch, sizeof g->arch, "sm_%d%da", major, minor);
    return SF_OK;
}

sf_code sf_gpu_open(sf_cu *cu, int ordinal, sf_gpu *gpu, sf_err *err) {
    sf_gpu g = {.cu = cu};
    int n = 0;
    SF_TRY(sf_cu_check(cu, cu->cuDeviceGetCount(&n), "cuDeviceGetCount", NULL, SF_SRC, err));
    if (ordinal < 0 || ordinal >= n)
        return SF_FAIL(err, SF_INVALID, "GPU %d was asked for, expected 0..%d", ordinal, n - 1);
    SF_TRY(sf_cu_check(cu, cu->cuDeviceGet(&g.dev, ordinal), "cuDeviceGet", NULL, SF_SRC, err));
    SF_TRY(describe(&g, err));
    SF_TRY(sf_cu_check(cu, cu->cuDevicePrimaryCtxRetain(&g.ctx, g.dev), "cuDevicePrimaryCtxRetain", NULL,
                       SF_SRC, err));
    sf_code rc = sf_cu_check(cu, cu->cuCtxSetCurrent(g.ctx), "cuCtxSetCurrent", NULL, SF_SRC, err);
    if (rc == SF_OK)
        rc = sf_cu_check(cu, cu->cuStreamCreate(&g.stream, CU_STREAM_NON_BLOCKING), "cuStreamCreate", NULL,
                         SF_SRC, err);
    if (rc != SF_OK) {
        cu->cuDevicePrimaryCtxRelease(g.dev);
        return rc;
    }
    *gpu = g;
    return SF_OK;
}

void sf_gpu_close(sf_gpu *gpu) {
    if (!gpu->cu) return;
    gpu->cu->cuStreamDestroy(gpu->stream);
    gpu->cu->cuDevicePrimaryCtxRelease(gpu->dev);
    *gpu = (sf_gpu){0};
}
