#include "device/cuda/draw.h"

sf_code sf_cuda_draw(const sf_gpu *gpu, const sf_cuda_kernel *k, CUstream stream, const sf_wdraw *what,
                     size_t first, size_t bytes, CUdeviceptr to, sf_err *err) {
    sf_wdraw copy = *what;
    unsigned long long from = first / 16, count = bytes / 16, out = to;
    void *params[] = {&copy, &from, &count, &out};
    sf_cuda_kernel sized = *k;
    sized.launch.grid = (int)((count + (unsigned)k->launch.threads - 1) / (unsigned)k->launch.threads);
    return sf_cuda_kernel_queue(gpu, &sized, stream, params, err);
}
