/* Gumbel noise by Philox4x32-10 (base/philox.h), step by step what snippets/sample_draw.h of the CPU draws. */
#ifndef SF_SNIPPETS_NOISE_CUH
#define SF_SNIPPETS_NOISE_CUH

#include "device/cuda/pass_block.h"
#include "snippets/math.cuh"

enum { DRAW_STREAM = 0x53464731 };

/* -log(-log1p(-v)), v = (w + 1/2) 2^-32 kept under 1. log1p by Kahan's correction of log(1 - v). */
__device__ __forceinline__ float gumbel(unsigned w) {
    float v = __fadd_rn(__fmul_rn((float)(w >> 16), 65536.0f), (float)(w & 0xffffu));
    v = __fmul_rn(__fadd_rn(v, 0.5f), 2.32830644e-10f); /* 2^-32 */
    v = fminf(v, 0.999999940f);                         /* 1 - 2^-24 */
    const float u = __fsub_rn(1.0f, v);
    const bool tiny = u == 1.0f;
    const float e = __fdiv_rn(__fmul_rn(log_exact(u), v), tiny ? 1.0f : __fsub_rn(u, 1.0f));
    return __fsub_rn(0.0f, log_exact(tiny ? v : e));
}

/* Random words of tokens 4 quad .. 4 quad + 3. */
__device__ __forceinline__ uint4 draw_words(const sf_cuda_sample &s, unsigned quad) {
    unsigned c0 = quad, c1 = s.position, c2 = s.choice, c3 = DRAW_STREAM, k0 = s.seed_low, k1 = s.seed_high;
#pragma unroll
    for (int round = 0; round < 10; round++) {
        const u64 p0 = (u64)0xD2511F53u * c0, p1 = (u64)0xCD9E8D57u * c2;
        c0 = (unsigned)(p1 >> 32) ^ c1 ^ k0;
        c2 = (unsigned)(p0 >> 32) ^ c3 ^ k1;
        c1 = (unsigned)p1;
        c3 = (unsigned)p0;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    return make_uint4(c0, c1, c2, c3);
}

#endif
