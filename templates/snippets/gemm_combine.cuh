/* Sums of a few-row product whose k is shared: among WAYS warps of a block, and the CLUSTER blocks of a cluster. A
 * warp's fragment i (16 features by 8 rows) is summed by part i mod PARTS, the others leave theirs in that part's
 * block; own sum first, then the parts after it in a ring. The same for every pass, but of another order than one
 * accumulator's: the fast class only. */
#ifndef SF_SNIPPETS_GEMM_COMBINE_CUH
#define SF_SNIPPETS_GEMM_COMBINE_CUH

#include "snippets/hopper.cuh"

__device__ __forceinline__ void shared_store_sums(unsigned to, const float (&d)[4]) {
    asm volatile("st.shared.v4.f32 [%0], {%1,%2,%3,%4};" ::"r"(to), "f"(d[0]), "f"(d[1]), "f"(d[2]), "f"(d[3])
                 : "memory");
}
/* To the same place of another block of the cluster. */
__device__ __forceinline__ void cluster_store_sums(unsigned to, int rank, const float (&d)[4]) {
    asm volatile("{\n.reg .b32 there;\nmapa.shared::cluster.u32 there, %0, %1;\n"
                 "st.shared::cluster.v4.f32 [there], {%2,%3,%4,%5};\n}" ::"r"(to),
                 "r"(rank), "f"(d[0]), "f"(d[1]), "f"(d[2]), "f"(d[3])
                 : "memory");
}
__device__ __forceinline__ void shared_add_sums(float (&d)[4], unsigned from) {
    float v[4];
    asm volatile("ld.shared.v4.f32 {%0,%1,%2,%3}, [%4];"
                 : "=f"(v[0]), "=f"(v[1]), "=f"(v[2]), "=f"(v[3])
                 : "r"(from)
                 : "memory");
#pragma unroll
    for (int i = 0; i < 4; i++)
        d[i] = __fadd_rn(d[i], v[i]);
}

/* UNITS: warps of one way. A warp holds TILES x OCTETS fragments. */
template <int UNITS, int TILES, int OCTETS, int WAYS, int CLUSTER> struct gemm_combine {
    static constexpr int PARTS = WAYS * CLUSTER, COUNT = TILES * OCTETS, SLOTS = PARTS - 1;
    /* Fragments of a warp that one block sums. */
    static constexpr int OWN = COUNT < WAYS ? COUNT : (COUNT + PARTS - 1) / PARTS * WAYS;
    static constexpr int BYTES = UNITS * OWN * SLOTS * 512;

    unsigned space; /* BYTES of shared memory */
    int unit, part; /* the warp's; part = rank * WAYS + way */

    __device__ __forceinline__ bool owns(int fragment) const { return fragment % PARTS == part; }
    __device__ __forceinline__ unsigned at(int fragment, int slot) const {
        const int own = fragment / PARTS * WAYS + fragment % PARTS % WAYS;
        return space + ((unit * OWN + own) * SLOTS + slot) * 512 + threadIdx.x % 32 * 16;
    }
    __device__ __forceinline__ void leave(const float (&d)[TILES][OCTETS][4]) const {
#pragma unroll
        for (int i = 0; i < COUNT; i++) {
            const int owner = i % PARTS, slot = (part + PARTS - owner) % PARTS - 1;
            if (slot < 0) continue;
            if (CLUSTER > 1) cluster_store_sums(at(i, slot), owner / WAYS, d[i / OCTETS][i % OCTETS]);
            else shared_store_sums(at(i, slot), d[i / OCTETS][i % OCTETS]);
        }
    }
    /* Once all parts have left theirs. */
    __device__ __forceinline__ void gather(float (&d)[4], int fragment) const {
#pragma unroll
        for (int s = 0; s < SLOTS; s++)
            shared_add_sums(d, at(fragment, s));
    }
};

#endif
