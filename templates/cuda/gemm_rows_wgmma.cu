//@ template gemm_rows_wgmma
//@ op gemm
//@ backend cuda
//@ class both
//@ rows 17..768 1025..1536
//@ name r${ROWS}t${T}
//@ order: k ascending from 0 in steps of 16 (wgmma k16), one fp32 accumulator per output, no split
//@ param N          int = 6144 in 1..1048576 from op.n
//@ param K          int = 4096 in 8..1048576 from op.k
//@ param EPILOGUE   enum store|add|swiglu = store from op.epilogue
//@ param HAS_BIAS   int = 0 in 0..1 from op.has_bias
//@ param LOGIT_ROWS int = 0 in 0..1 from op.logit_rows
//@ param SMS        int = 132 in 1..1024 from config.sms
//@ param OUT_BF16   int = 0 in 0..1
//@ param WEIGHT     enum bf16 = bf16
//@ param T          int = 3 in 1..8 from op.tile           # tiles of 16 features in a group: the weight's packing
//@ param ROWS       int = 64 in 64..1536 from bucket.rows   # 64, 128, 256, 512 or more
//@ param PAIR       enum chosen|none|rows|weights = chosen # what two CTAs share
//@ param FEATURES   int = 0 in 0..192                      # of a CTA at a time: whole groups; 0, here and below: chosen here
//@ param ROW_BLOCKS int = 0 in 0..2                        # shares of the rows, each a pair's that shares weights
//@ prelude
#ifndef KERNEL_NAME
#define KERNEL_NAME   gemm_rows_wgmma_default
#define KERNEL_LAUNCH gemm_rows_wgmma_default_launch
#endif
enum { N = 6144, K = 4096, HAS_BIAS = 0, LOGIT_ROWS = 0, SMS = 132, OUT_BF16 = 0 };
enum { T = 3, ROWS = 64, FEATURES = 0, ROW_BLOCKS = 0 };
enum { EPILOGUE_store, EPILOGUE_add, EPILOGUE_swiglu, EPILOGUE = EPILOGUE_store };
enum { WEIGHT_bf16, WEIGHT = WEIGHT_bf16 };
enum { PAIR_chosen, PAIR_none, PAIR_rows, PAIR_weights, PAIR = PAIR_chosen };
//@ end
#include "snippets/gemm_out.cuh"
#include "snippets/gemm_pair_ring.cuh"
#include "snippets/matrix_step_rows.cuh"

using format = weight_bf16;
using shape = weight_shape<format, N, K, T>;
/* Two CTAs share weights and take half of the rows each where the rows are too many for one, and where features are so
 * few that pairs with 64 of them fit on the machine at once: what a multiprocessor must be given is least for square
 * tiles. */
constexpr bool FEW = 4 % T == 0 && (shape::TILES + 3) / 4 * 2 <= SMS;
constexpr gemm_sharing SHARING =
    PAIR == PAIR_weights || ROWS > 256 || (PAIR == PAIR_chosen && FEW) ? SHARE_WEIGHTS
    : PAIR == PAIR_rows                                                ? SHARE_ROWS
                                                                       : SHARE_NOTHING;
/* 512 rows may be halves for a pair each, of the same features, where all four blocks of each are on the machine at once.
 * Long sums with 128 features were faster by pairs with 64. */
constexpr bool fits_twice(int features) {
    return features / 16 % T == 0 && (shape::TILES * 16 + features - 1) / features * 4 <= SMS;
}
constexpr int SPREAD = fits_twice(64) ? 64 : fits_twice(128) ? (K > 8192 ? 0 : 128) : fits_twice(192) ? 192 : 0;
constexpr bool SPREADS = PAIR == PAIR_chosen && ROWS == 512 && FEATURES + ROW_BLOCKS == 0 && SPREAD > 0;
/* More rows: as many pairs for the same 8 or, where groups don't fit, up to 12 tiles as the pass asks for. */
constexpr bool MANY = ROWS > 512;
constexpr int MANY_TILES = T % 3 == 0 || T == 5 ? 12 / T * T : 8 / T * T;
constexpr int BLOCKS = SPREADS ? 2 : ROW_BLOCKS ? ROW_BLOCKS : MANY ? 16 : 1;
constexpr int OF_CTA = SPREADS ? SPREAD : FEATURES ? FEATURES : MANY ? MANY_TILES * 16 : 0;
constexpr int OWN_ROWS = MANY ? (OF_CTA > 128 ? 128 : 192) : SHARING == SHARE_WEIGHTS ? ROWS / 2 / BLOCKS : ROWS;
constexpr int UNIT = OF_CTA ? OF_CTA / 16 / T : SHARING == SHARE_WEIGHTS && 4 % T == 0 ? 4 / T : 1; /* groups */
/* A warpgroup takes four tiles, one a warp; a warp without one repeats the last and writes nothing. */
constexpr int TILES = UNIT * T, WARPS = (TILES + 3) / 4 * 4;
/* Registers that one which multiplies takes from the helpers, where its share is not enough; they move between whole
 * warpgroups. */
