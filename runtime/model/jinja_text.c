#include "model/jinja_text_priv.h"
#include "model/jinja_lex_priv.h"

#include <string.h>

static bool in_set(const sf_jstr *chars, const char *c, size_t n) {
    for (size_t i = 0, k; i < chars->len; i += k) {
        (void)sf_jv_char(chars->data + i, chars->len - i, &k);
        if (k == n && !memcmp(chars->data + i, c, n)) return true;
    }
    return false;
}

/* Bytes of the character at i if it is to be trimmed, else 0. */
static size_t trimmed(const sf_jstr *s, const sf_jstr *chars, size_t i) {
    size_t n;
    if (!chars) return sf_jlex_space(s->data + i, s->len - i);
    (void)sf_jv_char(s->data + i, s->len - i, &n);
    return in_set(chars, s->data + i, n) ? n : 0;
}

static size_t char_before(const sf_jstr *s, size_t i) {
    do
        i--;
    while (i && ((unsigned char)s->data[i] & 0xc0) == 0x80);
    return i;
}

static sf_code bytes(sf_jx *x, sf_jv v, size_t from, size_t to, sf_jv *out) {
    const sf_jstr *s = v.u.s;
    SF_TRY(sf_jv_str_borrow(x, s->data + from, s->plain ? s->plain + from : NULL, to - from, out));
    out->safe = v.safe;
    return SF_OK;
}

sf_code sf_jtext_trim(sf_jx *x, sf_jv v, const sf_jstr *chars, int sides, sf_jv *out) {
    const sf_jstr *s = v.u.s;
    size_t a = 0, b = s->len;
    SF_TRY(sf_jx_step(x, s->len));
    if (sides & SF_JTRIM_LEFT)
        for (size_t n; a < b && (n = trimmed(s, chars, a)); a += n)
            SF_TRY(sf_jx_step(x, chars ? chars->len : 0));
    if (sides & SF_JTRIM_RIGHT)
        for (size_t p; b > a && (p = char_before(s, b), trimmed(s, chars, p)); b = p)
            SF_TRY(sf_jx_step(x, chars ? chars->len : 0));
    return bytes(x, v, a, b, out);
}

int64_t sf_jtext_find(const sf_jstr *s, const sf_jstr *sub, size_t from, bool last) {
    int64_t at = -1;
    for (size_t i = from; i <= s->len;) {
        const char *hit = sub->len ? memmem(s->data + i, s->len - i, sub->data, sub->len) : s->data + i;
        if (!hit) break;
        at = hit - s->data;
        if (!last) break;
        if (!sub->len) return (int64_t)s->len;
        i = (size_t)at + 1;
    }
    return at;
}

sf_code sf_jtext_replace(sf_jx *x, sf_jv v, const sf_jstr *from, const sf_jstr *to, int64_t count,
                         sf_jv *out) {
    const sf_jstr *s = v.u.s;
    sf_jout o = {0};
    size_t i = 0;
    for (; count; count -= count > 0) {
        size_t skip = 0; /* an empty `from` matches before each character and at the end */
        int64_t hit = from->len ? sf_jtext_find(s, from, i, false) : (int64_t)i;
        if (hit < 0) break;
        SF_TRY(sf_jout_add(x, &o, s->data + i, (size_t)hit - i, s->plain ? s->plain + i : NULL, 0));
        SF_TRY(sf_jout_str(x, &o, to));
        SF_TRY(sf_jx_step(x, 0));
        i = (size_t)hit + from->len;
        if (from->len) continue;
        if (i >= s->len) break;
        (void)sf_jv_char(s->data + i, s->len - i, &skip);
        SF_TRY(sf_jout_add(x, &o, s->data + i, skip, s->plain ? s->plain + i : NULL, 0));
        i += skip;
    }
    SF_TRY(sf_jout_add(x, &o, s->data + i, s->len - i, s->plain ? s->plain + i : NULL, 0));
    return sf_jout_take(x, &o, out);
}

static sf_code push_bytes(sf_jx *x, sf_jv list, sf_jv v, size_t from, size_t to) {
    sf_jv part;
    SF_TRY(bytes(x, v, from, to, &part));
    return sf_jv_push(x, list, part);
}

/* On runs of white space, from the left. */
static sf_code split_space(sf_jx *x, sf_jv v, int64_t max, sf_jv list) {
    const sf_jstr *s = v.u.s;
    size_t i = 0, n;
    for (int64_t k = 0;; k++) {
        while (i < s->len && (n = sf_jlex_space(s->data + i, s->len - i)))
            i += n;
        if (i == s->len) return SF_OK;
        size_t from = i;
        if (max >= 0 && k >= max) return push_bytes(x, list, v, from, s->len);
        while (i < s->len && !sf_jlex_space(s->data + i, s->len - i)) {
            (void)sf_jv_char(s->data + i, s->len - i, &n);
            i += n;
        }
        SF_TRY(push_bytes(x, list, v, from, i));
    }
}

