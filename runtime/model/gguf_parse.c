/* The directory of a GGUF file: header, metadata, tensor descriptions (ggml/docs/gguf.md). One cursor walks
 * the bytes; every read asks it first whether so many bytes are left, so no count or length of the file is
 * believed. */
#include "model/gguf_priv.h"

#include <stdlib.h>
#include <string.h>

#define MIN_KV_BYTES     14 /* key length, one byte of key, type, one byte of value */
#define MIN_TENSOR_BYTES 33 /* name length, one byte of name, n_dims, one dim, type, offset */
#define KEY_MAX          65535
#define DEFAULT_ALIGN    32

typedef struct cursor {
    const sf_gguf *g;
    size_t pos;
} cursor;

#define FAIL(g, code, ...) SF_FAIL_AT(err, code, ((sf_loc){(g)->path, 0, 0}), __VA_ARGS__)

/* Longest part of a key that a message shows. */
#define KEY_SHOWN  100
#define SHOWN(str) (int)((str).len < KEY_SHOWN ? (str).len : KEY_SHOWN), (str).data

static const sf_str nothing = {"", 0}; /* the message names no key or tensor */

static size_t left(const cursor *c) {
    return c->g->len - c->pos;
}

/* Takes n bytes; what, for the message, is "the header", "key X"... */
static sf_code take(cursor *c, uint64_t n, const char *what, sf_str of, const uint8_t **out, sf_err *err) {
    if (n > left(c)) {
        return FAIL(c->g, SF_FORMAT, "%s%s%.*s: needs %llu bytes at offset %zu, the file ends at %zu", what,
                    of.len ? " " : "", SHOWN(of), (unsigned long long)n, c->pos, c->g->len);
    }
    *out = c->g->base + c->pos;
    c->pos += (size_t)n;
    return SF_OK;
}

static sf_code take_u32(cursor *c, const char *what, sf_str of, uint32_t *out, sf_err *err) {
    const uint8_t *p = NULL;
    SF_TRY(take(c, 4, what, of, &p, err));
    *out = sf_load_u32(p);
    return SF_OK;
}

static sf_code take_u64(cursor *c, const char *what, sf_str of, uint64_t *out, sf_err *err) {
    const uint8_t *p = NULL;
    SF_TRY(take(c, 8, what, of, &p, err));
    *out = sf_load_u64(p);
    return SF_OK;
}

static sf_code take_str(cursor *c, const char *what, sf_str of, sf_str *out, sf_err *err) {
    uint64_t len = 0;
    const uint8_t *p = NULL;
    SF_TRY(take_u64(c, what, of, &len, err));
    SF_TRY(take(c, len, what, of, &p, err));
    *out = (sf_str){(const char *)p, (size_t)len};
    return SF_OK;
}

/* Keys and names become C strings and parts of messages. */
static sf_code check_name(const sf_gguf *g, const char *what, sf_str s, size_t max, int index, sf_err *err) {
    if (s.len == 0 || s.len > max) {
        return FAIL(g, SF_FORMAT, "name of %s %d has %zu bytes, expected 1..%zu", what, index, s.len, max);
    }
    for (size_t i = 0; i < s.len; i++) {
        unsigned char ch = (unsigned char)s.data[i];
        if (ch < 0x20 || ch >= 0x7f) {
            return FAIL(g, SF_FORMAT, "name of %s %d has byte 0x%02x, expected printable ASCII", what, index,
                        ch);
        }
    }
    return SF_OK;
}