constexpr int REGISTERS = WARPS > 8 ? 160 : OWN_ROWS > 128 && WARPS > 4 ? 232 : 0, HELPERS = REGISTERS ? 4 : 2;
constexpr int THREADS = 32 * (WARPS + HELPERS);
using ring = gemm_pair_ring<shape, UNIT, OWN_ROWS, WARPS, SHARING, BLOCKS>;
static_assert(WEIGHT == WEIGHT_bf16 && !(HAS_BIAS && EPILOGUE == EPILOGUE_swiglu), "no such kernel");
/* Steps of one batch of wgmmas: what a batch costs beside its steps is shared by them. Weights wait in registers, three
 * batches at a time. */
constexpr int STEPS = ring::R_BLOCKS * 4, BATCHES = shape::BLOCKS * 4 / STEPS;
constexpr int W_BATCHES = ring::W_BLOCKS * 4 / STEPS; /* batches of a weight stage */
constexpr gemm_kind KIND = gemm_kind_of(EPILOGUE == EPILOGUE_add, EPILOGUE == EPILOGUE_swiglu, OUT_BF16 != 0);
/* Rows of a CTA that a pass may have: those that leave the fewest idle. */
constexpr int SIZES = MANY ? 3 : 1;
constexpr int size_of(int i) {
    return OWN_ROWS - 32 * i;
}
using output = gemm_out<N, KIND, HAS_BIAS != 0>;

extern "C" __device__ const sf_cuda_launch KERNEL_LAUNCH = {
    ring::grid(SMS), THREADS, ring::SHARED, 1, ring::CLUSTER, 0, 0};

/* Where a warp stands: what it has loaded, and what it has multiplied. */
struct cursor {
    ring_place<ring::W_STAGES> w;
    ring_place<ring::R_STAGES> x;
    int loaded = 0; /* batches of weight stage w */
    int read = 0;   /* the weight stage that is multiplied, and its batches */
    int used = 0;
    bool held = false; /* a running wgmma may still read the activation stage before x */
};

/* The next batch's weights, once they are there. */
__device__ __forceinline__ unsigned await_weights(const ring &r, cursor &p, int tile) {
    if (p.loaded == 0) mbar_wait(r.w_full(p.w.stage), p.w.turn);
    const unsigned at = r.weights(p.w.stage) + tile / T * ring::RUN + (p.loaded * STEPS * T + tile % T) * format::STEP;
    if (++p.loaded == W_BATCHES) {
        p.w.next();
        p.loaded = 0;
    }
    return at;
}
__device__ __forceinline__ uint4 load_step(unsigned weights, int step, int lane) {
    return format::from_shared(weights + step * T * format::STEP, lane);
}

/* Queues a batch; meanwhile fills `next` with the weights of two batches on: between the wgmmas, each of which holds its
 * warp until the one before it has started. */
template <bool MORE, int SUMS>
__device__ __forceinline__ void batch(const ring &r, cursor &p, float (&d)[SUMS], const uint4 (&a)[STEPS],
                                      uint4 (&next)[STEPS], int tile, int lane) {
    const unsigned weights = MORE ? await_weights(r, p, tile) : 0;
    mbar_wait(r.r_full(p.x.stage), p.x.turn);
    const unsigned long long b = wgmma_descriptor(r.rows(p.x.stage));
#pragma unroll
    for (int q = 0; q < STEPS; q++) { /* 32 bytes a step, in blocks of OWN_ROWS * 128 */
        wgmma_begin();
        wgmma_step(d, a[q], b + q % 4 * 2 + q / 4 * (OWN_ROWS * 128 / 16));
        wgmma_commit();
        if (q == 0) wgmma_wait<1>(); /* what `next` held has been multiplied */
        if (MORE && q == 1) next[0] = load_step(weights, 0, lane);
        if (MORE && q > 0) next[q] = load_step(weights, q, lane);
    }
    if (p.held) r.release_rows_before(p.x.stage, lane);
    p.held = true;
    p.x.next();
    /* the weights are in registers now for certain: their stage may be given back */
    if (++p.used == W_BATCHES) {
        r.release_weights(p.read, lane);
        p.used = 0;
        if (++p.read == ring::W_STAGES) p.read = 0;
    }
}

__device__ __forceinline__ void load_batch(const ring &r, cursor &p, uint4 (&a)[STEPS], int tile, int lane) {
    const unsigned weights = await_weights(r, p, tile);
#pragma unroll
    for (int q = 0; q < STEPS; q++) a[q] = load_step(weights, q, lane);
}

