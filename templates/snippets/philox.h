/* Philox4x32-10 (Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3", 2011), sixteen
 * counters at a time. */
#ifndef SF_SNIPPETS_PHILOX_H
#define SF_SNIPPETS_PHILOX_H

#include "snippets/vec.h"

typedef struct philox {
    v16u w[4]; /* the counter, then the four words drawn for it; a lane is one counter */
} philox;

/* High and low halves of a * m, lane by lane. */
V_FN void philox_mul(v16u a, uint32_t m, v16u *high, v16u *low) {
#if defined(__AVX512F__)
    const __m512i x = (__m512i)a.p[0], k = _mm512_set1_epi64((long long)m);
    const __m512i even = _mm512_mul_epu32(x, k), odd = _mm512_mul_epu32(_mm512_srli_epi64(x, 32), k);
    high->p[0] = (vu_part)_mm512_mask_blend_epi32(0xaaaa, _mm512_srli_epi64(even, 32), odd);
    low->p[0] = (vu_part)_mm512_mullo_epi32(x, _mm512_set1_epi32((int)m));
#else
    uint32_t t[16], h[16];
    vu_store(t, a);
    for (int l = 0; l < 16; l++)
        h[l] = (uint32_t)(((uint64_t)t[l] * m) >> 32);
    *high = vu_load(h);
    *low = vu_mul(a, vu_set1(m));
#endif
}

V_FN void philox_draw(philox *p, uint32_t key0, uint32_t key1) {
    for (int round = 0; round < 10; round++) {
        v16u h0, l0, h2, l2;
        philox_mul(p->w[0], 0xD2511F53u, &h0, &l0);
        philox_mul(p->w[2], 0xCD9E8D57u, &h2, &l2);
        p->w[0] = vu_xor(vu_xor(h2, p->w[1]), vu_set1(key0));
        p->w[1] = l2;
        p->w[2] = vu_xor(vu_xor(h0, p->w[3]), vu_set1(key1));
        p->w[3] = l0;
        key0 += 0x9E3779B9u;
        key1 += 0xBB67AE85u;
    }
}

#endif
