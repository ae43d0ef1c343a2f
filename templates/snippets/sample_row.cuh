/* A row of logits held by a cluster: block `rank` has ids first .. first + n - 1 in shared memory. What is asked of it
 * before anything is drawn, and the filters of drawing. Definitions are those of the CPU's snippets/sample_row.h and
 * sample_draw.h; sums of probabilities are 64-bit fixed point, exact and of no order. */
#ifndef SF_SNIPPETS_SAMPLE_ROW_CUH
#define SF_SNIPPETS_SAMPLE_ROW_CUH

#include "snippets/block.cuh"
#include "snippets/cluster.cuh"
#include "snippets/noise.cuh"

enum { TOP_MAX = 20, SLICE = (VOCAB + 4 * CLUSTER - 1) / (4 * CLUSTER) * 4 };

/* As sf_row_out (device/device.h). */
struct row_out {
    int token;
    float logprob;
    int rank;
    float target_logprob;
    int target_rank, n_top, top_id[TOP_MAX];
    float top_logprob[TOP_MAX];
    int bad;
};
static_assert(sizeof(row_out) == 188, "the host's layout");

/* u64 words are what other blocks read; each is written once a row. */
struct row_shared {
    float z[SLICE]; /* logits, then adjusted, filtered; a block's ids alone */
    unsigned seen[SLICE];
    u64 best, sum_bad, adjusted, drawn, ranks, equal, top[TOP_MAX];
    u64 hist[2][256], bins[256];
    u64 scratch[BLOCK_WARPS], above;
    float sums[BLOCK_WARPS];
    unsigned bin;
};

struct row_part {
    row_shared *s;
    int rank, first, n;
    __device__ __forceinline__ bool owns(int id) const { return id >= first && id < first + n; }
};

/* Four values from i (a multiple of 4) on; -inf beyond the part. */
__device__ __forceinline__ float4 part_quad(const row_part &p, const float *x, int i) {
    if (VOCAB % 4 == 0) return *(const float4 *)(x + i);
    return make_float4(x[i], i + 1 < p.n ? x[i + 1] : -SF_INF, i + 2 < p.n ? x[i + 2] : -SF_INF,
                       i + 3 < p.n ? x[i + 3] : -SF_INF);
}

/* A thread's greatest value so far, of equals the first. */
struct best_value {
    float value = -SF_INF;
    int id = -1;
    __device__ __forceinline__ void see(float v, int at) {
        if (v > value || id < 0) {
            value = v;
            id = at;
        }
    }
    __device__ __forceinline__ void see4(float4 v, int at) {
        see(v.x, at);
        see(v.y, at + 1);
        see(v.z, at + 2);
        see(v.w, at + 3);
    }
    __device__ __forceinline__ u64 rank(void) const { return id < 0 ? 0 : ranked(value, id); }
};

/* The greatest z with its id, over the block. */
__device__ __forceinline__ u64 part_best(const row_part &p) {
    best_value best;
    for (int i = (int)threadIdx.x * 4; i < p.n; i += BLOCK_THREADS * 4)
        best.see4(part_quad(p, p.s->z, i), p.first + i);
    return block_max(best.rank(), p.s->scratch);
}
__device__ __forceinline__ u64 cluster_best(const u64 *slot) {
    u64 best = 0;
    for (int r = 0; r < CLUSTER; r++) {
        const u64 v = cluster_read(slot, r);
        best = v > best ? v : best;
    }
    return best;
}

/* Sum of exp(z - max) over the block: four sums a thread, ids ascending, then the tree. */
__device__ __forceinline__ float part_sum(const row_part &p, float max) {
    float4 sum = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    if (max > -SF_INF)
        for (int i = (int)threadIdx.x * 4; i < p.n; i += BLOCK_THREADS * 4) {
            const float4 v = part_quad(p, p.s->z, i);
            sum.x = __fadd_rn(sum.x, exp_exact(__fsub_rn(v.x, max)));
            sum.y = __fadd_rn(sum.y, exp_exact(__fsub_rn(v.y, max)));
            sum.z = __fadd_rn(sum.z, exp_exact(__fsub_rn(v.z, max)));
            sum.w = __fadd_rn(sum.w, exp_exact(__fsub_rn(v.w, max)));
        }
    return block_sum(__fadd_rn(__fadd_rn(sum.x, sum.y), __fadd_rn(sum.z, sum.w)), p.s->sums);
}

/* How many of this block's values stand before (value, id); x: the part's raw logits. */
__device__ __forceinline__ unsigned part_before(const row_part &p, const float *x, float value, int id) {
    unsigned n = 0;
    for (int i = (int)threadIdx.x * 4; i < p.n; i += BLOCK_THREADS * 4) {
        const float4 v = part_quad(p, x, i);
        const int at = p.first + i; /* ids beyond the part hold -inf and stand behind `id` */
        n += v.x > value || (v.x == value && at < id);
        n += v.y > value || (v.y == value && at + 1 < id);
        n += v.z > value || (v.z == value && at + 2 < id);
        n += v.w > value || (v.w == value && at + 3 < id);
    }
    return block_count(n, p.s->scratch);
}

