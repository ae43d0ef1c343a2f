/* The body of attention for few rows: memory is the limit. Four warps share 16 MT query slots (rows x heads of one KV
 * head), each with a quarter of a tile's keys in Q K^T and a quarter of the dims in P V, so no warp splits a sum; a fifth
 * fetches tiles. Where chunks are items of their own, the last block to finish a tile's chunks folds them, in ascending
 * order. Blocks of 160 threads; a.extra: att_partials.
 *
 * Before it a kernel defines, from its prelude, MAX_CHUNKS of a row and FOLD, the chunks that a fold reads at a time. */
#ifndef SF_SNIPPETS_ATTENTION_DECODE_CUH
#define SF_SNIPPETS_ATTENTION_DECODE_CUH

#include "snippets/attention_few.cuh"

static_assert(MT >= 1 && MAX_CHUNKS >= 1, "whole tiles");

using cursor_t = att_cursor<TILE_ROWS, 1, TO_ROWS>;
using place_t = ring_place<STAGES>;
using partials_t = att_partials<SPLIT_ROWS, MAX_CHUNKS>;

/* A tile's valid rows, in whole steps of 16: nothing beyond is read. */
__device__ __forceinline__ int tile_steps(const att_work &w, int tile) {
    return min(PAGE / 16, (w.keys() - tile * PAGE + 15) / 16);
}

__device__ __forceinline__ void fetch_tile(shared_t *s, int stage, char *from, int steps) {
    const unsigned bar = smem_at(&s->full[stage]), to = smem_at(s->kv[stage]);
    mbar_expect(bar, steps * (KV_HEAD_BYTES / 4));
    if (steps == PAGE / 16) {
        bulk_load(to, from, KV_HEAD_BYTES, bar);
        return;
    }
    for (int at = 0; at < KV_HEAD_BYTES; at += KV_HALF_BYTES)
        bulk_load(to + at, from + at, steps * 2048, bar);
}

__device__ __forceinline__ void produce(const sf_cuda_args &a, shared_t *s, cursor_t cursor) {
    const int lane = (int)(threadIdx.x & 31);
    place_t at;
    int filled = 0;
    for (int item = (int)blockIdx.x; cursor.seek(item); item += (int)gridDim.x) {
        att_work w;
        if (!cursor.work(item, &w)) continue;
        int page = 0;
        if (item == (int)blockIdx.x) { /* while earlier kernels end */
            const int tile = w.first_tile() + lane;
            if (lane < PREFETCH && tile < w.end_tile())
                bulk_prefetch(kv_head_at(a.kv, w.pages[tile], w.kv_head), KV_HEAD_BYTES);
        }
        pass_wait();
        for (int tile = w.first_tile(), n = 0; tile < w.end_tile(); tile++, n++) {
            if (n % 32 == 0 && tile + lane < w.end_tile()) page = w.pages[tile + lane];
            const int own = __shfl_sync(0xffffffffu, page, n % 32);
            if (lane == 0) {
                if (filled >= STAGES) mbar_wait(smem_at(&s->empty[at.stage]), at.turn ^ 1);
                fetch_tile(s, at.stage, kv_head_at(a.kv, own, w.kv_head), tile_steps(w, tile));
            }
            filled++;
            at.next();
            __syncwarp();
        }
    }
}

__device__ __forceinline__ void chunk_run(shared_t *s, const att_work &w, int chunk, unsigned (*q)[K_STEPS][4],
                                          place_t *at, state_t *st) {
    const int warp = (int)(threadIdx.x / 32), lane = (int)(threadIdx.x & 31);
    const slots_t slots = {&w};
    const int end = min((chunk + 1) * w.chunk_tiles, w.end_tile());
    chunk_begin(st);
    for (int tile = chunk * w.chunk_tiles; tile < end; tile++) {
        float c[MT][2][4];
        const unsigned kv = smem_at(s->kv[at->stage]);
        mbar_wait(smem_at(&s->full[at->stage]), at->turn);
        scores(kv, warp, q, c);
        if (tile * PAGE + PAGE - 1 > w.pos) mask(slots, tile * PAGE + warp * 16, c);
        weigh(s, warp, c, st);
        add_values(s, kv + KV_TILE_BYTES, warp, tile_steps(w, tile), st);
        __syncwarp();
        if (lane == 0) mbar_arrive(smem_at(&s->empty[at->stage]));
        at->next();
    }
    chunk_end(s, warp, st);
}

/* ---- results ---- */

__device__ __forceinline__ void fold_state(state_t *total, const state_t *st) {
#pragma unroll
    for (int h = 0; h < 2 * MT; h++) {
        const fold_scale f = fold_chunk(&total->max[h].max, &total->sum[h], st->max[h].max, st->sum[h]);
#pragma unroll
        for (int t = 0; t < OWN_TILES; t++) {
            float *o = total->o[h / 2][t] + h % 2 * 2;
            const float *c = st->o[h / 2][t] + h % 2 * 2;
            o[0] = fold_value(f, o[0], c[0]);
            o[1] = fold_value(f, o[1], c[1]);
        }
    }
}

__device__ __forceinline__ void store_result(const sf_cuda_args &a, const att_work &w, const state_t &st) {
    const int warp = (int)(threadIdx.x / 32), lane = (int)(threadIdx.x & 31);
    const slots_t slots = {&w};
#pragma unroll
    for (int h = 0; h < 2 * MT; h++) {
        const int m = h * 8 + lane / 4;
        if (!slots.used(m)) continue;
        const float inverse = fold_inverse(st.sum[h]);
        unsigned *to = (unsigned *)a.out + ((size_t)slots.row(m) * HEADS + slots.head(m)) * (HEAD_DIM / 2) +
                       warp * (OWN_DIMS / 2) + lane % 4;
#pragma unroll
        for (int t = 0; t < OWN_TILES; t++) {
            const float *o = st.o[h / 2][t] + h % 2 * 2;
            to[t * 4] = bf16_pair(__fmul_rn(o[0], inverse), __fmul_rn(o[1], inverse));
        }
    }
}

