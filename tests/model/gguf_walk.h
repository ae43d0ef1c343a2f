/* Reads everything that an open GGUF object offers, so that a sanitizer sees any access that a check has let
 * through. Used by the tests and by the fuzz target. */
#ifndef TESTS_MODEL_GGUF_WALK_H
#define TESTS_MODEL_GGUF_WALK_H

#include "model/gguf.h"
#include "model/gguf_priv.h"

#include <stdlib.h>
#include <string.h>

#define WALK_ROWS 64 /* rows read per tensor, at most */
#define WALK_COLS 4096

/* Returns a checksum, so that no read is optimised away. */
static inline uint64_t walk_key(const sf_gguf *g, const char *key) {
    uint64_t sum = 0;
    int64_t i = 0;
    double d = 0;
    bool b = false;
    sf_str s = {0}, *strs = NULL;
    int32_t *ints = NULL;
    size_t n = 0;
    if (sf_gguf_get_i64(g, key, &i, NULL) == SF_OK) sum += (uint64_t)i;
    if (sf_gguf_get_f64(g, key, &d, NULL) == SF_OK) sum += d > 0;
    if (sf_gguf_get_bool(g, key, &b, NULL) == SF_OK) sum += b;
    if (sf_gguf_get_str(g, key, &s, NULL) == SF_OK) {
        for (size_t j = 0; j < s.len; j++)
            sum += (unsigned char)s.data[j];
    }
    if (sf_gguf_get_strs(g, key, &strs, &n, NULL) == SF_OK) {
        for (size_t j = 0; j < n; j++)
            sum += strs[j].len ? (unsigned char)strs[j].data[strs[j].len - 1] : 0;
        free(strs);
    }
    if (sf_gguf_get_i32s(g, key, &ints, &n, NULL) == SF_OK) {
        for (size_t j = 0; j < n; j++)
            sum += (uint32_t)ints[j];
        free(ints);
    }
    return sum;
}

static inline uint64_t walk_tensor(const sf_gguf *g, const sf_gguf_tensor *t) {
    static float row[WALK_COLS];
    uint64_t sum = sf_gguf_find_tensor(g, t->name) == t, rows = t->dims[1] * t->dims[2] * t->dims[3];
    uint64_t cols = t->dims[0] < WALK_COLS ? t->dims[0] : WALK_COLS;
    if (!sf_ggml_type_readable(t->type)) return sum;
    for (uint64_t r = 0; r < rows && r < WALK_ROWS; r++) {
        if (sf_gguf_dequant(t, r, 0, cols, row, NULL) == SF_OK) sum += row[cols - 1] > 0;
        if (sf_gguf_dequant(t, rows - 1 - r, 0, cols, row, NULL) == SF_OK) sum += row[0] > 0;
    }
    return sum;
}

static inline uint64_t walk(const sf_gguf *g) {
    uint64_t sum = 0;
    for (int i = 0; i < g->n_kvs; i++) {
        char key[256];
        size_t len = g->kvs[i].key.len < sizeof key - 1 ? g->kvs[i].key.len : sizeof key - 1;
        memcpy(key, g->kvs[i].key.data, len);
        key[len] = 0;
        sum += walk_key(g, key);
    }
    for (int i = 0; i < sf_gguf_n_tensors(g); i++)
        sum += walk_tensor(g, sf_gguf_tensor_at(g, i));
    return sum;
}

#endif
