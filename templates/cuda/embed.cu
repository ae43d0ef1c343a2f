//@ template embed_cuda
//@ op embed
//@ backend cuda
//@ class both
//@ rows 1..
//@ name
//@ order: none, a copy
//@ param DIM  int = 4096 in 8..1048576 from model.hidden
//@ param T    int = 7 in 1..16 from op.tile
//@ param GRID int = 264 in 1..65536
//@ prelude
#ifndef KERNEL_NAME
#define KERNEL_NAME   embed_cuda_default
#define KERNEL_LAUNCH embed_cuda_default_launch
#endif
enum { DIM = 4096, T = 7, GRID = 264 };
//@ end
#include "snippets/block.cuh"
#include "snippets/gemm_weight.cuh"
#include "snippets/math.cuh"

/* a.extra: int [n], the tokens that the pass before drew; a row's token -(1 + i) is the i-th of them (-1 for a row whose
 * logits were bad: its request ends, so any token will do).
 * A block of 256 threads copies rows blockIdx.x, + gridDim.x ... of the bf16 table (a.weight) to fp32 (a.out). The
 * table is packed as the products' weights are (snippets/gemm_weight.cuh), so that a tied head is the same memory:
 * groups of T tiles of 16 rows, in a group [DIM / 16, padded to blocks of 4][T] fragments, [32 lanes][8] each. */
static_assert(DIM % 2 == 0, "loads of two values");

/* Index of element (token, k) with k even; k + 1 follows. */
__device__ __forceinline__ size_t packed_at(int token, int k) {
    const int tile = token / 16, m = token % 16, step = k / 16, kk = k % 16;
    const size_t fragment = ((size_t)(tile / T) * (blocks_of_k(DIM) * 4) + step) * T + tile % T;
    return fragment * 256 + (m % 8 * 4 + kk % 8 / 2) * 8 + (m / 8 + kk / 8 * 2) * 2;
}

__device__ __forceinline__ int token_of(int token, const int *drawn) {
    return token >= 0 ? token : max(drawn[-1 - token], 0);
}

extern "C" __device__ const sf_cuda_launch KERNEL_LAUNCH = {GRID, 256, 0, 1, 0, 1, 0};

extern "C" __global__ void __launch_bounds__(256) KERNEL_NAME(sf_cuda_args a) {
    const int *tokens = block_ints(a.block, a.block->tokens);
    pass_release();
    pass_wait(); /* the sampler of the pass before may have drawn the tokens */
    for (int row = (int)blockIdx.x; row < a.block->rows; row += (int)gridDim.x) {
        const int token = token_of(tokens[row], (const int *)a.extra);
        float *x = (float *)a.out + (size_t)row * DIM;
        for (int k = (int)threadIdx.x * 2; k < DIM; k += 512) {
            const unsigned v = *(const unsigned *)((const unsigned short *)a.weight + packed_at(token, k));
            *(float2 *)(x + k) = make_float2(bf16_float(v & 0xffffu), bf16_float(v >> 16));
        }
    }
}
