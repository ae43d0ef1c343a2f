/* Barriers in shared memory and bulk copies that complete on them. */
#ifndef SF_SNIPPETS_MBARRIER_CUH
#define SF_SNIPPETS_MBARRIER_CUH

__device__ __forceinline__ unsigned smem_at(const void *p) {
    return (unsigned)__cvta_generic_to_shared(p);
}
__device__ __forceinline__ void mbar_init(unsigned bar, int arrivals) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(bar), "r"(arrivals) : "memory");
}
__device__ __forceinline__ void mbar_init_done(void) {
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}
__device__ __forceinline__ void mbar_expect(unsigned bar, int bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(bar), "r"(bytes) : "memory");
}
__device__ __forceinline__ void mbar_arrive(unsigned bar) {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(bar) : "memory");
}
__device__ __forceinline__ void mbar_wait(unsigned bar, int parity) {
    asm volatile("{\n.reg .pred p;\nagain%=:\nmbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n@!p bra again%=;\n}"
                 ::"r"(bar), "r"(parity)
                 : "memory");
}
/* 16-byte aligned, bytes a multiple of 16. */
__device__ __forceinline__ void bulk_load(unsigned to, const void *from, int bytes, unsigned bar) {
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(to),
                 "l"(from), "r"(bytes), "r"(bar)
                 : "memory");
}
/* Into the L2 cache only: safe before what it fetches is written. */
__device__ __forceinline__ void bulk_prefetch(const void *from, int bytes) {
    asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(from), "r"(bytes) : "memory");
}
__device__ __forceinline__ void group_sync(int id, int threads) {
    asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

/* A ring of stages: a place in it and the parity of its turn. */
template <int STAGES> struct ring_place {
    int stage = 0, turn = 0;
    __device__ __forceinline__ void next() {
        if (++stage == STAGES) {
            stage = 0;
            turn ^= 1;
        }
    }
    /* N places on. */
    template <int N> __device__ __forceinline__ void skip() {
        static_assert(N <= STAGES, "at most one round");
        stage += N;
        if (stage >= STAGES) {
            stage -= STAGES;
            turn ^= 1;
        }
    }
};

#endif
