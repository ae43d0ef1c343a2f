/* Drawing a token: filters (top_k, top_p, min_p) and Gumbel-max over what they leave.
 *
 * Sums of probabilities are taken in 64-bit fixed point, so they are exact and of no order. */
#ifndef SF_SNIPPETS_SAMPLE_DRAW_H
#define SF_SNIPPETS_SAMPLE_DRAW_H

#include "snippets/philox.h"
#include "snippets/sample_row.h"

/* Scratch of one row; vp is the vocabulary's size rounded up to 16. */
typedef struct draw_scratch {
    float *z;      /* [vp] adjusted logits, then (z - max) / T; -inf: filtered out */
    uint32_t *key; /* [vp] of candidates: greater is likelier */
    uint32_t *id;  /* [vp] */
    float *weight; /* [vp] exp */
} draw_scratch;

static inline uint64_t draw_mass(const draw_scratch *d, bool counted, int i) {
    return counted ? 1 : (uint64_t)((double)d->weight[i] * 0x1p44);
}

/* Over n candidates: the key at which the sum of masses, from the greatest key down, reaches target (>= 1).
 * above is the sum over greater keys. counted: every mass is 1. Reorders the candidates. Three rounds of a
 * radix search. */
static inline uint32_t draw_select(draw_scratch *d, int n, bool counted, uint64_t target, uint64_t *above) {
    static const int shifts[3] = {21, 10, 0}, widths[3] = {11, 11, 10};
    uint32_t found = 0;
    *above = 0;
    for (int round = 0; round < 3; round++) {
        uint64_t sums[2048] = {0};
        const uint32_t mask = (1u << widths[round]) - 1;
        for (int i = 0; i < n; i++)
            sums[(d->key[i] >> shifts[round]) & mask] += draw_mass(d, counted, i);
        uint32_t bin = mask;
        while (bin > 0 && *above + sums[bin] < target)
            *above += sums[bin--];
        found |= bin << shifts[round];
        int kept = 0;
        for (int i = 0; i < n; i++) {
            if (((d->key[i] >> shifts[round]) & mask) != bin) continue;
            d->key[kept] = d->key[i];
            d->id[kept] = d->id[i];
            d->weight[kept++] = d->weight[i];
        }
        n = kept;
    }
    return found;
}

/* Greater for a greater value; any float but a NaN. */
static inline uint32_t draw_key(float v) {
    uint32_t u;
    v = v + 0.0f; /* -0 and 0 are equal */
    memcpy(&u, &v, sizeof u);
    return u >> 31 ? ~u : u | 0x80000000u;
}

/* Keeps what is at least as likely as the k-th. */
static inline void draw_top_k(draw_scratch *d, int n, int k) {
    uint64_t above;
    if (k <= 0 || k >= n) return;
    for (int i = 0; i < n; i++)
        d->key[i] = draw_key(d->z[i]);
    const uint32_t least = draw_select(d, n, true, (uint64_t)k, &above);
    for (int i = 0; i < n; i++)
        if (draw_key(d->z[i]) < least) d->z[i] = -__builtin_inff();
}

/* Keeps the likeliest tokens up to and including the one at which their probability reaches top_p; of equals
 * the lower ids. z is (logit - max) / T. */
static inline void draw_top_p(draw_scratch *d, int n, float top_p) {
    int m = 0;
    uint64_t total = 0, above;
    if (top_p >= 1.0f) return;
    for (int i = 0; i < n; i += 16) {
        float e[16];
        const v16f z = row_load(d->z, i, n, -__builtin_inff());
        if (!vu_any(v_gt(z, v_set1(-31.0f)))) continue; /* a mass of 0 */
        v_store(e, v_exp(z));
        for (int l = 0; l < 16 && i + l < n; l++) {
            d->weight[m] = e[l];
            const uint64_t mass = draw_mass(d, false, m);
            if (mass == 0) continue;
            total += mass;
            d->key[m] = draw_key(d->z[i + l]);
            d->id[m++] = (uint32_t)(i + l);
        }
    }
    const double want = (double)top_p * (double)total;
    uint64_t target = (uint64_t)want;
    if ((double)target < want || target == 0) target++;
    const uint32_t least = draw_select(d, m, false, target, &above);
    const uint64_t each = draw_mass(d, false, 0); /* equal keys, equal masses */
    uint64_t equals = (target - above + each - 1) / each;
    for (int i = 0; i < n; i++) {
        const uint32_t key = draw_key(d->z[i]);
        if (key < least || (key == least && equals == 0))
            d->z[i] = -__builtin_inff();
        else if (key == least)
            equals--;
    }
}

