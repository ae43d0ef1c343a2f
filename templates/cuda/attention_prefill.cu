//@ template attention_prefill
//@ op attention_long
//@ backend cuda
//@ class both
//@ rows 65..
//@ name d${HEAD_DIM}
//@ order: dims ascending in steps of 16; per tile of 64 keys a running maximum, keys ascending in steps of 16; chunks of CHUNK_TILES tiles from position 0 folded in ascending order (snippets/softmax.cuh)
//@ param HEADS       int = 32 in 1..1024 from model.heads
//@ param KV_HEADS    int = 8 in 1..1024 from model.kv_heads
//@ param HEAD_DIM    int = 128 in 64..128 from model.head_dim
//@ param PAGE        int = 64 in 64..64 from config.kv_page
//@ param CONTEXT     int = 8192 in 1..1048576 from config.context
//@ param CHUNK_TILES int = 4 in 1..64
//@ param STAGES      int = 4 in 2..6
//@ param FEW_ROWS    int = 64 in 0..1048576 from config.few_rows   # shorter segments are another kernel's
//@ param GRID        int = 132 in 1..65536
//@ prelude
#ifndef KERNEL_NAME
#define KERNEL_NAME   attention_prefill_default
#define KERNEL_LAUNCH attention_prefill_default_launch
#endif
enum { HEADS = 32, KV_HEADS = 8, HEAD_DIM = 128, PAGE = 64, CONTEXT = 8192 };
enum { CHUNK_TILES = 4, STAGES = 4, FEW_ROWS = 64, GRID = 132 };
//@ end
#include "snippets/attention.cuh"
#include "snippets/attention_slots.cuh"
#include "snippets/attention_wgmma.cuh"
#include "snippets/hopper.cuh"

/* Many rows: the tensor cores are the limit. Two warpgroups hold 64 query slots each (rows x heads of one KV head) and
 * walk the same KV tiles; a third fetches them. Bit for bit what attention_decode gives: the same steps in the same
 * order, and wgmma and mma.sync agree on a step. Blocks of 384 threads, one a multiprocessor. */
enum {
    GROUPS = 2,
    SLOTS = 64,
    GROUP_ROWS = SLOTS / GROUP,
    TILE_ROWS = GROUPS * GROUP_ROWS,
    THREADS = GROUPS * 128 + 128
};
static_assert(GROUP_ROWS >= 1, "a warpgroup holds the heads of one row at least");
static_assert(HEADS % KV_HEADS == 0 && CONTEXT >= 1 && CHUNK_TILES >= 1, "whole chunks");

struct shared_t {
    char kv[STAGES][KV_HEAD_BYTES]; /* K, V */
    char q[GROUPS][SLOTS * HEAD_DIM * 2];
    unsigned long long full[STAGES], empty[STAGES];
};

extern "C" __device__ const sf_cuda_launch KERNEL_LAUNCH = {GRID, THREADS, (int)sizeof(shared_t), 1, 0, 0, 0};

using cursor_t = att_cursor<TILE_ROWS, FEW_ROWS + 1, 0x7fffffff>;
using place_t = ring_place<STAGES>;

__device__ __forceinline__ void produce(const sf_cuda_args &a, shared_t *s, cursor_t cursor) {
    const int lane = (int)(threadIdx.x & 31);
    place_t at;
    int filled = 0;
    for (int turn = 0; cursor.seek(att_item(turn)); turn++) {
        att_work w;
        if (!cursor.work(att_item(turn), &w)) continue;
        int page = 0;
        for (int tile = 0; tile < w.end_tile(); tile++) {
            if (tile % 32 == 0 && tile + lane < w.end_tile()) page = w.pages[tile + lane];
            const int own = __shfl_sync(0xffffffffu, page, tile % 32);
            if (lane == 0) {
                const unsigned bar = smem_at(&s->full[at.stage]);
                if (filled >= STAGES) mbar_wait(smem_at(&s->empty[at.stage]), at.turn ^ 1);
                mbar_expect(bar, KV_HEAD_BYTES);
                bulk_load(smem_at(s->kv[at.stage]), kv_head_at(a.kv, own, w.kv_head), KV_HEAD_BYTES, bar);
            }
            filled++;
            at.next();
            __syncwarp();
        }
    }
}

