/* The tiny model on the CPU device: random weights, sequences of random tokens, and its forward pass in
 * straight loops. */
#ifndef SF_TESTS_DEVICE_TINY_H
#define SF_TESTS_DEVICE_TINY_H

#include "kit.h"

#include "device/cpu/cpu.h"
#include "model/weights.h"

enum { TINY_TOKENS = 160, TINY_PAGES = 40 };

typedef struct tiny {
    sf_weights *weights;
    int32_t tokens[TINY_TOKENS];
    int32_t pages[16]; /* of the sequence, in no order */
} tiny;

/* Setup and teardown of a cmocka group; *state is a tiny. */
int tiny_setup(void **state);
int tiny_teardown(void **state);

bool tiny_has(sf_isa isa); /* the build holds it and this machine runs it */
sf_isa tiny_first(void);   /* the simplest such set */
sf_device *tiny_open(const tiny *t, const char *isa, int threads);
void tiny_close(sf_device *d);

/* What a position of the sequence gave: its log-probabilities of token `target`, the drawn token, the top
 * ones. */
typedef struct tiny_result {
    sf_row_out row[TINY_TOKENS];
} tiny_result;

/* Runs positions from .. to-1 of the sequence in passes of `rows` rows, every row a logit row. Pages are
 * fresh when from is 0. */
void tiny_feed(sf_device *d, const tiny *t, sf_class cls, int from, int to, int rows, tiny_result *out);
/* Compares the results and the KV of positions from .. to-1 bit for bit. */
bool tiny_same(sf_device *a, sf_device *b, const tiny *t, const tiny_result *x, const tiny_result *y,
               int from, int to);

/* Log-probabilities [vocab] at the last of n tokens, by the references (fp32 throughout). */
void tiny_reference(const tiny *t, int n, float *lp);

#endif