/* The block's n_top greatest into s->top, in order. */
__device__ __forceinline__ void part_top(const row_part &p, int n_top) {
    u64 below = ~0ull, own = 0;
    bool look = true;
    for (int t = 0; t < n_top; t++) {
        if (look) { /* this thread's greatest is gone */
            own = 0;
            for (int i = (int)threadIdx.x; i < p.n; i += BLOCK_THREADS) {
                const u64 r = ranked(p.s->z[i], p.first + i);
                own = r > own && r < below ? r : own;
            }
        }
        const u64 best = block_max(own, p.s->scratch);
        look = best == own;
        below = best;
        if (threadIdx.x == 0) p.s->top[t] = best;
    }
}

/* ---- bias, bans, penalties ---- */

/* An id's entries are taken in the list's order: all by the thread that owns the id. */
__device__ __forceinline__ void part_bias(const row_part &p, const int *list, int n) {
    for (int i = 0; i < n; i++) {
        const int id = list[2 * i];
        if (p.owns(id) && id % BLOCK_THREADS == (int)threadIdx.x)
            p.s->z[id - p.first] = __fadd_rn(p.s->z[id - p.first], __int_as_float(list[2 * i + 1]));
    }
}

enum { SEEN_PROMPT = 1 << 30 };

__device__ __forceinline__ void part_penalise(const row_part &p, const sf_cuda_sample &s, const int *pool) {
    for (int i = (int)threadIdx.x; i < p.n; i += BLOCK_THREADS)
        p.s->seen[i] = 0;
    __syncthreads();
    for (int i = (int)threadIdx.x; i < s.n_prompt; i += BLOCK_THREADS)
        if (p.owns(pool[s.prompt + i])) atomicOr(&p.s->seen[pool[s.prompt + i] - p.first], (unsigned)SEEN_PROMPT);
    __syncthreads();
    for (int i = (int)threadIdx.x; i < s.n_output; i += BLOCK_THREADS)
        if (p.owns(pool[s.output + i])) atomicAdd(&p.s->seen[pool[s.output + i] - p.first], 1u);
    __syncthreads();
    for (int i = (int)threadIdx.x; i < p.n; i += BLOCK_THREADS) {
        const unsigned seen = p.s->seen[i], count = seen & (SEEN_PROMPT - 1);
        float v = p.s->z[i];
        if (seen == 0) continue;
        v = v > 0.0f ? __fdiv_rn(v, s.repetition_penalty) : __fmul_rn(v, s.repetition_penalty);
        v = __fsub_rn(v, __fmul_rn(s.frequency_penalty, (float)count));
        p.s->z[i] = count > 0 ? __fsub_rn(v, s.presence_penalty) : v;
    }
}

__device__ __forceinline__ bool row_penalised(const sf_cuda_sample &s) {
    return s.repetition_penalty != 1.0f || s.frequency_penalty != 0.0f || s.presence_penalty != 0.0f;
}
__device__ __forceinline__ bool row_adjusted(const sf_cuda_sample &s) {
    return s.n_bias > 0 || s.n_banned > 0 || row_penalised(s);
}
__device__ __forceinline__ void part_adjust(const row_part &p, const sf_cuda_sample &s, const int *pool) {
    part_bias(p, pool + s.bias, s.n_bias);
    __syncthreads();
    for (int i = (int)threadIdx.x; i < s.n_banned; i += BLOCK_THREADS)
        if (p.owns(pool[s.banned + i])) p.s->z[pool[s.banned + i] - p.first] = -SF_INF;
    __syncthreads();
    if (row_penalised(s)) part_penalise(p, s, pool);
    __syncthreads();
}

/* ---- filters ---- */

/* A token's share in a sum of probabilities: z is (logit - max) / T. */
__device__ __forceinline__ u64 mass_of(float z) {
    return z > -31.0f ? __float2ull_rz(__fmul_rn(exp_exact(z), 17592186044416.0f)) : 0; /* 2^44 */
}

/* Adds a warp's masses to bins: lanes of one bin are summed first, in two pieces that 32 lanes can't overflow. */
__device__ __forceinline__ void hist_add(u64 *hist, unsigned bin, u64 mass) {
    if (!__any_sync(0xffffffffu, mass != 0)) return;
    const unsigned with = __match_any_sync(0xffffffffu, mass == 0 ? 256u : bin);
    const unsigned low = __reduce_add_sync(with, (unsigned)(mass & 0x3fffffu));
    const unsigned high = __reduce_add_sync(with, (unsigned)(mass >> 22));
    if (mass != 0 && (int)(threadIdx.x % 32) == __ffs((int)with) - 1) atomicAdd(&hist[bin], ((u64)high << 22) + low);
}