static sf_code read_header(cursor *c, uint64_t *n_tensors, uint64_t *n_kvs, sf_err *err) {
    const uint8_t *magic = NULL;
    uint32_t version = 0;
    SF_TRY(take(c, 4, "the header", nothing, &magic, err));
    if (memcmp(magic, "GGUF", 4) != 0) {
        return FAIL(c->g, SF_FORMAT, "not a GGUF file: it begins with bytes %02x %02x %02x %02x", magic[0],
                    magic[1], magic[2], magic[3]);
    }
    SF_TRY(take_u32(c, "the header", nothing, &version, err));
    if (version != 0 && (version & 0xffff) == 0) {
        return FAIL(c->g, SF_UNSUPPORTED, "big-endian GGUF, expected little-endian");
    }
    if (version != 2 && version != 3) {
        return FAIL(c->g, SF_UNSUPPORTED, "GGUF version %u, expected 2 or 3", version);
    }
    SF_TRY(take_u64(c, "the header", nothing, n_tensors, err));
    SF_TRY(take_u64(c, "the header", nothing, n_kvs, err));
    if (*n_tensors > left(c) / MIN_TENSOR_BYTES || *n_tensors > INT32_MAX) {
        return FAIL(c->g, SF_FORMAT,
                    "the header claims %llu tensors, more than the file's %zu bytes can hold",
                    (unsigned long long)*n_tensors, c->g->len);
    }
    if (*n_kvs > left(c) / MIN_KV_BYTES || *n_kvs > INT32_MAX) {
        return FAIL(c->g, SF_FORMAT,
                    "the header claims %llu metadata keys, more than the file's %zu bytes can hold",
                    (unsigned long long)*n_kvs, c->g->len);
    }
    return SF_OK;
}

/* count items of a type; walks strings and checks bools. */
static sf_code skip_items(cursor *c, const sf_gguf_kv *kv, sf_err *err) {
    const uint8_t *p = NULL;
    if (kv->item == SF_GGUF_STR) {
        if (kv->count > left(c) / 8) {
            return FAIL(c->g, SF_FORMAT, "key %.*s: claims %llu strings, the file has %zu bytes left",
                        SHOWN(kv->key), (unsigned long long)kv->count, left(c));
        }
        for (uint64_t i = 0; i < kv->count; i++) {
            sf_str s;
            SF_TRY(take_str(c, "key", kv->key, &s, err));
        }
        return SF_OK;
    }
    uint64_t size = sf_gguf_vtype_size(kv->item);
    if (kv->count > left(c) / size) {
        return FAIL(c->g, SF_FORMAT,
                    "key %.*s: claims %llu values of %llu bytes, the file has %zu bytes left", SHOWN(kv->key),
                    (unsigned long long)kv->count, (unsigned long long)size, left(c));
    }
    SF_TRY(take(c, kv->count * size, "key", kv->key, &p, err));
    for (uint64_t i = 0; kv->item == SF_GGUF_BOOL && i < kv->count; i++) {
        if (p[i] > 1)
            return FAIL(c->g, SF_FORMAT, "key %.*s: bool %u, expected 0 or 1", SHOWN(kv->key), p[i]);
    }
    return SF_OK;
}

static sf_code read_kv(cursor *c, int index, sf_gguf_kv *kv, sf_err *err) {
    SF_TRY(take_str(c, "a metadata key", nothing, &kv->key, err));
    SF_TRY(check_name(c->g, "metadata key", kv->key, KEY_MAX, index, err));
    SF_TRY(take_u32(c, "key", kv->key, &kv->type, err));
    kv->item = kv->type;
    kv->count = 1;
    if (kv->type == SF_GGUF_ARRAY) {
        SF_TRY(take_u32(c, "key", kv->key, &kv->item, err));
        SF_TRY(take_u64(c, "key", kv->key, &kv->count, err));
        if (kv->item == SF_GGUF_ARRAY) {
            return FAIL(c->g, SF_UNSUPPORTED, "key %.*s: an array of arrays is not supported",
                        SHOWN(kv->key));
        }
    }
    if (kv->item != SF_GGUF_STR && sf_gguf_vtype_size(kv->item) == 0) {
        return FAIL(c->g, SF_FORMAT, "key %.*s: unknown value type %u", SHOWN(kv->key), kv->item);
    }
    kv->data = c->g->base + c->pos;
    return skip_items(c, kv, err);
}

static int by_key(const void *a, const void *b) {
    return sf_str_compare((*(const sf_gguf_kv *const *)a)->key, (*(const sf_gguf_kv *const *)b)->key);
}

