/* A row of logits held by a cluster: block `rank` has ids first .. first + n - 1 in shared memory. What is asked of it
 * before anything is drawn; definitions are those of the CPU's snippets/sample_row.h. */
#ifndef SF_SNIPPETS_SAMPLE_ROW_CUH
#define SF_SNIPPETS_SAMPLE_ROW_CUH

#include "snippets/block.cuh"
#include "snippets/cluster.cuh"

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

/* How often a token was seen: a word, or half of one where a context can't count higher. */
enum { SEEN_HALVES = CONTEXT < 32768, SEEN_PROMPT = SEEN_HALVES ? 1 << 15 : 1 << 30 };
static_assert(SLICE <= 65536, "list holds 16-bit places");

/* A block's share of a row: its greatest raw logit, 0 where it has none; its sum of exp, above a bit for what is no number. */
struct row_slots {
    u64 best, sum_bad;
};

/* u64 words are what other blocks read; each is written once a row. */
struct row_shared {
    float z[SLICE]; /* logits, then adjusted, filtered; a block's ids alone */
    union {
        unsigned seen[SEEN_HALVES ? SLICE / 2 : SLICE];
        unsigned short list[SLICE]; /* places in z that a selection looks at */
    };
    row_slots slots[2];
    u64 adjusted, drawn, ranks, equal, mass, top[TOP_MAX];
    u64 hist[2][256], bins[256], merged[CLUSTER * TOP_MAX];
    u64 groups[64], floor, scratch[BLOCK_WARPS], above;
    float sums[BLOCK_WARPS];
    unsigned bin, listed;
    int touched;
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

constexpr float LOG2E = 1.44269504f;

/* Sum of exp(z - max) over the block: four sums a thread, ids ascending, then the tree. */
__device__ __forceinline__ float part_sum(const row_part &p, float max) {
    float4 sum = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    if (max > -SF_INF)
        for (int i = (int)threadIdx.x * 4; i < p.n; i += BLOCK_THREADS * 4) {
            const float4 v = part_quad(p, p.s->z, i);
            sum.x = __fadd_rn(sum.x, exp2_fast(__fmul_rn(__fsub_rn(v.x, max), LOG2E)));
            sum.y = __fadd_rn(sum.y, exp2_fast(__fmul_rn(__fsub_rn(v.y, max), LOG2E)));
            sum.z = __fadd_rn(sum.z, exp2_fast(__fmul_rn(__fsub_rn(v.z, max), LOG2E)));
            sum.w = __fadd_rn(sum.w, exp2_fast(__fmul_rn(__fsub_rn(v.w, max), LOG2E)));
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

/* A rank that at least n of the block's values reach, and few more: the n-th greatest of 64 groups' maxima. */
__device__ __forceinline__ u64 part_floor(const row_part &p, int n) {
    best_value best;
    if (n > 64) return 0;
    for (int i = (int)threadIdx.x * 4; i < p.n; i += BLOCK_THREADS * 4)
        best.see4(part_quad(p, p.s->z, i), p.first + i);
    u64 top = best.rank();
    for (int d = 1; d < 8; d *= 2) {
        const u64 other = __shfl_xor_sync(0xffffffffu, top, d);
        top = other > top ? other : top;
    }
    if (threadIdx.x == 0) p.s->floor = 0;
    if (threadIdx.x % 8 == 0) p.s->groups[threadIdx.x / 8] = top;
    __syncthreads();
    if (threadIdx.x < 64) {
        const u64 own = p.s->groups[threadIdx.x];
        int above = 0;
        for (int g = 0; g < 64; g++)
            above += p.s->groups[g] > own;
        if (above == n - 1) p.s->floor = own;
    }
    __syncthreads();
    return p.s->floor;
}

/* Places whose value is wanted into s->list, in no order; how many. */
template <class WANTED> __device__ __forceinline__ int part_collect(const row_part &p, WANTED wanted) {
    const int lane = (int)(threadIdx.x & 31);
    __syncthreads();
    if (threadIdx.x == 0) p.s->listed = 0;
    __syncthreads();
    for (int i = (int)threadIdx.x; i / 32 * 32 < p.n; i += BLOCK_THREADS) { /* whole warps */
        const bool in = i < p.n && wanted(p.s->z[i], p.first + i);
        const unsigned all = __ballot_sync(0xffffffffu, in);
        unsigned at = 0;
        if (all == 0) continue;
        if (lane == 0) at = atomicAdd(&p.s->listed, (unsigned)__popc(all));
        at = __shfl_sync(0xffffffffu, at, 0) + (unsigned)__popc(all & ((1u << lane) - 1));
        if (in) p.s->list[at] = (unsigned short)i;
    }
    __syncthreads();
    return (int)p.s->listed;
}

__device__ __forceinline__ u64 part_ranked(const row_part &p, int place) {
    return ranked(p.s->z[place], p.first + place);
}

/* The block's n_top greatest into s->top, in order; 0 where it has fewer. */
__device__ __forceinline__ void part_top(const row_part &p, int n_top) {
    if (n_top == 0) return;
    const u64 floor = part_floor(p, n_top);
    const int n = part_collect(p, [=](float z, int id) { return ranked(z, id) >= floor; });
    if (threadIdx.x < TOP_MAX) p.s->top[threadIdx.x] = 0;
    __syncthreads();
    for (int i = (int)threadIdx.x; i < n; i += BLOCK_THREADS) {
        const u64 own = part_ranked(p, p.s->list[i]);
        int above = 0;
        for (int j = 0; j < n; j++)
            above += part_ranked(p, p.s->list[j]) > own;
        if (above < n_top) p.s->top[above] = own;
    }
    __syncthreads();
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

__device__ __forceinline__ unsigned *seen_word(const row_part &p, int place) {
    return &p.s->seen[SEEN_HALVES ? place / 2 : place];
}
__device__ __forceinline__ int seen_shift(int place) {
    return SEEN_HALVES ? place % 2 * 16 : 0;
}

__device__ __forceinline__ void part_penalise(const row_part &p, const sf_cuda_sample &s, const int *pool) {
    const int *prompt = pool + s.prompt, *output = pool + s.output;
    for (int i = (int)threadIdx.x; i < p.n; i += BLOCK_THREADS)
        *seen_word(p, i) = 0;
    __syncthreads();
    for (int i = (int)threadIdx.x; i < s.n_prompt; i += BLOCK_THREADS)
        if (p.owns(prompt[i])) atomicOr(seen_word(p, prompt[i] - p.first), (unsigned)SEEN_PROMPT << seen_shift(prompt[i] - p.first));
    for (int i = (int)threadIdx.x; i < s.n_output; i += BLOCK_THREADS)
        if (p.owns(output[i])) atomicAdd(seen_word(p, output[i] - p.first), 1u << seen_shift(output[i] - p.first));
    __syncthreads();
    for (int i = (int)threadIdx.x; i < p.n; i += BLOCK_THREADS) {
        const unsigned seen = *seen_word(p, i) >> seen_shift(i) & (2u * SEEN_PROMPT - 1), count = seen & (SEEN_PROMPT - 1);
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

#endif