/* All k of a unit. */
template <int SUMS>
__device__ __forceinline__ void multiply(const ring &r, cursor &p, float (&d)[SUMS], int tile, int lane) {
    constexpr int LOADING = BATCHES - 2, FIRST = LOADING % 3, MAIN = LOADING - FIRST;
    static_assert(BATCHES >= 3, "k is too short");
    uint4 a0[STEPS], a1[STEPS], a2[STEPS];
    if constexpr (FIRST == 2) load_batch(r, p, a1, tile, lane);
    if constexpr (FIRST >= 1) load_batch(r, p, a2, tile, lane);
    if constexpr (FIRST <= 1) load_batch(r, p, a0, tile, lane);
    if constexpr (FIRST == 0) load_batch(r, p, a1, tile, lane);
    if constexpr (FIRST == 2) batch<true>(r, p, d, a1, a0, tile, lane);
    if constexpr (FIRST >= 1) batch<true>(r, p, d, a2, a1, tile, lane);
#pragma unroll 1
    for (int s = 0; s < MAIN; s += 3) {
        batch<true>(r, p, d, a0, a2, tile, lane);
        batch<true>(r, p, d, a1, a0, tile, lane);
        batch<true>(r, p, d, a2, a1, tile, lane);
    }
    batch<false>(r, p, d, a0, a2, tile, lane);
    batch<false>(r, p, d, a1, a0, tile, lane);
    wgmma_wait<0>();
    r.release_rows_before(p.x.stage, lane);
    p.held = false;
}

template <int USED> __device__ __forceinline__ void consume(const ring &r, const output &out) {
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, tile = warp < TILES ? warp : TILES - 1;
    cursor p;
    for (int at = r.first(); at < r.pieces(); at += r.step()) {
        float d[USED / 2];
#pragma unroll
        for (int i = 0; i < USED / 2; i++) d[i] = 0.0f;
        multiply(r, p, d, tile, lane);
        if (warp >= TILES || !r.owned(at, tile / T)) continue;
        const int global = r.group(at, tile / T) * T + tile % T, row = r.first_row(at) + lane % 4 * 2;
        const float2 bias = out.biases(global, lane);
#pragma unroll
        for (int j = 0; j < USED / 8; j += 8) {
#pragma unroll
            for (int i = j; i < j + 8 && i < USED / 8; i++) out.take(d + i * 4, bias);
#pragma unroll
            for (int i = j; i < j + 8 && i < USED / 8; i++) out.put(d + i * 4, global, lane, i * 8 + row);
        }
    }
}

/* The size whose pieces, by turns, take least: one costs a little beside its rows. The largest of equals. */
template <int I = 0> __device__ __forceinline__ void choose_size(ring &r, int rows, int least = 1 << 30) {
    constexpr int PAIRS = ring::grid(SMS) / 2, SIZE = size_of(I), BESIDE = 16;
    const int blocks = (rows + 2 * SIZE - 1) / (2 * SIZE);
    const int cost = (ring::UNITS * blocks + PAIRS - 1) / PAIRS * (SIZE + BESIDE);
    if (cost < least) {
        least = cost;
        r.used = SIZE;
        r.row_blocks = blocks;
    }
    if constexpr (I + 1 < SIZES) choose_size<I + 1>(r, rows, least);
}

template <int I = 0> __device__ __forceinline__ void consume_size(const ring &r, const output &out) {
    if (SIZES == 1 || r.used == size_of(I)) consume<size_of(I)>(r, out);
    else if constexpr (I + 1 < SIZES) consume_size<I + 1>(r, out);
}

extern "C" __global__ void __launch_bounds__(THREADS, 1) KERNEL_NAME(sf_cuda_args a) {
    extern __shared__ char shared[];
    ring r;
    r.init(shared);
    pass_release();
    if constexpr (SIZES > 1) choose_size(r, LOGIT_ROWS ? a.block->n_logits : a.block->rows);
    if (threadIdx.x >= WARPS * 32) {
        if constexpr (REGISTERS > 0) registers_lower<32>();
        if (threadIdx.x == WARPS * 32) r.stream_weights((const char *)a.weight);
        if (threadIdx.x == WARPS * 32 + 32) {
            pass_wait();
            r.stream_rows((const char *)a.extra);
        }
    } else {
        if constexpr (REGISTERS > 0) registers_raise<REGISTERS>();
        pass_wait();
        const int rows = LOGIT_ROWS ? a.block->n_logits : a.block->rows;
        consume_size(r, output{a.out, a.bias, MANY || rows < ROWS ? rows : ROWS});
    }
    __syncwarp();
    if (ring::CLUSTER > 1) cluster_sync(); /* a neighbour may still write into this CTA's shared memory */
}