/* A warpgroup's part of an item: slot m holds row m / GROUP with head m % GROUP of the KV head's. */
struct part_t {
    int row, rows, pos, kv_head;
    __device__ __forceinline__ part_t(const att_work &w, int group)
        : row(w.row + group * GROUP_ROWS), rows(max(0, min(GROUP_ROWS, w.rows - group * GROUP_ROWS))),
          pos(w.pos + group * GROUP_ROWS), kv_head(w.kv_head) {}
    __device__ __forceinline__ bool used(int m) const { return m < rows * GROUP; }
    __device__ __forceinline__ size_t query(int m) const {
        return (size_t)(row + m / GROUP) * HEADS + kv_head * GROUP + m % GROUP;
    }
    __device__ __forceinline__ int tiles(void) const { return rows == 0 ? 0 : (pos + rows + PAGE - 1) / PAGE; }
};

__device__ __forceinline__ void load_queries(const sf_cuda_args &a, const part_t &part, char *q, int group) {
    const int thread = (int)(threadIdx.x & 127);
    group_sync(1 + group, 128); /* the last item's queries have been used */
    for (int i = thread; i < SLOTS * (HEAD_DIM / 8); i += 128) {
        const int m = i / (HEAD_DIM / 8), chunk = i % (HEAD_DIM / 8);
        const uint4 v = part.used(m) ? ((const uint4 *)a.in)[part.query(m) * (HEAD_DIM / 8) + chunk]
                                     : make_uint4(0, 0, 0, 0);
        *(uint4 *)(q + kv_chunk(m, chunk)) = v;
    }
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    group_sync(1 + group, 128);
}

__device__ __forceinline__ void scores_begin(unsigned q, unsigned k, float (&c)[32]) {
    wgmma_fence();
#pragma unroll
    for (int i = 0; i < HEAD_DIM / 16; i++) {
        const unsigned at = (unsigned)(i / 4 * KV_HALF_BYTES + i % 4 * 32);
        wgmma_scores(c, swizzled_low(q + at, 16), swizzled_low(k + at, 16), i > 0);
    }
    wgmma_commit();
}

__device__ __forceinline__ void values_begin(unsigned v, unsigned (*p)[4], state_t *st) {
    wgmma_fence();
#pragma unroll
    for (int k = 0; k < 4; k++)
        wgmma_values(st->o, p[k], swizzled_low(v + (unsigned)(k * 2048), KV_HALF_BYTES));
    wgmma_commit();
}

__device__ __forceinline__ void store_result(const sf_cuda_args &a, const part_t &part, int slot, const total_t &total) {
    const int lane = (int)(threadIdx.x & 31);
#pragma unroll
    for (int r = 0; r < 2; r++) {
        const int m = slot + r * 8;
        if (!part.used(m)) continue;
        const float inverse = fold_inverse(total.sum[r]);
        unsigned *to = (unsigned *)a.out + part.query(m) * (HEAD_DIM / 2) + lane % 4;
#pragma unroll
        for (int j = 0; j < HEAD_DIM / 8; j++)
            to[j * 4] = bf16_pair(__fmul_rn(total.o[j * 4 + r * 2], inverse),
                                  __fmul_rn(total.o[j * 4 + r * 2 + 1], inverse));
    }
}

/* The KV tiles of an item as they come, and which keys two of a thread's slots see. */
struct tiles_t {
    shared_t *s;
    place_t *at;
    unsigned q;
    int pos, limit[2];
    __device__ __forceinline__ unsigned kv(void) const { return smem_at(s->kv[at->stage]); }
    __device__ __forceinline__ void wait(void) const { mbar_wait(smem_at(&s->full[at->stage]), at->turn); }
    __device__ __forceinline__ void release(int stage) const {
        if ((threadIdx.x & 31) == 0) mbar_arrive(smem_at(&s->empty[stage]));
    }
    __device__ __forceinline__ void mask_tile(int tile, float (&c)[32]) const {
        if (tile * PAGE + PAGE - 1 > pos) mask(limit, tile * PAGE, c);
    }
};

