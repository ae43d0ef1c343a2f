/* GGUF v2/v3 reader (ggml/docs/gguf.md), memory-mapped and read-only. Every offset, count, length and size is
 * checked against the file's before use; nothing is allocated from an unchecked count. Errors name the file,
 * and the key or tensor. */
#ifndef SF_MODEL_GGUF_H
#define SF_MODEL_GGUF_H

#include "base/err.h"

#include <stdbool.h>

typedef struct sf_gguf sf_gguf;

typedef enum sf_ggml_type { /* values of the file format */
                            SF_GGML_F32 = 0,
                            SF_GGML_F16 = 1,
                            SF_GGML_Q4_0 = 2,
                            SF_GGML_Q4_1 = 3,
                            SF_GGML_Q5_0 = 6,
                            SF_GGML_Q5_1 = 7,
                            SF_GGML_Q8_0 = 8,
                            SF_GGML_Q4_K = 12,
                            SF_GGML_Q5_K = 13,
                            SF_GGML_Q6_K = 14,
                            SF_GGML_BF16 = 30
} sf_ggml_type;

typedef struct sf_gguf_tensor {
    const char *name; /* NUL-terminated, owned by the file object */
    uint32_t type;    /* sf_ggml_type, or another number (unsupported until asked for) */
    int n_dims;
    uint64_t dims[4]; /* dims[0] is the fastest: a [rows, cols] matrix has dims {cols, rows}; unused are 1 */
    const uint8_t *data; /* inside the mapping, bytes long; NULL for a type of unknown size */
    uint64_t bytes;
} sf_gguf_tensor;

typedef struct sf_str { /* not NUL-terminated; inside the mapping */
    const char *data;
    size_t len;
} sf_str;

/* path is borrowed: it outlives the object and every error record that names it. The file is mapped until
 * close and must not be written meanwhile: replace a checkpoint by renaming. Where it is cut, reading
 * metadata ends in SIGBUS; the weights loader reads tensors without the mapping and gets an error. Big-endian
 * files and version 1 are SF_UNSUPPORTED. Any thread may use an open object. */
SF_CHECKED sf_code sf_gguf_open(const char *path, sf_gguf **out, sf_err *err);
void sf_gguf_close(sf_gguf *g); /* NULL is fine */
const char *sf_gguf_path(const sf_gguf *g);
const void *sf_gguf_bytes(const sf_gguf *g, size_t *len); /* the whole mapping, for hashing */

int sf_gguf_n_tensors(const sf_gguf *g);
const sf_gguf_tensor *sf_gguf_tensor_at(const sf_gguf *g, int i);
const sf_gguf_tensor *sf_gguf_find_tensor(const sf_gguf *g, const char *name); /* NULL: absent */

/* Metadata. Absent key: SF_NOT_FOUND; wrong type or out of range: SF_FORMAT; both name file and key. Integer
 * getters accept any integer width that holds the value. */
bool sf_gguf_has(const sf_gguf *g, const char *key);
SF_CHECKED sf_code sf_gguf_get_str(const sf_gguf *g, const char *key, sf_str *out, sf_err *err);
SF_CHECKED sf_code sf_gguf_get_i64(const sf_gguf *g, const char *key, int64_t *out, sf_err *err);
SF_CHECKED sf_code sf_gguf_get_f64(const sf_gguf *g, const char *key, double *out, sf_err *err);
SF_CHECKED sf_code sf_gguf_get_bool(const sf_gguf *g, const char *key, bool *out, sf_err *err);
/* Arrays, freshly allocated (the caller frees the array): the strings are views into the mapping. */
SF_CHECKED sf_code sf_gguf_get_strs(const sf_gguf *g, const char *key, sf_str **out, size_t *n, sf_err *err);
SF_CHECKED sf_code sf_gguf_get_i32s(const sf_gguf *g, const char *key, int32_t **out, size_t *n, sf_err *err);
SF_CHECKED sf_code sf_gguf_get_f32s(const sf_gguf *g, const char *key, float **out, size_t *n, sf_err *err);

/* Dequantises `count` consecutive elements of one row (first element `from`, a multiple of the block length)
 * to fp32. Formulas: ggml's quants (block of 32: Q8_0 = d*q; Q4_0 = d*(q-8); Q4_1 = d*q + m;
 * Q5_0 = d*(q-16); Q5_1 = d*q + m; block of 256: Q4_K, Q5_K = (d*s)*q - dmin*m, s and m of each 32; Q6_K =
 * (d*s)*(q-32), s of each 16; d, dmin and the m of blocks of 32 are fp16).
 * Errors: SF_UNSUPPORTED names tensor and type. */
SF_CHECKED sf_code sf_gguf_dequant(const sf_gguf_tensor *t, uint64_t row, uint64_t from, uint64_t count,
                                   float *out, sf_err *err);
const char *sf_ggml_type_name(uint32_t type);
bool sf_ggml_type_readable(uint32_t type);

#endif
