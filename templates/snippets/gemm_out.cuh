/* What becomes of a tile's sums: stored (fp32 or bf16), added into the fp32 residual stream, or SwiGLU.
 * A lane's four sums are features l / 4 and l / 4 + 8 of the tile (i / 2) at two rows (i % 2). */
#ifndef SF_SNIPPETS_GEMM_OUT_CUH
#define SF_SNIPPETS_GEMM_OUT_CUH

#include "snippets/math.cuh"

enum gemm_kind { GEMM_STORE, GEMM_STORE_BF16, GEMM_ADD, GEMM_SWIGLU };

constexpr gemm_kind gemm_kind_of(bool add, bool swiglu, bool bf16) {
    return add ? GEMM_ADD : swiglu ? GEMM_SWIGLU : bf16 ? GEMM_STORE_BF16 : GEMM_STORE;
}

/* silu(g) * u = g / (1 + exp(-g)) * u, by the hardware's functions: their error is far below a bf16's. */
__device__ __forceinline__ float swiglu(float g, float u) {
    float share;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(share) : "f"(__fadd_rn(1.0f, exp2_fast(__fmul_rn(g, -1.44269504f)))));
    return __fmul_rn(__fmul_rn(g, share), u);
}

/* Adds where the value lies: nobody waits for what was there. One sum goes to a place in a launch, so that nothing
 * depends on an order; a subnormal counts as zero. */
__device__ __forceinline__ void add_there(float *at, float v) {
    asm volatile("red.relaxed.gpu.global.add.f32 [%0], %1;" ::"l"(at), "f"(v) : "memory");
}

template <int N, int KIND, bool BIAS> struct gemm_out {
    void *out;
    const float *bias;
    int rows; /* rows at or past this are not written */

    /* The biases of a lane's two features; 0 past the last. Read apart from put, so that nobody waits for each. */
    __device__ __forceinline__ float2 biases(int tile, int lane) const {
        if constexpr (!BIAS) return make_float2(0.0f, 0.0f);
        const int f = tile * 16 + lane / 4;
        return make_float2(f < N ? bias[f] : 0.0f, f + 8 < N ? bias[f + 8] : 0.0f);
    }
    __device__ __forceinline__ void take(float *d, float2 b) const {
        if constexpr (BIAS) {
            d[0] = __fadd_rn(d[0], b.x);
            d[1] = __fadd_rn(d[1], b.x);
            d[2] = __fadd_rn(d[2], b.y);
            d[3] = __fadd_rn(d[3], b.y);
        }
    }
    /* All lanes of a warp. */
    __device__ __forceinline__ void put(const float *d, int tile, int lane, int row) const {
        if constexpr (KIND == GEMM_SWIGLU) {
            put_swiglu(swiglu(d[0], d[2]), swiglu(d[1], d[3]), tile * 8 + lane / 4, lane, row);
        } else {
#pragma unroll
            for (int i = 0; i < 4; i++) {
                const int f = tile * 16 + lane / 4 + i / 2 * 8, r = row + i % 2;
                if (f >= N || r >= rows) continue;
                if (KIND == GEMM_STORE_BF16) put_bf16((size_t)r * N + f, d[i]);
                else if (KIND == GEMM_ADD) add_there((float *)out + (size_t)r * N + f, d[i]);
                else ((float *)out)[(size_t)r * N + f] = d[i];
            }
        }
    }

  private:
    /* Two rows of feature f. Lanes of neighbouring features swap, so that each writes both features of one row. */
    __device__ __forceinline__ void put_swiglu(float top, float bottom, int f, int lane, int row) const {
        if constexpr (N / 2 % 2 == 0) {
            const bool odd = f % 2;
            const float other = __shfl_xor_sync(0xffffffffu, odd ? top : bottom, 4);
            const int r = row + odd;
            if (f < N / 2 && r < rows)
                *(unsigned *)((unsigned short *)out + (size_t)r * (N / 2) + f - odd) =
                    odd ? bf16_pair(other, bottom) : bf16_pair(top, other);
        } else {
            if (f < N / 2 && row < rows) put_bf16((size_t)row * (N / 2) + f, top);
            if (f < N / 2 && row + 1 < rows) put_bf16((size_t)(row + 1) * (N / 2) + f, bottom);
        }
    }
    __device__ __forceinline__ void put_bf16(size_t at, float v) const {
        ((unsigned short *)out)[at] = (unsigned short)bf16_pair(v, 0.0f);
    }
};

#endif
