#include "model/jinja_sort_priv.h"
#include "model/jinja_text_priv.h"

#include <stdlib.h>
#include <string.h>

static const sf_jstr DOT = {".", NULL, 1, 1}, COMMA = {",", NULL, 1, 1};

static bool is_number(const sf_jstr *s) {
    for (size_t i = 0; i < s->len; i++)
        if (s->data[i] < '0' || s->data[i] > '9') return false;
    return s->len > 0 && s->len < 19;
}

sf_code sf_jattr_path(sf_jx *x, sf_jv item, sf_jv path, sf_jv fallback, sf_jv *out) {
    bool has_fallback = fallback.kind != SF_JV_MISSING && fallback.kind != SF_JV_NONE;
    *out = item;
    if (path.kind == SF_JV_MISSING || path.kind == SF_JV_NONE) return SF_OK;
    sf_jv parts = {0};
    size_t n = 1;
    if (path.kind == SF_JV_STR) {
        SF_TRY(sf_jtext_split(x, path, &DOT, -1, false, &parts));
        n = parts.u.list->n;
    }
    for (size_t i = 0; i < n; i++) {
        sf_jv part = path.kind == SF_JV_STR ? parts.u.list->items[i] : path;
        char buf[20] = "";
        if (path.kind == SF_JV_STR && is_number(part.u.s)) {
            memcpy(buf, part.u.s->data, part.u.s->len);
            part = sf_jv_int(strtoll(buf, NULL, 10));
        }
        SF_TRY(sf_jitem(x, *out, part, out));
        if (has_fallback && out->kind == SF_JV_UNDEF) *out = fallback;
    }
    return SF_OK;
}

sf_code sf_jsort_key(sf_jx *x, sf_jv item, sf_jv path, bool case_sensitive, sf_jv *out) {
    SF_TRY(sf_jattr_path(x, item, path, (sf_jv){0}, out));
    if (case_sensitive || out->kind != SF_JV_STR) return SF_OK;
    return sf_jtext_case(x, *out, SF_JCASE_LOWER, out);
}

typedef struct pair {
    sf_jv key, item;
} pair;

static sf_code merge(sf_jx *x, const pair *from, pair *to, size_t a, size_t mid, size_t b, bool reverse) {
    size_t i = a, j = mid;
    for (size_t k = a; k < b; k++) {
        int cmp = 0;
        if (i < mid && j < b) SF_TRY(sf_jorder(x, from[j].key, from[i].key, &cmp));
        bool right = i >= mid || (j < b && (reverse ? cmp == 1 : cmp < 0));
        to[k] = right ? from[j++] : from[i++];
    }
    return SF_OK;
}

/* A stable merge sort by keys; the result is in *pairs. */
static sf_code sort(sf_jx *x, pair **pairs, size_t n, bool reverse) {
    pair *from = *pairs, *to;
    SF_TRY(sf_jx_get(x, n * sizeof *to, &to));
    for (size_t width = 1; width < n; width *= 2) {
        for (size_t a = 0; a < n; a += 2 * width) {
            size_t mid = a + width < n ? a + width : n, b = a + 2 * width < n ? a + 2 * width : n;
            SF_TRY(merge(x, from, to, a, mid, b, reverse));
        }
        pair *t = from;
        from = to;
        to = t;
    }
    *pairs = from;
    return SF_OK;
}

static sf_code from_pairs(sf_jx *x, const pair *pairs, size_t n, sf_jv *out) {
    SF_TRY(sf_jv_list(x, SF_JV_LIST, n, out));
    for (size_t i = 0; i < n; i++)
        SF_TRY(sf_jv_push(x, *out, pairs[i].item));
    return SF_OK;
}

/* Keys are lists, one value for each of the attributes "a,b": equal lists need no order. */
static sf_code list_key(sf_jx *x, sf_jv item, sf_jv attr, bool case_sensitive, sf_jv *out) {
    sf_jv names, key;
    SF_TRY(sf_jv_list(x, SF_JV_LIST, 1, out));
    if (attr.kind == SF_JV_STR)
        SF_TRY(sf_jtext_split(x, attr, &COMMA, -1, false, &names));
    else {
        SF_TRY(sf_jv_list(x, SF_JV_LIST, 1, &names));
        SF_TRY(sf_jv_push(x, names, attr));
    }
    for (size_t i = 0; i < names.u.list->n; i++) {
        SF_TRY(sf_jsort_key(x, item, names.u.list->items[i], case_sensitive, &key));
        SF_TRY(sf_jv_push(x, *out, key));
    }
    return SF_OK;
}

