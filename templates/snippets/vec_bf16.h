/* bf16 operands in sixteen lanes, and the multiply-add that is exact on them. */
#ifndef SF_SNIPPETS_VEC_BF16_H
#define SF_SNIPPETS_VEC_BF16_H

#include "snippets/vec.h"

/* a * b + c where the product is exact (both are sf_bf16_operand values): fused or not, the same bits. */
V_FN v16f v_madd(v16f a, v16f b, v16f c) {
#if defined(__AVX512F__)
    c.p[0] = (vf_part)_mm512_fmadd_ps((__m512)a.p[0], (__m512)b.p[0], (__m512)c.p[0]);
    return c;
#elif defined(__AVX2__) && defined(__FMA__)
    V_EACH c.p[vi] = (vf_part)_mm256_fmadd_ps((__m256)a.p[vi], (__m256)b.p[vi], (__m256)c.p[vi]);
    return c;
#else
    V_EACH c.p[vi] = a.p[vi] * b.p[vi] + c.p[vi];
    return c;
#endif
}

/* Two bf16 values in each 32-bit lane: the low one and the high one, as floats. */
V_FN v16f v_bf16_low(v16u a) {
    return v_from_bits(vu_shl(a, 16));
}
V_FN v16f v_bf16_high(v16u a) {
    return v_from_bits(vu_and(a, vu_set1(0xffff0000u)));
}

/* sf_bf16_operand (base/bf16.h), lane by lane, kept as a float. */
V_FN v16f v_operand(v16f a) {
    const v16u u = v_bits(a), one = vu_set1(1), magnitude = vu_and(u, vu_set1(0x7fffffffu));
    const v16u up = vu_add(u, vu_add(vu_set1(0x7fffu), vu_and(vu_shr(u, 16), one)));
    const v16u nan = vu_lt(vu_set1(0x7f800000u), magnitude);
    v16u r = vu_sel(nan, vu_or(u, vu_set1(0x400000u)), up);
    r = vu_and(r, vu_set1(0xffff0000u));
    return v_from_bits(vu_sel(vu_lt(magnitude, vu_set1(0x21800000u)), vu_set1(0), r));
}
/* Stores the first n lanes of operand values (v_operand's) as bf16. */
V_FN void v_store_bf16(uint16_t *m, v16f a, int n) {
    uint32_t t[16];
    uint16_t h[16];
    vu_store(t, v_bits(a));
    for (int l = 0; l < 16; l++)
        h[l] = (uint16_t)(t[l] >> 16);
    memcpy(m, h, (size_t)n * sizeof *h);
}
/* Loads n (1..16) bf16 values as floats; the rest are zero. */
V_FN v16f v_load_bf16(const uint16_t *m, int n) {
    uint16_t h[16] = {0};
    uint32_t t[16];
    memcpy(h, m, (size_t)n * sizeof *h);
    for (int l = 0; l < 16; l++)
        t[l] = (uint32_t)h[l] << 16;
    return v_from_bits(vu_load(t));
}

#endif
