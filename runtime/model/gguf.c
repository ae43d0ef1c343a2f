#include "model/gguf.h"
#include "model/gguf_priv.h"

#include <stdlib.h>
#include <string.h>

#define FAIL(g, code, ...) SF_FAIL_AT(err, code, ((sf_loc){(g)->path, 0, 0}), __VA_ARGS__)

static const struct {
    const char *name;
    uint8_t size;
} vtypes[] = {
    [SF_GGUF_U8] = {"u8", 1},       [SF_GGUF_I8] = {"i8", 1},     [SF_GGUF_U16] = {"u16", 2},
    [SF_GGUF_I16] = {"i16", 2},     [SF_GGUF_U32] = {"u32", 4},   [SF_GGUF_I32] = {"i32", 4},
    [SF_GGUF_F32] = {"f32", 4},     [SF_GGUF_BOOL] = {"bool", 1}, [SF_GGUF_STR] = {"string", 0},
    [SF_GGUF_ARRAY] = {"array", 0}, [SF_GGUF_U64] = {"u64", 8},   [SF_GGUF_I64] = {"i64", 8},
    [SF_GGUF_F64] = {"f64", 8},
};

const char *sf_gguf_vtype_name(uint32_t type) {
    return type < sizeof vtypes / sizeof *vtypes ? vtypes[type].name : "unknown type";
}

uint64_t sf_gguf_vtype_size(uint32_t type) {
    return type < sizeof vtypes / sizeof *vtypes ? vtypes[type].size : 0;
}

int sf_str_compare(sf_str a, sf_str b) {
    int c = memcmp(a.data, b.data, a.len < b.len ? a.len : b.len);
    return c != 0 ? c : (a.len > b.len) - (a.len < b.len);
}

/* The mapping lives until close. A file that another process cuts while it is mapped raises SIGBUS on access:
 * a checkpoint must be replaced by renaming, never written in place. */
static sf_code map_file(sf_gguf *g, sf_err *err) {
    sf_err why = {0};
    sf_code rc = sf_map_open(g->path, &g->map, &why);
    g->base = g->map.base;
    g->len = g->map.len;
    if (rc == SF_OK) return SF_OK;
    return FAIL(g, rc, "%s%s", rc == SF_FORMAT ? "not a GGUF file: " : "", why.msg);
}

static sf_code open_common(const char *path, const void *bytes, size_t len, sf_gguf **out, sf_err *err) {
    sf_gguf *g = calloc(1, sizeof *g);
    if (!g) return SF_FAIL_AT(err, SF_NOMEM, ((sf_loc){path, 0, 0}), "no memory");
    g->path = path;
    g->map = SF_MAP_NONE;
    g->base = bytes;
    g->len = len;
    sf_code rc = bytes ? SF_OK : map_file(g, err);
    if (rc == SF_OK) rc = sf_gguf_parse(g, err);
    if (rc != SF_OK) {
        sf_gguf_close(g);
        return rc;
    }
    *out = g;
    return SF_OK;
}

sf_code sf_gguf_open(const char *path, sf_gguf **out, sf_err *err) {
    return open_common(path, NULL, 0, out, err);
}

sf_code sf_gguf_open_bytes(const char *path, const void *bytes, size_t len, sf_gguf **out, sf_err *err) {
    return open_common(path, bytes, len, out, err);
}

void sf_gguf_close(sf_gguf *g) {
    if (!g) return;
    sf_map_close(&g->map);
    free(g->kvs);
    free(g->sorted_kvs);
    free(g->tensors);
    free(g->sorted_tensors);
    free(g->names);
    free(g);
}

const char *sf_gguf_path(const sf_gguf *g) {
    return g->path;
}

const void *sf_gguf_bytes(const sf_gguf *g, size_t *len) {
    *len = g->len;
    return g->base;
}

int sf_gguf_n_tensors(const sf_gguf *g) {
    return g->n_tensors;
}

const sf_gguf_tensor *sf_gguf_tensor_at(const sf_gguf *g, int i) {
    return &g->tensors[i];
}

