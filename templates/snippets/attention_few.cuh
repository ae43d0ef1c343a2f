/* A tile of KV against the few query slots of attention_decode.cuh: what four warps do with it. */
#ifndef SF_SNIPPETS_ATTENTION_FEW_CUH
#define SF_SNIPPETS_ATTENTION_FEW_CUH

#include "snippets/attention.cuh"
#include "snippets/fragment.cuh"
#include "snippets/mbarrier.cuh"
#include "snippets/softmax.cuh"

enum {
    SLOTS = 16 * MT,
    TILE_ROWS = SLOTS / GROUP,
    WARPS = 4,
    K_STEPS = HEAD_DIM / 16,
    OWN_DIMS = HEAD_DIM / WARPS,
    OWN_TILES = OWN_DIMS / 8,
    PREFETCH = 2 * STAGES, /* tiles */
    P_STRIDE = PAGE * 2 + 16 /* bytes; rows shift by four banks */
};
static_assert(TILE_ROWS >= 1, "a tile holds the heads of one row at least");
static_assert(HEADS * HEAD_DIM % 8 == 0, "whole pieces of 16 bytes");

struct shared_t {
    char kv[STAGES][KV_HEAD_BYTES]; /* K, V */
    char p[SLOTS * P_STRIDE];
    float tile_max[WARPS][SLOTS];
    float sum[WARPS][SLOTS][4];
    unsigned long long full[STAGES], empty[STAGES];
    int last;
};

/* Slot m holds row m / GROUP of the tile with head m % GROUP of the KV head's. */
struct slots_t {
    const att_work *w;
    __device__ __forceinline__ bool used(int m) const { return m < w->rows * GROUP; }
    __device__ __forceinline__ int row(int m) const { return w->row + m / GROUP; }
    __device__ __forceinline__ int head(int m) const { return w->kv_head * GROUP + m % GROUP; }
    /* The last key that a slot sees; unused slots see all: their queries are 0. */
    __device__ __forceinline__ int limit(int m) const { return used(m) ? w->pos + m / GROUP : 0x7fffffff; }
};

__device__ __forceinline__ void load_queries(const sf_cuda_args &a, const slots_t &slots, unsigned (*q)[K_STEPS][4]) {
    const int lane = (int)(threadIdx.x & 31);
#pragma unroll
    for (int half = 0; half < 2 * MT; half++) {
        const int m = half * 8 + lane / 4;
        const unsigned *from =
            (const unsigned *)a.in + ((size_t)slots.row(m) * HEADS + slots.head(m)) * (HEAD_DIM / 2) + lane % 4;
        const bool used = slots.used(m);
#pragma unroll
        for (int k = 0; k < K_STEPS; k++) {
            q[half / 2][k][half % 2] = used ? from[k * 8] : 0u;
            q[half / 2][k][half % 2 + 2] = used ? from[k * 8 + 4] : 0u;
        }
    }
}

/* This warp's 16 keys of a tile: c[mt][key / 8][4]. */
__device__ __forceinline__ void scores(unsigned kv, int warp, unsigned (*q)[K_STEPS][4], float (*c)[2][4]) {
    const int lane = (int)(threadIdx.x & 31), key = warp * 16 + (lane >> 4) * 8 + (lane & 7);
#pragma unroll
    for (int mt = 0; mt < MT; mt++)
#pragma unroll
        for (int i = 0; i < 8; i++)
            c[mt][i / 4][i % 4] = 0.0f;
#pragma unroll
    for (int k = 0; k < K_STEPS; k++) {
        unsigned b[4];
        frag_load(b, kv + (unsigned)kv_chunk(key, 2 * k + (lane >> 3 & 1)));
#pragma unroll
        for (int mt = 0; mt < MT; mt++) {
            frag_mma(c[mt][0], q[mt][k], b);
            frag_mma(c[mt][1], q[mt][k], b + 2);
        }
    }
}

__device__ __forceinline__ void mask(const slots_t &slots, int first_key, float (*c)[2][4]) {
    const int lane = (int)(threadIdx.x & 31);
#pragma unroll
    for (int mt = 0; mt < MT; mt++)
#pragma unroll
        for (int i = 0; i < 8; i++) {
            const int key = first_key + (i / 4) * 8 + (lane % 4) * 2 + (i & 1);
            if (key > slots.limit(mt * 16 + lane / 4 + (i & 2) * 4)) c[mt][i / 4][i % 4] = -SF_INF;
        }
}

