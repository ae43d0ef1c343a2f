/* The CUDA driver, opened at run time, and how its errors become ours. */
#ifndef SF_DEVICE_CUDA_CU_API_H
#define SF_DEVICE_CUDA_CU_API_H

#include <stdbool.h>

#include "base/err.h"
#include "device/cuda/cu_abi.h"

/* Functions by the names of the driver API; where the library holds several versions (`_v2`), the one that
 * CUDA 12 and later headers choose. */
typedef struct sf_cu {
    CUresult (*cuInit)(unsigned flags);
    CUresult (*cuDriverGetVersion)(int *version);
    CUresult (*cuGetErrorName)(CUresult r, const char **text);
    CUresult (*cuGetErrorString)(CUresult r, const char **text);
    CUresult (*cuDeviceGetCount)(int *n);
    CUresult (*cuDeviceGet)(CUdevice *dev, int ordinal);
    CUresult (*cuDeviceGetName)(char *name, int size, CUdevice dev);
    CUresult (*cuDeviceGetAttribute)(int *value, CUdevice_attribute a, CUdevice dev);
    CUresult (*cuDeviceTotalMem)(size_t *bytes, CUdevice dev);
    CUresult (*cuDevicePrimaryCtxRetain)(CUcontext *ctx, CUdevice dev);
    CUresult (*cuDevicePrimaryCtxRelease)(CUdevice dev);
    CUresult (*cuCtxSetCurrent)(CUcontext ctx);
    CUresult (*cuCtxSynchronize)(void);

    CUresult (*cuMemGetInfo)(size_t *free, size_t *total);
    CUresult (*cuMemAlloc)(CUdeviceptr *p, size_t bytes);
    CUresult (*cuMemFree)(CUdeviceptr p);
    CUresult (*cuMemHostAlloc)(void **p, size_t bytes, unsigned flags);
    CUresult (*cuMemFreeHost)(void *p);
    CUresult (*cuMemcpyHtoD)(CUdeviceptr to, const void *from, size_t bytes);
    CUresult (*cuMemcpyDtoH)(void *to, CUdeviceptr from, size_t bytes);
    CUresult (*cuMemcpyHtoDAsync)(CUdeviceptr to, const void *from, size_t bytes, CUstream s);
    CUresult (*cuMemcpyDtoHAsync)(void *to, CUdeviceptr from, size_t bytes, CUstream s);
    CUresult (*cuMemcpyDtoDAsync)(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream s);
    CUresult (*cuMemsetD8Async)(CUdeviceptr p, unsigned char value, size_t n, CUstream s);
    CUresult (*cuMemsetD32Async)(CUdeviceptr p, unsigned value, size_t n, CUstream s);

    CUresult (*cuStreamCreate)(CUstream *s, unsigned flags);
    CUresult (*cuStreamDestroy)(CUstream s);
    CUresult (*cuStreamSynchronize)(CUstream s);
    CUresult (*cuStreamWaitEvent)(CUstream s, CUevent e, unsigned flags);
    CUresult (*cuEventCreate)(CUevent *e, unsigned flags);
    CUresult (*cuEventDestroy)(CUevent e);
    CUresult (*cuEventRecord)(CUevent e, CUstream s);
    CUresult (*cuEventQuery)(CUevent e);
    CUresult (*cuEventSynchronize)(CUevent e);
    CUresult (*cuEventElapsedTime)(float *ms, CUevent from, CUevent to);

    CUresult (*cuLibraryLoadData)(CUlibrary *lib, const void *code, void *jit, void **jit_values,
                                  unsigned n_jit, void *options, void **option_values, unsigned n_options);
    CUresult (*cuLibraryUnload)(CUlibrary lib);
    CUresult (*cuLibraryGetKernel)(CUkernel *k, CUlibrary lib, const char *name);
    CUresult (*cuLibraryGetGlobal)(CUdeviceptr *p, size_t *bytes, CUlibrary lib, const char *name);
    CUresult (*cuKernelGetFunction)(CUfunction *f, CUkernel k);
    CUresult (*cuKernelGetAttribute)(int *value, CUfunction_attribute a, CUkernel k, CUdevice dev);
    CUresult (*cuKernelSetAttribute)(CUfunction_attribute a, int value, CUkernel k, CUdevice dev);
    CUresult (*cuLaunchKernelEx)(const CUlaunchConfig *c, CUfunction f, void **args, void **extra);
    CUresult (*cuOccupancyMaxActiveClusters)(int *n, CUfunction f, const CUlaunchConfig *c);
    CUresult (*cuTensorMapEncodeTiled)(CUtensorMap *map, int type, uint32_t rank, void *address,
                                       const uint64_t *dims, const uint64_t *strides, const uint32_t *box,
                                       const uint32_t *steps, int interleave, int swizzle, int l2, int fill);

    CUresult (*cuStreamBeginCapture)(CUstream s, int mode);
    CUresult (*cuStreamEndCapture)(CUstream s, CUgraph *g);
    CUresult (*cuGraphGetNodes)(CUgraph g, CUgraphNode *nodes, size_t *n);
    CUresult (*cuGraphInstantiate)(CUgraphExec *e, CUgraph g, unsigned long long flags);
    CUresult (*cuGraphUpload)(CUgraphExec e, CUstream s);
    CUresult (*cuGraphLaunch)(CUgraphExec e, CUstream s);
    CUresult (*cuGraphExecDestroy)(CUgraphExec e);
    CUresult (*cuGraphDestroy)(CUgraph g);

    void *lib;
    int version;   /* of the driver: 1000 * major + 10 * minor */
    bool dead;     /* a sticky error was seen: every later call fails, only a new process helps */
    char why[240]; /* dead: the first such error */
} sf_cu;

/* Opens libcuda and initialises it. Errors: SF_UNSUPPORTED names what is missing (library, function, driver
 * version, GPU), SF_DEVICE. Close after everything that came from it. */
SF_CHECKED sf_code sf_cu_open(sf_cu *cu, sf_err *err);
/* The same over other file names (ended by NULL): tests. */
SF_CHECKED sf_code sf_cu_open_names(sf_cu *cu, const char *const *names, sf_err *err);
void sf_cu_close(sf_cu *cu);

/* SF_OK for success; otherwise fills err with the call, the kernel (may be NULL), and CUDA's name and text.
 * Sticky errors mark cu dead. SF_NOMEM: the GPU's or the pinned memory is used up; SF_UNSUPPORTED: CUDA says
 * so, or has no code for this GPU; SF_DEVICE: anything else. */
SF_CHECKED sf_code sf_cu_check(sf_cu *cu, CUresult r, const char *call, const char *kernel, sf_loc src,
                               sf_err *err);
/* Errors after which the context is lost for good. */
bool sf_cu_sticky(CUresult r);

#endif