static int name_is(const void *key, const void *item) {
    return strcmp(key, (*(const sf_gguf_tensor *const *)item)->name);
}

const sf_gguf_tensor *sf_gguf_find_tensor(const sf_gguf *g, const char *name) {
    if (g->n_tensors == 0) return NULL;
    const sf_gguf_tensor **t =
        bsearch(name, g->sorted_tensors, (size_t)g->n_tensors, sizeof *g->sorted_tensors, name_is);
    return t ? *t : NULL;
}

static int key_is(const void *key, const void *item) {
    return sf_str_compare(*(const sf_str *)key, (*(const sf_gguf_kv *const *)item)->key);
}

static const sf_gguf_kv *find_kv(const sf_gguf *g, const char *key) {
    if (g->n_kvs == 0) return NULL;
    sf_str s = {key, strlen(key)};
    const sf_gguf_kv **kv = bsearch(&s, g->sorted_kvs, (size_t)g->n_kvs, sizeof *g->sorted_kvs, key_is);
    return kv ? *kv : NULL;
}

bool sf_gguf_has(const sf_gguf *g, const char *key) {
    return find_kv(g, key) != NULL;
}

static sf_code get_kv(const sf_gguf *g, const char *key, const sf_gguf_kv **out, sf_err *err) {
    *out = find_kv(g, key);
    if (!*out) return FAIL(g, SF_NOT_FOUND, "key %s is missing", key);
    return SF_OK;
}

static sf_code wrong_type(const sf_gguf *g, const sf_gguf_kv *kv, const char *key, const char *expected,
                          sf_err *err) {
    return FAIL(g, SF_FORMAT, "key %s has type %s%s, expected %s", key,
                kv->type == SF_GGUF_ARRAY ? "array of " : "", sf_gguf_vtype_name(kv->item), expected);
}

/* False: not an integer type, or over INT64_MAX (then *big). */
static bool load_int(uint32_t type, const uint8_t *p, int64_t *out, bool *big) {
    uint64_t u = 0;
    *big = false;
    switch (type) {
    case SF_GGUF_U8:
        *out = p[0];
        return true;
    case SF_GGUF_I8:
        *out = (int8_t)p[0];
        return true;
    case SF_GGUF_U16:
        *out = sf_load_u16(p);
        return true;
    case SF_GGUF_I16:
        *out = (int16_t)sf_load_u16(p);
        return true;
    case SF_GGUF_U32:
        *out = sf_load_u32(p);
        return true;
    case SF_GGUF_I32:
        *out = (int32_t)sf_load_u32(p);
        return true;
    case SF_GGUF_I64:
        *out = (int64_t)sf_load_u64(p);
        return true;
    case SF_GGUF_U64:
        u = sf_load_u64(p);
        *big = u > (uint64_t)INT64_MAX;
        if (!*big) *out = (int64_t)u;
        return !*big;
    default:
        return false;
    }
}

sf_code sf_gguf_get_str(const sf_gguf *g, const char *key, sf_str *out, sf_err *err) {
    const sf_gguf_kv *kv = NULL;
    SF_TRY(get_kv(g, key, &kv, err));
    if (kv->type != SF_GGUF_STR) return wrong_type(g, kv, key, "a string", err);
    *out = (sf_str){(const char *)kv->data + 8, (size_t)sf_load_u64(kv->data)};
    return SF_OK;
}

sf_code sf_gguf_get_i64(const sf_gguf *g, const char *key, int64_t *out, sf_err *err) {
    const sf_gguf_kv *kv = NULL;
    bool big = false;
    int64_t v = 0;
    SF_TRY(get_kv(g, key, &kv, err));
    if (!load_int(kv->type, kv->data, &v, &big)) {
        if (!big) return wrong_type(g, kv, key, "an integer", err);
        return FAIL(g, SF_FORMAT, "key %s is %llu, over the largest signed 64-bit integer", key,
                    (unsigned long long)sf_load_u64(kv->data));
    }
    *out = v;
    return SF_OK;
}

