//@ template sample_cuda
//@ op sample
//@ backend cuda
//@ class both
//@ rows 1..
//@ name
//@ order: exp in four sums a thread, ids ascending, a fixed tree a block, blocks ascending; masses of top_p in 64-bit fixed point
//@ param VOCAB   int = 128256 in 2..1048576 from model.vocab
//@ param CONTEXT int = 8192 in 1..1048576 from config.context
//@ param CLUSTER int = 8 in 1..8
//@ param GRID    int = 256 in 1..65536
//@ prelude
#ifndef KERNEL_NAME
#define KERNEL_NAME   sample_cuda_default
#define KERNEL_LAUNCH sample_cuda_default_launch
#endif
enum { VOCAB = 128256, CONTEXT = 8192, CLUSTER = 8, GRID = 256 };
//@ end
#include "snippets/sample_filter.cuh"

/* a.in: logits fp32 [n_logits, VOCAB]; a.extra: sf_row_out [n_logits]; a.out: int [n_logits], the drawn tokens, or NULL.
 * A cluster of CLUSTER blocks of 512 threads takes a logit row at a time, each block an equal part of the vocabulary. */
static_assert(GRID % CLUSTER == 0 && CONTEXT >= 1, "whole clusters");

extern "C" __device__ const sf_cuda_launch KERNEL_LAUNCH = {
    GRID, BLOCK_THREADS, (int)sizeof(row_shared), 1, CLUSTER, CLUSTER, 0};

/* Of the raw logits: the greatest with its id, the log of the sum of exp(x - max). */
struct row_stats {
    u64 best;
    float log_sum;
    bool bad; /* a NaN, an infinity above, or nothing but -inf */
    __device__ __forceinline__ float logprob(float x) const {
        return __fsub_rn(__fsub_rn(__fadd_rn(x, 0.0f), ranked_value(best)), log_sum);
    }
};

/* The block's share of a row: into shared memory, and its greatest and its sum into the row's slots. */
__device__ __forceinline__ void measure(const row_part &p, const float *x, row_slots *slots) {
    bool bad = false;
    best_value best;
#pragma unroll 4
    for (int i = (int)threadIdx.x * 4; i < p.n; i += BLOCK_THREADS * 4) {
        const float4 v = part_quad(p, x, i);
        *(float4 *)(p.s->z + i) = v;
        bad = bad || !(v.x < SF_INF) || !(v.y < SF_INF) || !(v.z < SF_INF) || !(v.w < SF_INF);
        best.see4(v, p.first + i);
    }
    bad = __syncthreads_or(bad) != 0;
    const u64 own = block_max(best.rank(), p.s->scratch);
    const float sum = part_sum(p, p.n > 0 ? ranked_value(own) : -SF_INF);
    if (threadIdx.x != 0) return;
    slots->best = p.n > 0 ? own : 0;
    slots->sum_bad = (u64)(unsigned)__float_as_int(sum) << 32 | (unsigned)bad;
}

/* Of all blocks' shares, once they have met; sums in the order of the blocks. */
__device__ __forceinline__ row_stats together(const row_slots *slots) {
    row_stats r;
    float total = 0.0f;
    r.best = cluster_best(&slots->best);
    const float max = ranked_value(r.best);
    r.bad = max == -SF_INF;
    for (int b = 0; b < CLUSTER; b++) {
        const u64 part = cluster_read(&slots->best, b), other = cluster_read(&slots->sum_bad, b);
        r.bad = r.bad || (other & 1);
        if (part != 0)
            total = __fadd_rn(total, __fmul_rn(__int_as_float((int)(other >> 32)),
                                               exp_exact(__fsub_rn(ranked_value(part), max))));
    }
    r.log_sum = log_exact(total);
    return r;
}

/* (logit - max) / T, exactly and nearly: the latter is enough to tell which tokens can not win. */
struct scale_t {
    float max, temperature, inverse;
    bool done; /* z is (logit - max) / T already */
    __device__ __forceinline__ float exact(float z) const {
        return done ? z : __fdiv_rn(__fsub_rn(z, max), temperature);
    }
    __device__ __forceinline__ float about(float z) const { return done ? z : __fmul_rn(__fsub_rn(z, max), inverse); }
};

/* The highest z + noise of this block that reaches the row's likeliest token's (id `sure`, z = 0). The noise of v is
 * at most -log v, so a token whose v is greater than e^(z - best) can't win: few logarithms are taken. The bound allows
 * for 0.001 of error; a NaN in it prunes nothing. */
