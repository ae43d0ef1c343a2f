/* Softmax over the scores of wgmma: what a thread holds of two of its warp's 16 query slots, 8 apart. Scores and weights of a
 * tile c[4 j + 2 r + i]: slot r, key 8 j + 2 (lane % 4) + i. */
#ifndef SF_SNIPPETS_ATTENTION_SLOTS_CUH
#define SF_SNIPPETS_ATTENTION_SLOTS_CUH

#include "snippets/kv.cuh"
#include "snippets/softmax.cuh"

/* What a thread holds of a chunk: two slots' (8 apart) maximum, the 4 parts of their sums that are this lane's, and
 * values o[4 j + 2 r + i]: slot r, dim 8 j + 2 (lane % 4) + i. */
struct state_t {
    row_max max[2];
    float sum[2][4];
    float o[HEAD_DIM / 2];
};

__device__ __forceinline__ void chunk_begin(state_t *st) {
#pragma unroll
    for (int r = 0; r < 2; r++) {
        st->max[r] = row_max();
#pragma unroll
        for (int w = 0; w < 4; w++)
            st->sum[r][w] = 0.0f;
    }
#pragma unroll
    for (int i = 0; i < HEAD_DIM / 2; i++)
        st->o[i] = 0.0f;
}

/* limit[r]: the last key that slot r sees. */
__device__ __forceinline__ void mask(const int *limit, int first_key, float (&c)[32]) {
    const int lane = (int)(threadIdx.x & 31);
#pragma unroll
    for (int i = 0; i < 32; i++) {
        const int key = first_key + i / 4 * 8 + (lane % 4) * 2 + (i & 1);
        if (key > limit[i / 2 % 2]) c[i] = -SF_INF;
    }
}

/* Scores to weights and the sum's parts; scale: of what was there before. */
__device__ __forceinline__ void weigh(float (&c)[32], state_t *st, float (&scale)[2]) {
#pragma unroll
    for (int r = 0; r < 2; r++) {
        float top = -SF_INF;
#pragma unroll
        for (int i = 0; i < 16; i++)
            top = fmaxf(top, c[i / 2 * 4 + r * 2 + i % 2]);
        scale[r] = st->max[r].update(quad_max(top));
#pragma unroll
        for (int k = 0; k < 4; k++) {
            float *e = c + k * 8 + r * 2;
            e[0] = st->max[r].weight(e[0]);
            e[1] = st->max[r].weight(e[1]);
            e[4] = st->max[r].weight(e[4]);
            e[5] = st->max[r].weight(e[5]);
            st->sum[r][k] = __fmaf_rn(st->sum[r][k], scale[r], sum_part(e[0], e[1], e[4], e[5]));
        }
    }
}

/* Weights as A fragments of 16 keys each. No wgmma may be on its way: ptxas would make them wait for one another. */
__device__ __forceinline__ void pack(const float (&c)[32], unsigned (*p)[4]) {
#pragma unroll
    for (int i = 0; i < 16; i++)
        p[i / 4][i % 4] = bf16_pair(c[2 * i], c[2 * i + 1]);
}

/* A scale of 1 changes nothing. */
__device__ __forceinline__ void rescale(state_t *st, const float (&scale)[2]) {
    if (!__any_sync(0xffffffffu, scale[0] != 1.0f || scale[1] != 1.0f)) return;
#pragma unroll
    for (int i = 0; i < HEAD_DIM / 2; i++)
        st->o[i] = __fmul_rn(st->o[i], scale[i / 2 % 2]);
}

/* Of the chunks before: values, maximum and sum of the two slots. */
struct total_t {
    float max[2], sum[2], o[HEAD_DIM / 2];
};

__device__ __forceinline__ void total_begin(total_t *total) {
    total->max[0] = total->max[1] = -SF_INF;
    total->sum[0] = total->sum[1] = 0.0f;
#pragma unroll
    for (int i = 0; i < HEAD_DIM / 2; i++)
        total->o[i] = 0.0f;
}

__device__ __forceinline__ void chunk_end(const state_t &st, total_t *total) {
    fold_scale f[2];
#pragma unroll
    for (int r = 0; r < 2; r++) {
        const float *s = st.sum[r], sum = quad_sum(__fadd_rn(__fadd_rn(s[0], s[1]), __fadd_rn(s[2], s[3])));
        f[r] = fold_chunk(&total->max[r], &total->sum[r], st.max[r].max, sum);
    }
#pragma unroll
    for (int i = 0; i < HEAD_DIM / 2; i++)
        total->o[i] = fold_value(f[i / 2 % 2], total->o[i], st.o[i]);
}

#endif
