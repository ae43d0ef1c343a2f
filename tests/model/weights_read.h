/* Packed weights read back by their definition: the logical value of a part's row and column, in any format.
 */
#ifndef TESTS_MODEL_WEIGHTS_READ_H
#define TESTS_MODEL_WEIGHTS_READ_H

#include "device/plan.h"

#include <stddef.h>
#include <stdint.h>

/* Where element i (0..7) of lane l stands in operand A of m16n8k16, as the PTX manual's table has it. */
static inline void wr_fragment(int lane, int i, int *row, int *k) {
    int group = lane >> 2, thread = lane % 4;
    *row = i == 0 || i == 1 || i == 4 || i == 5 ? group : group + 8;
    *k = thread * 2 + (i & 1) + (i >= 4 ? 8 : 0);
}

static inline int wr_up(int n, int to) {
    return (n + to - 1) / to * to;
}

/* Rows a slot has with its padding. */
static inline int wr_rows(const sf_weight_desc *d) {
    int unit = d->format == SF_W_BF16_MMA ? 16 * d->tile : 16;
    if (!d->interleave) return wr_up(d->n, unit);
    if (d->format == SF_W_BF16_MMA) return wr_up(2 * wr_up(d->n / 2, 8), unit);
    return d->n_parts * wr_up(d->n / d->n_parts, 16);
}

static inline int wr_cols(const sf_weight_desc *d) {
    const int k = wr_up(d->k, d->format == SF_W_BF16_MMA ? 64 : 2);
    return d->format == SF_W_BF16_MMA && k < 256 ? 256 : k;
}

/* Packed row of a part's row. */
static inline int wr_packed(const sf_weight_desc *d, int part, int row) {
    int block = d->format == SF_W_BF16_MMA ? 8 : 16;
    if (d->interleave) return (row / block * d->n_parts + part) * block + row % block;
    for (int p = 0; p < part; p++)
        row += d->parts[p].rows;
    return row;
}

/* Index of a packed row's column in the slot's bf16 values: for fragments by search, which is slow but plain.
 */
static inline size_t wr_index(const sf_weight_desc *d, int packed, int k) {
    if (d->format == SF_W_BF16)
        return ((size_t)(packed / 16) * (size_t)(wr_cols(d) / 2) + (size_t)(k / 2)) * 32 +
               (size_t)(packed % 16 * 2 + k % 2);
    int tile = packed / 16, at_row = 0, at_k = 0, at = 0;
    for (at = 0; at < 256; at++) {
        wr_fragment(at / 8, at % 8, &at_row, &at_k);
        if (at_row == packed % 16 && at_k == k % 16) break;
    }
    size_t steps = (size_t)(wr_cols(d) / 16), tiles = (size_t)d->tile, group = (size_t)tile / tiles;
    return ((group * steps + (size_t)(k / 16)) * tiles + (size_t)tile % tiles) * 256 + (size_t)at;
}

static inline uint16_t wr_bits(const sf_weight_desc *d, const void *data, int part, int row, int k) {
    return ((const uint16_t *)data)[wr_index(d, wr_packed(d, part, row), k)];
}

#endif
