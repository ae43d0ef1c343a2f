/* What Hopper adds to mbarrier.cuh: copies of streamed weights, boxes of tensors, clusters, registers moved
 * between warpgroups. Shared-memory addresses are 32-bit numbers of the shared window. */
#ifndef SF_SNIPPETS_HOPPER_CUH
#define SF_SNIPPETS_HOPPER_CUH

#include "snippets/mbarrier.cuh"

/* Arrives at the same barrier of another CTA of the cluster. */
__device__ __forceinline__ void mbar_arrive_at(unsigned bar, unsigned cta) {
    asm volatile("{\n.reg .b32 there;\n"
                 "mapa.shared::cluster.u32 there, %0, %1;\n"
                 "mbarrier.arrive.shared::cluster.b64 _, [there];\n}" ::"r"(bar),
                 "r"(cta)
                 : "memory");
}

/* Weights are read once a pass: they leave the L2 cache first, and the activations stay. */
__device__ __forceinline__ unsigned long long policy_evict_first() {
    unsigned long long policy;
    asm volatile("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
    return policy;
}
/* As bulk_load, with a cache policy. */
__device__ __forceinline__ void bulk_stream(unsigned to, const void *from, int bytes, unsigned bar,
                                            unsigned long long policy) {
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint "
                 "[%0], [%1], %2, [%3], %4;" ::"r"(to),
                 "l"(from), "r"(bytes), "r"(bar), "l"(policy)
                 : "memory");
}

/* As bulk_stream, to the same place of every CTA in the mask, each told by its own barrier. */
__device__ __forceinline__ void bulk_stream_to(unsigned to, const void *from, int bytes, unsigned bar,
                                               unsigned long long policy, unsigned mask) {
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster.L2::cache_hint "
                 "[%0], [%1], %2, [%3], %4, %5;" ::"r"(to),
                 "l"(from), "r"(bytes), "r"(bar), "h"((unsigned short)mask), "l"(policy)
                 : "memory");
}

/* A tensor's map lies in global memory and was written before the pass. */
__device__ __forceinline__ void tensor_map_acquire(const void *map) {
    asm volatile("fence.proxy.tensormap::generic.acquire.gpu [%0], 128;\n"
                 "prefetch.tensormap [%0];" ::"l"(map)
                 : "memory");
}
/* The box at column x, row y; bytes complete on bar. */
__device__ __forceinline__ void tensor_load(unsigned to, const void *map, int x, int y, unsigned bar) {
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
                 "[%0], [%1, {%2, %3}], [%4];" ::"r"(to),
                 "l"(map), "r"(x), "r"(y), "r"(bar)
                 : "memory");
}
/* The same box to the same place of every CTA in the mask, each told by its own barrier. */
__device__ __forceinline__ void tensor_load_to(unsigned to, const void *map, int x, int y, unsigned bar,
                                               unsigned mask) {
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
                 ".multicast::cluster [%0], [%1, {%2, %3}], [%4], %5;" ::"r"(to),
                 "l"(map), "r"(x), "r"(y), "r"(bar), "h"((unsigned short)mask)
                 : "memory");
}
/* What earlier kernels wrote by ordinary stores is about to be read by the copy engine. */
__device__ __forceinline__ void fence_async() {
    asm volatile("fence.proxy.async;" ::: "memory");
}

__device__ __forceinline__ unsigned cluster_rank() {
    unsigned rank;
    asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    return rank;
}
__device__ __forceinline__ void cluster_sync() {
    asm volatile("barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;" ::: "memory");
}
/* The same in two steps. */
__device__ __forceinline__ void cluster_arrive() {
    asm volatile("barrier.cluster.arrive.aligned;" ::: "memory");
}
__device__ __forceinline__ void cluster_wait() {
    asm volatile("barrier.cluster.wait.aligned;" ::: "memory");
}

/* Registers a thread may hold from here on: all four warps of a warpgroup execute it. */
template <int REGS> __device__ __forceinline__ void registers_raise() {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(REGS));
}
template <int REGS> __device__ __forceinline__ void registers_lower() {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(REGS));
}

#endif
