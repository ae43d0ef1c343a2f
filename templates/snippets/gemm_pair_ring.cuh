/* Two rings in shared memory feed the warpgroups of a product, each filled by one warp: packed weights, in stages of
 * whole runs of k, which run ahead of the previous kernel's end; and activations, in blocks of 64 k. The two CTAs of a
 * cluster may share either: each loads half of every stage into both. */
#ifndef SF_SNIPPETS_GEMM_PAIR_RING_CUH
#define SF_SNIPPETS_GEMM_PAIR_RING_CUH

#include "snippets/block.cuh"
#include "snippets/gemm_weight.cuh"
#include "snippets/tensor_rows.cuh"

/* What a pair shares: with the activations each CTA has features of its own, with the weights rows of its own. */
enum gemm_sharing { SHARE_NOTHING, SHARE_ROWS, SHARE_WEIGHTS };

/* Blocks for so many pieces of work, an even share each. */
constexpr int even_share(int pieces, int blocks) {
    const int turns = (pieces + blocks - 1) / blocks;
    return (pieces + turns - 1) / turns;
}

/* UNIT: groups of tiles a CTA takes at a time. ROWS: of a CTA at most. WARPS: consumers. ROW_BLOCKS: pairs that have the same
 * features and rows of their own, where pairs share weights; the pass's rows may ask for fewer or more. */
