/* Random weights drawn where they shall lie, by a kernel that is no part of the plan. */
#ifndef SF_DEVICE_CUDA_DRAW_H
#define SF_DEVICE_CUDA_DRAW_H

#include "device/cuda/module.h"
#include "device/cuda/nvrtc.h"
#include "model/weights_draw.h"

/* The kernel's source and what it includes (device/cuda/embed.cmake). */
extern const sf_cuda_source sf_cuda_draw_source;
#define SF_CUDA_DRAW_HEADERS 6
extern const sf_cuda_header sf_cuda_draw_headers[SF_CUDA_DRAW_HEADERS];

/* Queues drawing in a stream: `bytes` bytes of an instance from its byte `first` on, both multiples of 16, to
 * device memory at `to`. Errors: those of sf_cu_check. */
SF_CHECKED sf_code sf_cuda_draw(const sf_gpu *gpu, const sf_cuda_kernel *k, CUstream stream,
                                const sf_wdraw *what, size_t first, size_t bytes, CUdeviceptr to,
                                sf_err *err);

#endif
