/* Attributes, subscripts, slices and iteration. */
#include "model/jinja_eval_priv.h"

#include <string.h>

static sf_code undefined_of(sf_jx *x, sf_jv v) {
    return SF_FAIL_AT(x->err, SF_INVALID, x->at, "'%.100s' is undefined", v.u.hint);
}

static sf_code name_value(sf_jx *x, const char *name, sf_jv *out) {
    return sf_jv_str_borrow(x, name, NULL, strlen(name), out);
}

/* A Python attribute: a method, a loop's or a namespace's field. */
static sf_code find_attr(sf_jx *x, sf_jv v, const char *name, size_t len, bool *found, sf_jv *out) {
    *found = false;
    if (len >= 2 && name[0] == '_' && name[1] == '_') return SF_OK; /* unsafe for the sandbox */
    if (v.kind == SF_JV_LOOP) return sf_jloop_attr(x, v.u.loop, v, name, found, out);
    if (v.kind == SF_JV_NS) {
        sf_jv key;
        const sf_jv *val;
        SF_TRY(name_value(x, name, &key));
        SF_TRY(sf_jv_find(x, v.u.dict, key, &val));
        *found = val != NULL;
        if (val) *out = *val;
        return SF_OK;
    }
    return sf_jmethod_find(x, v, name, len, found, out);
}

sf_code sf_jattr(sf_jx *x, sf_jv v, const char *name, sf_jv *out) {
    bool found;
    if (v.kind == SF_JV_UNDEF) return undefined_of(x, v);
    SF_TRY(find_attr(x, v, name, strlen(name), &found, out));
    if (found) return SF_OK;
    *out = sf_jv_undef(name);
    if (v.kind != SF_JV_DICT) return SF_OK;
    sf_jv key;
    const sf_jv *val;
    SF_TRY(name_value(x, name, &key));
    SF_TRY(sf_jv_find(x, v.u.dict, key, &val));
    if (val) *out = *val;
    return SF_OK;
}

static bool index_of(sf_jv key, int64_t n, int64_t *i) {
    if (key.kind != SF_JV_INT && key.kind != SF_JV_BOOL) return false;
    *i = key.kind == SF_JV_BOOL ? key.u.b : key.u.i;
    if (*i < 0) *i += n;
    return *i >= 0 && *i < n;
}

static sf_code item_at(sf_jx *x, sf_jv v, int64_t i, sf_jv *out) {
    if (v.kind == SF_JV_STR) return sf_jv_substr(x, v, (size_t)i, (size_t)i + 1, out);
    if (v.kind == SF_JV_RANGE)
        *out = sf_jv_int(v.u.range->start + i * v.u.range->step);
    else
        *out = v.u.list->items[i];
    return SF_OK;
}

static bool is_indexed(sf_jv v) {
    return v.kind >= SF_JV_STR && v.kind <= SF_JV_RANGE;
}

static const char *key_hint(sf_jv key) {
    return key.kind == SF_JV_STR ? "item" : "index";
}

sf_code sf_jitem(sf_jx *x, sf_jv v, sf_jv key, sf_jv *out) {
    int64_t i;
    bool found = false;
    if (v.kind == SF_JV_UNDEF) return undefined_of(x, v);
    if (is_indexed(v)) {
        int64_t n;
        SF_TRY(sf_jlength(x, v, &n));
        if (index_of(key, n, &i)) return item_at(x, v, i, out);
    } else if (v.kind == SF_JV_DICT) {
        bool hashable = key.kind != SF_JV_LIST && key.kind != SF_JV_DICT;
        const sf_jv *val = NULL;
        if (hashable) SF_TRY(sf_jv_find(x, v.u.dict, key, &val));
        if (val) {
            *out = *val;
            return SF_OK;
        }
    }
    if (key.kind == SF_JV_STR) {
        char *name;
        SF_TRY(sf_jx_get(x, key.u.s->len + 1, &name));
        memcpy(name, key.u.s->data, key.u.s->len);
        SF_TRY(find_attr(x, v, name, key.u.s->len, &found, out));
        if (!found) *out = sf_jv_undef(name);
        return SF_OK;
    }
    *out = sf_jv_undef(key_hint(key));
    return SF_OK;
}

