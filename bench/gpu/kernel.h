/* Kernels of templates/ outside the engine: a template with its prelude replaced, compiled by NVRTC as the
 * engine compiles it (cubins are kept by content, so that a machine without a GPU can compile and one with a
 * GPU measure). */
#ifndef SF_BENCH_GPU_KERNEL_H
#define SF_BENCH_GPU_KERNEL_H

#include <cuda_runtime.h>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "device/cuda/tensor_maps.h"
#include "device/cuda/pass_block.h"

#define CUDA_OK(call)                                                                                        \
    do {                                                                                                     \
        cudaError_t status_ = (call);                                                                        \
        if (status_ != cudaSuccess) {                                                                        \
            std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(status_));            \
            std::exit(1);                                                                                    \
        }                                                                                                    \
    } while (0)

/* Where the sources are and where cubins are kept, and which share of them kernel_prepare compiles; set by
 * main. */
struct places {
    std::string root = ".", cache = "build-gemm";
    int share = 0, shares = 1;
};
extern places the_places;

/* The cubin of templates/cuda/<name>.cu, or else bench/gpu/<name>.cu, with this prelude. Exits with the
 * compiler's log where it fails, spills registers or reports a serialised wgmma. */
std::string kernel_compile(const std::string &name, const std::string &prelude);

/* Compiles it if its turn is this process's share, for later ones to find. */
void kernel_prepare(const std::string &name, const std::string &prelude);

struct kernel {
    cudaKernel_t function = nullptr;
    sf_cuda_launch launch = {};
};
/* Compiles if need be and loads; sized reads its sf_cuda_launch. Lives until the process ends. */
kernel kernel_load(const std::string &name, const std::string &prelude, bool sized);

/* Queues it; grid 0: the kernel's own. */
void kernel_launch(const kernel &k, const sf_cuda_args &a, int grid, bool pdl, cudaStream_t stream);

/* The maps of a bf16 buffer [rows, k] (tensor_maps.h), in device memory. */
void *tensor_maps(const void *buffer, int rows, int k);

#endif
