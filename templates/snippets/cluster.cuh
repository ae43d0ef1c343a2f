/* A cluster's blocks read each other's shared memory; sums and maxima over a block in a fixed tree. Blocks of 512. */
#ifndef SF_SNIPPETS_CLUSTER_CUH
#define SF_SNIPPETS_CLUSTER_CUH

#include "snippets/hopper.cuh"
#include "snippets/math.cuh"

enum { BLOCK_THREADS = 512, BLOCK_WARPS = BLOCK_THREADS / 32 };

/* What lies at the same place in block `rank`'s shared memory. */
__device__ __forceinline__ u64 cluster_read(const u64 *own, int rank) {
    u64 v;
    asm volatile("{\n.reg .b32 there;\nmapa.shared::cluster.u32 there, %1, %2;\nld.shared::cluster.u64 %0, [there];\n}"
                 : "=l"(v)
                 : "r"(smem_at(own)), "r"(rank)
                 : "memory");
    return v;
}

/* All blocks' earlier writes are visible to all. Threads may come from a branch. */
__device__ __forceinline__ void cluster_meet(void) {
    __syncwarp();
    cluster_sync();
}

/* Every thread gets the result; scratch [BLOCK_WARPS] may be used again after the next block-wide barrier. */
__device__ __forceinline__ u64 block_max(u64 v, u64 *scratch) {
    for (int d = 1; d < 32; d *= 2) {
        const u64 other = __shfl_xor_sync(0xffffffffu, v, d);
        v = other > v ? other : v;
    }
    __syncthreads();
    if (threadIdx.x % 32 == 0) scratch[threadIdx.x / 32] = v;
    __syncthreads();
    v = scratch[threadIdx.x % BLOCK_WARPS];
    for (int d = 1; d < BLOCK_WARPS; d *= 2) {
        const u64 other = __shfl_xor_sync(0xffffffffu, v, d);
        v = other > v ? other : v;
    }
    return v;
}
__device__ __forceinline__ float block_sum(float v, float *scratch) {
    for (int d = 1; d < 32; d *= 2)
        v = __fadd_rn(v, __shfl_xor_sync(0xffffffffu, v, d));
    __syncthreads();
    if (threadIdx.x % 32 == 0) scratch[threadIdx.x / 32] = v;
    __syncthreads();
    v = scratch[threadIdx.x % BLOCK_WARPS];
    for (int d = 1; d < BLOCK_WARPS; d *= 2)
        v = __fadd_rn(v, __shfl_xor_sync(0xffffffffu, v, d));
    return v;
}
__device__ __forceinline__ unsigned block_count(unsigned v, u64 *scratch) {
    v = __reduce_add_sync(0xffffffffu, v);
    __syncthreads();
    if (threadIdx.x % 32 == 0) scratch[threadIdx.x / 32] = v;
    __syncthreads();
    v = 0;
    for (int w = 0; w < BLOCK_WARPS; w++)
        v += (unsigned)scratch[w];
    return v;
}

/* A float's place in the order of floats (-0 and 0 are equal), and a value with its id: the greater value is greater,
 * of equals the lower id. 0 is below all. */
__device__ __forceinline__ unsigned order_key(float v) {
    const unsigned u = (unsigned)__float_as_int(__fadd_rn(v, 0.0f));
    return u >> 31 ? ~u : u | 0x80000000u;
}
__device__ __forceinline__ float order_value(unsigned key) {
    return __int_as_float((int)(key >> 31 ? key & 0x7fffffffu : ~key));
}
__device__ __forceinline__ u64 ranked(float v, int id) {
    return (u64)order_key(v) << 32 | (unsigned)~id;
}
__device__ __forceinline__ int ranked_id(u64 r) {
    return (int)~(unsigned)r;
}
__device__ __forceinline__ float ranked_value(u64 r) {
    return order_value((unsigned)(r >> 32));
}

#endif
