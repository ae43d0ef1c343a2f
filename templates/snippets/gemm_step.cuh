/* A warp's part of a few-row product by mma.sync: fragments out of the rings' stages, k ascending in steps of 16. */
#ifndef SF_SNIPPETS_GEMM_STEP_CUH
#define SF_SNIPPETS_GEMM_STEP_CUH

#include "snippets/matrix_step.cuh"

/* TILES of a group of T, OCTETS of 8 rows. */
template <class FORMAT, int T, int TILES, int OCTETS> struct gemm_step {
    /* HALVES times 32 k of a 64-k block, from half `first` on: weights and rows are the block's addresses, at the
     * warp's first tile and octet. */
    template <int HALVES>
    static __device__ __forceinline__ void run(float (&d)[TILES][OCTETS][4], unsigned weights, unsigned rows, int lane,
                                               int first = 0) {
        uint4 a[TILES][2 * HALVES], b[OCTETS][HALVES];
        /* ldmatrix: lane l names row l % 8 of 16-byte piece l / 8 of 4, where the swizzle has put it */
        const unsigned piece = lane / 8, row = lane % 8;
#pragma unroll
        for (int t = 0; t < TILES; t++)
#pragma unroll
            for (int q = 0; q < 2 * HALVES; q++)
                a[t][q] = FORMAT::from_shared(weights + ((2 * first + q) * T + t) * FORMAT::STEP, lane);
#pragma unroll
        for (int j = 0; j < OCTETS; j++)
#pragma unroll
            for (int h = 0; h < HALVES; h++)
                b[j][h] =
                    shared_load_matrices(rows + j * 1024 + row * 128 + ((((first + h) * 4 + piece) ^ row) << 4));
#pragma unroll
        for (int q = 0; q < 2 * HALVES; q++)
#pragma unroll
            for (int j = 0; j < OCTETS; j++)
#pragma unroll
                for (int t = 0; t < TILES; t++) {
                    const uint4 v = b[j][q / 2];
                    mma_m16n8k16(d[t][j], a[t][q], q % 2 ? v.z : v.x, q % 2 ? v.w : v.y);
                }
    }
};

#endif