static sf_code read_kvs(cursor *c, sf_gguf *g, int n, sf_err *err) {
    if (n == 0) return SF_OK;
    g->kvs = calloc((size_t)n, sizeof *g->kvs);
    g->sorted_kvs = calloc((size_t)n, sizeof *g->sorted_kvs);
    if (!g->kvs || !g->sorted_kvs) return FAIL(g, SF_NOMEM, "no memory for %d metadata keys", n);
    for (int i = 0; i < n; i++) {
        SF_TRY(read_kv(c, i, &g->kvs[i], err));
        g->sorted_kvs[i] = &g->kvs[i];
    }
    g->n_kvs = n;
    qsort(g->sorted_kvs, (size_t)n, sizeof *g->sorted_kvs, by_key);
    for (int i = 1; i < n; i++) {
        if (by_key(&g->sorted_kvs[i - 1], &g->sorted_kvs[i]) == 0) {
            return FAIL(g, SF_FORMAT, "key %.*s stands twice", SHOWN(g->sorted_kvs[i]->key));
        }
    }
    return SF_OK;
}

/* Elements and, for a known type, bytes. */
static sf_code size_tensor(const sf_gguf *g, sf_gguf_tensor *t, sf_err *err) {
    uint64_t elements = 1;
    for (int i = 0; i < t->n_dims; i++) {
        if (t->dims[i] == 0) return FAIL(g, SF_FORMAT, "tensor %s: dimension %d is 0", t->name, i);
        if (t->dims[i] > (uint64_t)INT64_MAX / elements) {
            return FAIL(g, SF_FORMAT, "tensor %s: the product of its dimensions overflows", t->name);
        }
        elements *= t->dims[i];
    }
    uint32_t block = 0, bytes = 0;
    if (!sf_ggml_type_block(t->type, &block, &bytes)) return SF_OK;
    if (t->dims[0] % block != 0) {
        return FAIL(g, SF_FORMAT, "tensor %s: rows of %llu elements, expected a multiple of %u for %s",
                    t->name, (unsigned long long)t->dims[0], block, sf_ggml_type_name(t->type));
    }
    if (elements / block > (uint64_t)INT64_MAX / bytes) {
        return FAIL(g, SF_FORMAT, "tensor %s: its size in bytes overflows", t->name);
    }
    t->bytes = elements / block * bytes;
    return SF_OK;
}

/* Leaves the offset in *offset: where the data begins is known only after the last description. */
static sf_code read_tensor(cursor *c, int index, char *name, sf_gguf_tensor *t, uint64_t *offset,
                           sf_err *err) {
    sf_str s = {0};
    uint32_t n_dims = 0;
    SF_TRY(take_str(c, "a tensor's name", nothing, &s, err));
    SF_TRY(check_name(c->g, "tensor", s, SF_GGUF_NAME_MAX, index, err));
    memcpy(name, s.data, s.len);
    name[s.len] = 0;
    *t = (sf_gguf_tensor){.name = name, .dims = {1, 1, 1, 1}};
    SF_TRY(take_u32(c, "tensor", s, &n_dims, err));
    if (n_dims < 1 || n_dims > 4) {
        return FAIL(c->g, SF_FORMAT, "tensor %s: %u dimensions, expected 1..4", name, n_dims);
    }
    t->n_dims = (int)n_dims;
    for (uint32_t i = 0; i < n_dims; i++)
        SF_TRY(take_u64(c, "tensor", s, &t->dims[i], err));
    SF_TRY(take_u32(c, "tensor", s, &t->type, err));
    SF_TRY(take_u64(c, "tensor", s, offset, err));
    return size_tensor(c->g, t, err);
}

static int by_name(const void *a, const void *b) {
    return strcmp((*(const sf_gguf_tensor *const *)a)->name, (*(const sf_gguf_tensor *const *)b)->name);
}

/* Of two tensors the one whose data begins first. */
static int by_data(const void *a, const void *b) {
    const uint8_t *x = (*(const sf_gguf_tensor *const *)a)->data,
                  *y = (*(const sf_gguf_tensor *const *)b)->data;
    return (x > y) - (x < y);
}

static sf_code read_align(const sf_gguf *g, uint64_t *align, sf_err *err) {
    *align = DEFAULT_ALIGN;
    if (!sf_gguf_has(g, "general.alignment")) return SF_OK;
    int64_t v = 0;
    SF_TRY(sf_gguf_get_i64(g, "general.alignment", &v, err));
    if (v < 8 || v > UINT32_MAX || (v & (v - 1)) != 0) {
        return FAIL(g, SF_FORMAT, "key general.alignment is %lld, expected a power of two of at least 8",
                    (long long)v);
    }
    *align = (uint64_t)v;
    return SF_OK;
}

