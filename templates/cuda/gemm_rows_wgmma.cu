//@ template gemm_rows_wgmma
//@ op gemm
//@ backend cuda
//@ class pinned
//@ rows 33..128
//@ name r${ROWS}t${T}c${CLUSTER}
//@ order: k ascending from 0 in steps of 16 (wgmma k16), one fp32 accumulator per output, no split
//@ param N          int = 6144 in 1..1048576 from op.n
//@ param K          int = 4096 in 8..1048576 from op.k
//@ param EPILOGUE   enum store|add|swiglu = store from op.epilogue
//@ param HAS_BIAS   int = 0 in 0..1 from op.has_bias
//@ param INPUT_ROWS int = 0 in 0..1 from op.input_rows
//@ param SMS        int = 132 in 1..1024 from config.sms
//@ param OUT_BF16   int = 0 in 0..1
//@ param WEIGHT     enum bf16 = bf16
//@ param T          int = 3 in 1..16      tiles of 16 features a CTA takes at a time: the weight's packing
//@ param ROWS       int = 64 in 64..128   rows of the bucket: 64 or 128
//@ param CLUSTER    int = 2 in 1..2       CTAs that share the activations they load
//@ prelude
#ifndef KERNEL_NAME
#define KERNEL_NAME   gemm_rows_wgmma_default
#define KERNEL_LAUNCH gemm_rows_wgmma_default_launch
#endif
enum { N = 6144, K = 4096, HAS_BIAS = 0, INPUT_ROWS = 0, SMS = 132, OUT_BF16 = 0 };
enum { T = 3, ROWS = 64, CLUSTER = 2 };
enum { EPILOGUE_store, EPILOGUE_add, EPILOGUE_swiglu, EPILOGUE = EPILOGUE_store };
enum { WEIGHT_bf16, WEIGHT = WEIGHT_bf16 };
//@ end
#include "snippets/gemm_out.cuh"
#include "snippets/gemm_ring.cuh"

/* A warpgroup takes four tiles, one a warp; a warp without one multiplies by zeros. */
constexpr int WARPS = (T + 3) / 4 * 4, SUMS = ROWS / 2;
using format = weight_bf16;
using shape = weight_shape<format, N, K, T>;
/* Four consumer warpgroups need more registers than an even share: the producers' go to them. */
constexpr bool MOVE = WARPS == 16;
constexpr int THREADS = 32 * (WARPS + (MOVE ? 4 : 2));
/* Steps of one batch of wgmmas; batches of a 64-k block. Batches come in pairs: an odd one costs a serialised pipeline. */
constexpr int STEPS = MOVE || shape::BLOCKS % 2 ? 2 : 4, PARTS = 4 / STEPS;
static_assert(WEIGHT == WEIGHT_bf16 && !(HAS_BIAS && EPILOGUE == EPILOGUE_swiglu), "no such kernel");
using ring = gemm_ring<shape, ROWS, 1, CLUSTER, WARPS>;
using output = gemm_out<N,
                        EPILOGUE == EPILOGUE_add      ? GEMM_ADD
                        : EPILOGUE == EPILOGUE_swiglu ? GEMM_SWIGLU
                        : OUT_BF16                    ? GEMM_STORE_BF16
                                                      : GEMM_STORE,
                        HAS_BIAS != 0>;

extern "C" __device__ const sf_cuda_launch KERNEL_LAUNCH = {
    even_grid(shape::GROUPS, SMS / CLUSTER * CLUSTER, CLUSTER), THREADS, ring::SHARED, 1, CLUSTER};

struct cursor {
    ring_place<ring::W_STAGES> w;
    ring_place<ring::R_STAGES> x;
    int span = 0;  /* in the weight stage */
    int part = 0;  /* in the activation stage */
    int held = -1; /* activation stage that a running wgmma still reads */
};

/* The next 16 STEPS k. a is overwritten: only the wgmmas of the span before may still run, and they read the other. */
__device__ __forceinline__ void span_step(const ring &r, cursor &p, float (&d)[SUMS], uint4 (&a)[STEPS], int tile,
                                          int lane) {
    if (p.span == 0) mbar_wait(r.w_full(p.w.stage), p.w.turn);
    const unsigned weights = r.weights(p.w.stage) + (p.span * STEPS * T + tile) * format::STEP;
#pragma unroll
    for (int q = 0; q < STEPS; q++)
        a[q] = tile < T ? format::from_shared(weights + q * T * format::STEP, lane) : make_uint4(0, 0, 0, 0);
    if (++p.span == ring::W_BLOCKS * PARTS) {
        __syncwarp();
        if (lane == 0) r.release_weights(p.w.stage);
        p.w.next();
        p.span = 0;
    }
    if (p.part == 0) mbar_wait(r.r_full(p.x.stage), p.x.turn);
    const unsigned long long b = wgmma_descriptor(r.rows(p.x.stage) + p.part * STEPS * 32);
    wgmma_begin();
#pragma unroll
    for (int q = 0; q < STEPS; q++) wgmma_step(d, a[q], b + q * 2);
    wgmma_commit();
    wgmma_wait<1>();
    if (p.part == 0 && p.held >= 0 && lane == 0) r.release_rows(p.held);
    if (++p.part == PARTS) {
        p.part = 0;
        p.held = p.x.stage;
        p.x.next();
    }
}

__device__ __forceinline__ void consume(const ring &r, const output &out) {
    const int lane = threadIdx.x % 32, tile = threadIdx.x / 32;
    cursor p;
    for (int at = r.first(); at < shape::GROUPS; at += gridDim.x) {
        float d[SUMS];
        uint4 even[STEPS], odd[STEPS];
#pragma unroll
        for (int i = 0; i < SUMS; i++) d[i] = 0.0f;
#pragma unroll 1
        for (int s = 0; s < shape::BLOCKS * PARTS; s += 2) {
            span_step(r, p, d, even, tile, lane);
            span_step(r, p, d, odd, tile, lane);
        }
        wgmma_wait<0>();
        if (lane == 0) r.release_rows(p.held);
        p.held = -1;
        if (tile >= T || !r.owned(at)) continue;
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
        if constexpr (MOVE) registers_lower<24>();
        if (threadIdx.x == WARPS * 32) r.stream_weights((const char *)a.weight);
        if (threadIdx.x == WARPS * 32 + 32) {
            pass_wait();
            r.stream_rows((const char *)a.extra);
        }
    } else {
        if constexpr (MOVE) registers_raise<120>();
        pass_wait();
        const int rows = INPUT_ROWS ? a.block->n_logits : a.block->rows;
        consume(r, output{a.out, a.bias, rows < ROWS ? rows : ROWS});
    }
    __syncwarp();
    if (CLUSTER > 1) cluster_sync(); /* a neighbour may still write into this CTA's shared memory */
}
