//@ template gemm_few
//@ op gemm
//@ backend cuda
//@ class both
//@ rows 1..32
//@ name r${ROWS}t${T}
//@ order: k ascending
//@ param T    int = 1 in 1..8 from op.tile
//@ param N    int = 16 in 1..1048576 from op.n
//@ param ROWS int = 8 in 8..32 from bucket.rows
//@ prelude
#ifndef KERNEL_NAME
#define KERNEL_NAME   gemm_few_default
#define KERNEL_LAUNCH gemm_few_default_launch
#endif
enum { T = 1, N = 16, ROWS = 8 };
//@ end
#include "snippets/ring.cuh"

extern "C" __device__ const sf_cuda_launch KERNEL_LAUNCH = {ring(N), T, ROWS};

extern "C" __global__ void KERNEL_NAME(sf_cuda_args a) {
    (void)a;
}
