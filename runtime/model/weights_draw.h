/* Random weights as they stand in SF_W_BF16_MMA, 16 bytes at a time: the values of weights_random.c in the
 * order of weights_mma.c. Integers and single IEEE operations, none fused, so that every machine gives the
 * same bits; plain C that NVRTC compiles too, since a GPU draws its own (device/cuda/draw.cu). */
#ifndef SF_MODEL_WEIGHTS_DRAW_H
#define SF_MODEL_WEIGHTS_DRAW_H

#include "base/bf16.h"
#include "base/philox.h"

/* z = (2 s - 4 * 65535) / its deviation, s the sum of four uniform 16-bit numbers (Irwin-Hall). */
#define SF_WDRAW_CENTRE 262140

/* Steps of 16 k that a row of k columns is padded to: whole blocks of four, and four blocks at least, since
 * the products' kernels load so far ahead (templates/snippets/gemm_weight.cuh says the same). */
static inline int32_t sf_wmma_steps(int32_t k) {
    return k > 192 ? (k + 63) / 64 * 4 : 16;
}

/* One slot for one layer. */
typedef struct sf_wdraw {
    uint32_t key[2]; /* the seed, low word first */
    uint32_t slot, layer;
    int32_t rows, k;    /* without padding; rows of one part where two alternate */
    int32_t interleave; /* whether they do: 8 rows of each in a tile */
    int32_t tile;       /* tiles of a group */
    float mean, scale;  /* a value is mean + scale * (2 s - SF_WDRAW_CENTRE) */
} sf_wdraw;

static inline float sf_wdraw_value(float mean, float scale, uint32_t a, uint32_t b) {
    int32_t sum = (int32_t)((a & 0xffff) + (a >> 16) + (b & 0xffff) + (b >> 16));
    return mean + scale * (float)(2 * sum - SF_WDRAW_CENTRE);
}

/* Columns `column` (even) and the next of a row that isn't padding. */
static inline uint32_t sf_wdraw_pair(const sf_wdraw *d, uint32_t row, int32_t column) {
    const uint32_t counter[4] = {(uint32_t)column / 2, row, d->slot, d->layer};
    uint32_t r[4], low, high;
    sf_philox4x32(counter, d->key, r);
    low = sf_bf16_operand(sf_wdraw_value(d->mean, d->scale, r[0], r[1]));
    high = sf_bf16_operand(sf_wdraw_value(d->mean, d->scale, r[2], r[3]));
    return column + 1 < d->k ? low | high << 16 : low;
}

/* Words 4 at .. 4 at + 3 of the packed bytes: a lane's share of a tile's 16 k. */
static inline void sf_wdraw_lane(const sf_wdraw *d, uint64_t at, uint32_t out[4]) {
    const int32_t lane = (int32_t)(at % 32), steps = sf_wmma_steps(d->k);
    const uint64_t step = at / 32 / (uint64_t)d->tile; /* of all groups */
    const int32_t tile = (int32_t)(step / (uint64_t)steps) * d->tile + (int32_t)(at / 32 % (uint64_t)d->tile);
    for (int32_t i = 0; i < 4; i++) {
        const int32_t column = (int32_t)(step % (uint64_t)steps) * 16 + lane % 4 * 2 + i / 2 * 8;
        const int32_t row = d->interleave ? tile * 8 + lane / 4 : tile * 16 + lane / 4 + i % 2 * 8;
        const int32_t numbered = d->interleave ? (row / 16 * 2 + i % 2) * 16 + row % 16 : row;
        out[i] = row < d->rows && column < d->k ? sf_wdraw_pair(d, (uint32_t)numbered, column) : 0;
    }
}

#endif
