//@ template gemm_rows_wgmma
//@ op gemm
//@ backend cuda
//@ class both
//@ rows 33..128
//@ name r${ROWS}t${T}c${CLUSTER}
//@ order: k ascending from 0 in steps of 16 (wgmma k16), one fp32 accumulator per output, no split
//@ param N          int = 6144 in 1..1048576 from op.n
//@ param K          int = 4096 in 8..1048576 from op.k
//@ param EPILOGUE   enum store|add|swiglu = store from op.epilogue
//@ param HAS_BIAS   int = 0 in 0..1 from op.has_bias
//@ param LOGIT_ROWS int = 0 in 0..1 from op.logit_rows
//@ param SMS        int = 132 in 1..1024 from config.sms
//@ param OUT_BF16   int = 0 in 0..1
//@ param WEIGHT     enum bf16 = bf16
//@ param T          int = 3 in 1..8 from op.tile           # tiles of 16 features a CTA takes at a time: the weight's packing
//@ param ROWS       int = 64 in 64..128 from bucket.rows   # 64 or 128
//@ param CLUSTER    int = 1 in 1..2                        # CTAs that share the activations they load
//@ prelude
#ifndef KERNEL_NAME
#define KERNEL_NAME   gemm_rows_wgmma_default
#define KERNEL_LAUNCH gemm_rows_wgmma_default_launch
#endif
enum { N = 6144, K = 4096, HAS_BIAS = 0, LOGIT_ROWS = 0, SMS = 132, OUT_BF16 = 0 };
enum { T = 3, ROWS = 64, CLUSTER = 1 };
enum { EPILOGUE_store, EPILOGUE_add, EPILOGUE_swiglu, EPILOGUE = EPILOGUE_store };
enum { WEIGHT_bf16, WEIGHT = WEIGHT_bf16 };
//@ end
#include "snippets/gemm_out.cuh"
#include "snippets/gemm_ring.cuh"

/* A warpgroup takes four tiles, one a warp; a warp without one repeats the last and writes nothing. */
constexpr int WARPS = (T + 3) / 4 * 4, SUMS = ROWS / 2;
using format = weight_bf16;
using shape = weight_shape<format, N, K, T>;
constexpr int THREADS = 32 * (WARPS + 2);
/* Steps of one batch of wgmmas: what a batch costs beside its steps is shared by them, and a batch's weights wait in
 * registers, three batches at a time. */
constexpr int STEPS = shape::copy_blocks() % 2 ? 4 : 8;
constexpr int BATCHES = shape::BLOCKS * 4 / STEPS;
static_assert(WEIGHT == WEIGHT_bf16 && !(HAS_BIAS && EPILOGUE == EPILOGUE_swiglu), "no such kernel");
using ring = gemm_ring<shape, ROWS, STEPS == 8 ? 2 : 1, CLUSTER, WARPS>;
constexpr int W_BATCHES = ring::W_BLOCKS * 4 / STEPS; /* batches of a weight stage */
constexpr int PARTS = ring::R_BLOCKS * 4 / STEPS; /* batches of an activation stage */
using output = gemm_out<N,
                        EPILOGUE == EPILOGUE_add      ? GEMM_ADD
                        : EPILOGUE == EPILOGUE_swiglu ? GEMM_SWIGLU
                        : OUT_BF16                    ? GEMM_STORE_BF16
                                                      : GEMM_STORE,
                        HAS_BIAS != 0>;

extern "C" __device__ const sf_cuda_launch KERNEL_LAUNCH = {
    even_grid(shape::GROUPS, SMS / CLUSTER * CLUSTER, CLUSTER), THREADS, ring::SHARED, 1, CLUSTER, 0, 0};

/* Where a warp stands: what it has loaded, and what it has multiplied. */
struct cursor {
    ring_place<ring::W_STAGES> w;
    ring_place<ring::R_STAGES> x;
    int loaded = 0; /* batches of weight stage w */
    int read = 0;   /* the weight stage that is multiplied, and its batches */
    int used = 0;
    int part = 0; /* batches of activation stage x */
    bool held = false; /* a running wgmma still reads the activation stage before x */
};

/* The next batch's weights. */
__device__ __forceinline__ void load_batch(const ring &r, cursor &p, uint4 (&a)[STEPS], int tile, int lane) {
    if (p.loaded == 0) mbar_wait(r.w_full(p.w.stage), p.w.turn);
    const unsigned weights = r.weights(p.w.stage) + (p.loaded * STEPS * T + tile) * format::STEP;
#pragma unroll
    for (int q = 0; q < STEPS; q++)
        a[q] = format::from_shared(weights + q * T * format::STEP, lane);
    if (++p.loaded == W_BATCHES) {
        p.w.next();
        p.loaded = 0;
    }
}