__device__ __forceinline__ u64 part_gumbel(const row_part &p, const sf_cuda_sample &s, const scale_t &scale, int sure) {
    const uint4 sure_words = draw_words(s, (unsigned)sure / 4);
    const unsigned sure_word = sure % 4 < 2 ? sure % 4 ? sure_words.y : sure_words.x : sure % 4 == 2 ? sure_words.z : sure_words.w;
    float best = -SF_INF, limit = gumbel(sure_word);
    int arg = -1;
    for (int i = (int)threadIdx.x * 4; i < p.n; i += BLOCK_THREADS * 4) {
        const float4 v = part_quad(p, p.s->z, i);
        const float z[4] = {v.x, v.y, v.z, v.w};
        if (scale.about(fmaxf(fmaxf(v.x, v.y), fmaxf(v.z, v.w))) < limit - 23.0f) continue;
        const uint4 w = draw_words(s, (unsigned)(p.first + i) / 4);
        const unsigned words[4] = {w.x, w.y, w.z, w.w};
#pragma unroll
        for (int j = 0; j < 4; j++) {
            const float needed = exp2_fast(__fmul_rn(__fsub_rn(scale.about(z[j]), limit), LOG2E));
            if (__fmul_rn((float)words[j], 2.32830644e-10f) > __fmul_rn(needed, 1.001f)) continue;
            const float score = __fadd_rn(scale.exact(z[j]), gumbel(words[j]));
            if (score > best) {
                best = score;
                arg = p.first + i + j;
            }
            limit = fmaxf(limit, best);
        }
    }
    return block_max(arg < 0 ? 0 : ranked(best, arg), p.s->scratch);
}

/* top_k, then (z - max) / T, top_p and min_p. */
__device__ __forceinline__ void filter(row_part p, int top_k, float temperature, float top_p, float min_p, float max) {
    int turn = 0;
    cluster_top_k(p, &turn, top_k);
    for (int i = (int)threadIdx.x; i < p.n; i += BLOCK_THREADS)
        p.s->z[i] = __fdiv_rn(__fsub_rn(p.s->z[i], max), temperature);
    __syncthreads();
    cluster_top_p(p, &turn, top_p);
    if (min_p > 0.0f)
        for (int i = (int)threadIdx.x; i < p.n; i += BLOCK_THREADS)
            if (exp_exact(p.s->z[i]) < min_p) p.s->z[i] = -SF_INF;
    __syncthreads();
}

/* The drawn token or -1. s->touched: s->z is no longer the raw row (in shared memory: a pointer to a caller's variable would
 * put it in local memory). A call: its registers are not the rest's. */
__device__ __noinline__ int draw(row_part p, const sf_cuda_sample &s, const int *pool, u64 best) {
    if (row_adjusted(s)) {
        if (threadIdx.x == 0) p.s->touched = 1;
        part_adjust(p, s, pool);
        const u64 own = part_best(p);
        if (threadIdx.x == 0) p.s->adjusted = p.n > 0 ? own : 0;
        cluster_meet();
        best = cluster_best(&p.s->adjusted);
    }
    const float max = ranked_value(best);
    if (!(max > -SF_INF && max < SF_INF)) return -1; /* everything is banned */
    if (!(s.temperature > 0.0f)) return ranked_id(best);
    const bool filtered = s.top_k > 0 || s.top_p < 1.0f || s.min_p > 0.0f;
    if (filtered) {
        if (threadIdx.x == 0) p.s->touched = 1;
        filter(p, s.top_k, s.temperature, s.top_p, s.min_p, max);
    }
    const scale_t scale = {max, s.temperature, __fdiv_rn(1.0f, s.temperature), filtered};
    const u64 own = part_gumbel(p, s, scale, ranked_id(best));
    if (threadIdx.x == 0) p.s->drawn = own;
    cluster_meet();
    const u64 drawn = cluster_best(&p.s->drawn);
    return drawn == 0 ? -1 : ranked_id(drawn);
}

/* The row's top ones of the blocks' lists, by all of one block. */
__device__ __forceinline__ void merge_top(const row_part &p, const row_stats &r, int n_top, row_out *out) {
    const int n = CLUSTER * n_top, i = (int)threadIdx.x;
    u64 own = 0;
    int above = 0;
    if (i < n) p.s->merged[i] = own = cluster_read(&p.s->top[i % n_top], i / n_top);
    __syncthreads();
    for (int j = 0; i < n && j < n; j++)
        above += p.s->merged[j] > own;
    if (own == 0 || above >= n_top) return;
    out->top_id[above] = ranked_id(own);
    out->top_logprob[above] = r.logprob(ranked_value(own));
}

