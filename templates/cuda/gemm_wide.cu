//@ template gemm_wide
//@ op gemm
//@ backend cuda
//@ class both
//@ rows 769..
//@ name w${ROWS}
//@ order: k ascending from 0 in steps of 16 (wgmma k16), one fp32 accumulator per output, no split
//@ param N          int = 6144 in 1..1048576 from op.n
//@ param K          int = 4096 in 8..1048576 from op.k
//@ param EPILOGUE   enum store|add|swiglu = store from op.epilogue
//@ param HAS_BIAS   int = 0 in 0..1 from op.has_bias
//@ param LOGIT_ROWS int = 0 in 0..1 from op.logit_rows
//@ param SMS        int = 132 in 1..1024 from config.sms
//@ param OUT_BF16   int = 0 in 0..1
//@ param WEIGHT     enum bf16 = bf16
//@ param T          int = 3 in 1..16 from op.tile              # the weight's packing; any serves
//@ param FEATURES   int = 0 in 0..128                          # of a tile, 64 a warpgroup: 64 or 128; 0: chosen here
//@ param ROWS       int = 256 in 64..256                       # of a tile: 64, 128 or 256
//@ param CLUSTER    int = 2 in 1..2                            # CTAs that share the activations they load
//@ prelude
#ifndef KERNEL_NAME
#define KERNEL_NAME   gemm_wide_default
#define KERNEL_LAUNCH gemm_wide_default_launch
#endif
enum { N = 6144, K = 4096, HAS_BIAS = 0, LOGIT_ROWS = 0, SMS = 132, OUT_BF16 = 0 };
enum { T = 3, FEATURES = 0, ROWS = 256, CLUSTER = 2 };
enum { EPILOGUE_store, EPILOGUE_add, EPILOGUE_swiglu, EPILOGUE = EPILOGUE_store };
enum { WEIGHT_bf16, WEIGHT = WEIGHT_bf16 };
//@ end
#include "device/cuda/tensor_maps.h"
#include "snippets/block.cuh"
#include "snippets/gemm_out.cuh"
#include "snippets/gemm_weight.cuh"
#include "snippets/hopper.cuh"

constexpr int SHARED_MAX = 232448; /* bytes of a block on sm_90 */
/* Tiles that leave no multiprocessor idle, even at the fewest rows, come before large ones. */
constexpr int LEAST = 513;
constexpr bool MANY = (N + 127) / 128 * ((LEAST + ROWS - 1) / ROWS) * 3 >= SMS * 2;
constexpr int WIDTH = FEATURES ? FEATURES : MANY ? 128 : 64;
constexpr int GROUPS = WIDTH / 64, WARPS = GROUPS * 4, SUMS = ROWS / 2, THREADS = WARPS * 32 + 128;
constexpr int STAGE = ROWS * 128, SPARE = (SHARED_MAX - 2048) / STAGE, STAGES = SPARE > 6 ? 6 : SPARE;
constexpr int BARRIERS = STAGES * STAGE, SHARED = 1024 + BARRIERS + 16 * STAGES;
constexpr int AHEAD = 8; /* blocks whose weights are on their way to the L2 cache */
constexpr int BOX_ROWS = ROWS / CLUSTER, MAP = sf_cuda_map_at(BOX_ROWS);
static_assert(WEIGHT == WEIGHT_bf16 && !(HAS_BIAS && EPILOGUE == EPILOGUE_swiglu), "no such kernel");
using format = weight_bf16;
using shape = weight_shape<format, N, K, T>;
constexpr gemm_kind KIND = gemm_kind_of(EPILOGUE == EPILOGUE_add, EPILOGUE == EPILOGUE_swiglu, OUT_BF16 != 0);
using output = gemm_out<N, KIND, HAS_BIAS != 0>;
static_assert(shape::BLOCKS > 3, "k is too short");
/* Feature tiles, whole clusters of them. */
constexpr int COLUMNS = (shape::TILES + WIDTH / 16 * CLUSTER - 1) / (WIDTH / 16 * CLUSTER);

extern "C" __device__ const sf_cuda_launch KERNEL_LAUNCH = {
    SMS / CLUSTER * CLUSTER, THREADS, SHARED, 1, CLUSTER, 0, 0};

