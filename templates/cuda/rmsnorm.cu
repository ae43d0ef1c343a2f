//@ template rmsnorm_cuda
//@ op rmsnorm
//@ backend cuda
//@ class both
//@ rows 1..
//@ name
//@ order: squares into 1024 sums by index mod 1024, ascending, then pairs, lanes and warps in a fixed tree; independent of rows and grid
//@ param K      int = 4096 in 4..1048576 from op.k
//@ param GATHER int = 0 in 0..1 from op.input_rows
//@ param EPS    float = 1e-5 in 0..1 from model.norm_eps
//@ param GRID   int = 264 in 1..65536
//@ prelude
#ifndef KERNEL_NAME
#define KERNEL_NAME   rmsnorm_cuda_default
#define KERNEL_LAUNCH rmsnorm_cuda_default_launch
#endif
enum { K = 4096, GATHER = 0, GRID = 264 };
static const float EPS = 1e-5f;
//@ end
#include "snippets/block.cuh"
#include "snippets/math.cuh"

/* y = x / sqrt(mean(x^2) + eps) * weight (Zhang and Sennrich, 2019): x fp32 [rows, K] (a.in), y bf16 (a.out), weight fp32
 * [K]. A block of 256 threads takes rows blockIdx.x, + gridDim.x ...; GATHER: rows are the pass's logit rows. */
static_assert(K % 4 == 0, "loads of four values");

enum { THREADS = 256, OWN = (K + 4 * THREADS - 1) / (4 * THREADS) };

/* Sum over the block of each thread's four sums. Every thread gets it. */
__device__ __forceinline__ float block_sum(float4 own, float *warps) {
    float v = __fadd_rn(__fadd_rn(own.x, own.y), __fadd_rn(own.z, own.w));
    for (int d = 1; d < 32; d *= 2)
        v = __fadd_rn(v, __shfl_xor_sync(0xffffffffu, v, d));
    __syncthreads(); /* the row before has been read */
    if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = v;
    __syncthreads();
    return __fadd_rn(__fadd_rn(__fadd_rn(warps[0], warps[1]), __fadd_rn(warps[2], warps[3])),
                     __fadd_rn(__fadd_rn(warps[4], warps[5]), __fadd_rn(warps[6], warps[7])));
}

extern "C" __device__ const sf_cuda_launch KERNEL_LAUNCH = {GRID, THREADS, 0, 1, 0, 1, 0};

extern "C" __global__ void __launch_bounds__(THREADS) KERNEL_NAME(sf_cuda_args a) {
    __shared__ float warps[THREADS / 32];
    const int rows = GATHER ? a.block->n_logits : a.block->rows;
    const int *gather = block_ints(a.block, a.block->logit_rows);
    pass_release();
    pass_wait();
    for (int row = (int)blockIdx.x; row < rows; row += (int)gridDim.x) {
        const float *x = (const float *)a.in + (size_t)(GATHER ? gather[row] : row) * K;
        float4 own[OWN], sum = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
#pragma unroll
        for (int j = 0; j < OWN; j++) {
            const int k = ((int)threadIdx.x + j * THREADS) * 4;
            own[j] = k < K ? *(const float4 *)(x + k) : make_float4(0.0f, 0.0f, 0.0f, 0.0f);
            sum.x = __fmaf_rn(own[j].x, own[j].x, sum.x);
            sum.y = __fmaf_rn(own[j].y, own[j].y, sum.y);
            sum.z = __fmaf_rn(own[j].z, own[j].z, sum.z);
            sum.w = __fmaf_rn(own[j].w, own[j].w, sum.w);
        }
        const float mean = __fdiv_rn(block_sum(sum, warps), (float)K);
        const float scale = __fdiv_rn(1.0f, __fsqrt_rn(__fadd_rn(mean, EPS)));
#pragma unroll
        for (int j = 0; j < OWN; j++) {
            const int k = ((int)threadIdx.x + j * THREADS) * 4;
            if (k >= K) break;
            const float4 w = *(const float4 *)((const float *)a.weight + k);
            *(uint2 *)((unsigned short *)a.out + (size_t)row * K + k) =
                make_uint2(bf16_pair(__fmul_rn(__fmul_rn(own[j].x, scale), w.x), __fmul_rn(__fmul_rn(own[j].y, scale), w.y)),
                           bf16_pair(__fmul_rn(__fmul_rn(own[j].z, scale), w.z), __fmul_rn(__fmul_rn(own[j].w, scale), w.w)));
        }
    }
}