sf_code sf_jfilter_sort(sf_jx *x, sf_jv v, const sf_jv *s, const sf_jargs *raw, sf_jv *out) {
    (void)raw;
    bool reverse, case_sensitive;
    sf_jv items;
    SF_TRY(sf_jarg_bool(x, s[0], false, &reverse));
    SF_TRY(sf_jarg_bool(x, s[1], false, &case_sensitive));
    SF_TRY(sf_jiter_list(x, v, &items));
    size_t n = items.u.list->n;
    pair *pairs;
    SF_TRY(sf_jx_get(x, n * sizeof *pairs, &pairs));
    for (size_t i = 0; i < n; i++) {
        pairs[i].item = items.u.list->items[i];
        SF_TRY(list_key(x, pairs[i].item, s[2], case_sensitive, &pairs[i].key));
    }
    SF_TRY(sort(x, &pairs, n, reverse));
    return from_pairs(x, pairs, n, out);
}

sf_code sf_jfilter_dictsort(sf_jx *x, sf_jv v, const sf_jv *s, const sf_jargs *raw, sf_jv *out) {
    (void)raw;
    bool reverse, case_sensitive;
    const sf_jstr *by;
    SF_TRY(sf_jarg_bool(x, s[0], false, &case_sensitive));
    SF_TRY(sf_jarg_str(x, s[1], &by));
    SF_TRY(sf_jarg_bool(x, s[2], false, &reverse));
    bool by_value = by && by->len == 5 && !memcmp(by->data, "value", 5);
    if (by && !by_value && (by->len != 3 || memcmp(by->data, "key", 3) != 0))
        return SF_FAIL_AT(x->err, SF_INVALID, x->at, "dictsort is by \"key\" or by \"value\"");
    if (v.kind != SF_JV_DICT)
        return SF_FAIL_AT(x->err, SF_INVALID, x->at, "dictsort of '%s'", sf_jtype_name(v));
    size_t n = v.u.dict->n;
    pair *pairs;
    SF_TRY(sf_jx_get(x, n * sizeof *pairs, &pairs));
    for (size_t i = 0; i < n; i++) {
        SF_TRY(sf_jv_list(x, SF_JV_TUPLE, 2, &pairs[i].item));
        SF_TRY(sf_jv_push(x, pairs[i].item, v.u.dict->keys[i]));
        SF_TRY(sf_jv_push(x, pairs[i].item, v.u.dict->vals[i]));
        sf_jv of = by_value ? v.u.dict->vals[i] : v.u.dict->keys[i];
        SF_TRY(sf_jsort_key(x, of, (sf_jv){0}, case_sensitive, &pairs[i].key));
    }
    SF_TRY(sort(x, &pairs, n, reverse));
    return from_pairs(x, pairs, n, out);
}

static sf_code extreme(sf_jx *x, sf_jv v, const sf_jv *s, bool max, sf_jv *out) {
    bool case_sensitive, have;
    sf_jiter *it;
    sf_jv best = {0}, key, item;
    SF_TRY(sf_jarg_bool(x, s[0], false, &case_sensitive));
    SF_TRY(sf_jiter_open(x, v, &it));
    *out = sf_jv_undef("extreme of an empty sequence");
    for (;;) {
        int cmp = 0;
        SF_TRY(sf_jiter_next(x, it, &have, &item));
        if (!have) return SF_OK;
        SF_TRY(sf_jsort_key(x, item, s[1], case_sensitive, &key));
        if (best.kind != SF_JV_MISSING) SF_TRY(sf_jorder(x, key, best, &cmp));
        if (best.kind != SF_JV_MISSING && (max ? cmp <= 0 || cmp == 2 : cmp >= 0)) continue;
        best = key;
        *out = item;
    }
}

sf_code sf_jfilter_min(sf_jx *x, sf_jv v, const sf_jv *s, const sf_jargs *raw, sf_jv *out) {
    return (void)raw, extreme(x, v, s, false, out);
}

sf_code sf_jfilter_max(sf_jx *x, sf_jv v, const sf_jv *s, const sf_jargs *raw, sf_jv *out) {
    return (void)raw, extreme(x, v, s, true, out);
}
