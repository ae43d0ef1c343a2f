/* Numbers, names, strings and operators inside a tag. */
#include "model/jinja_lex_priv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

static char peek(const sf_jlexer *l, size_t p) {
    return p < l->len ? l->src[p] : 0;
}
static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

/* (\d+_)*\d+ : the offset behind it, or p when there is none. */
static size_t digits(const sf_jlexer *l, size_t p) {
    if (!is_digit(peek(l, p))) return p;
    for (;;) {
        while (is_digit(peek(l, p)))
            p++;
        if (peek(l, p) != '_' || !is_digit(peek(l, p + 1))) return p;
        p++;
    }
}

/* The offset behind a float at p, or 0. */
static size_t float_end(const sf_jlexer *l, size_t p) {
    if (p && l->src[p - 1] == '.') return 0;
    size_t e = digits(l, p);
    if (e == p) return 0;
    bool is_float = false;
    if (peek(l, e) == '.' && is_digit(peek(l, e + 1))) {
        e = digits(l, e + 1);
        is_float = true;
    }
    if (peek(l, e) == 'e' || peek(l, e) == 'E') {
        size_t x = e + 1 + (peek(l, e + 1) == '+' || peek(l, e + 1) == '-');
        if (is_digit(peek(l, x))) return digits(l, x);
    }
    return is_float ? e : 0;
}

static bool digit_of(char c, int base) {
    if (base == 16) return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
    return c >= '0' && c < '0' + base;
}

/* The offset behind an integer at p (which is a digit), and its base. */
static size_t int_end(const sf_jlexer *l, size_t p, int *base) {
    char c = peek(l, p + 1);
    *base = 10;
    if (peek(l, p) == '0') {
        int b = c == 'x' || c == 'X' ? 16 : c == 'o' || c == 'O' ? 8 : c == 'b' || c == 'B' ? 2 : 0;
        size_t e = p + 2, from = e;
        while (b && (digit_of(peek(l, e), b) || (peek(l, e) == '_' && digit_of(peek(l, e + 1), b))))
            e++;
        if (b && e > from) {
            *base = b;
            return e;
        }
    }
    bool zero = peek(l, p) == '0';
    size_t e = p + 1;
    for (;; e++) {
        size_t d = e + (peek(l, e) == '_');
        if (!is_digit(peek(l, d)) || (zero && peek(l, d) != '0')) return e;
        e = d;
    }
}

static sf_code number(sf_jlexer *l, size_t *pos) {
    char text[320];
    size_t p = *pos, n = 0, end = float_end(l, p);
    bool is_float = end != 0;
    int base = 10;
    if (!is_float) end = int_end(l, p, &base);
    for (size_t i = base == 10 ? p : p + 2; i < end; i++) {
        if (l->src[i] == '_') continue;
        if (n + 1 >= sizeof text) return sf_jlex_fail(l, SF_FORMAT, p, "number is too long");
        text[n++] = l->src[i];
    }
    text[n] = 0;
    sf_jtok *t;
    SF_TRY(sf_jlex_push(l, is_float ? SF_JT_FLOAT : SF_JT_INT, p, &t));
    errno = 0;
    if (is_float) {
        t->f = strtod(text, NULL);
    } else {
        t->i = strtoll(text, NULL, base);
        if (errno) return sf_jlex_fail(l, SF_UNSUPPORTED, p, "integer does not fit 64 bits");
    }
    *pos = end;
    return SF_OK;
}

static bool word_char(const sf_jlexer *l, size_t p, size_t *n) {
    if (p >= l->len) return false;
    char c = l->src[p];
    *n = 1;
    if ((unsigned char)c < 0x80)
        return is_digit(c) || c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    int cat = (int)utf8proc_category(sf_jv_char(l->src + p, l->len - p, n));
    return (cat >= UTF8PROC_CATEGORY_LU && cat <= UTF8PROC_CATEGORY_LO) ||
           (cat >= UTF8PROC_CATEGORY_ND && cat <= UTF8PROC_CATEGORY_NO);
}

static sf_code word(sf_jlexer *l, size_t *pos) {
    size_t p = *pos, n;
    while (word_char(l, p, &n))
        p += n;
    char *text = sf_jarena_get(l->arena, p - *pos + 1);
    if (!text) return sf_jlex_fail(l, sf_jarena_code(l->arena), p, "no room for the template");
    memcpy(text, l->src + *pos, p - *pos);
    sf_jtok *t;
    SF_TRY(sf_jlex_push(l, SF_JT_NAME, *pos, &t));
    t->text = text;
    t->len = p - *pos;
    *pos = p;
    return SF_OK;
}

static int hex_value(char c) {
    if (is_digit(c)) return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
}

