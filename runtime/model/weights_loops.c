/* The inner loops of packing, plainly and for AVX2: most of the time of loading goes into them. No form fuses
 * a multiplication and an addition, so their bits are the same. */
#include "model/weights_priv.h"

#include "base/bf16.h"
#include "base/philox.h"
#include "model/weights_draw.h"

#include <string.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

/* Returns whether all are finite: 0x80 added to an exponent of all ones carries into bit 15. Simple loops,
 * which compilers vectorise. */
static inline __attribute__((always_inline)) bool to_bf16(const float *restrict row, int count,
                                                          uint16_t *restrict out) {
    uint16_t carry = 0;
    for (int i = 0; i < count; i++)
        out[i] = sf_bf16_operand(row[i]);
    for (int i = 0; i < count; i++)
        carry = (uint16_t)(carry | ((out[i] & 0x7f80u) + 0x80u));
    return !(carry & 0x8000u);
}

static bool to_bf16_plain(const float *restrict row, int count, uint16_t *restrict out) {
    return to_bf16(row, count, out);
}

static bool operands_plain(const uint8_t *restrict row, int count, uint16_t *restrict out) {
    uint16_t carry = 0;
    for (int i = 0; i < count; i++) {
        uint16_t b;
        memcpy(&b, row + 2 * i, sizeof b);
        out[i] = sf_bf16_operand(sf_bf16_to_f32(b));
        carry = (uint16_t)(carry | ((b & 0x7f80u) + 0x80u));
    }
    return !(carry & 0x8000u);
}

static bool transpose_plain(const uint8_t *const rows[SF_LANES], int pairs, uint8_t *restrict dst) {
    bool finite = true;
    for (int p = 0; p < pairs; p++) {
        uint16_t column[SF_LANES][2];
        for (int lane = 0; lane < SF_LANES; lane++)
            finite = operands_plain(rows[lane] + 4 * p, 2, column[lane]) && finite;
        memcpy(dst + (size_t)p * sizeof column, column, sizeof column);
    }
    return finite;
}

static void draw_plain(const uint32_t counter[4], const uint32_t key[2], float mean, float scale, int count,
                       float *restrict out) {
    for (int i = 0; i < count; i += 2) {
        const uint32_t c[4] = {counter[0] + (uint32_t)i / 2, counter[1], counter[2], counter[3]};
        uint32_t r[4];
        sf_philox4x32(c, key, r);
        out[i] = sf_wdraw_value(mean, scale, r[0], r[1]);
        if (i + 1 < count) out[i + 1] = sf_wdraw_value(mean, scale, r[2], r[3]);
    }
}

#if defined(__x86_64__)

__attribute__((target("avx2"))) static bool to_bf16_avx2(const float *restrict row, int count,
                                                         uint16_t *restrict out) {
    return to_bf16(row, count, out);
}

/* 16 bf16 values: those under 2^-60 become 0; bad: collects the exponents of all ones. */
__attribute__((target("avx2"))) static inline __m256i operands16(const uint8_t *p, __m256i *bad) {
    const __m256i v = _mm256_loadu_si256((const __m256i *)(const void *)p), one = _mm256_set1_epi16(0x7f80);
    const __m256i magnitude = _mm256_and_si256(v, _mm256_set1_epi16(0x7fff));
    *bad = _mm256_or_si256(*bad, _mm256_cmpeq_epi16(_mm256_and_si256(v, one), one));
    return _mm256_and_si256(v, _mm256_cmpgt_epi16(magnitude, _mm256_set1_epi16(0x217f)));
}

__attribute__((target("avx2"))) static bool operands_avx2(const uint8_t *restrict row, int count,
                                                          uint16_t *restrict out) {
    __m256i bad = _mm256_setzero_si256();
    int i = 0;
    for (; i + 16 <= count; i += 16)
        _mm256_storeu_si256((__m256i *)(void *)(out + i), operands16(row + 2 * i, &bad));
    return operands_plain(row + 2 * i, count - i, out + i) && _mm256_testz_si256(bad, bad);
}

/* 8 rows of 8 pairs to 8 pairs of 8 rows, `stride` bytes apart. */
__attribute__((target("avx2"))) static inline void transpose8(__m256i r[8], uint8_t *dst, size_t stride) {
    __m256i t[8], u[8];
    for (int i = 0; i < 4; i++) {
        t[2 * i] = _mm256_unpacklo_epi32(r[2 * i], r[2 * i + 1]);
        t[2 * i + 1] = _mm256_unpackhi_epi32(r[2 * i], r[2 * i + 1]);
    }
    for (int i = 0; i < 2; i++) {
        u[4 * i] = _mm256_unpacklo_epi64(t[4 * i], t[4 * i + 2]);
        u[4 * i + 1] = _mm256_unpackhi_epi64(t[4 * i], t[4 * i + 2]);
        u[4 * i + 2] = _mm256_unpacklo_epi64(t[4 * i + 1], t[4 * i + 3]);
        u[4 * i + 3] = _mm256_unpackhi_epi64(t[4 * i + 1], t[4 * i + 3]);
    }
    for (int i = 0; i < 4; i++) {
        uint8_t *low = dst + (size_t)i * stride, *high = low + 4 * stride;
        _mm256_storeu_si256((__m256i *)(void *)low, _mm256_permute2x128_si256(u[i], u[i + 4], 0x20));
        _mm256_storeu_si256((__m256i *)(void *)high, _mm256_permute2x128_si256(u[i], u[i + 4], 0x31));
    }
}

