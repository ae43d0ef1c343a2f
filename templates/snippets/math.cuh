/* Number formats, exp and log on the device. exp and log take the steps of snippets/math.h one by one, so that both
 * backends draw from the same noise; exp2_fast is the hardware's function: its results are a table that all GPUs of an
 * architecture share. */
#ifndef SF_SNIPPETS_MATH_CUH
#define SF_SNIPPETS_MATH_CUH

typedef unsigned long long u64;

#define SF_INF __int_as_float(0x7f800000)

__device__ __forceinline__ float bf16_float(unsigned bits) {
    return __int_as_float((int)(bits << 16));
}
/* Two bf16 in a word, low first; round to nearest even. */
__device__ __forceinline__ unsigned bf16_pair(float low, float high) {
    unsigned r;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(high), "f"(low));
    return r;
}

/* 2^x: exactly 1 at 0 and 0 at -inf; subnormal results are 0. */
__device__ __forceinline__ float exp2_fast(float x) {
    float r;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x));
    return r;
}

/* Within 2 ulp; below -87.3 it is 0, above 88.7 infinity; a NaN stays one. */
__device__ __forceinline__ float exp_exact(float x) {
    const float round = 12582912.0f; /* 1.5 * 2^23: adding it rounds to an integer */
    const float c = fminf(fmaxf(x, -87.3f), 88.7f);
    const float shifted = __fadd_rn(__fmul_rn(c, 1.44269504f), round), n = __fsub_rn(shifted, round);
    float r = __fsub_rn(c, __fmul_rn(n, 0.693359375f));
    r = __fsub_rn(r, __fmul_rn(n, -2.12194440e-4f));
    float p = 0.00139517116f;
    p = __fadd_rn(__fmul_rn(p, r), 0.00836959947f);
    p = __fadd_rn(__fmul_rn(p, r), 0.0416661873f);
    p = __fadd_rn(__fmul_rn(p, r), 0.166665122f);
    p = __fadd_rn(__fmul_rn(p, r), 0.5f);
    p = __fadd_rn(__fmul_rn(__fmul_rn(r, r), p), r);
    p = __fadd_rn(p, 1.0f);
    /* 2^n in two factors, so that n = 128 does not overflow before its time */
    const int k = __float_as_int(shifted) - __float_as_int(round), half = ((k + 256) >> 1) - 128;
    p = __fmul_rn(p, __int_as_float((half + 127) << 23));
    p = __fmul_rn(p, __int_as_float((k - half + 127) << 23));
    p = x < -87.3f ? 0.0f : x > 88.7f ? SF_INF : p;
    return x == x ? p : x;
}

/* Of positive normal numbers, within 2 ulp. */
__device__ __forceinline__ float log_exact(float x) {
    const unsigned root = 0x3f3504f3u; /* sqrt 1/2 */
    const unsigned shifted = (unsigned)__float_as_int(x) - root;
    const float n = (float)((int)shifted >> 23);
    const float f = __fsub_rn(__int_as_float((int)((shifted & 0x7fffffu) + root)), 1.0f);
    float p = 0.0692567378f;
    p = __fadd_rn(__fmul_rn(p, f), -0.118078239f);
    p = __fadd_rn(__fmul_rn(p, f), 0.118779846f);
    p = __fadd_rn(__fmul_rn(p, f), -0.123818159f);
    p = __fadd_rn(__fmul_rn(p, f), 0.14217706f);
    p = __fadd_rn(__fmul_rn(p, f), -0.166693553f);
    p = __fadd_rn(__fmul_rn(p, f), 0.200022742f);
    p = __fadd_rn(__fmul_rn(p, f), -0.249999851f);
    p = __fadd_rn(__fmul_rn(p, f), 0.333333105f);
    const float square = __fmul_rn(f, f);
    p = __fmul_rn(__fmul_rn(p, f), square);
    p = __fadd_rn(p, __fmul_rn(n, -2.12194440e-4f));
    p = __fsub_rn(p, __fmul_rn(square, 0.5f));
    p = __fadd_rn(f, p);
    return __fadd_rn(p, __fmul_rn(n, 0.693359375f));
}

#endif
