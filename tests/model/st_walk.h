/* Reads everything that an open safetensors object offers, so that a sanitizer sees any access that a check
 * has let through. Used by the tests and by the fuzz target. */
#ifndef TESTS_MODEL_ST_WALK_H
#define TESTS_MODEL_ST_WALK_H

#include "model/safetensors_priv.h"

#include <string.h>

#define ST_WALK_ROWS 64 /* rows read per tensor, at most, from either end */
#define ST_WALK_COLS 4096

/* Returns a checksum, so that no read is optimised away. */
static inline uint64_t st_walk(const sf_safetensors *s) {
    static float row[ST_WALK_COLS];
    uint64_t sum = 0;
    for (int i = 0; i < sf_safetensors_n_tensors(s); i++) {
        const sf_st_tensor *st = sf_safetensors_tensor_at(s, i);
        const sf_gguf_tensor *t = &st->t;
        sum += (sf_safetensors_find_tensor(s, t->name) == st) + strlen(sf_safetensors_label(s, st));
        uint64_t rows = t->bytes ? t->dims[1] * t->dims[2] * t->dims[3] : 0;
        uint64_t cols = t->dims[0] < ST_WALK_COLS ? t->dims[0] : ST_WALK_COLS;
        for (uint64_t r = 0; r < rows && r < ST_WALK_ROWS; r++) {
            if (sf_gguf_dequant(t, r, 0, cols, row, NULL) == SF_OK) sum += row[cols - 1] > 0;
            if (sf_gguf_dequant(t, rows - 1 - r, t->dims[0] - cols, cols, row, NULL) == SF_OK)
                sum += row[0] > 0;
        }
    }
    return sum;
}

#endif
