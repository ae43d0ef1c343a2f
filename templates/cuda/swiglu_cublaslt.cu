//@ template swiglu_cublaslt
//@ op gemm
//@ backend cuda
//@ class fast
//@ rows 1..
//@ name swiglu
//@ library cublaslt swiglu
//@ order: each value by itself
//@ param N   int = 28672 in 16..1048576 from op.n
//@ param SMS int = 132 in 1..1024 from config.sms
//@ prelude
#ifndef KERNEL_NAME
#define KERNEL_NAME   swiglu_cublaslt_default
#define KERNEL_LAUNCH swiglu_cublaslt_default_launch
#endif
enum { N = 28672, SMS = 132 };
//@ end
#include "snippets/block.cuh"
#include "snippets/gemm_out.cuh"

/* A product that cuBLASLt left as bf16 [rows, N] (args.in), 8 gates and their 8 ups by turns as the packed weight has its
 * rows, to bf16 [rows, N / 2] (args.out). A thread makes eight values, 16 bytes, at a time. */
static_assert(N % 16 == 0, "whole eights of both");

constexpr int EIGHTS = N / 16, BLOCK_THREADS = 256;

extern "C" __device__ const sf_cuda_launch KERNEL_LAUNCH = {SMS * 8, BLOCK_THREADS, 0, 1, 0, 0, 0};

__device__ __forceinline__ unsigned both(unsigned gates, unsigned ups) {
    return bf16_pair(swiglu(bf16_float(gates), bf16_float(ups)), swiglu(bf16_float(gates >> 16), bf16_float(ups >> 16)));
}

extern "C" __global__ void __launch_bounds__(BLOCK_THREADS) KERNEL_NAME(sf_cuda_args a) {
    pass_release();
    pass_wait();
    const uint4 *from = (const uint4 *)a.in;
    uint4 *to = (uint4 *)a.out;
    const size_t count = (size_t)a.block->rows * EIGHTS;
    for (size_t i = blockIdx.x * (size_t)BLOCK_THREADS + threadIdx.x; i < count; i += (size_t)gridDim.x * BLOCK_THREADS) {
        const uint4 g = from[2 * i], u = from[2 * i + 1];
        to[i] = make_uint4(both(g.x, u.x), both(g.y, u.y), both(g.z, u.z), both(g.w, u.w));
    }
}
