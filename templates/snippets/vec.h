/* Sixteen lanes, one source for every instruction set: a v16f is 16 floats in as many registers as the target
 * needs. Every lane gives the IEEE result of the written operation, so one instruction set's bits are every
 * other's. Comparisons give all-ones masks. All memory goes through memcpy, so nothing need be aligned. */
#ifndef SF_SNIPPETS_VEC_H
#define SF_SNIPPETS_VEC_H

#include <stdint.h>
#include <string.h>

#if defined(__AVX2__)
#include <immintrin.h>
#endif
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wpsabi" /* every function that passes a vector is inlined */
#endif
#ifdef __clang__
#pragma clang diagnostic ignored "-Wpass-failed" /* an unrolling not done costs time only */
#endif

#if defined(__AVX512F__)
#define V_BYTES 64
#elif defined(__AVX2__)
#define V_BYTES 32
#else
#define V_BYTES 16
#endif

enum { V_PARTS = 64 / V_BYTES, V_WIDE = V_PARTS == 1 };
typedef float vf_part __attribute__((vector_size(V_BYTES)));
typedef uint32_t vu_part __attribute__((vector_size(V_BYTES)));
typedef int32_t vi_part __attribute__((vector_size(V_BYTES)));
typedef struct v16f {
    vf_part p[V_PARTS];
} v16f;
typedef struct v16u {
    vu_part p[V_PARTS];
} v16u;

#define V_FN static inline __attribute__((always_inline, unused))
#ifdef SF_NO_UNROLL /* builds with sanitizers: their checks, unrolled, take minutes to compile */
#define V_UNROLL
#elif defined(__clang__)
#define V_UNROLL _Pragma("unroll")
#else
#define V_UNROLL _Pragma("GCC unroll 32")
#endif
#define V_EACH for (int vi = 0; vi < V_PARTS; vi++)

V_FN v16f v_load(const float *m) {
    v16f r;
    memcpy(&r, m, sizeof r);
    return r;
}
V_FN void v_store(float *m, v16f a) {
    memcpy(m, &a, sizeof a);
}
V_FN v16u vu_load(const void *m) {
    v16u r;
    memcpy(&r, m, sizeof r);
    return r;
}
V_FN void vu_store(void *m, v16u a) {
    memcpy(m, &a, sizeof a);
}

/* The first n lanes (1..16); the rest are zero. */
V_FN v16f v_load_n(const float *m, int n) {
    float t[16] = {0};
    memcpy(t, m, (size_t)n * sizeof *t);
    return v_load(t);
}
V_FN void v_store_n(float *m, v16f a, int n) {
    float t[16];
    v_store(t, a);
    memcpy(m, t, (size_t)n * sizeof *t);
}

V_FN v16f v_set1(float x) {
    v16f r;
#if defined(__AVX512F__)
    r.p[0] = (vf_part)_mm512_set1_ps(x);
#elif defined(__AVX2__)
    r.p[0] = r.p[1] = (vf_part)_mm256_set1_ps(x);
#else
    V_EACH r.p[vi] = (vf_part){x, x, x, x};
#endif
    return r;
}
V_FN float f_from_bits(uint32_t u) {
    float f;
    memcpy(&f, &u, sizeof f);
    return f;
}
V_FN v16u vu_set1(uint32_t x) {
    v16u r;
    const vu_part zero = {0};
    V_EACH r.p[vi] = zero + x;
    return r;
}
V_FN v16f v_zero(void) {
    v16f r;
    memset(&r, 0, sizeof r);
    return r;
}

V_FN v16f v_add(v16f a, v16f b) {
    V_EACH a.p[vi] = a.p[vi] + b.p[vi];
    return a;
}
V_FN v16f v_sub(v16f a, v16f b) {
    V_EACH a.p[vi] = a.p[vi] - b.p[vi];
    return a;
}
V_FN v16f v_mul(v16f a, v16f b) {
    V_EACH a.p[vi] = a.p[vi] * b.p[vi];
    return a;
}
V_FN v16f v_div(v16f a, v16f b) {
    V_EACH a.p[vi] = a.p[vi] / b.p[vi];
    return a;
}
V_FN v16u vu_add(v16u a, v16u b) {
    V_EACH a.p[vi] = a.p[vi] + b.p[vi];
    return a;
}
V_FN v16u vu_sub(v16u a, v16u b) {
    V_EACH a.p[vi] = a.p[vi] - b.p[vi];
    return a;
}
V_FN v16u vu_mul(v16u a, v16u b) {
    V_EACH a.p[vi] = a.p[vi] * b.p[vi];
    return a;
}
V_FN v16u vu_and(v16u a, v16u b) {
    V_EACH a.p[vi] = a.p[vi] & b.p[vi];
    return a;
}
V_FN v16u vu_or(v16u a, v16u b) {
    V_EACH a.p[vi] = a.p[vi] | b.p[vi];
    return a;
}
V_FN v16u vu_xor(v16u a, v16u b) {
    V_EACH a.p[vi] = a.p[vi] ^ b.p[vi];
    return a;
}