template <class SHAPE, int UNIT, int ROWS, int WARPS, gemm_sharing SHARING, int ROW_BLOCKS> struct gemm_pair_ring {
    static constexpr int CLUSTER = SHARING == SHARE_NOTHING ? 1 : 2;
    static constexpr int W_SHARERS = SHARING == SHARE_WEIGHTS ? 2 : 1, R_SHARERS = SHARING == SHARE_ROWS ? 2 : 1;
    static constexpr int UNITS = (SHAPE::GROUPS + UNIT - 1) / UNIT;
    /* k blocks of a weight stage: as many as divide all and make at most 16 KiB */
    static constexpr int weight_blocks() {
        int best = 1;
        for (int b = 1; b <= SHAPE::BLOCKS; b++)
            if (SHAPE::BLOCKS % b == 0 && b * SHAPE::BLOCK * UNIT <= 16384) best = b;
        return best;
    }
    static constexpr int W_BLOCKS = weight_blocks();
    /* of an activation stage; a short k must still be some stages */
    static constexpr int R_BLOCKS = W_BLOCKS % 2 || ROWS > 128 || SHAPE::BLOCKS < 10 ? 1 : 2;
    static constexpr int RUN = W_BLOCKS * SHAPE::BLOCK; /* bytes of one group in a stage */
    static constexpr int W_STAGE = UNIT * RUN, R_STAGE = R_BLOCKS * ROWS * 128;
    static constexpr int SPACE = 232448 - 2048; /* of a block on sm_90, less alignment and barriers */
    /* enough of both in flight for the latency of the cache and of memory: the more rows, the more of them */
    static constexpr int R_KIB = ROWS <= 64 ? 96 : ROWS <= 128 && W_STAGE > 16384 ? 112 : 128;
    static constexpr int R_FIT = R_KIB * 1024 / R_STAGE, R_STAGES = R_FIT < 2 ? 2 : R_FIT > 12 ? 12 : R_FIT;
    static constexpr int W_FIT = (SPACE - R_STAGES * R_STAGE) / W_STAGE, W_STAGES = W_FIT > 32 ? 32 : W_FIT;
    static constexpr int BARRIERS = R_STAGES * R_STAGE + W_STAGES * W_STAGE;
    static constexpr int SHARED = 1024 + BARRIERS + 16 * (W_STAGES + R_STAGES);
    static constexpr int BOX_ROWS = ROWS / R_SHARERS;
    static_assert(W_STAGES >= 2 && SHARED <= 232448, "the rings do not fit");
    static_assert(BOX_ROWS % 8 == 0 && BOX_ROWS <= 256, "a box is whole swizzle groups");
    static_assert(W_SHARERS == 2 || ROW_BLOCKS == 1, "one pair has all rows");

    unsigned base;   /* rows, weights, barriers */
    /* where pairs share weights, the pass may have fewer rows of a CTA, and others of these */
    int used = ROWS, row_blocks = ROW_BLOCKS;

    /* Blocks of a launch. */
    static constexpr int grid(int sms) {
        if (SHARING == SHARE_WEIGHTS) return 2 * even_share(UNITS * ROW_BLOCKS, sms / 2);
        return (even_share(UNITS, sms / CLUSTER * CLUSTER) + CLUSTER - 1) / CLUSTER * CLUSTER;
    }

    __device__ __forceinline__ unsigned rows(int stage) const { return base + stage * R_STAGE; }
    __device__ __forceinline__ unsigned weights(int stage) const {
        return base + R_STAGES * R_STAGE + stage * W_STAGE;
    }
    __device__ __forceinline__ unsigned w_full(int stage) const { return base + BARRIERS + 8 * stage; }
    __device__ __forceinline__ unsigned w_empty(int stage) const { return w_full(W_STAGES + stage); }
    __device__ __forceinline__ unsigned r_full(int stage) const { return w_full(2 * W_STAGES + stage); }
    __device__ __forceinline__ unsigned r_empty(int stage) const { return w_full(2 * W_STAGES + R_STAGES + stage); }

    static __device__ __forceinline__ int rank() { return CLUSTER > 1 ? (int)cluster_rank() : 0; }
    /* The first of the pass's rows that this CTA has of a piece. */
    __device__ __forceinline__ int first_row(int at) const {
        return SHARING == SHARE_WEIGHTS ? (at % row_blocks * 2 + rank()) * used : 0;
    }
    /* All threads; the barriers are ready when it returns. */
    __device__ __forceinline__ void init(const void *shared) {
        base = (smem_at(shared) + 1023) & ~1023u;
        if (threadIdx.x == 0) {
            for (int s = 0; s < W_STAGES; s++) {
                mbar_init(w_full(s), 1);
                mbar_init(w_empty(s), WARPS * W_SHARERS);
            }
            for (int s = 0; s < R_STAGES; s++) {
                mbar_init(r_full(s), 1);
                mbar_init(r_empty(s), WARPS * R_SHARERS);
            }
            mbar_init_done();
        }
        if (CLUSTER > 1) cluster_sync();
        else __syncthreads();
    }
    /* Pieces in turn, units times row blocks; a pair that shares weights has the same. Its partner's may be past the
     * last: it takes part. */
    __device__ __forceinline__ int pieces() const { return UNITS * row_blocks; }
    __device__ __forceinline__ int first() const { return (int)blockIdx.x / CLUSTER * R_SHARERS; }
    __device__ __forceinline__ int step() const { return (int)gridDim.x / W_SHARERS; }
    /* Group u of the piece's unit; past the last it is the last again, and not owned. */
    __device__ __forceinline__ int group_past(int at, int u) const {
        return (SHARING == SHARE_ROWS ? at + rank() : at / row_blocks) * UNIT + u;
    }
    __device__ __forceinline__ int group(int at, int u) const {
        const int g = group_past(at, u);
        return g < SHAPE::GROUPS ? g : SHAPE::GROUPS - 1;
    }
    __device__ __forceinline__ bool owned(int at, int u) const { return group_past(at, u) < SHAPE::GROUPS; }

    /* One thread. */
    __device__ void stream_weights(const char *packed) const {
        const unsigned long long policy = policy_evict_first();
        ring_place<W_STAGES> p;
        int filled = 0;
        for (int at = first(); at < pieces(); at += step())
            for (int c = 0; c < SHAPE::BLOCKS / W_BLOCKS; c++, p.next(), filled++) {
                if (filled >= W_STAGES) mbar_wait(w_empty(p.stage), p.turn ^ 1);
                mbar_expect(w_full(p.stage), W_STAGE);
                load_stage(packed + (size_t)c * RUN, at, p.stage, policy);
            }
    }
    /* One thread, after wait_for_previous. maps: device/cuda/tensor_maps.h. */
    __device__ void stream_rows(const char *maps) const {
        tensor_rows_acquire(maps, used / R_SHARERS);
        ring_place<R_STAGES> p;
        int filled = 0;
        for (int at = first(); at < pieces(); at += step())
            for (int b = 0; b < SHAPE::BLOCKS; b += R_BLOCKS, p.next(), filled++) {
                if (filled >= R_STAGES) mbar_wait(r_empty(p.stage), p.turn ^ 1);
                mbar_expect(r_full(p.stage), R_BLOCKS * used * 128);
                for (int i = 0; i < R_BLOCKS; i++) load_block(maps, at, p.stage, i, b + i);
            }
    }
    /* All lanes of a consumer warp: a stage to every CTA that loads into it. */
    __device__ __forceinline__ void release_weights(int stage, int lane) const {
        release<W_SHARERS>(w_empty(stage), lane);
    }
    /* The stage before this one. */
    __device__ __forceinline__ void release_rows_before(int stage, int lane) const {
        release<R_SHARERS>(r_empty((stage ? stage : R_STAGES) - 1), lane);
    }

  private:
    template <int SHARERS> static __device__ __forceinline__ void release(unsigned bar, int lane) {
        if (lane >= SHARERS) return;
        if (SHARERS == 1) mbar_arrive(bar);
        else mbar_arrive_at(bar, lane);
    }
    __device__ __forceinline__ void load_stage(const char *from, int at, int stage, unsigned long long policy) const {
        /* of a pair, each loads half: of the groups, or of every group */
        constexpr bool HALVES = W_SHARERS == 2 && UNIT % 2;
        constexpr int OWN = W_SHARERS == 1 || HALVES ? UNIT : UNIT / 2, BYTES = HALVES ? RUN / 2 : RUN;
        for (int i = 0; i < OWN; i++) {
            const int u = OWN == UNIT ? i : rank() * OWN + i, skip = HALVES ? rank() * BYTES : 0;
            const char *source = from + (size_t)group(at, u) * SHAPE::BLOCKS * SHAPE::BLOCK + skip;
            const unsigned to = weights(stage) + u * RUN + skip;
            if (W_SHARERS == 1) bulk_stream(to, source, BYTES, w_full(stage), policy);
            else bulk_stream_to(to, source, BYTES, w_full(stage), policy, 3);
        }
    }
    __device__ __forceinline__ void load_block(const char *maps, int at, int stage, int i, int block) const {
        const int skip = R_SHARERS == 1 ? 0 : rank() * BOX_ROWS;
        tensor_load_rows<R_SHARERS>(rows(stage) + (i * ROWS + skip) * 128, maps, block * 64, first_row(at) + skip,
                                    used / R_SHARERS, r_full(stage));
    }
};

#endif