/* From the greatest bin down, where the sum reaches target; by one warp, eight bins a lane. */
__device__ __forceinline__ void find_bin(row_shared *s, u64 target) {
    const int lane = (int)(threadIdx.x & 31), top = 255 - lane * 8;
    u64 own = 0;
    for (int i = 0; i < 8; i++)
        own += s->bins[top - i];
    u64 end = own;
    for (int d = 1; d < 32; d *= 2) {
        const u64 other = __shfl_up_sync(0xffffffffu, end, d);
        if (lane >= d) end += other;
    }
    const unsigned reached = __ballot_sync(0xffffffffu, end >= target);
    if (lane != (reached ? __ffs((int)reached) - 1 : 31)) return;
    u64 above = end - own;
    int bin = top;
    while (bin > top - 7 && above + s->bins[bin] < target)
        above += s->bins[bin--];
    s->bin = (unsigned)bin;
    s->above = above;
}

/* The key at which the sum of masses, from the greatest key down, reaches a target; `above`: the sum over greater
 * keys. COUNT: every mass is 1 and the target is given, else it follows from the total and top_p. Four rounds of eight
 * bits; `turn` counts rounds, so that no block clears bins that another still reads. */
template <bool COUNT>
__device__ __forceinline__ unsigned cluster_select(const row_part &p, int *turn, u64 *target, float top_p, u64 *above) {
    unsigned found = 0;
    *above = 0;
    for (int shift = 24; shift >= 0; shift -= 8, ++*turn) {
        u64 *hist = p.s->hist[*turn & 1];
        if (threadIdx.x < 256) hist[threadIdx.x] = 0;
        __syncthreads();
        for (int i = (int)threadIdx.x; i / 32 * 32 < p.n; i += BLOCK_THREADS) { /* whole warps */
            const float z = i < p.n ? p.s->z[i] : -SF_INF;
            const unsigned key = order_key(z);
            const bool in = i < p.n && (shift == 24 || key >> (shift + 8) == found >> (shift + 8));
            hist_add(hist, key >> shift & 255u, in ? COUNT ? 1 : mass_of(z) : 0);
        }
        cluster_meet();
        if (threadIdx.x < 256) {
            u64 sum = 0;
            for (int r = 0; r < CLUSTER; r++)
                sum += cluster_read(hist + threadIdx.x, r);
            p.s->bins[threadIdx.x] = sum;
        }
        __syncthreads();
        if (!COUNT && shift == 24) {
            u64 total = 0;
            for (int i = (int)threadIdx.x % 32; i < 256; i += 32)
                total += p.s->bins[i];
            for (int d = 1; d < 32; d *= 2)
                total += __shfl_xor_sync(0xffffffffu, total, d);
            const double want = (double)top_p * (double)total;
            *target = (u64)want;
            if ((double)*target < want || *target == 0) ++*target;
        }
        if (threadIdx.x < 32) find_bin(p.s, *target - *above);
        __syncthreads();
        found |= p.s->bin << shift;
        *above += p.s->above;
    }
    return found;
}

/* Keeps what is at least as likely as the k-th. */
__device__ __forceinline__ void cluster_top_k(const row_part &p, int *turn, int k) {
    u64 target = (u64)k, above;
    if (k <= 0 || k >= VOCAB) return;
    const unsigned least = cluster_select<true>(p, turn, &target, 0.0f, &above);
    for (int i = (int)threadIdx.x; i < p.n; i += BLOCK_THREADS)
        if (order_key(p.s->z[i]) < least) p.s->z[i] = -SF_INF;
    __syncthreads();
}

/* Of this block's values with a key, all but the first `keep` are dropped; one warp, ids ascending. */
__device__ __forceinline__ void drop_equals(const row_part &p, unsigned key, int keep) {
    const int lane = (int)(threadIdx.x & 31);
    for (int i = lane; i - lane < p.n; i += 32) {
        const bool equal = i < p.n && order_key(p.s->z[i]) == key;
        const unsigned all = __ballot_sync(0xffffffffu, equal);
        if (equal && __popc(all & ((1u << lane) - 1)) >= keep) p.s->z[i] = -SF_INF;
        keep -= __popc(all);
    }
}

/* Keeps the likeliest tokens up to and including the one at which their probability reaches top_p; of equals the
 * lower ids. */
__device__ __forceinline__ void cluster_top_p(const row_part &p, int *turn, float top_p) {
    u64 target = 0, above;
    if (top_p >= 1.0f) return;
    const unsigned least = cluster_select<false>(p, turn, &target, top_p, &above);
    const u64 each = mass_of(order_value(least));
    unsigned equal = 0;
    for (int i = (int)threadIdx.x; i < p.n; i += BLOCK_THREADS) {
        const unsigned key = order_key(p.s->z[i]);
        equal += key == least;
        if (key < least) p.s->z[i] = -SF_INF;
    }
    equal = block_count(equal, p.s->scratch);
    if (threadIdx.x == 0) p.s->equal = equal;
    cluster_meet();
    long long keep = (long long)((target - above + each - 1) / each);
    for (int r = 0; r < p.rank; r++)
        keep -= (long long)cluster_read(&p.s->equal, r);
    if (keep < (long long)equal && threadIdx.x < 32) drop_equals(p, least, keep > 0 ? (int)keep : 0);
    __syncthreads();
}

#endif