V_FN v16u v_gt(v16f a, v16f b) {
    v16u r;
    V_EACH r.p[vi] = (vu_part)(a.p[vi] > b.p[vi]);
    return r;
}
V_FN v16u v_lt(v16f a, v16f b) {
    v16u r;
    V_EACH r.p[vi] = (vu_part)(a.p[vi] < b.p[vi]);
    return r;
}
V_FN v16u v_eq(v16f a, v16f b) {
    v16u r;
    V_EACH r.p[vi] = (vu_part)(a.p[vi] == b.p[vi]);
    return r;
}
V_FN v16u vu_lt(v16u a, v16u b) {
    v16u r;
    V_EACH r.p[vi] = (vu_part)(a.p[vi] < b.p[vi]);
    return r;
}
V_FN v16u vu_shl(v16u a, int n) {
    V_EACH a.p[vi] = a.p[vi] << n;
    return a;
}
V_FN v16u vu_shr(v16u a, int n) {
    V_EACH a.p[vi] = a.p[vi] >> n;
    return a;
}
V_FN v16u v_bits(v16f a) {
    v16u r;
    V_EACH r.p[vi] = (vu_part)a.p[vi];
    return r;
}
V_FN v16f v_from_bits(v16u a) {
    v16f r;
    V_EACH r.p[vi] = (vf_part)a.p[vi];
    return r;
}
/* mask ? a : b */
V_FN v16f v_sel(v16u mask, v16f a, v16f b) {
    V_EACH a.p[vi] = (vf_part)((mask.p[vi] & (vu_part)a.p[vi]) | (~mask.p[vi] & (vu_part)b.p[vi]));
    return a;
}
V_FN v16u vu_sel(v16u mask, v16u a, v16u b) {
    V_EACH a.p[vi] = (mask.p[vi] & a.p[vi]) | (~mask.p[vi] & b.p[vi]);
    return a;
}
/* a > b ? a : b; b where either is a NaN. */
V_FN v16f v_max(v16f a, v16f b) {
    return v_sel(v_gt(a, b), a, b);
}

/* Small signed integers to float and the other way round (exact, truncating). */
V_FN v16f v_from_int(v16u a) {
    v16f r;
    V_EACH r.p[vi] = __builtin_convertvector((vi_part)a.p[vi], vf_part);
    return r;
}

/* Lane numbers 0..15. */
V_FN v16u vu_lanes(void) {
    static const uint32_t lanes[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    return vu_load(lanes);
}
/* All ones in the first n lanes. */
V_FN v16u vu_first(int n) {
    return vu_lt(vu_lanes(), vu_set1((uint32_t)n));
}

/* True where any lane of a mask is set. */
V_FN int vu_any(v16u m) {
#if defined(__AVX512F__)
    return _mm512_test_epi32_mask((__m512i)m.p[0], (__m512i)m.p[0]) != 0;
#else
    vu_part r = m.p[0];
    for (int i = 1; i < V_PARTS; i++)
        r |= m.p[i];
    uint64_t t[V_BYTES / 8], any = 0;
    memcpy(t, &r, sizeof r);
    for (int i = 0; i < V_BYTES / 8; i++)
        any |= t[i];
    return any != 0;
#endif
}

/* The fixed tree: lane l and l+8, then l+4, l+2, l+1. */
V_FN float v_sum(v16f a) {
    float t[16];
    v_store(t, a);
    for (int w = 8; w > 0; w /= 2)
        for (int l = 0; l < w; l++)
            t[l] = t[l] + t[l + w];
    return t[0];
}
V_FN float v_max_lane(v16f a) {
    float t[16];
    v_store(t, a);
    for (int w = 8; w > 0; w /= 2)
        for (int l = 0; l < w; l++)
            t[l] = t[l] > t[l + w] ? t[l] : t[l + w];
    return t[0];
}

#endif