/* The same from the right; parts come out last first. */
static sf_code rsplit_space(sf_jx *x, sf_jv v, int64_t max, sf_jv list) {
    const sf_jstr *s = v.u.s;
    size_t i = s->len, p;
    for (int64_t k = 0;; k++) {
        while (i && (p = char_before(s, i), sf_jlex_space(s->data + p, s->len - p)))
            i = p;
        if (!i) return SF_OK;
        size_t to = i;
        if (max >= 0 && k >= max) return push_bytes(x, list, v, 0, to);
        while (i && (p = char_before(s, i), !sf_jlex_space(s->data + p, s->len - p)))
            i = p;
        SF_TRY(push_bytes(x, list, v, i, to));
    }
}

static sf_code split_sep(sf_jx *x, sf_jv v, const sf_jstr *sep, int64_t max, sf_jv list) {
    size_t i = 0;
    for (; max; max -= max > 0) {
        int64_t hit = sf_jtext_find(v.u.s, sep, i, false);
        if (hit < 0) break;
        SF_TRY(push_bytes(x, list, v, i, (size_t)hit));
        i = (size_t)hit + sep->len;
    }
    return push_bytes(x, list, v, i, v.u.s->len);
}

static sf_code rsplit_sep(sf_jx *x, sf_jv v, const sf_jstr *sep, int64_t max, sf_jv list) {
    size_t to = v.u.s->len, i = to;
    while (max && i >= sep->len) {
        SF_TRY(sf_jx_step(x, 0));
        if (memcmp(v.u.s->data + i - sep->len, sep->data, sep->len) != 0) {
            i--;
            continue;
        }
        SF_TRY(push_bytes(x, list, v, i, to));
        to = i -= sep->len;
        max -= max > 0;
    }
    return push_bytes(x, list, v, 0, to);
}

static void reverse(sf_jlist *l) {
    for (size_t i = 0; i < l->n / 2; i++) {
        sf_jv t = l->items[i];
        l->items[i] = l->items[l->n - 1 - i];
        l->items[l->n - 1 - i] = t;
    }
}

sf_code sf_jtext_split(sf_jx *x, sf_jv v, const sf_jstr *sep, int64_t max, bool right, sf_jv *out) {
    SF_TRY(sf_jx_step(x, v.u.s->len));
    SF_TRY(sf_jv_list(x, SF_JV_LIST, 0, out));
    if (sep && !sep->len) return SF_FAIL_AT(x->err, SF_INVALID, x->at, "empty separator");
    if (!right) return sep ? split_sep(x, v, sep, max, *out) : split_space(x, v, max, *out);
    SF_TRY(sep ? rsplit_sep(x, v, sep, max, *out) : rsplit_space(x, v, max, *out));
    reverse(out->u.list);
    return SF_OK;
}

/* Bytes of a line end at i (str.splitlines), else 0. */
static size_t line_end(const sf_jstr *s, size_t i) {
    size_t n;
    int32_t cp = sf_jv_char(s->data + i, s->len - i, &n);
    if (cp == '\r') return i + 1 < s->len && s->data[i + 1] == '\n' ? 2 : 1;
    bool is = (cp >= '\n' && cp <= '\f') || (cp >= 0x1c && cp <= 0x1e) || cp == 0x85 || cp == 0x2028 ||
              cp == 0x2029;
    return is ? n : 0;
}

sf_code sf_jtext_lines(sf_jx *x, sf_jv v, bool keep_ends, sf_jv *out) {
    const sf_jstr *s = v.u.s;
    size_t from = 0;
    SF_TRY(sf_jx_step(x, s->len));
    SF_TRY(sf_jv_list(x, SF_JV_LIST, 0, out));
    for (size_t i = 0, n; i < s->len; i += n) {
        size_t end = line_end(s, i);
        (void)sf_jv_char(s->data + i, s->len - i, &n);
        if (!end) continue;
        n = end;
        SF_TRY(push_bytes(x, *out, v, from, keep_ends ? i + end : i));
        from = i + end;
    }
    return from < s->len ? push_bytes(x, *out, v, from, s->len) : SF_OK;
}

sf_code sf_jtext_join(sf_jx *x, const sf_jstr *sep, sf_jiter *items, bool strict, sf_jv *out) {
    sf_jout o = {0};
    for (bool first = true;; first = false) {
        bool have;
        sf_jv v;
        SF_TRY(sf_jiter_next(x, items, &have, &v));
        if (!have) break;
        if (!first) SF_TRY(sf_jout_str(x, &o, sep));
        if (strict && v.kind != SF_JV_STR)
            return SF_FAIL_AT(x->err, SF_INVALID, x->at, "join expects text, found '%s'", sf_jtype_name(v));
        SF_TRY(sf_jv_print(x, &o, v));
    }
    return sf_jout_take(x, &o, out);
}
