/* SF_W_BF16_MMA: tiles of 16 rows x 16 k in the order in which tensor cores want their operand A (m16n8k16).
 * A lane l of 32 holds 16 bytes: the pairs of k l % 4 and l % 4 + 4 of rows l / 4 and l / 4 + 8. */
#include "model/weights_draw.h"
#include "model/weights_priv.h"

#include <string.h>

#define ROWS       16
#define STEP       16 /* k of a tile */
#define STEP_BYTES ((size_t)ROWS * STEP * sizeof(uint16_t))

static int padded_k(const sf_weight_desc *d) {
    return sf_wmma_steps(d->k) * STEP;
}

void sf_wmma_layout(const sf_weight_desc *d, sf_wlayout *out) {
    int rows = d->interleave ? d->parts[0].rows : d->n, per_tile = d->interleave ? ROWS / 2 : ROWS;
    int tiles = rows / per_tile + (rows % per_tile != 0);
    int groups = tiles / d->tile + (tiles % d->tile != 0), k = padded_k(d);
    int pieces = (k + SF_PACK_STEP - 1) / SF_PACK_STEP;
    size_t step = (size_t)d->tile * STEP_BYTES, group = (size_t)(k / STEP) * step;
    *out = (sf_wlayout){.blocks = groups * pieces,
                        .pieces = pieces,
                        .group_bytes = group,
                        .piece_bytes = pieces == 1 ? group : SF_PACK_STEP / STEP * step,
                        .unit_bytes = (size_t)2 << 20};
}

/* The slot's row that stands at row m of a tile: alternating parts share a tile, 8 rows of each. */
static int slot_row(const sf_weight_desc *d, int tile, int m) {
    if (!d->interleave) return tile * ROWS + m;
    int row = tile * (ROWS / 2) + m % (ROWS / 2), part = m / (ROWS / 2);
    return (row / SF_LANES * 2 + part) * SF_LANES + row % SF_LANES;
}

/* 16 rows by 16 k to fragments: four rows of four words become columns. */
static void to_fragments(uint16_t lanes[ROWS][SF_PACK_STEP], int k, uint8_t *dst) {
    for (int row = 0; row < ROWS / 2; row++) {
        uint32_t top[8], bottom[8], out[4][4];
        memcpy(top, lanes[row] + k, sizeof top);
        memcpy(bottom, lanes[row + ROWS / 2] + k, sizeof bottom);
        for (int p = 0; p < 4; p++) {
            out[p][0] = top[p];
            out[p][1] = bottom[p];
            out[p][2] = top[p + 4];
            out[p][3] = bottom[p + 4];
        }
        memcpy(dst + (size_t)row * sizeof out, out, sizeof out);
    }
}

/* One tile's columns of a block, rows i .. i+15 of x; its steps are `stride` bytes apart. */
static sf_code pack_tile(const sf_wsource *s, const sf_winst *w, const sf_wrows *x, int i, int from,
                         size_t stride, uint8_t *dst, sf_err *err) {
    const sf_weight_desc *d = w->desc;
    int count = d->k - from < SF_PACK_STEP ? d->k - from : SF_PACK_STEP;
    int padded = padded_k(d) - from < SF_PACK_STEP ? padded_k(d) - from : SF_PACK_STEP;
    uint16_t lanes[ROWS][SF_PACK_STEP];
    for (int m = 0; m < ROWS; m++)
        SF_TRY(sf_wrow_bf16(s, w, x, i + m, from, count, padded, lanes[m], err));
    for (int k = 0; k < padded; k += STEP)
        to_fragments(lanes, k, dst + (size_t)(k / STEP) * stride);
    return SF_OK;
}

/* Blocks first .. end-1 of a group. */
static sf_code pack_group(const sf_wsource *s, const sf_winst *w, int group, int first, int end, sf_wrows *x,
                          const sf_wlayout *l, uint8_t *dst, sf_err *err) {
    const sf_weight_desc *d = w->desc;
    int to = end * SF_PACK_STEP < d->k ? end * SF_PACK_STEP : d->k;
    *x = (sf_wrows){
        .n = d->tile * ROWS, .from = first * SF_PACK_STEP, .to = to, .bytes = x->bytes, .size = x->size};
    for (int i = 0; i < x->n; i++)
        x->row[i] = slot_row(d, group * d->tile + i / ROWS, i % ROWS);
    if (s->fetch) SF_TRY(s->fetch(s, w, x, err));
    for (int b = first; b < end; b++, dst += l->piece_bytes) {
        for (int t = 0; t < d->tile; t++) {
            SF_TRY(pack_tile(s, w, x, t * ROWS, b * SF_PACK_STEP, (size_t)d->tile * STEP_BYTES,
                             dst + (size_t)t * STEP_BYTES, err));
        }
    }
    return SF_OK;
}

sf_code sf_wmma_pack(const sf_wsource *s, const sf_winst *w, int block, int blocks, sf_wrows *x, uint8_t *dst,
                     sf_err *err) {
    sf_wlayout l;
    sf_wmma_layout(w->desc, &l);
    size_t origin = sf_wlayout_offset(&l, block);
    for (int b = block, end = block + blocks; b < end;) {
        int group = b / l.pieces, stop = (group + 1) * l.pieces < end ? (group + 1) * l.pieces : end;
        SF_TRY(pack_group(s, w, group, b % l.pieces, stop - group * l.pieces, x, &l,
                          dst + (sf_wlayout_offset(&l, b) - origin), err));
        b = stop;
    }
    return SF_OK;
}
