//@ template gemm_draft
//@ op gemm
//@ backend cuda
//@ class fast
//@ rows 1..8
//@ name d${T}
//@ order: free
//@ param T    int = 1 in 1..8 from op.tile
//@ param N    int = 16 in 1..1048576 from op.n
//@ prelude
#ifndef KERNEL_NAME
#define KERNEL_NAME   gemm_draft_default
#define KERNEL_LAUNCH gemm_draft_default_launch
#endif
enum { T = 1, N = 16 };
//@ end
#include "snippets/draft.cuh"

extern "C" __device__ const sf_cuda_launch KERNEL_LAUNCH = {draft(N), T};

extern "C" __global__ void KERNEL_NAME(sf_cuda_args a) {
    (void)a;
}