/* Queues a batch and waits for the one before. */
__device__ __forceinline__ void multiply_batch(const ring &r, cursor &p, float (&d)[SUMS], const uint4 (&a)[STEPS],
                                               int lane) {
    if (p.part == 0) mbar_wait(r.r_full(p.x.stage), p.x.turn);
    const unsigned long long b = wgmma_descriptor(r.rows(p.x.stage));
    wgmma_begin();
#pragma unroll
    for (int q = 0; q < STEPS; q++) {
        const int step = PARTS > 1 ? p.part * STEPS + q : q; /* in the stage: 32 bytes of a block of ROWS * 128 */
        wgmma_step(d, a[q], b + step % 4 * 2 + step / 4 * (ROWS * 128 / 16));
    }
    wgmma_commit();
    /* the weights are in registers now for certain: their stage may be given back */
    if (++p.used == W_BATCHES) {
        if (lane == 0) r.release_weights(p.read);
        p.used = 0;
        if (++p.read == ring::W_STAGES) p.read = 0;
    }
    wgmma_wait<1>();
    if (p.part == 0 && p.held) r.release_rows_before(p.x.stage, lane);
    if (++p.part == PARTS) {
        p.part = 0;
        p.held = true;
        p.x.next();
    }
}

/* All k of a group. The next batch is loaded before this one is queued: a wgmma whose weights are registers holds its
 * warp until it starts. */
__device__ __forceinline__ void multiply(const ring &r, cursor &p, float (&d)[SUMS], int tile, int lane) {
    /* a loop that leaves one or three batches to its end; after one that leaves two ptxas serialises the wgmmas */
    constexpr int FIRST = BATCHES % 3 == 2 ? 2 : 0, MAIN = (BATCHES - FIRST - 1) / 3 * 3;
    constexpr int LEFT = BATCHES - FIRST - MAIN;
    static_assert(BATCHES > 3, "k is too short");
    uint4 a0[STEPS], a1[STEPS], a2[STEPS];
    if constexpr (FIRST == 2) {
        load_batch(r, p, a1, tile, lane);
        load_batch(r, p, a2, tile, lane);
        multiply_batch(r, p, d, a1, lane);
    }
    load_batch(r, p, a0, tile, lane);
    if constexpr (FIRST == 2) multiply_batch(r, p, d, a2, lane);
#pragma unroll 1
    for (int s = 0; s < MAIN; s += 3) {
        load_batch(r, p, a1, tile, lane);
        multiply_batch(r, p, d, a0, lane);
        load_batch(r, p, a2, tile, lane);
        multiply_batch(r, p, d, a1, lane);
        load_batch(r, p, a0, tile, lane);
        multiply_batch(r, p, d, a2, lane);
    }
    if constexpr (LEFT == 3) load_batch(r, p, a1, tile, lane);
    multiply_batch(r, p, d, a0, lane);
    if constexpr (LEFT == 3) {
        load_batch(r, p, a2, tile, lane);
        multiply_batch(r, p, d, a1, lane);
        multiply_batch(r, p, d, a2, lane);
    }
}

__device__ __forceinline__ void consume(const ring &r, const output &out) {
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, tile = warp < T ? warp : T - 1;
    cursor p;
    for (int at = r.first(); at < shape::GROUPS; at += gridDim.x) {
        float d[SUMS];
#pragma unroll
        for (int i = 0; i < SUMS; i++) d[i] = 0.0f;
        multiply(r, p, d, tile, lane);
        wgmma_wait<0>();
        r.release_rows_before(p.x.stage, lane);
        p.held = false;
        if (warp >= T || !r.owned(at)) continue;
        const int global = r.group(at) * T + tile, row = lane % 4 * 2;
#pragma unroll
        for (int j = 0; j < ROWS / 8; j++) out.take(d + j * 4, global, lane, j * 8 + row);
#pragma unroll
        for (int j = 0; j < ROWS / 8; j++) out.put(d + j * 4, global, lane, j * 8 + row);
    }
}

extern "C" __global__ void __launch_bounds__(THREADS, 1) KERNEL_NAME(sf_cuda_args a) {
    extern __shared__ char shared[];
    ring r;
    r.init(shared);
    pass_release();
    if (threadIdx.x >= WARPS * 32) {
        if (threadIdx.x == WARPS * 32) r.stream_weights((const char *)a.weight);
        if (threadIdx.x == WARPS * 32 + 32) {
            pass_wait();
            r.stream_rows((const char *)a.extra);
        }
    } else {
        pass_wait();
        const int rows = LOGIT_ROWS ? a.block->n_logits : a.block->rows;
        consume(r, output{a.out, a.bias, rows < ROWS ? rows : ROWS});
    }
    __syncwarp();
    if (CLUSTER > 1) cluster_sync(); /* a neighbour may still write into this CTA's shared memory */
}
