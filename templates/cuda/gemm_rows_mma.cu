//@ template gemm_rows_mma
//@ op gemm
//@ backend cuda
//@ class pinned
//@ rows 1..16
//@ name r${ROWS}t${T}
//@ order: k ascending from 0 in steps of 16 (m16n8k16), one fp32 accumulator per output, no split
//@ param N          int = 6144 in 1..1048576 from op.n
//@ param K          int = 4096 in 8..1048576 from op.k
//@ param EPILOGUE   enum store|add|swiglu = store from op.epilogue
//@ param HAS_BIAS   int = 0 in 0..1 from op.has_bias
//@ param LOGIT_ROWS int = 0 in 0..1 from op.logit_rows
//@ param SMS        int = 132 in 1..1024 from config.sms
//@ param OUT_BF16   int = 0 in 0..1
//@ param WEIGHT     enum bf16 = bf16
//@ param T          int = 3 in 1..16 from op.tile     # tiles of 16 features a CTA takes at a time: the weight's packing
//@ param ROWS       int = 8 in 8..32 from bucket.rows
//@ param TILES_WARP int = 1 in 1..4                   # tiles of one warp; divides T
//@ param SPLIT      int = 0 in 0..4                   # warps that share a tile's rows; divides ROWS / 8; 0: chosen here
//@ param FAULT      int = 0 in 0..32                  # tests: the bucket of so many rows sums in another order
//@ prelude
#ifndef KERNEL_NAME
#define KERNEL_NAME   gemm_rows_mma_default
#define KERNEL_LAUNCH gemm_rows_mma_default_launch
#endif
enum { N = 6144, K = 4096, HAS_BIAS = 0, LOGIT_ROWS = 0, SMS = 132, OUT_BF16 = 0 };
enum { T = 3, ROWS = 8, TILES_WARP = 1, SPLIT = 0, FAULT = 0 };
enum { EPILOGUE_store, EPILOGUE_add, EPILOGUE_swiglu, EPILOGUE = EPILOGUE_store };
enum { WEIGHT_bf16, WEIGHT = WEIGHT_bf16 };
//@ end
#include "snippets/gemm_out.cuh"
#include "snippets/gemm_ring.cuh"
#include "snippets/gemm_step.cuh"

/* As many warps as hide a chain's latency, no more: idle ones poll barriers. */
constexpr int MOST = T <= 4 ? 4 : T <= 8 ? 2 : 1, SHARES = SPLIT ? SPLIT : ROWS / 8 < MOST ? ROWS / 8 : MOST;
constexpr int WARPS = T / TILES_WARP * SHARES, OCTETS = ROWS / 8 / SHARES;
static_assert(T % TILES_WARP == 0 && ROWS / 8 % SHARES == 0 && ROWS % 8 == 0, "warps share the work evenly");
static_assert(WEIGHT == WEIGHT_bf16 && !(HAS_BIAS && EPILOGUE == EPILOGUE_swiglu), "no such kernel");
using format = weight_bf16;
using shape = weight_shape<format, N, K, T>;
using ring = gemm_ring<shape, ROWS, 0, 1, WARPS>;
using step = gemm_step<format, T, TILES_WARP, OCTETS>;
constexpr gemm_kind KIND = gemm_kind_of(EPILOGUE == EPILOGUE_add, EPILOGUE == EPILOGUE_swiglu, OUT_BF16 != 0);
using output = gemm_out<N, KIND, HAS_BIAS != 0>;

extern "C" __device__ const sf_cuda_launch KERNEL_LAUNCH = {
    even_grid(shape::GROUPS, SMS, 1), 32 * (WARPS + 2), ring::SHARED, 1, 0, 0, 0};

/* A warp's place: its first tile in the group, its first row. */
struct place {
    int lane, tile, row;
};

__device__ __forceinline__ void consume(const ring &r, const output &out) {
    const int warp = threadIdx.x / 32;
    const place p = {(int)threadIdx.x % 32, warp / SHARES * TILES_WARP, warp % SHARES * OCTETS * 8};
    ring_place<ring::W_STAGES> w;
    ring_place<ring::R_STAGES> x;
    for (int at = r.first(); at < shape::GROUPS; at += gridDim.x) {
        float d[TILES_WARP][OCTETS][4] = {};
        for (int c = 0; c < shape::BLOCKS / ring::W_BLOCKS; c++, w.next(), x.next()) {
            mbar_wait(r.w_full(w.stage), w.turn);
            mbar_wait(r.r_full(x.stage), x.turn);
            const unsigned weights = r.weights(w.stage) + p.tile * format::STEP;
            const unsigned rows = r.rows(x.stage) + p.row * 128;
#pragma unroll
            for (int i = 0; i < ring::W_BLOCKS; i++) {
                const int block = FAULT == ROWS ? ring::W_BLOCKS - 1 - i : i;
                step::run<2>(d, weights + block * shape::BLOCK, rows + block * ROWS * 128, p.lane);
            }
            __syncwarp();
            if (p.lane == 0) {
                r.release_weights(w.stage);
                r.release_rows(x.stage);
            }
        }
        const int tile = at * T + p.tile, row = p.row + p.lane % 4 * 2;
#pragma unroll
        for (int i = 0; i < TILES_WARP * OCTETS; i++)
            out.take(d[i / OCTETS][i % OCTETS], out.biases(tile + i / OCTETS, p.lane));
#pragma unroll
        for (int i = 0; i < TILES_WARP * OCTETS; i++)
            out.put(d[i / OCTETS][i % OCTETS], tile + i / OCTETS, p.lane, row + i % OCTETS * 8);
    }
}

extern "C" __global__ void __launch_bounds__(32 * (WARPS + 2), 1) KERNEL_NAME(sf_cuda_args a) {
    extern __shared__ char shared[];
    ring r;
    r.init(shared);
    pass_release();
    if (threadIdx.x == WARPS * 32) r.stream_weights((const char *)a.weight);
    if (threadIdx.x == WARPS * 32 + 32) {
        pass_wait();
        r.stream_rows((const char *)a.extra);
    }
    if (threadIdx.x >= WARPS * 32) return;
    pass_wait();
    const int rows = LOGIT_ROWS ? a.block->n_logits : a.block->rows;
    consume(r, output{a.out, a.bias, rows < ROWS ? rows : ROWS});
}