/* Tiles in turn: rows first, so that the CTAs at work share both weights and activations in the L2 cache. */
struct tiles {
    int rank, row_tiles, count;
    __device__ __forceinline__ explicit tiles(int rows)
        : rank(CLUSTER > 1 ? cluster_rank() : 0), row_tiles((rows + ROWS - 1) / ROWS), count(row_tiles * COLUMNS) {}
    __device__ __forceinline__ int first() const { return blockIdx.x / CLUSTER; }
    __device__ __forceinline__ int step() const { return gridDim.x / CLUSTER; }
    __device__ __forceinline__ int row(int at) const { return at % row_tiles * ROWS; }
    __device__ __forceinline__ int tile(int at) const { return (at / row_tiles * CLUSTER + rank) * (WIDTH / 16); }
};

__device__ __forceinline__ unsigned full_bar(unsigned base, int stage) {
    return base + BARRIERS + 8 * stage;
}
__device__ __forceinline__ unsigned empty_bar(unsigned base, int stage) {
    return full_bar(base, STAGES + stage);
}

/* Weights of a tile in packed order. A tile past the last is the last one again. */
__device__ __forceinline__ const char *tile_weights(const char *packed, int tile) {
    if (tile >= shape::TILES) tile = shape::TILES - 1;
    return packed + (size_t)(tile / T) * shape::BLOCKS * shape::BLOCK + tile % T * format::STEP;
}

/* Brings a block's weights to the L2 cache: a line of 128 bytes a lane, of four steps of WIDTH / 16 tiles. */
__device__ __forceinline__ void prefetch_block(const char *packed, int tile, int block, int lane) {
    if (block >= shape::BLOCKS) return;
#pragma unroll 1
    for (int i = lane; i < WIDTH / 16 * 16; i += 32) {
        const char *line = tile_weights(packed, tile + i / 16) + (size_t)block * shape::BLOCK +
                           i / 4 % 4 * T * format::STEP + i % 4 * 128;
        asm volatile("prefetch.global.L2 [%0];" ::"l"(line));
    }
}

/* One warp: its first lane loads activations; all of them bring weights near, the first time they are read. */
__device__ __forceinline__ void stream(unsigned base, const char *map, const char *packed, const tiles &t) {
    const int lane = threadIdx.x % 32;
    if (lane == 0) {
        tensor_map_acquire(map);
        fence_async();
    }
    ring_place<STAGES> p;
    int filled = 0;
    for (int at = t.first(); at < t.count; at += t.step()) {
        const bool fresh = t.row(at) == 0;
#pragma unroll 1
        for (int b = 0; fresh && b < AHEAD; b++) prefetch_block(packed, t.tile(at), b, lane);
#pragma unroll 1
        for (int b = 0; b < shape::BLOCKS; b++, p.next(), filled++) {
            if (lane == 0) {
                if (filled >= STAGES) mbar_wait(empty_bar(base, p.stage), p.turn ^ 1);
                mbar_expect(full_bar(base, p.stage), STAGE);
                const unsigned to = base + p.stage * STAGE + t.rank * BOX_ROWS * 128;
                if (CLUSTER == 1) tensor_load(to, map, b * 64, t.row(at), full_bar(base, p.stage));
                else
                    tensor_load_to(to, map, b * 64, t.row(at) + t.rank * BOX_ROWS, full_bar(base, p.stage),
                                   (1u << CLUSTER) - 1);
            }
            __syncwarp();
            if (fresh) prefetch_block(packed, t.tile(at), b + AHEAD, lane);
        }
    }
}

struct cursor {
    unsigned base;
    ring_place<STAGES> x;
    int held = -1; /* stage that a running wgmma still reads */

    __device__ __forceinline__ void release(int lane) const {
        if (lane >= CLUSTER || held < 0) return;
        if (CLUSTER == 1) mbar_arrive(empty_bar(base, held));
        else mbar_arrive_at(empty_bar(base, held), lane);
    }
};

__device__ __forceinline__ void load_block(uint4 (&a)[4], const char *from, int lane) {
#pragma unroll
    for (int q = 0; q < 4; q++) a[q] = format::from_global(from + q * T * format::STEP, lane);
}

/* A warp's weights, read three blocks ahead and over the end of a tile into the next. */
struct weight_place {
    const char *now, *following;
    __device__ __forceinline__ const char *at(int block) const {
        return block < shape::BLOCKS ? now + (size_t)block * shape::BLOCK
                                     : following + (size_t)(block - shape::BLOCKS) * shape::BLOCK;
    }
};

/* Blocks of a tile past the last whole turn of the four that a warp holds. */
constexpr int LEFT = shape::BLOCKS % 4, WHOLE = shape::BLOCKS - LEFT;

