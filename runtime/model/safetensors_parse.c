/* The header of one safetensors file: u64 length (little-endian), JSON {name: {dtype, shape, data_offsets}},
 * data. No number of the file is believed before it was compared with what the file holds. */
#include "model/gguf_priv.h"
#include "model/safetensors_priv.h"

#include <stdlib.h>
#include <string.h>

#define SHOWN 100 /* longest part of a name that a message shows */

static const struct {
    const char *name;
    sf_ggml_type type;
    uint64_t size;
} dtypes[] = {{"F32", SF_GGML_F32, 4}, {"F16", SF_GGML_F16, 2}, {"BF16", SF_GGML_BF16, 2}};

#define N_DTYPES (sizeof dtypes / sizeof *dtypes)

static const uint8_t *data_of(const sf_st_file *f, size_t *len) {
    size_t head = 8 + (size_t)sf_load_u64(f->base);
    *len = f->len - head;
    return f->base + head;
}

sf_code sf_st_parse_json(const sf_st_file *f, const char *text, size_t len, json_t **out, sf_err *err) {
    json_error_t why = {0};
    json_t *j = json_loadb(text, len, JSON_REJECT_DUPLICATES, &why);
    if (!j && (json_error_code(&why) == json_error_out_of_memory || !why.text[0]))
        return SF_ST_FAIL(f, SF_NOMEM, "no memory for %zu bytes of JSON", len);
    if (!j) {
        return SF_ST_FAIL(f, SF_FORMAT, "broken JSON, line %d, column %d: %s", why.line, why.column,
                          why.text);
    }
    if (!json_is_object(j)) {
        json_decref(j);
        return SF_ST_FAIL(f, SF_FORMAT, "%s", "the JSON is an array, expected an object");
    }
    *out = j;
    return SF_OK;
}

/* Names become C strings and parts of messages. */
static sf_code check_name(const sf_st_file *f, const char *name, sf_err *err) {
    size_t len = strlen(name);
    if (len == 0 || len > SF_ST_NAME_MAX) {
        return SF_ST_FAIL(f, SF_FORMAT, "the name of a tensor has %zu bytes, expected 1..%d", len,
                          SF_ST_NAME_MAX);
    }
    for (size_t i = 0; i < len; i++) {
        unsigned char ch = (unsigned char)name[i];
        if (ch < 0x20 || ch >= 0x7f) {
            return SF_ST_FAIL(f, SF_FORMAT,
                              "the name of a tensor has byte 0x%02x after '%.*s', expected printable ASCII",
                              ch, (int)(i < SHOWN ? i : SHOWN), name);
        }
    }
    return SF_OK;
}

/* __metadata__: text to text. */
static sf_code check_metadata(const sf_st_file *f, const json_t *map, sf_err *err) {
    const char *key;
    json_t *value;
    if (!json_is_object(map)) {
        return SF_ST_FAIL(f, SF_FORMAT, "%s is no object", "__metadata__");
    }
    json_object_foreach((json_t *)(uintptr_t)map, key, value) {
        if (!json_is_string(value))
            return SF_ST_FAIL(f, SF_FORMAT, "__metadata__: %.*s is no string", SHOWN, key);
    }
    return SF_OK;
}

sf_code sf_st_read_header(sf_st_file *f, sf_err *err) {
    if (f->len < 8) {
        return SF_ST_FAIL(f, SF_FORMAT, "the file has %zu bytes, a safetensors file begins with 8 of length",
                          f->len);
    }
    uint64_t claim = sf_load_u64(f->base);
    if (claim > SF_ST_HEADER_MAX) {
        return SF_ST_FAIL(f, SF_FORMAT, "the header claims %llu bytes, expected at most %u",
                          (unsigned long long)claim, SF_ST_HEADER_MAX);
    }
    if (claim > f->len - 8) {
        return SF_ST_FAIL(f, SF_FORMAT, "the header claims %llu bytes, the file ends after %zu of them",
                          (unsigned long long)claim, f->len - 8);
    }
    SF_TRY(sf_st_parse_json(f, (const char *)f->base + 8, (size_t)claim, &f->header, err));
    const json_t *metadata = json_object_get(f->header, "__metadata__");
    size_t n = json_object_size(f->header) - (metadata ? 1 : 0);
    if (metadata) SF_TRY(check_metadata(f, metadata, err));
    if (n > INT32_MAX) return SF_ST_FAIL(f, SF_FORMAT, "the header has %zu tensors", n);
    f->n = (int)n;
    return SF_OK;
}

static sf_code read_dtype(const sf_st_file *f, const char *name, const json_t *entry, sf_gguf_tensor *t,
                          uint64_t *size, sf_err *err) {
    const char *dtype = json_string_value(json_object_get(entry, "dtype"));
    if (!dtype) return SF_ST_FAIL(f, SF_FORMAT, "tensor %s: dtype is missing or no string", name);
    for (size_t i = 0; i < N_DTYPES; i++) {
        if (strcmp(dtypes[i].name, dtype) == 0) {
            t->type = dtypes[i].type;
            *size = dtypes[i].size;
            return SF_OK;
        }
    }
    return SF_ST_FAIL(f, SF_UNSUPPORTED, "tensor %s is %.*s, expected F32, F16 or BF16", name, 24, dtype);
}