sf_code sf_gguf_get_f64(const sf_gguf *g, const char *key, double *out, sf_err *err) {
    const sf_gguf_kv *kv = NULL;
    SF_TRY(get_kv(g, key, &kv, err));
    if (kv->type == SF_GGUF_F32) {
        uint32_t u = sf_load_u32(kv->data);
        float f;
        memcpy(&f, &u, sizeof f);
        *out = (double)f;
        return SF_OK;
    }
    if (kv->type != SF_GGUF_F64) return wrong_type(g, kv, key, "a floating-point number", err);
    uint64_t u = sf_load_u64(kv->data);
    memcpy(out, &u, sizeof *out);
    return SF_OK;
}

sf_code sf_gguf_get_bool(const sf_gguf *g, const char *key, bool *out, sf_err *err) {
    const sf_gguf_kv *kv = NULL;
    SF_TRY(get_kv(g, key, &kv, err));
    if (kv->type != SF_GGUF_BOOL) return wrong_type(g, kv, key, "a bool", err);
    *out = kv->data[0] != 0;
    return SF_OK;
}

sf_code sf_gguf_get_strs(const sf_gguf *g, const char *key, sf_str **out, size_t *n, sf_err *err) {
    const sf_gguf_kv *kv = NULL;
    SF_TRY(get_kv(g, key, &kv, err));
    if (kv->type != SF_GGUF_ARRAY || kv->item != SF_GGUF_STR) {
        return wrong_type(g, kv, key, "an array of strings", err);
    }
    size_t count =
        (size_t)kv->count; /* each takes 8 bytes of the file at least: the parser has walked them */
    sf_str *strs = calloc(count ? count : 1, sizeof *strs);
    if (!strs) return FAIL(g, SF_NOMEM, "key %s: no memory for %zu strings", key, count);
    const uint8_t *p = kv->data;
    for (size_t i = 0; i < count; i++) {
        strs[i] = (sf_str){(const char *)p + 8, (size_t)sf_load_u64(p)};
        p += 8 + strs[i].len;
    }
    *out = strs;
    *n = count;
    return SF_OK;
}

sf_code sf_gguf_get_i32s(const sf_gguf *g, const char *key, int32_t **out, size_t *n, sf_err *err) {
    const sf_gguf_kv *kv = NULL;
    SF_TRY(get_kv(g, key, &kv, err));
    bool big = false;
    int64_t v = 0;
    size_t count = (size_t)kv->count, size = (size_t)sf_gguf_vtype_size(kv->item);
    bool integer = kv->item <= SF_GGUF_I32 || kv->item == SF_GGUF_U64 || kv->item == SF_GGUF_I64;
    if (kv->type != SF_GGUF_ARRAY || !integer) return wrong_type(g, kv, key, "an array of integers", err);
    int32_t *ints = calloc(count ? count : 1, sizeof *ints);
    if (!ints) return FAIL(g, SF_NOMEM, "key %s: no memory for %zu integers", key, count);
    for (size_t i = 0; i < count; i++) {
        if (!load_int(kv->item, kv->data + i * size, &v, &big) || v < INT32_MIN || v > INT32_MAX) {
            free(ints);
            return FAIL(g, SF_FORMAT, "key %s: item %zu is out of the range of 32-bit integers", key, i);
        }
        ints[i] = (int32_t)v;
    }
    *out = ints;
    *n = count;
    return SF_OK;
}

sf_code sf_gguf_get_f32s(const sf_gguf *g, const char *key, float **out, size_t *n, sf_err *err) {
    const sf_gguf_kv *kv = NULL;
    SF_TRY(get_kv(g, key, &kv, err));
    size_t count = (size_t)kv->count;
    if (kv->type != SF_GGUF_ARRAY || kv->item != SF_GGUF_F32)
        return wrong_type(g, kv, key, "an array of f32", err);
    float *values = calloc(count ? count : 1, sizeof *values);
    if (!values) return FAIL(g, SF_NOMEM, "key %s: no memory for %zu numbers", key, count);
    for (size_t i = 0; i < count; i++) {
        uint32_t bits = sf_load_u32(kv->data + i * sizeof bits);
        memcpy(&values[i], &bits, sizeof bits);
    }
    *out = values;
    *n = count;
    return SF_OK;
}