__device__ __forceinline__ void load_first(uint4 (&a)[4][4], const char *from, int lane) {
#pragma unroll
    for (int i = 0; i < 3; i++) load_block(a[i], from + (size_t)i * shape::BLOCK, lane);
}

/* Multiplies by a; meanwhile next, free since the block before, is filled with the weights of three blocks on. */
__device__ __forceinline__ void block_step(cursor &p, float (&d)[SUMS], const uint4 (&a)[4], uint4 (&next)[4],
                                           const weight_place &w, int block, int lane) {
    const char *from = w.at(block + 3);
    mbar_wait(full_bar(p.base, p.x.stage), p.x.turn);
    const unsigned long long b = wgmma_descriptor(p.base + p.x.stage * STAGE);
#pragma unroll
    for (int q = 0; q < 4; q++) {
        wgmma_begin();
        wgmma_step(d, a[q], b + q * 2);
        wgmma_commit();
        if (q > 0) continue;
        wgmma_wait<1>(); /* the block before is done: what it read may be written */
        load_block(next, from, lane);
    }
    p.release(lane);
    p.held = p.x.stage;
    p.x.next();
}

/* The weights of the tile's first three blocks are in a; those of the next tile's are when it returns. */
__device__ __forceinline__ void multiply(cursor &p, float (&d)[SUMS], uint4 (&a)[4][4], const weight_place &w, int lane) {
#pragma unroll
    for (int i = 0; i < SUMS; i++) d[i] = 0.0f;
#pragma unroll 1
    for (int b = 0; b < WHOLE; b += 4)
#pragma unroll
        for (int i = 0; i < 4; i++) block_step(p, d, a[i], a[(i + 3) % 4], w, b + i, lane);
#pragma unroll
    for (int i = 0; i < LEFT; i++) block_step(p, d, a[i], a[(i + 3) % 4], w, WHOLE + i, lane);
    wgmma_wait<0>();
    p.release(lane);
    p.held = -1;
    /* They came to other registers, and a swap would ask for more: they come again while the sums are written. */
    if constexpr (LEFT > 0) load_first(a, w.following, lane);
}

__device__ __forceinline__ void consume(unsigned base, const char *packed, const tiles &t,
                                        const output &out) {
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    cursor p{base};
    weight_place w;
    uint4 a[4][4];
    w.following = tile_weights(packed, t.tile(t.first()) + warp);
    load_first(a, w.following, lane);
    for (int at = t.first(); at < t.count; at += t.step()) {
        const int tile = t.tile(at) + warp, then = at + t.step();
        w.now = w.following;
        w.following = then < t.count ? tile_weights(packed, t.tile(then) + warp) : w.now;
        float d[SUMS];
        multiply(p, d, a, w, lane);
        if (tile >= shape::TILES) continue;
        const int row = t.row(at) + lane % 4 * 2;
        const float2 bias = out.biases(tile, lane);
#pragma unroll
        for (int j = 0; j < ROWS / 8; j += 8) {
#pragma unroll
            for (int i = j; i < j + 8; i++) out.take(d + i * 4, bias);
#pragma unroll
            for (int i = j; i < j + 8; i++) out.put(d + i * 4, tile, lane, row + i * 8);
        }
    }
}

extern "C" __global__ void __launch_bounds__(THREADS, 1) KERNEL_NAME(sf_cuda_args a) {
    extern __shared__ char shared[];
    const unsigned base = (smem_at(shared) + 1023) & ~1023u;
    if (threadIdx.x == 0) {
        for (int s = 0; s < STAGES; s++) {
            mbar_init(full_bar(base, s), 1);
            mbar_init(empty_bar(base, s), WARPS * CLUSTER);
        }
        mbar_init_done();
    }
    if (CLUSTER > 1) cluster_sync();
    else __syncthreads();
    pass_release();
    pass_wait();
    const int rows = LOGIT_ROWS ? a.block->n_logits : a.block->rows;
    const tiles t(rows);
    if (threadIdx.x >= WARPS * 32) {
        if constexpr (ROWS == 256) registers_lower<40>();
        if (threadIdx.x / 32 == WARPS) stream(base, (const char *)a.extra + MAP, (const char *)a.weight, t);
    } else {
        if constexpr (ROWS == 256) registers_raise<232>();
        consume(base, (const char *)a.weight, t, output{a.out, a.bias, rows});
    }
    __syncwarp();
    if (CLUSTER > 1) cluster_sync(); /* a neighbour may still write into this CTA's shared memory */
}
