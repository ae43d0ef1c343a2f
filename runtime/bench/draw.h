/* Random numbers of a benchmark: a stream of Philox words by seed and purpose, so that what is drawn for one
 * thing does not change with how much is drawn for another. */
#ifndef SF_BENCH_DRAW_H
#define SF_BENCH_DRAW_H

#include "base/philox.h"

typedef enum sf_bench_purpose {
    SF_BENCH_DRAW_LENGTHS,
    SF_BENCH_DRAW_PREFIX,
    SF_BENCH_DRAW_TOKENS,
    SF_BENCH_DRAW_SHUFFLE,
    SF_BENCH_DRAW_KINDS,
    SF_BENCH_DRAW_COPIES,
    SF_BENCH_DRAW_ARRIVALS
} sf_bench_purpose;

typedef struct sf_bench_draw {
    uint32_t key[2], purpose, word[4];
    uint64_t block;
    int left; /* words of the block not yet given out */
} sf_bench_draw;

static inline sf_bench_draw sf_bench_draw_init(int64_t seed, sf_bench_purpose purpose) {
    const uint64_t s = (uint64_t)seed;
    return (sf_bench_draw){.key = {(uint32_t)s, (uint32_t)(s >> 32)}, .purpose = (uint32_t)purpose};
}

static inline uint32_t sf_bench_draw_word(sf_bench_draw *d) {
    if (d->left == 0) {
        const uint32_t counter[4] = {(uint32_t)d->block, (uint32_t)(d->block >> 32), d->purpose, 0x62656e63u};
        sf_philox4x32(counter, d->key, d->word);
        d->block++;
        d->left = 4;
    }
    return d->word[4 - d->left--];
}

/* Inside (0, 1). */
static inline double sf_bench_draw_unit(sf_bench_draw *d) {
    const uint64_t high = sf_bench_draw_word(d), bits = high << 20 | sf_bench_draw_word(d) >> 12;
    return ((double)bits + 0.5) * 0x1p-52;
}

/* In 0..n-1; n is at least 1. The bias is under n / 2^52. */
static inline int64_t sf_bench_draw_below(sf_bench_draw *d, int64_t n) {
    const int64_t v = (int64_t)(sf_bench_draw_unit(d) * (double)n);
    return v < n ? v : n - 1;
}

#endif
