#include "model/jinja_value_priv.h"

#include "base/utf8.h"
#include "model/jinja_eval_priv.h"

#include <string.h>
#include <utf8proc.h>

sf_code sf_jx_get(sf_jx *x, size_t bytes, void *out) {
    void *p = sf_jarena_get(&x->arena, bytes);
    if (!p && x->arena.refused) return SF_FAIL_AT(x->err, SF_NOMEM, x->at, "no memory for the template");
    if (!p) return SF_FAIL_AT(x->err, SF_FULL, x->at, "template uses more than %zu MB", x->arena.limit >> 20);
    memcpy(out, &p, sizeof p);
    return SF_OK;
}

sf_code sf_jx_step(sf_jx *x, uint64_t bytes) {
    x->steps += 1 + bytes / 16;
    if (x->steps > x->max_steps)
        return SF_FAIL_AT(x->err, SF_FULL, x->at, "template ran more than %llu steps",
                          (unsigned long long)x->max_steps);
    return SF_OK;
}

sf_code sf_jx_enter(sf_jx *x) {
    enum { MAX_DEPTH = 600 };
    if (x->depth >= MAX_DEPTH) return SF_FAIL_AT(x->err, SF_FULL, x->at, "template recurses too deeply");
    x->depth++;
    return SF_OK;
}

int32_t sf_jv_char(const char *data, size_t len, size_t *bytes) {
    int32_t cp;
    size_t bad, n = len > 0 ? sf_utf8_char(data, len, &cp, &bad) : 0;
    *bytes = n > 0 ? n : 1;
    return n > 0 ? cp : 0xfffd;
}

static size_t count_chars(const char *data, size_t len) {
    size_t chars = 0;
    for (size_t i = 0; i < len; i++)
        chars += ((unsigned char)data[i] & 0xc0) != 0x80;
    return chars;
}

sf_code sf_jv_str_borrow(sf_jx *x, const char *data, const uint8_t *plain, size_t len, sf_jv *out) {
    SF_TRY(sf_jx_step(x, len));
    if (len > x->max_out)
        return SF_FAIL_AT(x->err, SF_FULL, x->at, "template made a string of %zu bytes", len);
    sf_jstr *s;
    SF_TRY(sf_jx_get(x, sizeof *s, &s));
    *s = (sf_jstr){data, plain, len, count_chars(data, len)};
    *out = sf_jv_of_str(s);
    return SF_OK;
}

sf_code sf_jv_str(sf_jx *x, const char *data, size_t len, uint8_t plain, sf_jv *out) {
    char *copy;
    uint8_t *marks = NULL;
    SF_TRY(sf_jx_get(x, len + 1, &copy));
    memcpy(copy, data, len);
    if (plain) {
        SF_TRY(sf_jx_get(x, len + 1, &marks));
        memset(marks, plain, len);
    }
    return sf_jv_str_borrow(x, copy, marks, len, out);
}

size_t sf_jv_offset(const sf_jstr *s, size_t chars) {
    if (s->chars == s->len) return chars;
    size_t at = 0;
    for (; chars && at < s->len; chars--)
        do
            at++;
        while (at < s->len && ((unsigned char)s->data[at] & 0xc0) == 0x80);
    return at;
}

sf_code sf_jv_substr(sf_jx *x, sf_jv v, size_t from, size_t to, sf_jv *out) {
    const sf_jstr *s = v.u.s;
    size_t a = sf_jv_offset(s, from), b = sf_jv_offset(s, to);
    SF_TRY(sf_jx_step(x, b));
    SF_TRY(sf_jv_str_borrow(x, s->data + a, s->plain ? s->plain + a : NULL, b - a, out));
    out->safe = v.safe;
    return SF_OK;
}

sf_code sf_jv_list(sf_jx *x, sf_jkind kind, size_t cap, sf_jv *out) {
    sf_jlist *l;
    SF_TRY(sf_jx_get(x, sizeof *l, &l));
    if (cap) SF_TRY(sf_jx_get(x, cap * sizeof *l->items, &l->items));
    l->cap = cap;
    *out = (sf_jv){.kind = (uint8_t)kind, .u.list = l};
    return SF_OK;
}

sf_code sf_jv_push(sf_jx *x, sf_jv list, sf_jv item) {
    sf_jlist *l = list.u.list;
    SF_TRY(sf_jx_step(x, 0));
    if (l->n == l->cap) {
        size_t cap = l->cap ? l->cap * 2 : 8;
        sf_jv *items;
        SF_TRY(sf_jx_get(x, cap * sizeof *items, &items));
        if (l->n) memcpy(items, l->items, l->n * sizeof *items);
        l->items = items;
        l->cap = cap;
    }
    l->items[l->n++] = item;
    return SF_OK;
}

