//@ template gemm_fast_rows
//@ op gemm
//@ backend cuda
//@ class fast
//@ rows 1..32
//@ name r${ROWS}t${T}
//@ order: k in stages that the warps of a block take in turn, and in halves by the blocks of a cluster; each warp ascending in steps of 16 (m16n8k16), its own fp32 accumulators; the parts added at the end (snippets/gemm_combine.cuh)
//@ param N          int = 6144 in 1..1048576 from op.n
//@ param K          int = 4096 in 8..1048576 from op.k
//@ param EPILOGUE   enum store|add|swiglu = store from op.epilogue
//@ param HAS_BIAS   int = 0 in 0..1 from op.has_bias
//@ param LOGIT_ROWS int = 0 in 0..1 from op.logit_rows
//@ param SMS        int = 132 in 1..1024 from config.sms
//@ param OUT_BF16   int = 0 in 0..1
//@ param WEIGHT     enum bf16 = bf16
//@ param T          int = 3 in 1..8 from op.tile     # tiles of 16 features a CTA takes at a time: the weight's packing
//@ param ROWS       int = 8 in 8..32 from bucket.rows
//@ param TILES_WARP int = 0 in 0..8                   # tiles of one warp; divides T; 0, here and below: chosen here
//@ param ROW_SHARES int = 0 in 0..4                   # warps that share a tile's rows; divides ROWS / 8
//@ param SPLIT      int = 0 in 0..12                  # warps that take stages in turn
//@ param CTAS       int = 0 in 0..4                   # CTAs of a cluster that share k
//@ param COPY_KIB   int = 0 in 0..16                  # of weights in a stage, at most
//@ prelude
#ifndef KERNEL_NAME
#define KERNEL_NAME   gemm_fast_rows_default
#define KERNEL_LAUNCH gemm_fast_rows_default_launch
#endif
enum { N = 6144, K = 4096, HAS_BIAS = 0, LOGIT_ROWS = 0, SMS = 132, OUT_BF16 = 0 };
enum { T = 3, ROWS = 8, TILES_WARP = 0, ROW_SHARES = 0, SPLIT = 0, CTAS = 0, COPY_KIB = 0 };
enum { EPILOGUE_store, EPILOGUE_add, EPILOGUE_swiglu, EPILOGUE = EPILOGUE_store };
enum { WEIGHT_bf16, WEIGHT = WEIGHT_bf16 };
//@ end
#include "snippets/gemm_combine.cuh"
#include "snippets/gemm_out.cuh"
#include "snippets/gemm_ring.cuh"
#include "snippets/gemm_step.cuh"

using format = weight_bf16;
using whole = weight_shape<format, N, K, T>;
static_assert(WEIGHT == WEIGHT_bf16 && !(HAS_BIAS && EPILOGUE == EPILOGUE_swiglu), "no such kernel");

constexpr int least(int a, int b) {
    return a < b ? a : b;
}

constexpr bool LONG = K > 2048;
/* What is chosen here was fastest, or within the noise of it, in the chain of a step (bench/gpu/gemm sweep). Where a
 * group a CTA would leave half the multiprocessors idle, two share its k, if that is long. */
constexpr int CLUSTER = CTAS ? CTAS : whole::GROUPS * 2 <= SMS && whole::BLOCKS % 2 == 0 && LONG ? 2 : 1;
using shape = weight_part<whole, CLUSTER, (COPY_KIB ? COPY_KIB : 16) * 1024>;
static_assert(CLUSTER == 1 || shape::GROUPS <= SMS, "a cluster takes one group");
constexpr int LIKELY = T % 2 ? 1 : T == 8 ? 4 : T == 4 && ROWS > 8 ? 2 : T == 2 && ROWS == 8 && !LONG ? 2 : 1;
constexpr int TILES = TILES_WARP ? TILES_WARP : LIKELY;
/* Whether each half of the rows has warps of its own. */
constexpr bool HALVES = LONG ? CLUSTER > 1 && ROWS > 8 : T == 2 ? ROWS > 8 : T == 1 && ROWS > 16;
constexpr int SHARES = ROW_SHARES ? ROW_SHARES : HALVES ? 2 : 1;
constexpr int UNITS = T / TILES * SHARES, OCTETS = ROWS / 8 / SHARES;
constexpr int STAGES = shape::BLOCKS / shape::copy_blocks(); /* of a group's part */
/* Eight warps or so; each with two stages of activations on the way, where they do not all fit. */
constexpr int FED = LONG ? 32768 / (shape::copy_blocks() * ROWS * 128) : 4;
constexpr int EIGHT = UNITS > 4 ? 2 : LONG ? 8 / UNITS : 4;
constexpr int WAYS = SPLIT ? SPLIT : least(STAGES, least(FED, EIGHT)), WARPS = UNITS * WAYS;
constexpr int GRID = even_grid(shape::GROUPS, SMS, CLUSTER), TURNS = (shape::GROUPS + GRID - 1) / GRID;
static_assert(T % TILES == 0 && ROWS % (8 * SHARES) == 0, "warps share the work evenly");
using combine = gemm_combine<UNITS, TILES, OCTETS, WAYS, CLUSTER>;

