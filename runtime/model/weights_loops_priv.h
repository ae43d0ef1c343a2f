/* The inner loops of the weights loader, plainly and for AVX2. Pure functions, any thread. */
#ifndef SF_MODEL_WEIGHTS_LOOPS_PRIV_H
#define SF_MODEL_WEIGHTS_LOOPS_PRIV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SF_LANES 16 /* rows of a block of SF_W_BF16: a vector's lanes */

/* One form of them; all give the same bits. */
typedef struct sf_wloops {
    /* Rounds to bf16 operands; returns whether all are finite. */
    bool (*to_bf16)(const float *restrict row, int count, uint16_t *restrict out);
    /* The same of bf16 as a file has it, at any address. */
    bool (*operands)(const uint8_t *restrict row, int count, uint16_t *restrict out);
    /* The same of 16 such rows, `pairs` pairs of columns of each, to dst [pairs][16][2]. */
    bool (*transpose)(const uint8_t *const rows[SF_LANES], int pairs, uint8_t *restrict dst);
    /* Two values of each of consecutive Philox counters (the first word counts up, and wraps): a sum s of
     * four 16-bit numbers gives mean + scale * (2 s - 4 * 65535). */
    void (*draw)(const uint32_t counter[4], const uint32_t key[2], float mean, float scale, int count,
                 float *restrict out);
    /* XXH3's 128 bits, canonical. */
    void (*digest)(const void *data, size_t len, uint8_t out[16]);
} sf_wloops;

void sf_wdigest_plain(const void *data, size_t len, uint8_t out[16]);
void sf_wdigest_avx2(const void *data, size_t len, uint8_t out[16]); /* where the build is for x86-64 */

const sf_wloops *sf_wloops_at(int i); /* 0 is plain; NULL: the machine or the build hasn't got it */
const sf_wloops *sf_wloops_best(void);

#endif
