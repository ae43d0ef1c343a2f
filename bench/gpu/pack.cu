//@ template pack
//@ backend cuda
//@ class both
//@ name bf16
//@ order: none, values are moved
//@ param N          int = 6144 in 1..1048576 from op.n
//@ param K          int = 4096 in 8..1048576 from op.k
//@ param INTERLEAVE int = 0 in 0..1             1: rows 0 .. N/2 are gates, the others their up rows
//@ param T          int = 3 in 1..16
//@ prelude
#ifndef KERNEL_NAME
#define KERNEL_NAME pack_default
#define KERNEL_LAUNCH pack_default_launch
#endif
enum { N = 6144, K = 4096, INTERLEAVE = 0, T = 3 };
//@ end
#include "device/cuda/pass_block.h"
#include "snippets/gemm_weight.cuh"

/* Row-major bf16 [N, K] (args.in) into packed weights (args.out); run once a weight, when it is loaded. A thread makes
 * one lane's fragments in a stride over the grid. */
using shape = weight_shape<weight_bf16, N, K, T>;

/* Source row of a tile's row 0..15, or -1 for padding. */
__device__ __forceinline__ int source_row(int tile, int row) {
    if (!INTERLEAVE) return tile * 16 + row < N ? tile * 16 + row : -1;
    const int feature = tile * 8 + row % 8;
    return feature < N / 2 ? row / 8 * (N / 2) + feature : -1;
}

/* Two values at k, k + 1 of a row, low first; zeros outside the matrix. */
__device__ __forceinline__ unsigned pair(const unsigned short *from, int row, int k) {
    if (row < 0) return 0;
    const unsigned low = k < K ? from[(size_t)row * K + k] : 0, high = k + 1 < K ? from[(size_t)row * K + k + 1] : 0;
    return low | high << 16;
}

extern "C" __device__ const sf_cuda_launch KERNEL_LAUNCH = {1024, 256, 0, 0, 0};

extern "C" __global__ void __launch_bounds__(256) KERNEL_NAME(sf_cuda_args a) {
    const unsigned short *from = (const unsigned short *)a.in;
    uint4 *to = (uint4 *)a.out;
    const size_t count = (size_t)shape::GROUPS * shape::BLOCKS * 4 * T * 32;
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < count; i += (size_t)gridDim.x * blockDim.x) {
        const int lane = i % 32, in_group = i / 32 % T;
        const int step = i / (32 * T) % (shape::BLOCKS * 4), group = i / (32ull * T * shape::BLOCKS * 4);
        const int tile = group * T + in_group, k = step * 16 + lane % 4 * 2;
        const int top = source_row(tile, lane / 4), bottom = source_row(tile, lane / 4 + 8);
        to[i] = make_uint4(pair(from, top, k), pair(from, bottom, k), pair(from, top, k + 8),
                           pair(from, bottom, k + 8));
    }
}