/* One escape of Python's unicode-escape codec; *p stands behind the backslash. Returns what is wrong, or
 * NULL. */
static const char *escape(const sf_jlexer *l, size_t *p, size_t end, char *out, size_t *n) {
    static const char from[] = "\\'\"abfnrtv", to[] = "\\'\"\a\b\f\n\r\t\v";
    char c = l->src[(*p)++];
    if (c == '\n') return NULL;
    const char *simple = strchr(from, c);
    if (simple && c) {
        out[(*n)++] = to[simple - from];
        return NULL;
    }
    int32_t cp = 0;
    if (c >= '0' && c <= '7') {
        cp = c - '0';
        for (int k = 1; k < 3 && *p < end && l->src[*p] >= '0' && l->src[*p] <= '7'; k++)
            cp = cp * 8 + (l->src[(*p)++] - '0');
    } else if (c == 'x' || c == 'u' || c == 'U') {
        for (int k = c == 'x' ? 2 : c == 'u' ? 4 : 8; k; k--) {
            int v = *p < end ? hex_value(l->src[*p]) : -1;
            if (v < 0 || cp > 0x10ffff) return "bad escape in string";
            cp = cp * 16 + v;
            (*p)++;
        }
    } else if (c == 'N' || (unsigned char)c >= 0x80) {
        return "unsupported escape in string";
    } else {
        out[(*n)++] = '\\'; /* an unknown escape stands for itself */
        out[(*n)++] = c;
        return NULL;
    }
    if (!utf8proc_codepoint_valid(cp)) return "unsupported escape of an invalid code point in string";
    *n += (size_t)utf8proc_encode_char(cp, (utf8proc_uint8_t *)out + *n);
    return NULL;
}

static sf_code string(sf_jlexer *l, size_t *pos) {
    char quote = l->src[*pos];
    size_t end = *pos + 1;
    while (end < l->len && l->src[end] != quote)
        end += l->src[end] == '\\' ? 2 : 1;
    if (end >= l->len) return sf_jlex_fail(l, SF_FORMAT, *pos, "unterminated string");
    char *text = sf_jarena_get(l->arena, end - *pos + 4);
    if (!text) return sf_jlex_fail(l, sf_jarena_code(l->arena), *pos, "no room for the template");
    size_t n = 0;
    for (size_t p = *pos + 1; p < end;) {
        size_t from = p;
        const char *bad = NULL;
        if (l->src[p] != '\\') {
            text[n++] = l->src[p++];
        } else {
            p++;
            bad = escape(l, &p, end, text, &n);
        }
        if (bad) return sf_jlex_fail(l, strncmp(bad, "bad", 3) ? SF_UNSUPPORTED : SF_FORMAT, from, bad);
    }
    sf_jtok *t;
    SF_TRY(sf_jlex_push(l, SF_JT_STRING, *pos, &t));
    t->text = text;
    t->len = n;
    *pos = end + 1;
    return SF_OK;
}

static sf_code brackets(sf_jlexer *l, size_t p) {
    char c = l->src[p];
    if (c == '(' || c == '[' || c == '{') {
        if (l->n_open == SF_JLEX_NEST) return sf_jlex_fail(l, SF_FORMAT, p, "brackets nest too deeply");
        l->open[l->n_open++] = c == '(' ? ')' : c == '[' ? ']' : '}';
    } else if (c == ')' || c == ']' || c == '}') {
        if (!l->n_open || l->open[--l->n_open] != c)
            return sf_jlex_fail(l, SF_FORMAT, p, "unexpected closing bracket");
    }
    return SF_OK;
}

static sf_code operator(sf_jlexer *l, size_t *pos) {
    static const char pairs[] = "//**==!=>=<=";
    char c = l->src[*pos], next = peek(l, *pos + 1);
    int op = 0;
    for (size_t i = 0; i + 1 < sizeof pairs; i += 2)
        if (c == pairs[i] && next == pairs[i + 1]) op = c << 8 | next;
    if (!op && c && strchr("+-/*%~[](){}><=.:|,;", c)) op = c;
    if (!op) return sf_jlex_fail(l, SF_FORMAT, *pos, "unexpected character");
    SF_TRY(brackets(l, *pos));
    sf_jtok *t;
    SF_TRY(sf_jlex_push(l, SF_JT_OP, *pos, &t));
    t->op = op;
    *pos += op > 255 ? 2 : 1;
    return SF_OK;
}

sf_code sf_jlex_inner(sf_jlexer *l, size_t *pos) {
    size_t n;
    char c = l->src[*pos];
    if (is_digit(c)) return number(l, pos);
    if (word_char(l, *pos, &n)) return word(l, pos);
    if (c == '\'' || c == '"') return string(l, pos);
    return operator(l, pos);
}
