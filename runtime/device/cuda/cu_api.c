#include "device/cuda/cu_api.h"

#include <stdio.h>
#include <string.h>

#include "device/cuda/dl.h"

/* cuLaunchKernelEx's programmatic launches keep their meaning in a captured graph from 12.3 on. */
#define VERSION_MIN 12030

static const sf_dl_symbol symbols[] = {
    {"cuInit", offsetof(sf_cu, cuInit)},
    {"cuDriverGetVersion", offsetof(sf_cu, cuDriverGetVersion)},
    {"cuGetErrorName", offsetof(sf_cu, cuGetErrorName)},
    {"cuGetErrorString", offsetof(sf_cu, cuGetErrorString)},
    {"cuDeviceGetCount", offsetof(sf_cu, cuDeviceGetCount)},
    {"cuDeviceGet", offsetof(sf_cu, cuDeviceGet)},
    {"cuDeviceGetName", offsetof(sf_cu, cuDeviceGetName)},
    {"cuDeviceGetAttribute", offsetof(sf_cu, cuDeviceGetAttribute)},
    {"cuDeviceTotalMem_v2", offsetof(sf_cu, cuDeviceTotalMem)},
    {"cuDevicePrimaryCtxRetain", offsetof(sf_cu, cuDevicePrimaryCtxRetain)},
    {"cuDevicePrimaryCtxRelease_v2", offsetof(sf_cu, cuDevicePrimaryCtxRelease)},
    {"cuCtxSetCurrent", offsetof(sf_cu, cuCtxSetCurrent)},
    {"cuCtxSynchronize", offsetof(sf_cu, cuCtxSynchronize)},
    {"cuMemGetInfo_v2", offsetof(sf_cu, cuMemGetInfo)},
    {"cuMemAlloc_v2", offsetof(sf_cu, cuMemAlloc)},
    {"cuMemFree_v2", offsetof(sf_cu, cuMemFree)},
    {"cuMemHostAlloc", offsetof(sf_cu, cuMemHostAlloc)},
    {"cuMemFreeHost", offsetof(sf_cu, cuMemFreeHost)},
    {"cuMemcpyHtoD_v2", offsetof(sf_cu, cuMemcpyHtoD)},
    {"cuMemcpyDtoH_v2", offsetof(sf_cu, cuMemcpyDtoH)},
    {"cuMemcpyHtoDAsync_v2", offsetof(sf_cu, cuMemcpyHtoDAsync)},
    {"cuMemcpyDtoHAsync_v2", offsetof(sf_cu, cuMemcpyDtoHAsync)},
    {"cuMemcpyDtoDAsync_v2", offsetof(sf_cu, cuMemcpyDtoDAsync)},
    {"cuMemsetD8Async", offsetof(sf_cu, cuMemsetD8Async)},
    {"cuMemsetD32Async", offsetof(sf_cu, cuMemsetD32Async)},
    {"cuStreamCreate", offsetof(sf_cu, cuStreamCreate)},
    {"cuStreamDestroy_v2", offsetof(sf_cu, cuStreamDestroy)},
    {"cuStreamSynchronize", offsetof(sf_cu, cuStreamSynchronize)},
    {"cuStreamWaitEvent", offsetof(sf_cu, cuStreamWaitEvent)},
    {"cuEventCreate", offsetof(sf_cu, cuEventCreate)},
    {"cuEventDestroy_v2", offsetof(sf_cu, cuEventDestroy)},
    {"cuEventRecord", offsetof(sf_cu, cuEventRecord)},
    {"cuEventQuery", offsetof(sf_cu, cuEventQuery)},
    {"cuEventSynchronize", offsetof(sf_cu, cuEventSynchronize)},
    {"cuEventElapsedTime", offsetof(sf_cu, cuEventElapsedTime)},
    {"cuLibraryLoadData", offsetof(sf_cu, cuLibraryLoadData)},
    {"cuLibraryUnload", offsetof(sf_cu, cuLibraryUnload)},
    {"cuLibraryGetKernel", offsetof(sf_cu, cuLibraryGetKernel)},
    {"cuLibraryGetGlobal", offsetof(sf_cu, cuLibraryGetGlobal)},
    {"cuKernelGetFunction", offsetof(sf_cu, cuKernelGetFunction)},
    {"cuKernelGetAttribute", offsetof(sf_cu, cuKernelGetAttribute)},
    {"cuKernelSetAttribute", offsetof(sf_cu, cuKernelSetAttribute)},
    {"cuLaunchKernelEx", offsetof(sf_cu, cuLaunchKernelEx)},
    {"cuOccupancyMaxActiveClusters", offsetof(sf_cu, cuOccupancyMaxActiveClusters)},
    {"cuTensorMapEncodeTiled", offsetof(sf_cu, cuTensorMapEncodeTiled)},
    {"cuStreamBeginCapture_v2", offsetof(sf_cu, cuStreamBeginCapture)},
    {"cuStreamEndCapture", offsetof(sf_cu, cuStreamEndCapture)},
    {"cuGraphGetNodes", offsetof(sf_cu, cuGraphGetNodes)},
    {"cuGraphInstantiateWithFlags", offsetof(sf_cu, cuGraphInstantiate)},
    {"cuGraphUpload", offsetof(sf_cu, cuGraphUpload)},
    {"cuGraphLaunch", offsetof(sf_cu, cuGraphLaunch)},
    {"cuGraphExecDestroy", offsetof(sf_cu, cuGraphExecDestroy)},
    {"cuGraphDestroy", offsetof(sf_cu, cuGraphDestroy)},
};

