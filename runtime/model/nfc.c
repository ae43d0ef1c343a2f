#include "model/nfc_priv.h"

#include "base/utf8.h"
#include "model/split_priv.h"

#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

typedef struct point {
    int32_t cp;
    uint8_t class; /* canonical combining class; 0: a starter */
} point;

typedef struct points { /* a character that stays and those behind it that may move or join it */
    point *data;        /* [cap] */
    point *sorted;      /* [cap] */
    size_t len, cap;
} points;

static bool takes_part(int32_t cp) {
    return cp >= 0x80 && (sf_char_bits_of(cp) & SF_CHAR_NFC);
}

static int32_t next_char(const char *text, size_t len, size_t *n) {
    int32_t cp = 0;
    size_t bad;
    *n = sf_utf8_char(text, len, &cp, &bad);
    if (!*n) *n = bad;
    return cp;
}

bool sf_nfc_needed(const char *text, size_t len) {
    for (size_t i = 0, n; i < len; i += n) {
        n = 1;
        if ((unsigned char)text[i] < 0xcc) continue; /* the lead byte of U+0300, the first that takes part */
        if (takes_part(next_char(text + i, len - i, &n))) return true;
    }
    return false;
}

static sf_code push(points *p, int32_t cp, sf_err *err) {
    if (p->len == p->cap) {
        size_t cap = p->cap ? 2 * p->cap : 64;
        point *data = realloc(p->data, cap * sizeof *data);
        if (data) p->data = data;
        point *sorted = realloc(p->sorted, cap * sizeof *sorted);
        if (sorted) p->sorted = sorted;
        if (!data || !sorted) return SF_FAIL(err, SF_NOMEM, "no memory for %zu characters", cap);
        p->cap = cap;
    }
    unsigned class = takes_part(cp) ? (unsigned)utf8proc_get_property(cp)->combining_class : 0;
    p->data[p->len++] = (point){cp, (uint8_t) class};
    return SF_OK;
}

/* A decomposition into characters that the library does not know is not made. */
static sf_code decompose(points *p, int32_t cp, sf_err *err) {
    int32_t to[8];
    int boundary = 0;
    utf8proc_ssize_t n = utf8proc_decompose_char(cp, to, 8, UTF8PROC_DECOMPOSE | UTF8PROC_STABLE, &boundary);
    bool known = n >= 1 && n <= 8;
    for (utf8proc_ssize_t i = 1; known && i < n && !takes_part(cp); i++)
        known = takes_part(to[i]);
    if (!known) return push(p, cp, err);
    for (utf8proc_ssize_t i = 0; i < n; i++)
        SF_TRY(push(p, to[i], err));
    return SF_OK;
}

/* Canonical ordering: each run of marks by class, equal ones as they stood. Counting, since a run may be as
 * long as the text. */
static void order(points *p) {
    for (size_t i = 0, end; i < p->len; i = end) {
        size_t starts[257] = {0};
        for (end = i; end < p->len && p->data[end].class; end++)
            starts[p->data[end].class + 1]++;
        if (end - i > 1) {
            for (int c = 1; c < 257; c++)
                starts[c] += starts[c - 1];
            for (size_t k = i; k < end; k++)
                p->sorted[starts[p->data[k].class]++] = p->data[k];
            memcpy(p->data + i, p->sorted, (end - i) * sizeof *p->data);
        }
        if (end == i) end++;
    }
}

static int32_t joined(int32_t first, int32_t second) {
    int32_t pair[2] = {first, second};
    if (!takes_part(second)) return -1;
    return utf8proc_normalize_utf32(pair, 2, UTF8PROC_COMPOSE | UTF8PROC_STABLE) == 1 ? pair[0] : -1;
}

/* A mark joins the last starter unless one of its class, or a starter, stands between. */
static void compose(points *p) {
    size_t starter = SIZE_MAX, n = 0;
    for (size_t i = 0; i < p->len; i++) {
        point c = p->data[i];
        bool near = starter != SIZE_MAX &&
                    (n == starter + 1 || (p->data[n - 1].class && p->data[n - 1].class < c.class));
        int32_t made = near ? joined(p->data[starter].cp, c.cp) : -1;
        if (made >= 0) {
            p->data[starter].cp = made;
            continue;
        }
        if (!c.class) starter = n;
        p->data[n++] = c;
    }
    p->len = n;
}

static sf_code flush(points *p, uint8_t mark, sf_buf *out, sf_buf *out_marks, sf_err *err) {
    order(p);
    compose(p);
    for (size_t i = 0; i < p->len; i++) {
        uint8_t bytes[4];
        utf8proc_ssize_t n = utf8proc_encode_char(p->data[i].cp, bytes);
        SF_TRY(sf_buf_append(out, bytes, (size_t)n, err));
        for (utf8proc_ssize_t k = 0; out_marks && k < n; k++)
            SF_TRY(sf_buf_append(out_marks, &mark, 1, err));
    }
    p->len = 0;
    return SF_OK;
}

static sf_code append(points *p, const char *text, size_t len, const uint8_t *marks, sf_buf *out,
                      sf_buf *out_marks, sf_err *err) {
    size_t from = 0, last = 0; /* what is not copied yet; the last character that stays */
    for (size_t i = 0, n; i < len; i += n) {
        if (!takes_part(next_char(text + i, len - i, &n))) {
            last = i;
            continue;
        }
        SF_TRY(sf_buf_append(out, text + from, last - from, err));
        if (marks) SF_TRY(sf_buf_append(out_marks, marks + from, last - from, err));
        uint8_t mark = 0;
        size_t at = last;
        for (size_t k; at < len; at += k) {
            int32_t cp = next_char(text + at, len - at, &k);
            if (at > i && !takes_part(cp)) break;
            if (marks) mark |= marks[at];
            SF_TRY(decompose(p, cp, err));
        }
        SF_TRY(flush(p, mark, out, marks ? out_marks : NULL, err));
        from = last = at;
        n = at - i;
    }
    SF_TRY(sf_buf_append(out, text + from, len - from, err));
    return marks ? sf_buf_append(out_marks, marks + from, len - from, err) : SF_OK;
}

sf_code sf_nfc_append(const char *text, size_t len, const uint8_t *marks, sf_buf *out, sf_buf *out_marks,
                      sf_err *err) {
    points p = {0};
    sf_code rc = append(&p, text, len, marks, out, out_marks, err);
    free(p.data);
    free(p.sorted);
    return rc;
}
