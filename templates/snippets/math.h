/* exp and log of our own: fixed polynomials, so that no libm reaches a bit. Every step is one written
 * multiplication or addition. */
#ifndef SF_SNIPPETS_MATH_H
#define SF_SNIPPETS_MATH_H

#include "snippets/vec.h"

/* exp, within 2 ulp. Below -87.3 it is 0 (no subnormal results), above 88.7 infinity; a NaN stays one.
 * x = n ln 2 + r with |r| <= ln 2 / 2; exp r = 1 + r + r^2 p(r), p a minimax fit. */
V_FN v16f v_exp(v16f x) {
    const v16f round = v_set1(12582912.0f); /* 1.5 * 2^23: adding it rounds to an integer */
    const v16f low = v_set1(-87.3f), high = v_set1(88.7f);
    const v16u under = v_lt(x, low), over = v_gt(x, high);
    v16f c = v_sel(under, low, x);
    c = v_sel(over, high, c);
    const v16f shifted = v_add(v_mul(c, v_set1(1.44269504f)), round);
    const v16f n = v_sub(shifted, round);
    /* ln 2 in two pieces; the first has 9 bits, so that its product with n is exact */
    v16f r = v_sub(c, v_mul(n, v_set1(0.693359375f)));
    r = v_sub(r, v_mul(n, v_set1(-2.12194440e-4f)));
    v16f p = v_set1(0.00139517116f);
    p = v_add(v_mul(p, r), v_set1(0.00836959947f));
    p = v_add(v_mul(p, r), v_set1(0.0416661873f));
    p = v_add(v_mul(p, r), v_set1(0.166665122f));
    p = v_add(v_mul(p, r), v_set1(0.5f));
    p = v_add(v_mul(v_mul(r, r), p), r);
    p = v_add(p, v_set1(1.0f));
    /* 2^n in two factors, so that n = 128 does not overflow before its time */
    const v16u k = vu_sub(v_bits(shifted), v_bits(round));
    const v16u half = vu_sub(vu_shr(vu_add(k, vu_set1(256)), 1), vu_set1(128));
    const v16u rest = vu_sub(k, half), bias = vu_set1(127);
    p = v_mul(p, v_from_bits(vu_shl(vu_add(half, bias), 23)));
    p = v_mul(p, v_from_bits(vu_shl(vu_add(rest, bias), 23)));
    p = v_sel(under, v_zero(), p);
    p = v_sel(over, v_set1(__builtin_inff()), p);
    return v_sel(v_eq(x, x), p, x);
}

/* log of positive normal numbers, within 2 ulp. x = 2^e m, m in [sqrt 1/2, sqrt 2); with f = m - 1,
 * log m = f - f^2/2 + f^3 p(f), p a minimax fit. */
V_FN v16f v_log(v16f x) {
    const v16u u = v_bits(x), root = vu_set1(0x3f3504f3u); /* sqrt 1/2 */
    const v16u shifted = vu_sub(u, root);
    v16u e = vu_shr(vu_add(shifted, vu_set1(0x80000000u)), 23); /* biased by 256: the sign goes with it */
    e = vu_sub(e, vu_set1(256));
    const v16u m = vu_add(vu_and(shifted, vu_set1(0x7fffffu)), root);
    const v16f f = v_sub(v_from_bits(m), v_set1(1.0f)), n = v_from_int(e);
    v16f p = v_set1(0.0692567378f);
    p = v_add(v_mul(p, f), v_set1(-0.118078239f));
    p = v_add(v_mul(p, f), v_set1(0.118779846f));
    p = v_add(v_mul(p, f), v_set1(-0.123818159f));
    p = v_add(v_mul(p, f), v_set1(0.14217706f));
    p = v_add(v_mul(p, f), v_set1(-0.166693553f));
    p = v_add(v_mul(p, f), v_set1(0.200022742f));
    p = v_add(v_mul(p, f), v_set1(-0.249999851f));
    p = v_add(v_mul(p, f), v_set1(0.333333105f));
    const v16f square = v_mul(f, f);
    p = v_mul(v_mul(p, f), square);
    p = v_add(p, v_mul(n, v_set1(-2.12194440e-4f)));
    p = v_sub(p, v_mul(square, v_set1(0.5f)));
    p = v_add(f, p);
    return v_add(p, v_mul(n, v_set1(0.693359375f)));
}

V_FN float f_lane0(v16f a) {
    float t[16];
    v_store(t, a);
    return t[0];
}
V_FN float f_exp(float x) {
    return f_lane0(v_exp(v_set1(x)));
}
V_FN float f_log(float x) {
    return f_lane0(v_log(v_set1(x)));
}

/* silu(g) * u = g / (1 + exp(-g)) * u */
V_FN v16f v_swiglu(v16f g, v16f u) {
    const v16f e = v_exp(v_from_bits(vu_xor(v_bits(g), vu_set1(0x80000000u))));
    return v_mul(v_div(g, v_add(v_set1(1.0f), e)), u);
}

#endif
