/* Two rings in shared memory feed the consumers of a few-row product, each filled by one warp: packed weights, in
 * whole stages of one copy, which run ahead of the previous kernel's end; and activations, in blocks of 64 k.
 * A cluster's CTAs may share the activations: each loads its part of every block into all of them. */
#ifndef SF_SNIPPETS_GEMM_RING_CUH
#define SF_SNIPPETS_GEMM_RING_CUH

#include "device/cuda/tensor_maps.h"
#include "snippets/block.cuh"
#include "snippets/gemm_weight.cuh"
#include "snippets/hopper.cuh"

constexpr int SHARED_MAX = 232448; /* bytes of a block on sm_90 */

/* Blocks for so many pieces of work, an even share each, in whole clusters. */
constexpr int even_grid(int pieces, int sms, int cluster) {
    const int turns = (pieces + sms - 1) / sms;
    return ((pieces + turns - 1) / turns + cluster - 1) / cluster * cluster;
}

/* Bytes that the rings leave free behind them; their stages: at most so many, and a multiple of OWNERS, so that a stage
 * always belongs to the same consumers where they take stages in turn. */
struct ring_limits {
    static constexpr int FREE = 0, MOST = 32, OWNERS = 1;
};

/* ROW_BLOCKS: k blocks of an activation stage, 0 for as many as a weight stage. WARPS: consumers of a stage. */
template <class SHAPE, int ROWS, int ROW_BLOCKS, int CLUSTER, int WARPS, class LIMITS = ring_limits> struct gemm_ring {
    static constexpr int W_BLOCKS = SHAPE::copy_blocks();
    static constexpr int R_BLOCKS = ROW_BLOCKS ? ROW_BLOCKS : W_BLOCKS;
    static constexpr int W_STAGE = W_BLOCKS * SHAPE::BLOCK;
    static constexpr int R_STAGE = R_BLOCKS * ROWS * 128;
    static constexpr int SPACE = SHARED_MAX - 2048 - LIMITS::FREE; /* less alignment and barriers */
    /* enough of both in flight for the latency of the cache and of memory: the more rows, the more of them */
    static constexpr int R_KIB = ROWS <= 32 ? 64 : ROWS <= 64 ? 96 : W_STAGE <= 16384 ? 160 : 112;
    static constexpr int stages(int fit, int most) {
        const int n = fit < 2 ? 2 : fit > most ? most : fit;
        return n < LIMITS::OWNERS ? LIMITS::OWNERS : n / LIMITS::OWNERS * LIMITS::OWNERS;
    }
    static constexpr int R_FIT = R_KIB * 1024 / R_STAGE;
    static constexpr int R_STAGES = stages(R_FIT, LIMITS::MOST < 12 ? LIMITS::MOST : 12);
    static constexpr int W_STAGES = stages((SPACE - R_STAGES * R_STAGE) / W_STAGE, LIMITS::MOST);
    static constexpr int BARRIERS = R_STAGES * R_STAGE + W_STAGES * W_STAGE;
    static constexpr int BEHIND = BARRIERS + 16 * (W_STAGES + R_STAGES);
    static constexpr int SHARED = 1024 + BEHIND + LIMITS::FREE;
    static constexpr int BOX_ROWS = ROWS / CLUSTER, MAP = sf_cuda_map_at(BOX_ROWS);
    static_assert(W_STAGES >= 2 && SHARED <= SHARED_MAX, "the rings do not fit");
    static_assert(BOX_ROWS % 8 == 0 && BOX_ROWS <= 256, "a box is whole swizzle groups");

    unsigned base; /* rows, weights, barriers, what is left free */

    __device__ __forceinline__ unsigned rows(int stage) const { return base + stage * R_STAGE; }
    __device__ __forceinline__ unsigned weights(int stage) const {
        return base + R_STAGES * R_STAGE + stage * W_STAGE;
    }
    __device__ __forceinline__ unsigned w_full(int stage) const { return base + BARRIERS + 8 * stage; }
    __device__ __forceinline__ unsigned w_empty(int stage) const { return w_full(W_STAGES + stage); }
    __device__ __forceinline__ unsigned r_full(int stage) const { return w_full(2 * W_STAGES + stage); }
    __device__ __forceinline__ unsigned r_empty(int stage) const {
        return w_full(2 * W_STAGES + R_STAGES + stage);
    }

    static __device__ __forceinline__ unsigned rank() { return CLUSTER > 1 ? cluster_rank() : 0; }
    /* All threads; the barriers are ready when it returns. */
    __device__ __forceinline__ void init(const void *shared) {
        base = (smem_at(shared) + 1023) & ~1023u;
        if (threadIdx.x == 0) {
            for (int s = 0; s < W_STAGES; s++) {
                mbar_init(w_full(s), 1);
                mbar_init(w_empty(s), WARPS);
            }
            for (int s = 0; s < R_STAGES; s++) {
                mbar_init(r_full(s), 1);
                mbar_init(r_empty(s), WARPS * CLUSTER);
            }
            mbar_init_done();
        }
        if (CLUSTER > 1) cluster_sync();
        else __syncthreads();
    }
    /* A cluster takes CLUSTER groups at a time. A CTA past the last group repeats that one and writes nothing. */
    __device__ __forceinline__ int first() const { return (int)(blockIdx.x - rank()); }
    __device__ __forceinline__ int group(int at) const {
        const int g = at + (int)rank();
        return g < SHAPE::GROUPS ? g : SHAPE::GROUPS - 1;
    }
    __device__ __forceinline__ bool owned(int at) const { return at + (int)rank() < SHAPE::GROUPS; }

    /* One thread. */
    __device__ void stream_weights(const char *packed) const {
        const unsigned long long policy = policy_evict_first();
        ring_place<W_STAGES> p;
        int filled = 0;
        for (int at = first(); at < SHAPE::GROUPS; at += gridDim.x) {
            const char *from = packed + (size_t)group(at) * SHAPE::BLOCKS * SHAPE::BLOCK;
            for (int c = 0; c < SHAPE::BLOCKS / W_BLOCKS; c++, from += W_STAGE, p.next(), filled++) {
                if (filled >= W_STAGES) mbar_wait(w_empty(p.stage), p.turn ^ 1);
                mbar_expect(w_full(p.stage), W_STAGE);
                bulk_stream(weights(p.stage), from, W_STAGE, w_full(p.stage), policy);
            }
        }
    }
    /* One thread, after wait_for_previous. maps: device/cuda/tensor_maps.h; first_block: of the activations. */
    __device__ void stream_rows(const char *maps, int first_block = 0) const {
        const char *map = maps + MAP;
        tensor_map_acquire(map);
        fence_async();
        ring_place<R_STAGES> p;
        int filled = 0;
        for (int at = first(); at < SHAPE::GROUPS; at += gridDim.x)
            for (int b = 0; b < SHAPE::BLOCKS; b += R_BLOCKS, p.next(), filled++) {
                if (filled >= R_STAGES) mbar_wait(r_empty(p.stage), p.turn ^ 1);
                mbar_expect(r_full(p.stage), R_STAGE);
                for (int i = 0; i < R_BLOCKS; i++) load_block(map, p.stage, i, first_block + b + i);
            }
    }
    __device__ __forceinline__ unsigned behind() const { return base + BEHIND; }
    /* One lane of each consumer warp. */
    __device__ __forceinline__ void release_weights(int stage) const { mbar_arrive(w_empty(stage)); }
    __device__ __forceinline__ void release_rows(int stage) const { mbar_arrive(r_empty(stage)); }
    /* All lanes: the stage before this one, to every CTA that loads into it. */
    __device__ __forceinline__ void release_rows_before(int stage, int lane) const {
        if (lane >= CLUSTER) return;
        const unsigned bar = r_empty((stage ? stage : R_STAGES) - 1);
        if (CLUSTER == 1) mbar_arrive(bar);
        else mbar_arrive_at(bar, lane);
    }

  private:
    __device__ __forceinline__ void load_block(const char *map, int stage, int i, int block) const {
        const unsigned to = rows(stage) + i * ROWS * 128 + rank() * BOX_ROWS * 128;
        if (CLUSTER == 1) tensor_load(to, map, block * 64, 0, r_full(stage));
        else tensor_load_to(to, map, block * 64, rank() * BOX_ROWS, r_full(stage), (1u << CLUSTER) - 1);
    }
};

#endif