/* The slowest dimension stands first in the file. bytes: shape x size. */
static sf_code read_shape(const sf_st_file *f, const json_t *entry, uint64_t size, sf_gguf_tensor *t,
                          uint64_t *bytes, sf_err *err) {
    const json_t *shape = json_object_get(entry, "shape");
    if (!json_is_array(shape))
        return SF_ST_FAIL(f, SF_FORMAT, "tensor %s: shape is missing or no array", t->name);
    size_t n = json_array_size(shape);
    if (n > 4)
        return SF_ST_FAIL(f, SF_UNSUPPORTED, "tensor %s has %zu dimensions, expected at most 4", t->name, n);
    *bytes = size;
    t->n_dims = (int)n;
    for (size_t i = 0; i < 4; i++)
        t->dims[i] = 1;
    for (size_t i = 0; i < n; i++) {
        const json_t *dim = json_array_get(shape, i);
        if (!json_is_integer(dim) || json_integer_value(dim) < 0) {
            return SF_ST_FAIL(f, SF_FORMAT, "tensor %s: dimension %zu is no integer from 0", t->name, i);
        }
        t->dims[n - 1 - i] = (uint64_t)json_integer_value(dim);
        if (__builtin_mul_overflow(*bytes, t->dims[n - 1 - i], bytes)) {
            return SF_ST_FAIL(f, SF_FORMAT, "tensor %s: its shape has 2^64 bytes or more", t->name);
        }
    }
    return SF_OK;
}

static sf_code read_offsets(const sf_st_file *f, const json_t *entry, uint64_t bytes, sf_gguf_tensor *t,
                            sf_err *err) {
    const json_t *pair = json_object_get(entry, "data_offsets");
    const json_t *from = json_array_get(pair, 0), *to = json_array_get(pair, 1);
    size_t len = 0;
    const uint8_t *data = data_of(f, &len);
    if (json_array_size(pair) != 2 || !json_is_integer(from) || !json_is_integer(to) ||
        json_integer_value(from) < 0 || json_integer_value(to) < json_integer_value(from)) {
        return SF_ST_FAIL(f, SF_FORMAT, "tensor %s: data_offsets are no [begin, end] with 0 <= begin <= end",
                          t->name);
    }
    uint64_t begin = (uint64_t)json_integer_value(from), end = (uint64_t)json_integer_value(to);
    if (end > len) {
        return SF_ST_FAIL(f, SF_FORMAT, "tensor %s: ends at byte %llu of the data, which the file has %zu of",
                          t->name, (unsigned long long)end, len);
    }
    if (end - begin != bytes) {
        return SF_ST_FAIL(f, SF_FORMAT, "tensor %s: data_offsets hold %llu bytes, its shape and dtype %llu",
                          t->name, (unsigned long long)(end - begin), (unsigned long long)bytes);
    }
    t->data = data + begin;
    t->bytes = bytes;
    return SF_OK;
}

static sf_code read_tensor(const sf_st_file *f, const char *name, const json_t *entry, sf_gguf_tensor *t,
                           sf_err *err) {
    uint64_t size = 0, bytes = 0;
    SF_TRY(check_name(f, name, err));
    t->name = name;
    if (!json_is_object(entry)) return SF_ST_FAIL(f, SF_FORMAT, "tensor %s: its entry is no object", name);
    SF_TRY(read_dtype(f, name, entry, t, &size, err));
    SF_TRY(read_shape(f, entry, size, t, &bytes, err));
    SF_TRY(read_offsets(f, entry, bytes, t, err));
    if (json_object_size(entry) == 3) return SF_OK;
    return SF_ST_FAIL(f, SF_FORMAT, "tensor %s: has %zu keys, expected dtype, shape and data_offsets", name,
                      json_object_size(entry));
}

static int by_data(const void *a, const void *b) {
    const sf_gguf_tensor *x = &((const sf_st_tensor *)a)->t, *y = &((const sf_st_tensor *)b)->t;
    if (x->data != y->data) return x->data < y->data ? -1 : 1;
    if (x->bytes != y->bytes) return x->bytes < y->bytes ? -1 : 1;
    return strcmp(x->name, y->name);
}

/* Each begins where the one before ends, the first at 0, and the last ends with the file. */
static sf_code check_places(const sf_st_file *f, const sf_st_tensor *tensors, sf_err *err) {
    size_t len = 0, at = 0;
    const uint8_t *data = data_of(f, &len);
    for (int i = 0; i < f->n; i++) {
        const sf_gguf_tensor *t = &tensors[i].t;
        size_t begin = (size_t)(t->data - data);
        if (begin < at) {
            return SF_ST_FAIL(f, SF_FORMAT, "tensor %s: begins at byte %zu of the data, inside tensor %s",
                              t->name, begin, tensors[i - 1].t.name);
        }
        if (begin > at) {
            return SF_ST_FAIL(f, SF_FORMAT,
                              "tensor %s: begins at byte %zu of the data, expected %zu (a hole)", t->name,
                              begin, at);
        }
        at = begin + (size_t)t->bytes;
    }
    if (at == len) return SF_OK;
    return SF_ST_FAIL(f, SF_FORMAT, "the file has %zu bytes of data after its last tensor%s%s", len - at,
                      f->n ? ", " : "", f->n ? tensors[f->n - 1].t.name : "");
}

sf_code sf_st_read_tensors(const sf_st_file *f, int file, sf_st_tensor *out, sf_err *err) {
    const char *name;
    json_t *entry;
    int i = 0;
    json_object_foreach(f->header, name, entry) {
        if (strcmp(name, "__metadata__") == 0) continue;
        out[i].file = file;
        SF_TRY(read_tensor(f, name, entry, &out[i].t, err));
        i++;
    }
    qsort(out, (size_t)f->n, sizeof *out, by_data);
    return check_places(f, out, err);
}