sf_code sf_jv_dict(sf_jx *x, size_t cap, sf_jv *out) {
    sf_jdict *d;
    SF_TRY(sf_jx_get(x, sizeof *d, &d));
    if (cap) {
        SF_TRY(sf_jx_get(x, cap * sizeof *d->keys, &d->keys));
        SF_TRY(sf_jx_get(x, cap * sizeof *d->vals, &d->vals));
    }
    d->cap = cap;
    *out = (sf_jv){.kind = SF_JV_DICT, .u.dict = d};
    return SF_OK;
}

static sf_code check_hashable(sf_jx *x, sf_jv key) {
    if (key.kind == SF_JV_LIST || key.kind == SF_JV_DICT || key.kind == SF_JV_VIEW)
        return SF_FAIL_AT(x->err, SF_INVALID, x->at, "unhashable type: '%s'", sf_jtype_name(key));
    if (key.kind == SF_JV_TUPLE)
        for (size_t i = 0; i < key.u.list->n; i++)
            SF_TRY(check_hashable(x, key.u.list->items[i]));
    return SF_OK;
}

static sf_code find_slot(sf_jx *x, const sf_jdict *d, sf_jv key, size_t *slot) {
    SF_TRY(check_hashable(x, key));
    SF_TRY(sf_jx_step(x, d->n));
    for (*slot = 0; *slot < d->n; ++*slot) {
        sf_jv have = d->keys[*slot];
        bool same = false;
        if (key.kind == SF_JV_STR && have.kind == SF_JV_STR)
            same = key.u.s->len == have.u.s->len && !memcmp(key.u.s->data, have.u.s->data, key.u.s->len);
        else
            SF_TRY(sf_jequal(x, have, key, &same));
        if (same) break;
    }
    return SF_OK;
}

sf_code sf_jv_find(sf_jx *x, const sf_jdict *d, sf_jv key, const sf_jv **found) {
    size_t slot;
    SF_TRY(find_slot(x, d, key, &slot));
    *found = slot < d->n ? &d->vals[slot] : NULL;
    return SF_OK;
}

sf_code sf_jv_put(sf_jx *x, sf_jv dict, sf_jv key, sf_jv val) {
    sf_jdict *d = dict.u.dict;
    size_t slot;
    SF_TRY(find_slot(x, d, key, &slot));
    if (slot == d->cap) {
        size_t cap = d->cap ? d->cap * 2 : 8;
        sf_jv *keys, *vals;
        SF_TRY(sf_jx_get(x, cap * sizeof *keys, &keys));
        SF_TRY(sf_jx_get(x, cap * sizeof *vals, &vals));
        if (d->n) {
            memcpy(keys, d->keys, d->n * sizeof *keys);
            memcpy(vals, d->vals, d->n * sizeof *vals);
        }
        d->keys = keys;
        d->vals = vals;
        d->cap = cap;
    }
    if (slot == d->n) {
        d->keys[slot] = key;
        d->n++;
    }
    d->vals[slot] = val;
    return SF_OK;
}

static sf_code out_reserve(sf_jx *x, sf_jout *o, size_t more) {
    if (more > x->max_out || o->len + more > x->max_out)
        return SF_FAIL_AT(x->err, SF_FULL, x->at, "template wrote more than %zu bytes", x->max_out);
    if (o->len + more <= o->cap) return SF_OK;
    size_t cap = o->cap ? o->cap : 64;
    while (cap < o->len + more)
        cap *= 2;
    char *data;
    uint8_t *plain;
    SF_TRY(sf_jx_get(x, cap, &data));
    SF_TRY(sf_jx_get(x, cap, &plain));
    if (o->len) {
        memcpy(data, o->data, o->len);
        memcpy(plain, o->plain, o->len);
    }
    o->data = data;
    o->plain = plain;
    o->cap = cap;
    return SF_OK;
}

sf_code sf_jout_add(sf_jx *x, sf_jout *o, const char *data, size_t len, const uint8_t *plain, uint8_t fill) {
    if (!len) return SF_OK;
    SF_TRY(sf_jx_step(x, len));
    SF_TRY(out_reserve(x, o, len));
    memcpy(o->data + o->len, data, len);
    if (plain)
        memcpy(o->plain + o->len, plain, len);
    else
        memset(o->plain + o->len, fill, len);
    o->any_plain |= plain || fill;
    o->len += len;
    return SF_OK;
}

sf_code sf_jout_str(sf_jx *x, sf_jout *o, const sf_jstr *s) {
    return sf_jout_add(x, o, s->data, s->len, s->plain, 0);
}

sf_code sf_jout_char(sf_jx *x, sf_jout *o, int32_t cp, uint8_t plain) {
    char buf[4];
    utf8proc_ssize_t n = utf8proc_encode_char(cp, (utf8proc_uint8_t *)buf);
    return sf_jout_add(x, o, buf, n > 0 ? (size_t)n : 0, NULL, plain);
}

sf_code sf_jout_take(sf_jx *x, sf_jout *o, sf_jv *out) {
    return sf_jv_str_borrow(x, o->len ? o->data : "", o->any_plain ? o->plain : NULL, o->len, out);
}