/* Turns offsets into places inside the file. */
static sf_code place_tensor(const sf_gguf *g, sf_gguf_tensor *t, uint64_t offset, uint64_t start,
                            uint64_t align, sf_err *err) {
    if (offset % align != 0) {
        return FAIL(g, SF_FORMAT, "tensor %s: offset %llu is no multiple of the alignment %llu", t->name,
                    (unsigned long long)offset, (unsigned long long)align);
    }
    uint64_t room = start < g->len ? g->len - start : 0;
    uint64_t bytes = t->bytes ? t->bytes : 1; /* of a type of unknown size at least the first byte is there */
    if (offset > room || bytes > room - offset) {
        return FAIL(g, SF_FORMAT,
                    "tensor %s: %llu bytes at offset %llu of the data, the file has %llu bytes of data",
                    t->name, (unsigned long long)bytes, (unsigned long long)offset, (unsigned long long)room);
    }
    t->data = g->base + start + offset;
    return SF_OK;
}

/* order is scratch of [n_tensors]; it is left sorted by name. */
static sf_code check_tensors(const sf_gguf *g, const sf_gguf_tensor **order, sf_err *err) {
    size_t n = (size_t)g->n_tensors;
    qsort(order, n, sizeof *order, by_data);
    for (size_t i = 1; i < n; i++) {
        const sf_gguf_tensor *a = order[i - 1], *b = order[i];
        uint64_t bytes = a->bytes ? a->bytes : 1;
        if (bytes > (uint64_t)(b->data - a->data)) {
            return FAIL(g, SF_FORMAT, "tensors %s and %s overlap", a->name, b->name);
        }
    }
    qsort(order, n, sizeof *order, by_name);
    for (size_t i = 1; i < n; i++) {
        if (by_name(&order[i - 1], &order[i]) == 0) {
            return FAIL(g, SF_FORMAT, "tensor %s stands twice", order[i]->name);
        }
    }
    return SF_OK;
}

static sf_code read_tensors(cursor *c, sf_gguf *g, int n, sf_err *err) {
    sf_code rc = SF_OK;
    if (n == 0) return SF_OK;
    uint64_t align = 0, *offsets = calloc((size_t)n, sizeof *offsets);
    g->tensors = calloc((size_t)n, sizeof *g->tensors);
    g->sorted_tensors = calloc((size_t)n, sizeof *g->sorted_tensors);
    g->names = calloc((size_t)n, SF_GGUF_NAME_MAX + 1);
    if (!offsets || !g->tensors || !g->sorted_tensors || !g->names) {
        rc = FAIL(g, SF_NOMEM, "no memory for %d tensors", n);
        goto done;
    }
    rc = read_align(g, &align, err);
    for (int i = 0; rc == SF_OK && i < n; i++) {
        char *name = g->names + (size_t)i * (SF_GGUF_NAME_MAX + 1);
        rc = read_tensor(c, i, name, &g->tensors[i], &offsets[i], err);
    }
    if (rc != SF_OK) goto done;
    uint64_t start = ((uint64_t)c->pos + align - 1) & ~(align - 1);
    for (int i = 0; rc == SF_OK && i < n; i++) {
        rc = place_tensor(g, &g->tensors[i], offsets[i], start, align, err);
        g->sorted_tensors[i] = &g->tensors[i];
    }
    if (rc != SF_OK) goto done;
    g->n_tensors = n;
    rc = check_tensors(g, g->sorted_tensors, err);
    for (int i = 0; i < n; i++) {
        if (g->tensors[i].bytes == 0) g->tensors[i].data = NULL; /* as the header says of unknown types */
    }
done:
    free(offsets);
    return rc;
}

sf_code sf_gguf_parse(sf_gguf *g, sf_err *err) {
    cursor c = {.g = g};
    uint64_t n_tensors = 0, n_kvs = 0;
    SF_TRY(read_header(&c, &n_tensors, &n_kvs, err));
    SF_TRY(read_kvs(&c, g, (int)n_kvs, err));
    return read_tensors(&c, g, (int)n_tensors, err);
}