/* Python's slice.indices(): absent parts are None. */
static sf_code slice_bounds(sf_jx *x, const sf_jv part[3], int64_t n, int64_t b[3]) {
    bool given[3];
    for (int k = 0; k < 3; k++) {
        given[k] = part[k].kind != SF_JV_NONE && part[k].kind != SF_JV_MISSING;
        if (!given[k]) continue;
        if (part[k].kind == SF_JV_UNDEF) return undefined_of(x, part[k]);
        if (part[k].kind != SF_JV_INT && part[k].kind != SF_JV_BOOL)
            return SF_FAIL_AT(x->err, SF_INVALID, x->at, "slice indices must be integers, not '%s'",
                              sf_jtype_name(part[k]));
        b[k] = part[k].kind == SF_JV_BOOL ? part[k].u.b : part[k].u.i;
    }
    int64_t step = b[2] = given[2] ? b[2] : 1;
    if (!step) return SF_FAIL_AT(x->err, SF_INVALID, x->at, "slice step is zero");
    int64_t low = step < 0 ? -1 : 0, high = step < 0 ? n - 1 : n;
    for (int k = 0; k < 2; k++) {
        if (!given[k])
            b[k] = (step < 0) == (k == 0) ? high : low;
        else if (b[k] < 0)
            b[k] = b[k] < low - n ? low : b[k] + n;
        if (b[k] < low) b[k] = low;
        if (b[k] > high) b[k] = high;
    }
    return SF_OK;
}

/* A string cut with a step other than 1. */
static sf_code stepped_str(sf_jx *x, sf_jv v, const int64_t b[3], int64_t count, sf_jv *out) {
    const sf_jstr *s = v.u.s;
    sf_jout o = {0};
    size_t *at; /* offset of every code point */
    SF_TRY(sf_jx_get(x, (s->chars + 1) * sizeof *at, &at));
    SF_TRY(sf_jx_step(x, s->len));
    for (size_t i = 0, k = 0; i < s->len; i++)
        if (((unsigned char)s->data[i] & 0xc0) != 0x80) at[k++] = i;
    at[s->chars] = s->len;
    for (int64_t k = 0; k < count; k++) {
        size_t c = (size_t)(b[0] + k * b[2]);
        SF_TRY(sf_jout_add(x, &o, s->data + at[c], at[c + 1] - at[c], s->plain ? s->plain + at[c] : NULL, 0));
    }
    SF_TRY(sf_jout_take(x, &o, out));
    out->safe = v.safe;
    return SF_OK;
}

static sf_code sliced_range(sf_jx *x, const sf_jrange *of, const int64_t b[3], int64_t count, sf_jv *out) {
    sf_jrange *r;
    int64_t step;
    if (__builtin_mul_overflow(of->step, b[2], &step))
        return SF_FAIL_AT(x->err, SF_UNSUPPORTED, x->at, "slice step too large");
    SF_TRY(sf_jx_get(x, sizeof *r, &r));
    *r = (sf_jrange){of->start + b[0] * of->step, of->start + b[1] * of->step, step, count};
    *out = (sf_jv){.kind = SF_JV_RANGE, .u.range = r};
    return SF_OK;
}

sf_code sf_jslice(sf_jx *x, sf_jv v, const sf_jv part[3], sf_jv *out) {
    int64_t n, b[3] = {0};
    if (v.kind == SF_JV_UNDEF) return undefined_of(x, v);
    if (!is_indexed(v))
        return SF_FAIL_AT(x->err, SF_INVALID, x->at, "'%s' cannot be sliced", sf_jtype_name(v));
    SF_TRY(sf_jlength(x, v, &n));
    SF_TRY(slice_bounds(x, part, n, b));
    int64_t span = b[2] > 0 ? b[1] - b[0] : b[0] - b[1];
    uint64_t stride = b[2] > 0 ? (uint64_t)b[2] : -(uint64_t)b[2];
    int64_t count = span > 0 ? (int64_t)(((uint64_t)span - 1) / stride) + 1 : 0;
    if (v.kind == SF_JV_STR && (b[2] == 1 || count <= 1))
        return sf_jv_substr(x, v, (size_t)(count ? b[0] : 0), (size_t)(count ? b[0] + count : 0), out);
    if (v.kind == SF_JV_STR) return stepped_str(x, v, b, count, out);
    if (v.kind == SF_JV_RANGE) return sliced_range(x, v.u.range, b, count, out);
    SF_TRY(sf_jv_list(x, (sf_jkind)v.kind, (size_t)count, out));
    out->plain = v.plain;
    for (int64_t k = 0; k < count; k++)
        SF_TRY(sf_jv_push(x, *out, v.u.list->items[b[0] + k * b[2]]));
    return SF_OK;
}