/* What a warp holds of a chunk: for slot half h (8 slots each), its maximum, its sum's part, its values. */
struct state_t {
    row_max max[2 * MT];
    float sum[2 * MT];
    float o[MT][OWN_TILES][4];
};

__device__ __forceinline__ void chunk_begin(state_t *st) {
#pragma unroll
    for (int h = 0; h < 2 * MT; h++) {
        st->max[h] = row_max();
        st->sum[h] = 0.0f;
    }
#pragma unroll
    for (int i = 0; i < MT * OWN_TILES * 4; i++)
        st->o[i / (OWN_TILES * 4)][i / 4 % OWN_TILES][i % 4] = 0.0f;
}

/* Scores to weights: p in shared memory as bf16, the sum's parts, and what was there before scaled. */
__device__ __forceinline__ void weigh(shared_t *s, int warp, float (*c)[2][4], state_t *st) {
    const int lane = (int)(threadIdx.x & 31);
#pragma unroll
    for (int h = 0; h < 2 * MT; h++) {
        const float *e = c[h / 2][0] + h % 2 * 2, *f = c[h / 2][1] + h % 2 * 2;
        const float top = quad_max(fmaxf(fmaxf(e[0], e[1]), fmaxf(f[0], f[1])));
        if (lane % 4 == 0) s->tile_max[warp][h * 8 + lane / 4] = top;
    }
    group_sync(1, WARPS * 32);
#pragma unroll
    for (int h = 0; h < 2 * MT; h++) {
        const int m = h * 8 + lane / 4;
        const float top = fmaxf(fmaxf(s->tile_max[0][m], s->tile_max[1][m]), fmaxf(s->tile_max[2][m], s->tile_max[3][m]));
        const float scale = st->max[h].update(top);
        float p[4];
#pragma unroll
        for (int i = 0; i < 4; i++)
            p[i] = st->max[h].weight(c[h / 2][i / 2][h % 2 * 2 + i % 2]);
        st->sum[h] = __fmaf_rn(st->sum[h], scale, sum_part(p[0], p[1], p[2], p[3]));
        unsigned *to = (unsigned *)(s->p + m * P_STRIDE + warp * 32 + lane % 4 * 4);
        to[0] = bf16_pair(p[0], p[1]);
        to[4] = bf16_pair(p[2], p[3]);
#pragma unroll
        for (int t = 0; t < OWN_TILES; t++) {
            float *o = st->o[h / 2][t] + h % 2 * 2;
            o[0] = __fmul_rn(o[0], scale);
            o[1] = __fmul_rn(o[1], scale);
        }
    }
    group_sync(1, WARPS * 32);
}

/* o += p V for this warp's dims; keys beyond `steps` steps have no weight. */
__device__ __forceinline__ void add_values(shared_t *s, unsigned v, int warp, int steps, state_t *st) {
    const int lane = (int)(threadIdx.x & 31);
    const unsigned p = smem_at(s->p) + (unsigned)((lane & 15) * P_STRIDE + (lane >> 4) * 16);
#pragma unroll
    for (int k = 0; k < PAGE / 16; k++) {
        if (k >= steps) break;
        unsigned b[OWN_TILES / 2][4];
#pragma unroll
        for (int t = 0; t < OWN_TILES / 2; t++)
            frag_load_trans(b[t], v + (unsigned)kv_chunk(k * 16 + (lane & 15), warp * OWN_TILES + t * 2 + (lane >> 4)));
#pragma unroll
        for (int mt = 0; mt < MT; mt++) {
            unsigned w[4];
            frag_load(w, p + (unsigned)(mt * 16 * P_STRIDE + k * 32));
#pragma unroll
            for (int t = 0; t < OWN_TILES; t++)
                frag_mma(st->o[mt][t], w, b[t / 2] + t % 2 * 2);
        }
    }
}

/* A chunk's sum over its 16 parts; every warp gets it. */
__device__ __forceinline__ void chunk_end(shared_t *s, int warp, state_t *st) {
    const int lane = (int)(threadIdx.x & 31);
#pragma unroll
    for (int h = 0; h < 2 * MT; h++)
        s->sum[warp][h * 8 + lane / 4][lane % 4] = st->sum[h];
    group_sync(1, WARPS * 32);
#pragma unroll
    for (int h = 0; h < 2 * MT; h++) {
        const int m = h * 8 + lane / 4, q = lane % 4;
        st->sum[h] = quad_sum(__fadd_rn(__fadd_rn(s->sum[0][m][q], s->sum[1][m][q]),
                                        __fadd_rn(s->sum[2][m][q], s->sum[3][m][q])));
    }
}

#endif
