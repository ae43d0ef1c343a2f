/* Builds GGUF files in memory for tests: pieces are appended in file order, so broken ones are as easy as
 * good ones. */
#ifndef TESTS_MODEL_GGUF_MAKE_H
#define TESTS_MODEL_GGUF_MAKE_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct gm {
    uint8_t *data;
    size_t len, cap;
} gm; /* zero-initialise; gm_fini frees */

static inline void gm_bytes(gm *m, const void *p, size_t n) {
    if (m->len + n > m->cap) {
        m->cap = (m->len + n) * 2;
        m->data = realloc(m->data, m->cap);
        if (!m->data) abort();
    }
    if (n) memcpy(m->data + m->len, p, n);
    m->len += n;
}

static inline void gm_fini(gm *m) {
    free(m->data);
    *m = (gm){0};
}

static inline void gm_uint(gm *m, uint64_t v, int bytes) {
    for (int i = 0; i < bytes; i++) {
        uint8_t b = (uint8_t)(v >> (8 * i));
        gm_bytes(m, &b, 1);
    }
}

static inline void gm_str(gm *m, const char *s) {
    gm_uint(m, strlen(s), 8);
    gm_bytes(m, s, strlen(s));
}

static inline void gm_f32(gm *m, float f) {
    uint32_t u;
    memcpy(&u, &f, sizeof u);
    gm_uint(m, u, 4);
}

static inline void gm_head(gm *m, uint32_t version, uint64_t n_tensors, uint64_t n_kvs) {
    gm_bytes(m, "GGUF", 4);
    gm_uint(m, version, 4);
    gm_uint(m, n_tensors, 8);
    gm_uint(m, n_kvs, 8);
}

/* A key and its type; the value follows. */
static inline void gm_key(gm *m, const char *key, uint32_t type) {
    gm_str(m, key);
    gm_uint(m, type, 4);
}

static inline void gm_kv_str(gm *m, const char *key, const char *value) {
    gm_key(m, key, 8);
    gm_str(m, value);
}

static inline void gm_kv_u32(gm *m, const char *key, uint32_t value) {
    gm_key(m, key, 4);
    gm_uint(m, value, 4);
}

static inline void gm_kv_f32(gm *m, const char *key, float value) {
    gm_key(m, key, 6);
    gm_f32(m, value);
}

static inline void gm_array(gm *m, const char *key, uint32_t item, uint64_t count) {
    gm_key(m, key, 9);
    gm_uint(m, item, 4);
    gm_uint(m, count, 8);
}

static inline void gm_tensor(gm *m, const char *name, int n_dims, const uint64_t *dims, uint32_t type,
                             uint64_t offset) {
    gm_str(m, name);
    gm_uint(m, (uint64_t)n_dims, 4);
    for (int i = 0; i < n_dims; i++)
        gm_uint(m, dims[i], 8);
    gm_uint(m, type, 4);
    gm_uint(m, offset, 8);
}

static inline void gm_pad(gm *m, size_t align) {
    while (m->len % align)
        gm_uint(m, 0, 1);
}

/* Writes the bytes to a new temporary file; path must hold 64 bytes. The caller unlinks. */
static inline void gm_save(const gm *m, char path[64]) {
    snprintf(path, 64, "/tmp/sf_gguf_XXXXXX");
    int fd = mkstemp(path);
    if (fd < 0 || write(fd, m->data, m->len) != (ssize_t)m->len || close(fd) != 0) abort();
}

#endif