/* From the weights p of a tile to those of the next: its scores are made beside this one's values, and weighed beside
 * them too unless a chunk ends here. */
template <bool CHUNK_ENDS>
__device__ __forceinline__ void step(const tiles_t &in, int tile, unsigned (*p)[4], state_t *st, total_t *total) {
    const int stage = in.at->stage;
    const unsigned v = in.kv() + KV_TILE_BYTES;
    float c[32], scale[2];
    in.at->next();
    in.wait();
    scores_begin(in.q, in.kv(), c);
    values_begin(v, p, st);
    if (CHUNK_ENDS) {
        wgmma_wait<0>();
        chunk_end(*st, total);
        chunk_begin(st);
    } else {
        wgmma_wait<1>();
    }
    in.mask_tile(tile + 1, c);
    weigh(c, st, scale);
    if (!CHUNK_ENDS) {
        wgmma_wait<0>();
        rescale(st, scale);
    }
    in.release(stage);
    pack(c, p);
}

/* All KV tiles of a warpgroup's part, one at least. */
__device__ __forceinline__ void consume_tiles(const tiles_t &in, int tiles, total_t *total) {
    state_t st;
    float c[32], scale[2];
    unsigned p[4][4];
    chunk_begin(&st);
    in.wait();
    scores_begin(in.q, in.kv(), c);
    wgmma_wait<0>();
    in.mask_tile(0, c);
    weigh(c, &st, scale);
    pack(c, p);
    int tile = 0;
    for (;;) {
        for (const int last = min(tile + CHUNK_TILES, tiles) - 1; tile < last; tile++)
            step<false>(in, tile, p, &st, total);
        if (tile + 1 == tiles) break;
        step<true>(in, tile++, p, &st, total);
    }
    values_begin(in.kv() + KV_TILE_BYTES, p, &st);
    wgmma_wait<0>();
    in.release(in.at->stage);
    in.at->next();
    chunk_end(st, total);
}

/* One item; a tile beyond this warpgroup's rows is only let go. */
__device__ __forceinline__ void consume_item(const sf_cuda_args &a, shared_t *s, const att_work &w, int group, place_t *at) {
    const int lane = (int)(threadIdx.x & 31), slot = (int)(threadIdx.x & 127) / 32 * 16 + lane / 4;
    const part_t part(w, group);
    const int tiles = part.tiles();
    const tiles_t in = {s, at, smem_at(s->q[group]), part.pos, {part.pos + slot / GROUP, part.pos + (slot + 8) / GROUP}};
    total_t total;
    load_queries(a, part, s->q[group], group);
    total_begin(&total);
    if (tiles > 0) consume_tiles(in, tiles, &total);
    for (int tile = tiles; tile < w.end_tile(); tile++, at->next()) {
        in.wait();
        in.release(at->stage);
    }
    store_result(a, part, slot, total);
}

extern "C" __global__ void __launch_bounds__(THREADS, 1) KERNEL_NAME(sf_cuda_args a) {
    extern __shared__ __align__(1024) char raw[];
    shared_t *s = (shared_t *)raw;
    const int group = (int)threadIdx.x / 128;
    pass_release();
    if (threadIdx.x == 0) {
        for (int i = 0; i < STAGES; i++) {
            mbar_init(smem_at(&s->full[i]), 1);
            mbar_init(smem_at(&s->empty[i]), GROUPS * 4);
        }
        mbar_init_done();
    }
    cursor_t cursor(a.block, att_cut{CHUNK_TILES, false});
    __syncthreads();
    pass_wait();
    if (group == GROUPS) {
        registers_lower<24>();
        if (threadIdx.x < GROUPS * 128 + 32) produce(a, s, cursor);
    } else {
        registers_raise<240>();
        place_t at;
        for (int turn = 0; cursor.seek(att_item(turn)); turn++) {
            att_work w;
            if (cursor.work(att_item(turn), &w)) consume_item(a, s, w, group, &at);
        }
    }
}
