/* The arithmetic of pinned attention that both of its kernels share. Scores of a row (one query of one head) come in
 * tiles of 64 keys at absolute positions 64 t. Inside a chunk of CHUNK_TILES tiles:
 *     m' = max(m, tile's scores), scale = 2^((m - m') log2 e), p = 2^(s log2 e - m' log2 e)
 *     l' = l scale + p, o' = o scale + bf16(p) V, keys ascending in steps of 16
 * l is kept in 16 parts, part 4 w + q for keys with key / 16 mod 4 = w and key / 2 mod 4 = q, each of them summed
 * as (p0 + p1) + (p8 + p9) per tile; a chunk's end adds w as (0 + 1) + (2 + 3), then q likewise.
 * Chunks are folded in ascending order by fold_*. A tile or chunk beyond a row's position changes none of its bits:
 * every scale is 1 there and every weight 0. */
#ifndef SF_SNIPPETS_SOFTMAX_CUH
#define SF_SNIPPETS_SOFTMAX_CUH

#include "snippets/math.cuh"

#define SF_LOG2E 1.44269504f

struct row_max {
    float max = -SF_INF;
    float base = 0.0f; /* max log2 e, or 0 while nothing is seen */

    /* Takes in a tile's maximum; returns the scale of what was summed before. */
    __device__ __forceinline__ float update(float tile_max) {
        const float next = fmaxf(max, tile_max);
        const float scale = max == next ? 1.0f : exp2_fast(__fmul_rn(__fsub_rn(max, next), SF_LOG2E));
        max = next;
        base = next == -SF_INF ? 0.0f : __fmul_rn(next, SF_LOG2E);
        return scale;
    }
    __device__ __forceinline__ float weight(float score) const {
        return exp2_fast(__fmaf_rn(score, SF_LOG2E, -base));
    }
};

__device__ __forceinline__ float sum_part(float p0, float p1, float p8, float p9) {
    return __fadd_rn(__fadd_rn(p0, p1), __fadd_rn(p8, p9));
}
/* Over the four lanes that share a row. */
__device__ __forceinline__ float quad_max(float v) {
    v = fmaxf(v, __shfl_xor_sync(0xffffffffu, v, 1));
    return fmaxf(v, __shfl_xor_sync(0xffffffffu, v, 2));
}
__device__ __forceinline__ float quad_sum(float v) {
    v = __fadd_rn(v, __shfl_xor_sync(0xffffffffu, v, 1));
    return __fadd_rn(v, __shfl_xor_sync(0xffffffffu, v, 2));
}

/* How a chunk (m, sum, values) joins what went before it: at first (-inf, 0, 0). */
struct fold_scale {
    float before, chunk;
};
__device__ __forceinline__ fold_scale fold_chunk(float *max, float *sum, float chunk_max, float chunk_sum) {
    const float next = fmaxf(*max, chunk_max);
    fold_scale f;
    f.before = *max == next ? 1.0f : exp2_fast(__fmul_rn(__fsub_rn(*max, next), SF_LOG2E));
    f.chunk = chunk_max == next ? 1.0f : exp2_fast(__fmul_rn(__fsub_rn(chunk_max, next), SF_LOG2E));
    *sum = __fmaf_rn(*sum, f.before, __fmul_rn(chunk_sum, f.chunk));
    *max = next;
    return f;
}
__device__ __forceinline__ float fold_value(fold_scale f, float before, float chunk) {
    return __fmaf_rn(before, f.before, __fmul_rn(chunk, f.chunk));
}
__device__ __forceinline__ float fold_inverse(float sum) {
    return __fdiv_rn(1.0f, sum);
}

#endif
