/* The matrix product's reference twin: one thread an output, k ascending, one fp32 sum by fused multiply-add, from
 * the row-major weight. The tensor cores add 16 products at a time with another rounding, so the comparison is by
 * tolerance. unpack is the packing's inverse, written from the layout's description and not from pack.cu. */
#include "snippets/math.cuh"

enum ref_epilogue { REF_STORE, REF_ADD, REF_SWIGLU };

__device__ float ref_dot(const unsigned short *w, const unsigned short *x, int k) {
    float sum = 0.0f;
    for (int i = 0; i < k; i++) sum = fmaf(bf16_float(w[i]), bf16_float(x[i]), sum);
    return sum;
}

/* in [rows, k], weight [n, k] (SwiGLU: n / 2 gate rows, then n / 2 up rows), bias [n] or NULL, out fp32 [rows, n], or
 * bf16 with store_bf16 (SwiGLU: bf16 [rows, n / 2]). Grid: any. */
extern "C" __global__ void gemm_ref(const unsigned short *in, const unsigned short *weight, const float *bias, void *out,
                                    int rows, int n, int k, int epilogue, int store_bf16) {
    const int columns = epilogue == REF_SWIGLU ? n / 2 : n;
    const long long count = (long long)rows * columns;
    for (long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x; i < count;
         i += (long long)gridDim.x * blockDim.x) {
        const int row = (int)(i / columns), f = (int)(i % columns);
        const unsigned short *x = in + (size_t)row * k;
        const float sum = ref_dot(weight + (size_t)f * k, x, k) + (bias ? bias[f] : 0.0f);
        if (epilogue == REF_STORE && store_bf16) ((unsigned short *)out)[i] = (unsigned short)bf16_pair(sum, 0.0f);
        if (epilogue == REF_STORE && !store_bf16) ((float *)out)[i] = sum;
        if (epilogue == REF_ADD) ((float *)out)[i] += sum;
        if (epilogue == REF_SWIGLU) {
            const float up = ref_dot(weight + (size_t)(f + columns) * k, x, k);
            ((unsigned short *)out)[i] = (unsigned short)bf16_pair(sum / (1.0f + exp_exact(-sum)) * up, 0.0f);
        }
    }
}

/* packed -> row-major [n, k], for groups of t tiles and blocks 64-k blocks. */
extern "C" __global__ void unpack_ref(const unsigned short *packed, unsigned short *out, int n, int k, int t,
                                      int blocks, int interleave) {
    const long long count = (long long)n * k;
    for (long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x; i < count;
         i += (long long)gridDim.x * blockDim.x) {
        const int row = (int)(i / k), c = (int)(i % k);
        const int half = interleave && row >= n / 2, f = row - half * (n / 2);
        const int tile = interleave ? f / 8 : f / 16, r = interleave ? f % 8 + 8 * half : f % 16;
        const int group = tile / t, step = c / 16, kk = c % 16;
        /* the lane that holds (r, kk), and which of its eight values it is */
        const int lane = r % 8 * 4 + kk % 8 / 2, value = kk / 8 * 4 + r / 8 * 2 + kk % 2;
        const size_t fragment = (((size_t)group * blocks * 4 + step) * t + tile % t) * 32 + lane;
        out[i] = packed[fragment * 8 + value];
    }
}
