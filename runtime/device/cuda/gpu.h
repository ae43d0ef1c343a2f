/* One GPU of this process: its primary context, made current, and what the host must know of it. */
#ifndef SF_DEVICE_CUDA_GPU_H
#define SF_DEVICE_CUDA_GPU_H

#include "device/cuda/cu_api.h"

typedef struct sf_gpu {
    sf_cu *cu; /* borrowed */
    CUdevice dev;
    CUcontext ctx;
    CUstream stream; /* all passes run in it */
    char name[96];   /* "NVIDIA H200" */
    char arch[16];   /* to compile for: "sm_90a" */
    int sms;
    int shared_max; /* bytes of shared memory a thread block may have */
    int l2;         /* bytes */
    size_t memory;  /* bytes */
} sf_gpu;

/* ordinal counts from 0. Thread: the one that will launch. Errors: those of sf_cu_check; SF_INVALID: no such
 * GPU; SF_UNSUPPORTED: older than compute capability 9.0. */
SF_CHECKED sf_code sf_gpu_open(sf_cu *cu, int ordinal, sf_gpu *gpu, sf_err *err);
/* Also after an error of the GPU. */
void sf_gpu_close(sf_gpu *gpu);

#endif
