/* The filters of drawing, over a row that a cluster holds: top_k and top_p as snippets/sample_draw.h of the CPU defines
 * them. Sums of probabilities are 64-bit fixed point, exact and of no order. */
#ifndef SF_SNIPPETS_SAMPLE_FILTER_CUH
#define SF_SNIPPETS_SAMPLE_FILTER_CUH

#include "snippets/noise.cuh"
#include "snippets/sample_row.cuh"

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

/* Over the listed places: the key at which the sum of masses, from the greatest key down, reaches target; `above`: the
 * sum over greater keys. COUNT: every mass is 1. Four rounds of eight bits; `turn` counts rounds, so that no block
 * clears bins that another still reads. */
template <bool COUNT>
__device__ __forceinline__ unsigned cluster_select(const row_part &p, int n, int *turn, u64 target, u64 *above) {
    unsigned found = 0;
    *above = 0;
    for (int shift = 24; shift >= 0; shift -= 8, ++*turn) {
        u64 *hist = p.s->hist[*turn & 1];
        if (threadIdx.x < 256) hist[threadIdx.x] = 0;
        __syncthreads();
        for (int i = (int)threadIdx.x; i / 32 * 32 < n; i += BLOCK_THREADS) { /* whole warps */
            const float z = i < n ? p.s->z[p.s->list[i]] : -SF_INF;
            const unsigned key = order_key(z);
            const bool in = i < n && (shift == 24 || key >> (shift + 8) == found >> (shift + 8));
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
        if (threadIdx.x < 32) find_bin(p.s, target - *above);
        __syncthreads();
        found |= p.s->bin << shift;
        *above += p.s->above;
    }
    return found;
}

/* Keeps what is at least as likely as the k-th. */
__device__ __forceinline__ void cluster_top_k(const row_part &p, int *turn, int k) {
    u64 above;
    if (k <= 0 || k >= VOCAB) return;
    const unsigned floor = (unsigned)(part_floor(p, k) >> 32);
    const int n = part_collect(p, [=](float z, int) { return order_key(z) >= floor; });
    const unsigned least = cluster_select<true>(p, n, turn, (u64)k, &above);
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

/* The sum of the row's masses. */
__device__ __forceinline__ u64 cluster_mass(const row_part &p) {
    u64 sum = 0;
    for (int i = (int)threadIdx.x; i < p.n; i += BLOCK_THREADS)
        sum += mass_of(p.s->z[i]);
    for (int d = 1; d < 32; d *= 2)
        sum += __shfl_xor_sync(0xffffffffu, sum, d);
    __syncthreads();
    if (threadIdx.x % 32 == 0) p.s->scratch[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x == 0) {
        sum = 0;
        for (int w = 0; w < BLOCK_WARPS; w++)
            sum += p.s->scratch[w];
        p.s->mass = sum;
    }
    cluster_meet();
    sum = 0;
    for (int r = 0; r < CLUSTER; r++)
        sum += cluster_read(&p.s->mass, r);
    return sum;
}

/* Keeps the likeliest tokens up to and including the one at which their probability reaches top_p; of equals the
 * lower ids. Tokens so unlikely that all of them together are less than the rest beyond top_p are not looked at. */
__device__ __forceinline__ void cluster_top_p(const row_part &p, int *turn, float top_p) {
    if (top_p >= 1.0f) return;
    const u64 total = cluster_mass(p);
    const double want = (double)top_p * (double)total;
    u64 target = (u64)want, above;
    if ((double)target < want || target == 0) target++;
    const u64 spare = total > target ? (total - target) / VOCAB : 0, light = spare > 1 ? spare : 1;
    const int n = part_collect(p, [=](float z, int) { return mass_of(z) >= light; });
    const unsigned least = cluster_select<false>(p, n, turn, target, &above);
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