static sf_code view_item(sf_jx *x, const sf_jdict *d, int of, size_t i, sf_jv *out) {
    if (of != SF_JVIEW_ITEMS) {
        *out = of == SF_JVIEW_KEYS ? d->keys[i] : d->vals[i];
        return SF_OK;
    }
    SF_TRY(sf_jv_list(x, SF_JV_TUPLE, 2, out));
    SF_TRY(sf_jv_push(x, *out, d->keys[i]));
    return sf_jv_push(x, *out, d->vals[i]);
}

static sf_code walk(sf_jx *x, sf_jiter *it, bool *have, sf_jv *out) {
    sf_jv v = it->of;
    int64_t n;
    if (v.kind == SF_JV_STR) {
        const sf_jstr *s = v.u.s;
        *have = it->pos < s->len;
        if (!*have) return SF_OK;
        size_t bytes;
        (void)sf_jv_char(s->data + it->pos, s->len - it->pos, &bytes);
        SF_TRY(sf_jv_str_borrow(x, s->data + it->pos, s->plain ? s->plain + it->pos : NULL, bytes, out));
        it->pos += bytes;
        return SF_OK;
    }
    SF_TRY(sf_jlength(x, v, &n));
    *have = it->pos < (size_t)n;
    if (!*have) return SF_OK;
    size_t i = it->pos++;
    if (v.kind == SF_JV_DICT) return view_item(x, v.u.dict, SF_JVIEW_KEYS, i, out);
    if (v.kind == SF_JV_VIEW) return view_item(x, v.u.view->dict, (int)v.u.view->of, i, out);
    return item_at(x, v, (int64_t)i, out);
}

sf_code sf_jiter_open(sf_jx *x, sf_jv v, sf_jiter **out) {
    if (v.kind == SF_JV_ITER) {
        *out = v.u.iter;
        return SF_OK;
    }
    bool ok = v.kind == SF_JV_UNDEF || (v.kind >= SF_JV_STR && v.kind <= SF_JV_VIEW);
    if (v.kind == SF_JV_LOOP)
        return SF_FAIL_AT(x->err, SF_UNSUPPORTED, x->at, "iterating over the loop variable");
    if (!ok) return SF_FAIL_AT(x->err, SF_INVALID, x->at, "'%s' is not iterable", sf_jtype_name(v));
    sf_jiter *it;
    SF_TRY(sf_jx_get(x, sizeof *it, &it));
    it->next = walk;
    it->of = v;
    *out = it;
    return SF_OK;
}

sf_code sf_jiter_next(sf_jx *x, sf_jiter *it, bool *have, sf_jv *out) {
    SF_TRY(sf_jx_step(x, 0));
    SF_TRY(sf_jx_enter(x));
    SF_TRY(it->next(x, it, have, out));
    x->depth--;
    return SF_OK;
}

sf_code sf_jiter_list(sf_jx *x, sf_jv v, sf_jv *out) {
    sf_jiter *it;
    SF_TRY(sf_jiter_open(x, v, &it));
    SF_TRY(sf_jv_list(x, SF_JV_LIST, 0, out));
    out->plain = v.kind == SF_JV_LIST || v.kind == SF_JV_TUPLE ? v.plain : 0;
    for (;;) {
        bool have;
        sf_jv item;
        SF_TRY(sf_jiter_next(x, it, &have, &item));
        if (!have) return SF_OK;
        SF_TRY(sf_jv_push(x, *out, item));
    }
}