__attribute__((target("avx2"))) static bool transpose_avx2(const uint8_t *const rows[SF_LANES], int pairs,
                                                           uint8_t *restrict dst) {
    const size_t pair_bytes = SF_LANES * sizeof(uint32_t);
    __m256i bad = _mm256_setzero_si256(), r[8];
    int p = 0;
    for (; p + 8 <= pairs; p += 8) {
        for (int half = 0; half < 2; half++) {
            for (int i = 0; i < 8; i++)
                r[i] = operands16(rows[8 * half + i] + 4 * p, &bad);
            transpose8(r, dst + (size_t)p * pair_bytes + (size_t)half * sizeof r[0], pair_bytes);
        }
    }
    const uint8_t *rest[SF_LANES];
    for (int lane = 0; lane < SF_LANES; lane++)
        rest[lane] = rows[lane] + 4 * p;
    return transpose_plain(rest, pairs - p, dst + (size_t)p * pair_bytes) && _mm256_testz_si256(bad, bad);
}

/* Philox for four counters: a word in the low half of each 64-bit lane, whatever stands in the high one. */
__attribute__((target("avx2"))) static inline void philox_avx2(__m256i c[4], const uint32_t key[2]) {
    const __m256i m0 = _mm256_set1_epi64x(0xD2511F53), m1 = _mm256_set1_epi64x(0xCD9E8D57);
    uint32_t k0 = key[0], k1 = key[1];
    for (int round = 0; round < 10; round++) {
        const __m256i p0 = _mm256_mul_epu32(m0, c[0]), p1 = _mm256_mul_epu32(m1, c[2]);
        const __m256i x0 = _mm256_xor_si256(c[1], _mm256_set1_epi32((int)k0));
        const __m256i x1 = _mm256_xor_si256(c[3], _mm256_set1_epi32((int)k1));
        c[0] = _mm256_xor_si256(_mm256_srli_epi64(p1, 32), x0);
        c[2] = _mm256_xor_si256(_mm256_srli_epi64(p0, 32), x1);
        c[1] = p1;
        c[3] = p0;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
}

/* Words of 32 bits: a's in the even places, b's in the odd ones. */
__attribute__((target("avx2"))) static inline __m256i alternate(__m256i a, __m256i b) {
    return _mm256_blend_epi32(a, _mm256_slli_epi64(b, 32), 0xaa);
}

__attribute__((target("avx2"))) static inline __m256i halves_sum(__m256i v) {
    return _mm256_add_epi32(_mm256_and_si256(v, _mm256_set1_epi32(0xffff)), _mm256_srli_epi32(v, 16));
}

__attribute__((target("avx2"))) static void draw_avx2(const uint32_t counter[4], const uint32_t key[2],
                                                      float mean, float scale, int count,
                                                      float *restrict out) {
    int i = 0;
    for (; i + 8 <= count; i += 8) {
        const int first = (int)(counter[0] + (uint32_t)i / 2);
        __m256i c[4] = {_mm256_add_epi32(_mm256_set1_epi32(first), _mm256_setr_epi32(0, 0, 1, 0, 2, 0, 3, 0)),
                        _mm256_set1_epi32((int)counter[1]), _mm256_set1_epi32((int)counter[2]),
                        _mm256_set1_epi32((int)counter[3])};
        philox_avx2(c, key);
        const __m256i sum =
            _mm256_add_epi32(halves_sum(alternate(c[0], c[2])), halves_sum(alternate(c[1], c[3])));
        const __m256i z = _mm256_sub_epi32(_mm256_add_epi32(sum, sum), _mm256_set1_epi32(SF_WDRAW_CENTRE));
        const __m256 scaled = _mm256_mul_ps(_mm256_set1_ps(scale), _mm256_cvtepi32_ps(z));
        _mm256_storeu_ps(out + i, _mm256_add_ps(_mm256_set1_ps(mean), scaled));
    }
    const uint32_t rest[4] = {counter[0] + (uint32_t)i / 2, counter[1], counter[2], counter[3]};
    draw_plain(rest, key, mean, scale, count - i, out + i);
}

#endif

const sf_wloops *sf_wloops_at(int i) {
    static const sf_wloops plain = {to_bf16_plain, operands_plain, transpose_plain, draw_plain,
                                    sf_wdigest_plain};
    if (i == 0) return &plain;
#if defined(__x86_64__)
    static const sf_wloops avx2 = {to_bf16_avx2, operands_avx2, transpose_avx2, draw_avx2, sf_wdigest_avx2};
    if (i == 1 && __builtin_cpu_supports("avx2")) return &avx2;
#endif
    return NULL;
}

const sf_wloops *sf_wloops_best(void) {
    const sf_wloops *vector = sf_wloops_at(1);
    return vector ? vector : sf_wloops_at(0);
}
