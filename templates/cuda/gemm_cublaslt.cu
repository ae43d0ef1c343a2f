//@ template gemm_cublaslt
//@ op gemm
//@ backend cuda
//@ class fast
//@ rows 257..
//@ name rowmajor
//@ library cublaslt weight
//@ order: cuBLASLt's, which follows the whole shape and its version; this kernel moves values, and adds none
//@ param N        int = 6144 in 1..1048576 from op.n
//@ param K        int = 4096 in 8..1048576 from op.k
//@ param T        int = 3 in 1..16 from op.tile
//@ prelude
#ifndef KERNEL_NAME
#define KERNEL_NAME   gemm_cublaslt_default
#define KERNEL_LAUNCH gemm_cublaslt_default_launch
#endif
enum { N = 6144, K = 4096, T = 3 };
//@ end
#include "device/cuda/pass_block.h"
#include "snippets/gemm_weight.cuh"

/* The weight as cuBLASLt reads it: packed fragments (args.in) to row-major bf16 [N, K] (args.out), in the order of the
 * packed rows. Run once a layer, when the engine starts; the products themselves are the library's. A thread moves one
 * lane's fragments at a time. */
using shape = weight_shape<weight_bf16, N, K, T>;
static_assert(K % 8 == 0, "pairs of k are whole");

constexpr int STEPS = shape::BLOCKS * 4, BLOCK_THREADS = 256;
constexpr size_t COUNT = (size_t)shape::GROUPS * STEPS * T * 32, SHARE = (COUNT + BLOCK_THREADS - 1) / BLOCK_THREADS;

extern "C" __device__ const sf_cuda_launch KERNEL_LAUNCH = {SHARE < 4096 ? (int)SHARE : 4096, BLOCK_THREADS, 0, 0, 0, 0, 0};

__device__ __forceinline__ void put(unsigned short *to, int row, int k, unsigned pair) {
    if (row < N && k < K) *(unsigned *)(to + (size_t)row * K + k) = pair;
}

extern "C" __global__ void __launch_bounds__(BLOCK_THREADS) KERNEL_NAME(sf_cuda_args a) {
    const uint4 *from = (const uint4 *)a.in;
    unsigned short *to = (unsigned short *)a.out;
    for (size_t i = blockIdx.x * (size_t)BLOCK_THREADS + threadIdx.x; i < COUNT; i += (size_t)gridDim.x * BLOCK_THREADS) {
        const int lane = i % 32, tile = (int)(i / ((size_t)32 * T * STEPS)) * T + (int)(i / 32 % T);
        const int row = tile * 16 + lane / 4, k = (int)(i / (32 * T) % STEPS) * 16 + lane % 4 * 2;
        const uint4 v = from[i];
        put(to, row, k, v.x);
        put(to, row + 8, k, v.y);
        put(to, row, k + 8, v.z);
        put(to, row + 8, k + 8, v.w);
    }
}
