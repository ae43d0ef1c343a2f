/* The packed formats: a new one is a case in each of the two switches. */
#include "model/weights_priv.h"

#include "base/bf16.h"

#include <string.h>

#define LANES 16 /* outputs of a block: a vector's lanes */

static bool finite_bits(float f) {
    uint32_t u;
    memcpy(&u, &f, sizeof u);
    return (u & 0x7f800000u) != 0x7f800000u;
}

/* Two consecutive bf16 values to a word, the even column low. Returns whether all are finite. */
static bool to_words(const float *row, int count, uint32_t *words) {
    uint32_t bad = 0;
    for (int i = 0; i < count / 2; i++) {
        uint32_t even = sf_bf16_operand(row[2 * i]), odd = sf_bf16_operand(row[2 * i + 1]);
        words[i] = even | odd << 16;
        bad |= ((even & 0x7f80u) == 0x7f80u) | ((odd & 0x7f80u) == 0x7f80u);
    }
    if (count % 2) {
        words[count / 2] = sf_bf16_operand(row[count - 1]);
        bad |= (words[count / 2] & 0x7f80u) == 0x7f80u;
    }
    return !bad;
}

/* 16 rows of [n, k] to [k_pad/2][16][2]. */
static sf_code pack_bf16(const sf_wsource *s, const sf_winst *w, int block, uint8_t *dst, sf_err *err) {
    int n = w->desc->n, k = w->desc->k;
    float row[SF_PACK_STEP];
    uint32_t words[LANES][SF_PACK_STEP / 2];
    for (int from = 0; from < k; from += SF_PACK_STEP) {
        int count = k - from < SF_PACK_STEP ? k - from : SF_PACK_STEP, pairs = (count + 1) / 2;
        for (int lane = 0; lane < LANES; lane++) {
            int r = block * LANES + lane;
            if (r >= n) {
                memset(words[lane], 0, sizeof words[lane]);
                continue;
            }
            SF_TRY(s->read(s, w, r, from, count, row, err));
            if (!to_words(row, count, words[lane])) return s->not_finite(s, w, r, err);
        }
        uint8_t *to = dst + (size_t)from / 2 * LANES * sizeof(uint32_t);
        for (int p = 0; p < pairs; p++) {
            uint32_t column[LANES];
            for (int lane = 0; lane < LANES; lane++)
                column[lane] = words[lane][p];
            memcpy(to + (size_t)p * sizeof column, column, sizeof column);
        }
    }
    return SF_OK;
}

static sf_code pack_f32(const sf_wsource *s, const sf_winst *w, uint8_t *dst, sf_err *err) {
    float *to = (float *)(void *)dst; /* instances are 64-byte aligned */
    SF_TRY(s->read(s, w, 0, 0, w->desc->k, to, err));
    for (int i = 0; i < w->desc->k; i++) {
        if (!finite_bits(to[i])) return s->not_finite(s, w, i, err);
    }
    return SF_OK;
}

sf_code sf_wformat_layout(const sf_weight_desc *d, sf_wlayout *out, sf_err *err) {
    switch (d->format) {
    case SF_W_F32:
        *out = (sf_wlayout){1, (size_t)d->k * sizeof(float)};
        return SF_OK;
    case SF_W_BF16:
        *out = (sf_wlayout){d->n / LANES + (d->n % LANES != 0),
                            ((size_t)d->k + 1) / 2 * LANES * sizeof(uint32_t)};
        return SF_OK;
    case SF_W_COUNT:
        break;
    }
    return SF_FAIL(err, SF_UNSUPPORTED, "weight %s: format %d is not known to the loader", d->name,
                   (int)d->format);
}

sf_code sf_wformat_pack(const sf_wsource *s, const sf_winst *w, int block, uint8_t *dst, sf_err *err) {
    switch (w->desc->format) {
    case SF_W_F32:
        return pack_f32(s, w, dst, err);
    case SF_W_BF16:
        return pack_bf16(s, w, block, dst, err);
    case SF_W_COUNT:
        break;
    }
    return SF_FAIL(err, SF_UNSUPPORTED, "weight %s: format %d is not known to the loader", w->desc->name,
                   (int)w->desc->format);
}
