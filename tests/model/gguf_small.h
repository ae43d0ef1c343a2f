/* Small GGUF files in memory, as the tests of the reader spoil them. */
#ifndef TESTS_MODEL_GGUF_SMALL_H
#define TESTS_MODEL_GGUF_SMALL_H

#include "model/gguf.h"
#include "model/gguf_make.h"

#define NAME "model.gguf"

static const uint64_t dims_4x3[2] = {4, 3};

/* Two keys, two F32 tensors, no byte after the last. */
static inline gm small(void) {
    gm m = {0};
    gm_head(&m, 3, 2, 4);
    gm_kv_str(&m, "general.architecture", "llama");
    gm_array(&m, "words", 8, 2);
    gm_str(&m, "ab");
    gm_str(&m, "");
    gm_array(&m, "ids", 5, 2);
    gm_uint(&m, 7, 4);
    gm_uint(&m, 0xffffffffu, 4);
    gm_key(&m, "yes", 7);
    gm_uint(&m, 1, 1);
    gm_tensor(&m, "a", 2, dims_4x3, SF_GGML_F32, 64);
    gm_tensor(&m, "b", 1, dims_4x3, SF_GGML_F32, 32);
    gm_pad(&m, 32);
    gm_pad(&m, 32);
    for (int i = 0; i < 16 + 12; i++)
        gm_f32(&m, (float)i);
    return m;
}

/* A header and one key whose value the caller appends. */
static inline gm one_key(const char *key, uint32_t type) {
    gm m = {0};
    gm_head(&m, 3, 0, 1);
    gm_key(&m, key, type);
    return m;
}

/* One tensor "t" of n_dims dims, with data bytes after it. */
static inline gm one_tensor(int n_dims, const uint64_t *dims, uint32_t type, uint64_t offset, size_t data) {
    gm m = {0};
    gm_head(&m, 3, 1, 0);
    gm_tensor(&m, "t", n_dims, dims, type, offset);
    gm_pad(&m, 32);
    for (size_t i = 0; i < data; i++)
        gm_uint(&m, 0, 1);
    return m;
}

#endif