/* Nothing is asked but the likeliest token. */
__device__ __forceinline__ bool plain(const sf_cuda_sample &s) {
    return s.draw && !(s.temperature > 0.0f) && s.n_top == 0 && s.target < 0 && !row_adjusted(s);
}

/* One warp of one block does the rest of such a row. */
__device__ __forceinline__ void finish_plain(const row_slots *slots, row_out *out, int *drawn) {
    const row_stats r = together(slots);
    if (threadIdx.x % 32 != 0) return;
    const int token = r.bad ? -1 : ranked_id(r.best);
    out->token = token;
    out->logprob = token >= 0 ? r.logprob(ranked_value(r.best)) : 0.0f;
    out->rank = token >= 0;
    out->target_logprob = 0.0f;
    out->target_rank = 0;
    out->n_top = 0;
    out->bad = r.bad;
    if (drawn) *drawn = token;
}

__device__ __forceinline__ void sample_row(const sf_cuda_args &a, const row_part &p, const row_slots *slots, int row) {
    const sf_cuda_sample &s = block_samples(a.block)[row];
    const float *x = (const float *)a.in + (size_t)row * VOCAB;
    row_out *out = (row_out *)a.extra + row;
    if (threadIdx.x == 0) p.s->touched = 0;
    const row_stats r = together(slots);
    const int n_top = r.bad ? 0 : min(s.n_top, (int)VOCAB), target = r.bad ? -1 : s.target;
    unsigned before = 0;
    if (target >= 0) before = part_before(p, p.s->z, x[target], target);
    if (threadIdx.x == 0) p.s->ranks = (u64)before << 32;
    part_top(p, n_top);
    const int token = r.bad || !s.draw ? -1 : draw(p, s, block_ints(a.block, a.block->pool), r.best);
    const bool first = token == ranked_id(r.best);
    before = token < 0 || first ? 0 : part_before(p, p.s->touched ? x + p.first : p.s->z, x[token], token);
    if (threadIdx.x == 0) p.s->ranks += before;
    cluster_meet();
    if (p.rank != 0) return;
    if (n_top > 0) merge_top(p, r, n_top, out);
    if (threadIdx.x != 0) return;
    u64 ranks = 0;
    for (int b = 0; b < CLUSTER; b++)
        ranks += cluster_read(&p.s->ranks, b);
    out->token = token;
    out->logprob = token >= 0 ? r.logprob(x[token]) : 0.0f;
    out->rank = token >= 0 ? 1 + (int)(unsigned)ranks : 0;
    out->target_logprob = target >= 0 ? r.logprob(x[target]) : 0.0f;
    out->target_rank = target >= 0 ? 1 + (int)(ranks >> 32) : 0;
    out->n_top = n_top;
    out->bad = r.bad || (s.draw && token < 0);
    if (a.out) ((int *)a.out)[row] = token;
}

extern "C" __global__ void __cluster_dims__(CLUSTER, 1, 1) __launch_bounds__(BLOCK_THREADS, VOCAB % 4 == 0 ? 2 : 1) KERNEL_NAME(sf_cuda_args a) {
    extern __shared__ __align__(16) char raw[];
    row_part p;
    p.s = (row_shared *)raw;
    p.rank = (int)cluster_rank();
    p.first = p.rank * SLICE;
    p.n = max(0, min((int)SLICE, (int)VOCAB - p.first));
    pass_release();
    pass_wait();
    /* slots of two rows in turn: who has met for the next row is done with this one's */
    for (int row = (int)blockIdx.x / CLUSTER; row < a.block->n_logits; row += GRID / CLUSTER) {
        row_slots *slots = &p.s->slots[row / (GRID / CLUSTER) % 2];
        measure(p, (const float *)a.in + (size_t)row * VOCAB + p.first, slots);
        cluster_meet();
        if (!plain(block_samples(a.block)[row])) {
            sample_row(a, p, slots, row);
            cluster_meet(); /* others have read what the next row writes */
        } else if (p.rank == row % CLUSTER && threadIdx.x < 32) {
            finish_plain(slots, (row_out *)a.extra + row, a.out ? (int *)a.out + row : (int *)0);
        }
    }
    cluster_meet(); /* a block's shared memory is read until here */
}
