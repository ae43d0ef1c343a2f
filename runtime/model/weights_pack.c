/* The packed formats: a new one is a case in each of the two switches. */
#include "model/weights_priv.h"

#include <string.h>

static bool finite_bits(float f) {
    uint32_t u;
    memcpy(&u, &f, sizeof u);
    return (u & 0x7f800000u) != 0x7f800000u;
}

sf_code sf_wrow_bf16(const sf_wsource *s, const sf_winst *w, int row, int from, int count, int padded,
                     uint16_t *out, sf_err *err) {
    int unused;
    float values[SF_PACK_STEP];
    if (sf_wrow_locate(w->desc, row, &unused) < 0) {
        memset(out, 0, (size_t)padded * sizeof *out);
        return SF_OK;
    }
    SF_TRY(s->read(s, w, row, from, count, values, err));
    if (!sf_wloops_best()->to_bf16(values, count, out)) return s->not_finite(s, w, row, err);
    memset(out + count, 0, (size_t)(padded - count) * sizeof *out);
    return SF_OK;
}

/* lanes [16][SF_PACK_STEP] to dst [pairs][16][2]: a pair moves as one word. */
static void transpose(uint16_t lanes[SF_LANES][SF_PACK_STEP], int pairs, uint8_t *dst) {
    for (int p = 0; p < pairs; p++) {
        uint32_t column[SF_LANES];
        for (int lane = 0; lane < SF_LANES; lane++)
            memcpy(&column[lane], &lanes[lane][2 * p], sizeof column[lane]);
        memcpy(dst + (size_t)p * sizeof column, column, sizeof column);
    }
}

/* 16 rows of [n, k] to [k_pad/2][16][2]. */
static sf_code pack_bf16(const sf_wsource *s, const sf_winst *w, int block, uint8_t *dst, sf_err *err) {
    int k = w->desc->k;
    uint16_t lanes[SF_LANES][SF_PACK_STEP];
    for (int from = 0; from < k; from += SF_PACK_STEP) {
        int count = k - from < SF_PACK_STEP ? k - from : SF_PACK_STEP, padded = count + count % 2;
        for (int lane = 0; lane < SF_LANES; lane++)
            SF_TRY(sf_wrow_bf16(s, w, block * SF_LANES + lane, from, count, padded, lanes[lane], err));
        transpose(lanes, padded / 2, dst + (size_t)from * SF_LANES * sizeof(uint16_t));
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

int sf_wrow_locate(const sf_weight_desc *d, int packed, int *row) {
    int part = 0;
    if (d->interleave) {
        int block = packed / SF_LANES;
        part = block % d->n_parts;
        packed = block / d->n_parts * SF_LANES + packed % SF_LANES;
    } else {
        while (part < d->n_parts - 1 && packed >= d->parts[part].rows)
            packed -= d->parts[part++].rows;
    }
    *row = packed;
    return packed < d->parts[part].rows ? part : -1;
}

/* Alternating parts are padded each, since their blocks don't share rows. */
static int lane_blocks(const sf_weight_desc *d) {
    int rows = d->interleave ? d->parts[0].rows : d->n;
    return (rows / SF_LANES + (rows % SF_LANES != 0)) * (d->interleave ? d->n_parts : 1);
}

static sf_wlayout one_piece(int groups, size_t bytes) {
    return (sf_wlayout){.blocks = groups,
                        .pieces = 1,
                        .group_bytes = bytes,
                        .piece_bytes = bytes,
                        .unit_bytes = (size_t)512 << 10};
}

sf_code sf_wformat_layout(const sf_weight_desc *d, sf_wlayout *out, sf_err *err) {
    switch (d->format) {
    case SF_W_F32:
        *out = one_piece(1, (size_t)d->k * sizeof(float));
        return SF_OK;
    case SF_W_BF16:
        *out = one_piece(lane_blocks(d), ((size_t)d->k + 1) / 2 * SF_LANES * sizeof(uint32_t));
        return SF_OK;
    case SF_W_BF16_MMA:
        sf_wmma_layout(d, out);
        return SF_OK;
    case SF_W_COUNT:
        break;
    }
    return SF_FAIL(err, SF_UNSUPPORTED, "weight %s: format %d is not known to the loader", d->name,
                   (int)d->format);
}

static sf_code pack_one(const sf_wsource *s, const sf_winst *w, int block, uint8_t *dst, sf_err *err) {
    switch (w->desc->format) {
    case SF_W_F32:
        return pack_f32(s, w, dst, err);
    case SF_W_BF16:
        return pack_bf16(s, w, block, dst, err);
    case SF_W_BF16_MMA:
        return sf_wmma_pack(s, w, block, dst, err);
    case SF_W_COUNT:
        break;
    }
    return SF_FAIL(err, SF_UNSUPPORTED, "weight %s: format %d is not known to the loader", w->desc->name,
                   (int)w->desc->format);
}

sf_code sf_wformat_pack(const sf_wsource *s, const sf_winst *w, int block, int blocks, uint8_t *dst,
                        sf_err *err) {
    sf_wlayout l;
    SF_TRY(sf_wformat_layout(w->desc, &l, err));
    size_t from = sf_wlayout_offset(&l, block);
    for (int b = block; b < block + blocks; b++)
        SF_TRY(pack_one(s, w, b, dst + (sf_wlayout_offset(&l, b) - from), err));
    return SF_OK;
}
