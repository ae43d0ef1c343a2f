/* A compiled kernel on the GPU, and its launch. */
#ifndef SF_DEVICE_CUDA_MODULE_H
#define SF_DEVICE_CUDA_MODULE_H

#include "device/cuda/gpu.h"
#include "device/cuda/pass_block.h"

typedef struct sf_cuda_kernel {
    const char *name; /* borrowed */
    CUlibrary lib;
    CUfunction fn;
    sf_cuda_launch launch; /* as the kernel exports it; the grid may be lowered before the first launch */
    int registers;
    int shared; /* static, bytes; launch.shared comes on top */
} sf_cuda_kernel;

/* Loads a cubin that holds kernel `name` and its constant `<name>_launch`, wholly, so that nothing is loaded
 * during a graph's capture. The code is copied. Thread: the GPU's. Errors: those of sf_cu_check, the kernel
 * named; SF_INVALID: its launch constant is missing, of another size, or asks for what the GPU has not. */
SF_CHECKED sf_code sf_cuda_kernel_load(const sf_gpu *gpu, const char *name, const void *code,
                                       sf_cuda_kernel *out, sf_err *err);
void sf_cuda_kernel_unload(const sf_gpu *gpu, sf_cuda_kernel *k); /* a zeroed one is fine */

/* Queues it in the GPU's stream. Errors: those of sf_cu_check; what goes wrong inside the kernel shows at a
 * later call. */
SF_CHECKED sf_code sf_cuda_kernel_launch(const sf_gpu *gpu, const sf_cuda_kernel *k, const sf_cuda_args *args,
                                         sf_err *err);
/* The same in another stream, of a kernel that takes other parameters. */
SF_CHECKED sf_code sf_cuda_kernel_queue(const sf_gpu *gpu, const sf_cuda_kernel *k, CUstream stream,
                                        void **params, sf_err *err);

#endif
