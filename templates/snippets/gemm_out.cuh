/* What becomes of a tile's sums: stored (fp32 or bf16), added into the fp32 residual stream, or SwiGLU.
 * A lane's four sums are features l / 4 and l / 4 + 8 of the tile (i / 2) at two rows (i % 2). */
#ifndef SF_SNIPPETS_GEMM_OUT_CUH
#define SF_SNIPPETS_GEMM_OUT_CUH

#include "snippets/math.cuh"

enum gemm_kind { GEMM_STORE, GEMM_STORE_BF16, GEMM_ADD, GEMM_SWIGLU };

/* silu(g) * u = g / (1 + exp(-g)) * u */
__device__ __forceinline__ float swiglu(float g, float u) {
    return __fmul_rn(__fdiv_rn(g, __fadd_rn(1.0f, exp_exact(-g))), u);
}

template <int N, int KIND, bool BIAS> struct gemm_out {
    void *out;
    const float *bias;
    int rows; /* rows at or past this are not written */

    __device__ __forceinline__ float biased(float sum, int feature) const {
        return BIAS ? __fadd_rn(sum, bias[feature]) : sum;
    }
    /* Adds the bias and, into a residual stream, what is there. Apart from put, so that many reads are in flight. */
    __device__ __forceinline__ void take(float *d, int tile, int lane, int row) const {
        if constexpr (KIND == GEMM_ADD || BIAS) {
#pragma unroll
            for (int i = 0; i < 4; i++) {
                const int f = tile * 16 + lane / 4 + i / 2 * 8, r = row + i % 2;
                if (f >= N || r >= rows) continue;
                d[i] = biased(d[i], f);
                if (KIND == GEMM_ADD) d[i] = __fadd_rn(((const float *)out)[(size_t)r * N + f], d[i]);
            }
        }
    }
    __device__ __forceinline__ void put(const float *d, int tile, int lane, int row) const {
        if constexpr (KIND == GEMM_SWIGLU) {
            const int f = tile * 8 + lane / 4;
#pragma unroll
            for (int i = 0; i < 2; i++)
                if (f < N / 2 && row + i < rows) put_bf16((size_t)(row + i) * (N / 2) + f, swiglu(d[i], d[i + 2]));
        } else {
#pragma unroll
            for (int i = 0; i < 4; i++) {
                const int f = tile * 16 + lane / 4 + i / 2 * 8, r = row + i % 2;
                if (f >= N || r >= rows) continue;
                if (KIND == GEMM_STORE_BF16) put_bf16((size_t)r * N + f, d[i]);
                else ((float *)out)[(size_t)r * N + f] = d[i];
            }
        }
    }

  private:
    __device__ __forceinline__ void put_bf16(size_t at, float v) const {
        ((unsigned short *)out)[at] = (unsigned short)bf16_pair(v, 0.0f);
    }
};

#endif
