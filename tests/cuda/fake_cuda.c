/* A stand-in for libcuda.so.1 with every function that we look up: a driver that speaks CUDA VERSION and
 * finds GPUS GPUs. The others do nothing and succeed. */
#include "device/cuda/cu_abi.h"

CUresult cuInit(unsigned flags);
CUresult cuDriverGetVersion(int *version);
CUresult cuDeviceGetCount(int *n);

CUresult cuInit(unsigned flags) {
    return flags == 0 && GPUS > 0 ? CUDA_SUCCESS : CUDA_ERROR_NO_DEVICE;
}

CUresult cuDriverGetVersion(int *version) {
    *version = VERSION;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetCount(int *n) {
    *n = GPUS;
    return CUDA_SUCCESS;
}

static int nothing(void) {
    return CUDA_SUCCESS;
}

int cuGetErrorName(void) __attribute__((alias("nothing")));
int cuGetErrorString(void) __attribute__((alias("nothing")));
int cuDeviceGet(void) __attribute__((alias("nothing")));
int cuDeviceGetName(void) __attribute__((alias("nothing")));
int cuDeviceGetAttribute(void) __attribute__((alias("nothing")));
int cuDeviceTotalMem_v2(void) __attribute__((alias("nothing")));
int cuDevicePrimaryCtxRetain(void) __attribute__((alias("nothing")));
int cuDevicePrimaryCtxRelease_v2(void) __attribute__((alias("nothing")));
int cuCtxSetCurrent(void) __attribute__((alias("nothing")));
int cuCtxSynchronize(void) __attribute__((alias("nothing")));
int cuMemGetInfo_v2(void) __attribute__((alias("nothing")));
int cuMemAlloc_v2(void) __attribute__((alias("nothing")));
int cuMemFree_v2(void) __attribute__((alias("nothing")));
int cuMemHostAlloc(void) __attribute__((alias("nothing")));
int cuMemFreeHost(void) __attribute__((alias("nothing")));
int cuMemcpyHtoD_v2(void) __attribute__((alias("nothing")));
int cuMemcpyDtoH_v2(void) __attribute__((alias("nothing")));
int cuMemcpyHtoDAsync_v2(void) __attribute__((alias("nothing")));
int cuMemcpyDtoHAsync_v2(void) __attribute__((alias("nothing")));
int cuMemcpyDtoDAsync_v2(void) __attribute__((alias("nothing")));
int cuMemsetD8Async(void) __attribute__((alias("nothing")));
int cuMemsetD32Async(void) __attribute__((alias("nothing")));
int cuStreamCreate(void) __attribute__((alias("nothing")));
int cuStreamDestroy_v2(void) __attribute__((alias("nothing")));
int cuStreamSynchronize(void) __attribute__((alias("nothing")));
int cuStreamWaitEvent(void) __attribute__((alias("nothing")));
int cuEventCreate(void) __attribute__((alias("nothing")));
int cuEventDestroy_v2(void) __attribute__((alias("nothing")));
int cuEventRecord(void) __attribute__((alias("nothing")));
int cuEventQuery(void) __attribute__((alias("nothing")));
int cuEventSynchronize(void) __attribute__((alias("nothing")));
int cuEventElapsedTime(void) __attribute__((alias("nothing")));
int cuLibraryLoadData(void) __attribute__((alias("nothing")));
int cuLibraryUnload(void) __attribute__((alias("nothing")));
int cuLibraryGetKernel(void) __attribute__((alias("nothing")));
int cuLibraryGetGlobal(void) __attribute__((alias("nothing")));
int cuKernelGetFunction(void) __attribute__((alias("nothing")));
int cuKernelGetAttribute(void) __attribute__((alias("nothing")));
int cuKernelSetAttribute(void) __attribute__((alias("nothing")));
int cuLaunchKernelEx(void) __attribute__((alias("nothing")));
int cuOccupancyMaxActiveClusters(void) __attribute__((alias("nothing")));
int cuTensorMapEncodeTiled(void) __attribute__((alias("nothing")));
int cuStreamBeginCapture_v2(void) __attribute__((alias("nothing")));
int cuStreamEndCapture(void) __attribute__((alias("nothing")));
int cuGraphGetNodes(void) __attribute__((alias("nothing")));
int cuGraphInstantiateWithFlags(void) __attribute__((alias("nothing")));
int cuGraphUpload(void) __attribute__((alias("nothing")));
int cuGraphLaunch(void) __attribute__((alias("nothing")));
int cuGraphExecDestroy(void) __attribute__((alias("nothing")));
int cuGraphDestroy(void) __attribute__((alias("nothing")));
