/* The packed formats: a new one is a case in each of the two switches. */
#include "model/weights_priv.h"

#include <string.h>

#define FETCH       ((size_t)128 << 10)
#define MOST_BLOCKS (SF_WROWS_MAX / SF_LANES)

static bool finite_bits(float f) {
    uint32_t u;
    memcpy(&u, &f, sizeof u);
    return (u & 0x7f800000u) != 0x7f800000u;
}

static bool is_bf16(const sf_wrows *x, int i) {
    return x->tensor[i] && x->tensor[i]->type == SF_GGML_BF16;
}

sf_code sf_wrow_bf16(const sf_wsource *s, const sf_winst *w, const sf_wrows *x, int i, int from, int count,
                     int padded, uint16_t *out, sf_err *err) {
    int unused;
    bool finite;
    if (sf_wrow_locate(w->desc, x->row[i], &unused) < 0) {
        memset(out, 0, (size_t)padded * sizeof *out);
        return SF_OK;
    }
    if (is_bf16(x, i)) {
        const size_t at = (size_t)(from - x->from) * sizeof *out;
        finite = sf_wloops_best()->operands(x->bytes + x->at[i] + at, count, out);
    } else {
        float values[SF_PACK_STEP];
        s->read(s, w, x, i, from, count, values);
        finite = sf_wloops_best()->to_bf16(values, count, out);
    }
    if (!finite) return s->not_finite(s, w, x->row[i], err);
    memset(out + count, 0, (size_t)(padded - count) * sizeof *out);
    return SF_OK;
}

/* 16 rows that are bf16 already, from x's row `first` on. False: one isn't finite. */
static bool pack_pairs(const sf_wrows *x, int first, int from, int count, uint8_t *dst) {
    const uint8_t *rows[SF_LANES];
    for (int lane = 0; lane < SF_LANES; lane++)
        rows[lane] = x->bytes + x->at[first + lane] + (size_t)from * sizeof(uint16_t);
    return sf_wloops_best()->transpose(rows, count / 2, dst);
}

/* 16 rows of [n, k] to [k_pad/2][16][2]: x's from row `first` on. */
static sf_code pack_bf16(const sf_wsource *s, const sf_winst *w, const sf_wrows *x, int first, uint8_t *dst,
                         sf_err *err) {
    int k = w->desc->k;
    bool direct = true;
    uint16_t lanes[SF_LANES][SF_PACK_STEP];
    const uint8_t *rows[SF_LANES];
    for (int lane = 0; lane < SF_LANES; lane++)
        direct = direct && is_bf16(x, first + lane);
    for (int from = 0; from < k; from += SF_PACK_STEP) {
        int count = k - from < SF_PACK_STEP ? k - from : SF_PACK_STEP, padded = count + count % 2;
        uint8_t *to = dst + (size_t)from * SF_LANES * sizeof(uint16_t);
        if (direct && count == padded && pack_pairs(x, first, from, count, to)) continue;
        for (int lane = 0; lane < SF_LANES; lane++) /* this way finds the row that isn't finite */
            SF_TRY(sf_wrow_bf16(s, w, x, first + lane, from, count, padded, lanes[lane], err));
        for (int lane = 0; lane < SF_LANES; lane++)
            rows[lane] = (const uint8_t *)lanes[lane];
        (void)sf_wloops_best()->transpose(rows, padded / 2, to); /* operands stay what they are */
    }
    return SF_OK;
}

static sf_code pack_f32(const sf_wsource *s, const sf_winst *w, sf_wrows *x, uint8_t *dst, sf_err *err) {
    float *to = (float *)(void *)dst; /* instances are 64-byte aligned */
    SF_TRY(s->vector(s, w, x, to, err));
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

/* Reads FETCH bytes or so at a time: enough for few calls, and little enough to stay in a core's cache. */
static sf_code pack_lanes(const sf_wsource *s, const sf_winst *w, int block, int blocks, sf_wrows *x,
                          uint8_t *dst, sf_err *err) {
    sf_wlayout l;
    SF_TRY(sf_wformat_layout(w->desc, &l, err));
    size_t wanted = FETCH / l.group_bytes;
    int most = wanted < 1 ? 1 : wanted > MOST_BLOCKS ? MOST_BLOCKS : (int)wanted;
    for (int b = block, n = 0; b < block + blocks; b += n) {
        n = block + blocks - b < most ? block + blocks - b : most;
        *x = (sf_wrows){.n = n * SF_LANES, .to = w->desc->k, .bytes = x->bytes, .size = x->size};
        for (int i = 0; i < x->n; i++)
            x->row[i] = b * SF_LANES + i;
        if (s->fetch) SF_TRY(s->fetch(s, w, x, err));
        for (int i = 0; i < n; i++, dst += l.group_bytes)
            SF_TRY(pack_bf16(s, w, x, i * SF_LANES, dst, err));
    }
    return SF_OK;
}

sf_code sf_wformat_pack(const sf_wsource *s, const sf_winst *w, int block, int blocks, sf_wrows *x,
                        uint8_t *dst, sf_err *err) {
    switch (w->desc->format) {
    case SF_W_F32:
        return pack_f32(s, w, x, dst, err);
    case SF_W_BF16:
        return pack_lanes(s, w, block, blocks, x, dst, err);
    case SF_W_BF16_MMA:
        return sf_wmma_pack(s, w, block, blocks, x, dst, err);
    case SF_W_COUNT:
        break;
    }
    return SF_FAIL(err, SF_UNSUPPORTED, "weight %s: format %d is not known to the loader", w->desc->name,
                   (int)w->desc->format);
}