static inline void draw_min_p(draw_scratch *d, int n, float min_p) {
    if (min_p <= 0.0f) return;
    for (int i = 0; i < n; i += 16) {
        const v16f z = row_load(d->z, i, n, -__builtin_inff());
        const v16f kept = v_sel(v_lt(v_exp(z), v_set1(min_p)), v_set1(-__builtin_inff()), z);
        v_store(d->z + i, kept); /* the scratch is padded to 16 */
    }
}

/* -log(-log1p(-v)), v = (w + 1/2) 2^-32 kept under 1. log1p by Kahan's correction of log(1 - v). */
V_FN v16f draw_gumbel(v16u w) {
    const v16f high = v_from_int(vu_shr(w, 16)), low = v_from_int(vu_and(w, vu_set1(0xffffu)));
    v16f v = v_add(v_mul(high, v_set1(65536.0f)), low);
    v = v_mul(v_add(v, v_set1(0.5f)), v_set1(0x1p-32f));
    const v16f limit = v_set1(1.0f - 0x1p-24f);
    v = v_sel(v_gt(v, limit), limit, v);
    const v16f one = v_set1(1.0f), u = v_sub(one, v);
    const v16u tiny = v_eq(u, one);
    const v16f e = v_div(v_mul(v_log(u), v), v_sel(tiny, one, v_sub(u, one)));
    return v_sub(v_zero(), v_log(v_sel(tiny, v, e)));
}

enum { DRAW_STREAM = 0x53464731 };

/* Gumbel noise of tokens at .. at+63 (at a multiple of 64): out[j][l] is token at + 4 l + j's. */
V_FN void draw_noise(const sf_sample *s, int at, float out[4][16]) {
    philox p;
    p.w[0] = vu_add(vu_set1((uint32_t)at / 4), vu_lanes());
    p.w[1] = vu_set1(s->position);
    p.w[2] = vu_set1(s->choice);
    p.w[3] = vu_set1(DRAW_STREAM);
    philox_draw(&p, (uint32_t)s->seed, (uint32_t)(s->seed >> 32));
    for (int j = 0; j < 4; j++)
        v_store(out[j], draw_gumbel(p.w[j]));
}

/* The highest z + noise; of equals the lower id. The noise lies within -2.9 .. 22.9, and the likeliest token
 * has z = 0, so a token at -40 can't win, nor one 23 below a score already seen. */
static inline int32_t draw_gumbel_max(const draw_scratch *d, int n, const sf_sample *s) {
    float best = -__builtin_inff(), floor = -40.0f;
    int32_t arg = -1;
    for (int at = 0; at < n; at += 64) {
        float noise[4][16];
        v16u any = vu_set1(0);
        for (int i = at; i < at + 64 && i < n; i += 16)
            any = vu_or(any, v_gt(row_load(d->z, i, n, -__builtin_inff()), v_set1(floor)));
        if (!vu_any(any)) continue;
        draw_noise(s, at, noise);
        for (int i = 0; i < 64 && at + i < n; i++) {
            const float score = d->z[at + i] + noise[i % 4][i / 4];
            if (score > best) {
                best = score;
                arg = at + i;
            }
        }
        if (best - 23.0f > floor) floor = best - 23.0f;
    }
    return arg;
}

/* Draws from d->z, adjusted logits whose maximum (finite) is max. */
static inline int32_t draw_token(draw_scratch *d, int n, float max, const sf_sample *s) {
    draw_top_k(d, n, s->top_k);
    const v16f shift = v_set1(max), temperature = v_set1(s->temperature);
    for (int i = 0; i < n; i += 16)
        v_store(d->z + i, v_div(v_sub(row_load(d->z, i, n, -__builtin_inff()), shift), temperature));
    draw_top_p(d, n, s->top_p);
    draw_min_p(d, n, s->min_p);
    return draw_gumbel_max(d, n, s);
}

#endif