__device__ __forceinline__ void store_partial(const sf_cuda_args &a, const att_work &w, const state_t &st) {
    const int warp = (int)(threadIdx.x / 32), lane = (int)(threadIdx.x & 31);
    const slots_t slots = {&w};
    const partials_t parts = {a.extra};
#pragma unroll
    for (int h = 0; h < 2 * MT; h++) {
        const int m = h * 8 + lane / 4;
        if (!slots.used(m)) continue;
        const size_t i = parts.index(slots.row(m), slots.head(m), w.chunk);
        if (warp == 0 && lane % 4 == 0) *parts.stats(i) = make_float2(st.max[h].max, st.sum[h]);
        float2 *to = (float2 *)parts.values(i) + warp * (OWN_DIMS / 2) + lane % 4;
#pragma unroll
        for (int t = 0; t < OWN_TILES; t++)
            to[t * 4] = make_float2(st.o[h / 2][t][h % 2 * 2], st.o[h / 2][t][h % 2 * 2 + 1]);
    }
}

/* Counts this chunk in; true for the block that completes the tile: it sees all chunks. */
__device__ __forceinline__ bool arrive_last(const sf_cuda_args &a, shared_t *s, const att_work &w) {
    const partials_t parts = {a.extra};
    group_sync(1, WARPS * 32);
    if (threadIdx.x == 0) { /* releases what the block wrote, acquires what the others did */
        unsigned *count = parts.arrivals(w.row, w.kv_head), before;
        asm volatile("atom.add.acq_rel.gpu.global.u32 %0, [%1], 1;" : "=r"(before) : "l"(count) : "memory");
        s->last = before + 1u == (unsigned)w.chunks;
        if (s->last) *count = 0; /* for the next launch */
    }
    group_sync(1, WARPS * 32);
    return s->last != 0;
}

__device__ __forceinline__ void fold_partials(const sf_cuda_args &a, const att_work &w) {
    const partials_t parts = {a.extra};
    const slots_t slots = {&w};
    enum { QUADS = HEAD_DIM / 4 };
    for (int i = (int)threadIdx.x; i < w.rows * GROUP * QUADS; i += WARPS * 32) {
        const int m = i / QUADS, quad = i % QUADS;
        const size_t first = parts.index(slots.row(m), slots.head(m), 0);
        const float4 *from = (const float4 *)parts.values(first) + quad;
        float2 total = make_float2(-SF_INF, 0.0f);
        float4 o = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
#pragma unroll FOLD
        for (int c = 0; c < w.chunks; c++) {
            const float2 stats = __ldcg(parts.stats(first) + c);
            const float4 v = __ldcg(from + c * QUADS);
            const fold_scale f = fold_chunk(&total.x, &total.y, stats.x, stats.y);
            o.x = fold_value(f, o.x, v.x);
            o.y = fold_value(f, o.y, v.y);
            o.z = fold_value(f, o.z, v.z);
            o.w = fold_value(f, o.w, v.w);
        }
        const float inverse = fold_inverse(total.y);
        uint2 *to = (uint2 *)a.out + ((size_t)slots.row(m) * HEADS + slots.head(m)) * QUADS + quad;
        *to = make_uint2(bf16_pair(__fmul_rn(o.x, inverse), __fmul_rn(o.y, inverse)),
                         bf16_pair(__fmul_rn(o.z, inverse), __fmul_rn(o.w, inverse)));
    }
}

__device__ __forceinline__ void consume(const sf_cuda_args &a, shared_t *s, cursor_t cursor) {
    place_t at;
    for (int item = (int)blockIdx.x; cursor.seek(item); item += (int)gridDim.x) {
        att_work w;
        unsigned q[MT][K_STEPS][4];
        state_t st, total;
        if (!cursor.work(item, &w)) continue;
        pass_wait();
        load_queries(a, slots_t{&w}, q);
        if (w.end_chunk - w.chunk < w.chunks) {
            chunk_run(s, w, w.chunk, q, &at, &st);
            store_partial(a, w, st);
            if (arrive_last(a, s, w)) fold_partials(a, w);
            continue;
        }
        chunk_begin(&total);
        for (int chunk = 0; chunk < w.chunks; chunk++) {
            chunk_run(s, w, chunk, q, &at, &st);
            fold_state(&total, &st);
        }
        store_result(a, w, total);
    }
}

/* cut_of(block): how this pass's KV is cut; all warps alike. */
template <class CUT> __device__ __forceinline__ void decode(const sf_cuda_args &a, CUT cut_of) {
    extern __shared__ __align__(1024) char raw[];
    shared_t *s = (shared_t *)raw;
    pass_release();
    if (threadIdx.x == 0) {
        for (int i = 0; i < STAGES; i++) {
            mbar_init(smem_at(&s->full[i]), 1);
            mbar_init(smem_at(&s->empty[i]), WARPS);
        }
        mbar_init_done();
    }
    const cursor_t cursor(a.block, cut_of(a.block));
    __syncthreads();
    if (threadIdx.x >= WARPS * 32)
        produce(a, s, cursor);
    else
        consume(a, s, cursor);
    pass_wait(); /* blocks without work too: the next kernel relies on all earlier ones */
}

#endif