/* A ring no longer than its work leaves room for the next kernel's blocks, whose weights then come early. */
struct limits : ring_limits {
    static constexpr int FREE = combine::BYTES, OWNERS = WAYS, USED = STAGES * TURNS;
    static constexpr int MOST = USED < 2 ? 2 : USED < 32 ? USED : 32;
};
using ring = gemm_ring<shape, ROWS, 0, 1, UNITS, limits>;
using step = gemm_step<format, T, TILES, OCTETS>;
constexpr gemm_kind KIND = gemm_kind_of(EPILOGUE == EPILOGUE_add, EPILOGUE == EPILOGUE_swiglu, OUT_BF16 != 0);
using output = gemm_out<N, KIND, HAS_BIAS != 0>;

extern "C" __device__ const sf_cuda_launch KERNEL_LAUNCH = {
    GRID, 32 * (WARPS + 2), ring::SHARED, 1, CLUSTER > 1 ? CLUSTER : 0, 0, 0};

/* A warp's place: its tiles and rows, its stages among those taken in turn, its CTA's part of k. */
struct place {
    int lane, unit, way, rank;
    __device__ __forceinline__ int tile() const { return unit / SHARES * TILES; }
    __device__ __forceinline__ int row() const { return unit % SHARES * OCTETS * 8; }
};

/* Where a cluster shares k, all of its threads meet twice: its CTAs run before anything is stored into them, and the
 * last store is done before it is read. */
__device__ __forceinline__ void cluster_begun(void) {
    if (CLUSTER > 1) cluster_wait();
}
__device__ __forceinline__ void parts_left(void) {
    if (CLUSTER > 1) cluster_sync();
    else if (WAYS > 1) group_sync(1, WARPS * 32);
}

/* A group's stages up to `end`, of which this warp takes every WAYS-th from n on. */
__device__ __forceinline__ void multiply(const ring &r, const place &p, float (&d)[TILES][OCTETS][4],
                                         ring_place<ring::W_STAGES> &w, ring_place<ring::R_STAGES> &x, int &n, int end) {
    for (; n < end; n += WAYS, w.template skip<WAYS>(), x.template skip<WAYS>()) {
        mbar_wait(r.w_full(w.stage), w.turn);
        mbar_wait(r.r_full(x.stage), x.turn);
        const unsigned weights = r.weights(w.stage) + p.tile() * format::STEP;
        const unsigned rows = r.rows(x.stage) + p.row() * 128;
#pragma unroll
        for (int i = 0; i < 2 * ring::W_BLOCKS; i++)
            step::template run<1>(d, weights + i / 2 * shape::BLOCK, rows + i / 2 * ROWS * 128, p.lane, i % 2);
        __syncwarp();
        if (p.lane == 0) {
            r.release_weights(w.stage);
            r.release_rows(x.stage);
        }
    }
}

/* Every part takes its fragments, waits for the others and puts the sums out. */
__device__ __forceinline__ void put(const combine &c, const place &p, const output &out, float (&d)[TILES][OCTETS][4],
                                    int group) {
    const int tile = group * T + p.tile(), row = p.row() + p.lane % 4 * 2;
    if (TURNS > 1 && WAYS > 1) group_sync(1, WARPS * 32); /* the group before has been read */
    c.leave(d);
#pragma unroll
    for (int i = 0; i < TILES * OCTETS; i++)
        if (c.owns(i)) out.take(d[i / OCTETS][i % OCTETS], out.biases(tile + i / OCTETS, p.lane));
    parts_left();
#pragma unroll
    for (int i = 0; i < TILES * OCTETS; i++)
        if (c.owns(i)) {
            c.gather(d[i / OCTETS][i % OCTETS], i);
            out.put(d[i / OCTETS][i % OCTETS], tile + i / OCTETS, p.lane, row + i % OCTETS * 8);
        }
}

__device__ __forceinline__ void consume(const ring &r, const place &p, const output &out) {
    const combine c = {r.behind(), p.unit, p.rank * WAYS + p.way};
    ring_place<ring::W_STAGES> w;
    ring_place<ring::R_STAGES> x;
    w.stage = x.stage = p.way;
    int n = p.way, end = 0;
    for (int at = r.first(); at < shape::GROUPS; at += gridDim.x) {
        float d[TILES][OCTETS][4] = {};
        end += STAGES;
        multiply(r, p, d, w, x, n, end);
        cluster_begun();
        put(c, p, out, d, at / CLUSTER);
    }
}

extern "C" __global__ void __launch_bounds__(32 * (WARPS + 2), 1) KERNEL_NAME(sf_cuda_args a) {
    extern __shared__ char shared[];
    ring r;
    r.init(shared);
    if (CLUSTER > 1) cluster_arrive();
    pass_release();
    const int warp = threadIdx.x / 32, rank = blockIdx.x % CLUSTER;
    if (warp < WARPS) {
        pass_wait();
        const int rows = LOGIT_ROWS ? a.block->n_logits : a.block->rows;
        consume(r, place{(int)threadIdx.x % 32, warp / WAYS, warp % WAYS, rank},
                output{a.out, a.bias, rows < ROWS ? rows : ROWS});
        return;
    }
    if (threadIdx.x == WARPS * 32) r.stream_weights((const char *)a.weight);
    if (threadIdx.x == WARPS * 32 + 32) {
        pass_wait();
        r.stream_rows((const char *)a.extra, rank * shape::BLOCKS);
    }
    __syncwarp();
    cluster_begun();
    if (CLUSTER > 1) parts_left();
}