sf_code sf_cu_open(sf_cu *cu, sf_err *err) {
    static const char *const names[] = {"libcuda.so.1", NULL};
    return sf_cu_open_names(cu, names, err);
}

sf_code sf_cu_open_names(sf_cu *cu, const char *const *names, sf_err *err) {
    sf_cu c = {0};
    SF_TRY(sf_dl_open(names, symbols, (int)(sizeof symbols / sizeof *symbols), &c, &c.lib, err));
    int gpus = 0;
    sf_code rc = sf_cu_check(&c, c.cuDriverGetVersion(&c.version), "cuDriverGetVersion", NULL, SF_SRC, err);
    if (rc != SF_OK) goto done;
    if (c.version < VERSION_MIN) {
        rc = SF_FAIL(err, SF_UNSUPPORTED, "the NVIDIA driver speaks CUDA %d.%d, expected %d.%d or later",
                     c.version / 1000, c.version % 1000 / 10, VERSION_MIN / 1000, VERSION_MIN % 1000 / 10);
        goto done;
    }
    rc = sf_cu_check(&c, c.cuInit(0), "cuInit", NULL, SF_SRC, err);
    if (rc != SF_OK) goto done;
    rc = sf_cu_check(&c, c.cuDeviceGetCount(&gpus), "cuDeviceGetCount", NULL, SF_SRC, err);
    if (rc == SF_OK && gpus < 1) rc = SF_FAIL(err, SF_UNSUPPORTED, "the NVIDIA driver finds no GPU");
done:
    if (rc != SF_OK) {
        sf_dl_close(c.lib);
        return rc;
    }
    *cu = c;
    return SF_OK;
}

void sf_cu_close(sf_cu *cu) {
    sf_dl_close(cu->lib);
    *cu = (sf_cu){0};
}

bool sf_cu_sticky(CUresult r) {
    switch (r) {
    case CUDA_ERROR_ECC_UNCORRECTABLE:
    case CUDA_ERROR_NVLINK_UNCORRECTABLE:
    case CUDA_ERROR_CONTAINED:
    case CUDA_ERROR_ILLEGAL_ADDRESS:
    case CUDA_ERROR_LAUNCH_TIMEOUT:
    case CUDA_ERROR_CONTEXT_IS_DESTROYED:
    case CUDA_ERROR_ASSERT:
    case CUDA_ERROR_HARDWARE_STACK_ERROR:
    case CUDA_ERROR_ILLEGAL_INSTRUCTION:
    case CUDA_ERROR_MISALIGNED_ADDRESS:
    case CUDA_ERROR_INVALID_ADDRESS_SPACE:
    case CUDA_ERROR_INVALID_PC:
    case CUDA_ERROR_LAUNCH_FAILED:
    case CUDA_ERROR_UNKNOWN:
        return true;
    default:
        return false;
    }
}

static sf_code code_of(CUresult r) {
    switch (r) {
    case CUDA_ERROR_OUT_OF_MEMORY:
        return SF_NOMEM;
    case CUDA_ERROR_STUB_LIBRARY:
    case CUDA_ERROR_CALL_REQUIRES_NEWER_DRIVER:
    case CUDA_ERROR_NO_DEVICE:
    case CUDA_ERROR_NO_BINARY_FOR_GPU:
    case CUDA_ERROR_NOT_SUPPORTED:
    case CUDA_ERROR_SYSTEM_DRIVER_MISMATCH:
        return SF_UNSUPPORTED;
    default:
        return SF_DEVICE;
    }
}

sf_code sf_cu_check(sf_cu *cu, CUresult r, const char *call, const char *kernel, sf_loc src, sf_err *err) {
    if (r == CUDA_SUCCESS) return SF_OK;
    const char *name = NULL, *text = NULL;
    if (cu->cuGetErrorName(r, &name) != CUDA_SUCCESS || !name)
        name = "an error that this driver does not name";
    if (cu->cuGetErrorString(r, &text) != CUDA_SUCCESS || !text) text = "no text";
    char what[240];
    snprintf(what, sizeof what, "%s%s%s: %s (%d): %s", call, kernel ? " of kernel " : "",
             kernel ? kernel : "", name, (int)r, text);
    /* The first such error is the cause; what the lost context answers afterwards is an echo. */
    const bool echo = cu->dead;
    if (!echo && sf_cu_sticky(r)) {
        cu->dead = true;
        snprintf(cu->why, sizeof cu->why, "%s", what);
    }
    if (echo)
        return sf_err_set(err, SF_DEVICE, (sf_loc){0}, src, "the GPU is lost since %s; now %s", cu->why,
                          call);
    return sf_err_set(err, code_of(r), (sf_loc){0}, src, "%s%s", what,
                      cu->dead ? "; the GPU is lost to this process" : "");
}
