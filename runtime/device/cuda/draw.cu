/* Random weights (model/weights_draw.h), a thread 16 bytes: those from `first` on, in 16 bytes, of an instance. */
#include "device/cuda/pass_block.h"
#include "model/weights_draw.h"

extern "C" __device__ const sf_cuda_launch draw_launch = {1, 256, 0, 0, 0, 0, 0};

extern "C" __global__ void __launch_bounds__(256) draw(sf_wdraw d, unsigned long long first, unsigned long long count,
                                                       uint4 *out) {
    const unsigned long long i = blockIdx.x * 256ull + threadIdx.x;
    uint32_t v[4];
    if (i >= count) return;
    sf_wdraw_lane(&d, first + i, v);
    out[i] = make_uint4(v[0], v[1], v[2], v[3]);
}
