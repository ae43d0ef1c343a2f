/* Filters of single values; those of sequences are in jinja_filters_seq.c. */
#include "model/jinja_filters_priv.h"
#include "model/jinja_text_priv.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const sf_jstr NOTHING = {"", NULL, 0, 0}, NEWLINE = {"\n", NULL, 1, 1};
static const sf_jstr COMMA = {",", NULL, 1, 1}, COMMA_SPACE = {", ", NULL, 2, 2}, COLON = {": ", NULL, 2, 2};

static sf_code f_default(sf_jx *x, sf_jv v, const sf_jv *s, const sf_jargs *raw, sf_jv *out) {
    (void)raw;
    bool falsy, is = true;
    SF_TRY(sf_jarg_bool(x, s[1], false, &falsy));
    if (falsy) SF_TRY(sf_jtruth(x, v, &is));
    *out = v;
    if (v.kind == SF_JV_UNDEF || !is) *out = s[0].kind == SF_JV_MISSING ? sf_jv_of_str(&NOTHING) : s[0];
    return SF_OK;
}

static sf_code f_string(sf_jx *x, sf_jv v, const sf_jv *s, const sf_jargs *raw, sf_jv *out) {
    (void)s;
    (void)raw;
    return sf_jv_to_str(x, v, out);
}

static sf_code f_trim(sf_jx *x, sf_jv v, const sf_jv *s, const sf_jargs *raw, sf_jv *out) {
    (void)raw;
    const sf_jstr *chars;
    SF_TRY(sf_jarg_str(x, s[0], &chars));
    SF_TRY(sf_jv_to_str(x, v, &v));
    return sf_jtext_trim(x, v, chars, SF_JTRIM_LEFT | SF_JTRIM_RIGHT, out);
}

static sf_code cased(sf_jx *x, sf_jv v, sf_jcase how, sf_jv *out) {
    SF_TRY(sf_jv_to_str(x, v, &v));
    return sf_jtext_case(x, v, how, out);
}
static sf_code f_upper(sf_jx *x, sf_jv v, const sf_jv *s, const sf_jargs *raw, sf_jv *out) {
    return (void)s, (void)raw, cased(x, v, SF_JCASE_UPPER, out);
}
static sf_code f_lower(sf_jx *x, sf_jv v, const sf_jv *s, const sf_jargs *raw, sf_jv *out) {
    return (void)s, (void)raw, cased(x, v, SF_JCASE_LOWER, out);
}
static sf_code f_title(sf_jx *x, sf_jv v, const sf_jv *s, const sf_jargs *raw, sf_jv *out) {
    (void)s;
    (void)raw;
    SF_TRY(cased(x, v, SF_JCASE_WORDS, out));
    out->safe = 0; /* "".join of the parts */
    return SF_OK;
}
static sf_code f_capitalize(sf_jx *x, sf_jv v, const sf_jv *s, const sf_jargs *raw, sf_jv *out) {
    return (void)s, (void)raw, cased(x, v, SF_JCASE_CAPITALIZE, out);
}

static sf_code f_replace(sf_jx *x, sf_jv v, const sf_jv *s, const sf_jargs *raw, sf_jv *out) {
    (void)raw;
    sf_jv from, to;
    int64_t count;
    SF_TRY(sf_jarg_int(x, s[2], -1, &count));
    SF_TRY(sf_jv_to_str(x, v, &v));
    SF_TRY(sf_jv_to_str(x, s[0], &from));
    SF_TRY(sf_jv_to_str(x, s[1], &to));
    return sf_jtext_replace(x, v, from.u.s, to.u.s, count, out);
}

sf_code sf_jescape(sf_jx *x, sf_jv v, sf_jv *out) {
    sf_jout o = {0};
    SF_TRY(sf_jv_to_str(x, v, &v));
    const sf_jstr *s = v.u.s;
    for (size_t i = 0; !v.safe && i < s->len; i++) {
        char c = s->data[i];
        const char *e = c == '&'    ? "&amp;"
                        : c == '<'  ? "&lt;"
                        : c == '>'  ? "&gt;"
                        : c == '\'' ? "&#39;"
                        : c == '"'  ? "&#34;"
                                    : NULL;
        SF_TRY(sf_jout_add(x, &o, e ? e : &c, e ? strlen(e) : 1, NULL, s->plain ? s->plain[i] : 0));
    }
    *out = v;
    if (!v.safe) SF_TRY(sf_jout_take(x, &o, out));
    out->safe = 1;
    return SF_OK;
}

static sf_code f_escape(sf_jx *x, sf_jv v, const sf_jv *s, const sf_jargs *raw, sf_jv *out) {
    return (void)s, (void)raw, sf_jescape(x, v, out);
}

static sf_code f_safe(sf_jx *x, sf_jv v, const sf_jv *s, const sf_jargs *raw, sf_jv *out) {
    (void)s;
    (void)raw;
    SF_TRY(sf_jv_to_str(x, v, out));
    out->safe = 1;
    return SF_OK;
}

static sf_code f_length(sf_jx *x, sf_jv v, const sf_jv *s, const sf_jargs *raw, sf_jv *out) {
    (void)s;
    (void)raw;
    int64_t n;
    SF_TRY(sf_jlength(x, v, &n));
    *out = sf_jv_int(n);
    return SF_OK;
}

static sf_code f_abs(sf_jx *x, sf_jv v, const sf_jv *s, const sf_jargs *raw, sf_jv *out) {
    (void)s;
    (void)raw;
    if (!sf_jv_is_num(v)) return SF_FAIL_AT(x->err, SF_INVALID, x->at, "abs of '%s'", sf_jtype_name(v));
    bool negative = v.kind == SF_JV_FLOAT ? signbit(v.u.f) != 0 : v.kind == SF_JV_INT && v.u.i < 0;
    return sf_junary(x, negative ? '-' : '+', v, out);
}

/* Python's int(text, base) without its prefixes; false when the text is not such a number. */
static bool parse_int(const sf_jstr *s, int base, int64_t *out, bool *too_big) {
    char buf[80];
    size_t n = 0;
    *too_big = false;
    for (size_t i = 0; i < s->len; i++) {
        bool inner =
            i && i + 1 < s->len && s->data[i - 1] != '_' && s->data[i - 1] != '-' && s->data[i - 1] != '+';
        if (s->data[i] == '_' && inner) continue;
        if (s->data[i] == '_' || s->data[i] == ' ' || !s->data[i]) return false;
        if (n + 1 < sizeof buf) buf[n++] = s->data[i];
    }
    buf[n] = 0;
    char *end;
    errno = 0;
    *out = strtoll(buf, &end, base);
    *too_big = errno == ERANGE;
    return n && end == buf + n;
}

/* Python's float(text): no hexadecimal, no nan(...) payload; underscores between digits. */
static bool parse_float(const sf_jstr *s, double *out) {
    char buf[400];
    size_t n = 0;
    for (size_t i = 0; i < s->len; i++) {
        char c = s->data[i];
        bool between = i && i + 1 < s->len && s->data[i - 1] >= '0' && s->data[i - 1] <= '9' &&
                       s->data[i + 1] >= '0' && s->data[i + 1] <= '9';
        if (c == '_' && between) continue;
        if (!c || !strchr("0123456789+-.eEinfatyINFATY", c) || n + 1 >= sizeof buf) return false;
        buf[n++] = c;
    }
    buf[n] = 0;
    char *end;
    *out = strtod(buf, &end);
    return n && end == buf + n;
}

static sf_code stripped(sf_jx *x, sf_jv v, sf_jv *out) {
    return sf_jtext_trim(x, v, NULL, SF_JTRIM_LEFT | SF_JTRIM_RIGHT, out);
}

static sf_code f_int(sf_jx *x, sf_jv v, const sf_jv *s, const sf_jargs *raw, sf_jv *out) {
    (void)raw;
    int64_t base, i;
    double f = NAN;
    bool big = false;
    SF_TRY(sf_jarg_int(x, s[1], 10, &base));
    *out = s[0].kind == SF_JV_MISSING ? sf_jv_int(0) : s[0];
    if (v.kind == SF_JV_STR) {
        if (base != 10)
            return SF_FAIL_AT(x->err, SF_UNSUPPORTED, x->at, "int in another base than 10 is not supported");
        SF_TRY(stripped(x, v, &v));
        bool is = parse_int(v.u.s, 10, &i, &big);
        if (big) return SF_FAIL_AT(x->err, SF_UNSUPPORTED, x->at, "integer past 64 bits");
        if (is) {
            *out = sf_jv_int(i);
            return SF_OK;
        }
        if (!parse_float(v.u.s, &f)) return SF_OK;
    } else if (v.kind == SF_JV_INT || v.kind == SF_JV_BOOL) {
        *out = sf_jv_int(v.kind == SF_JV_INT ? v.u.i : v.u.b);
        return SF_OK;
    } else if (v.kind == SF_JV_FLOAT) {
        f = v.u.f;
        if (isinf(f)) return SF_FAIL_AT(x->err, SF_INVALID, x->at, "infinity has no integer value");
    } else if (v.kind == SF_JV_UNDEF) {
        return SF_FAIL_AT(x->err, SF_INVALID, x->at, "'%.100s' is undefined", v.u.hint);
    }
    if (isnan(f) || isinf(f)) return SF_OK;
    if (fabs(f) >= 9e18) return SF_FAIL_AT(x->err, SF_UNSUPPORTED, x->at, "integer past 64 bits");
    *out = sf_jv_int((int64_t)f);
    return SF_OK;
}

static sf_code f_float(sf_jx *x, sf_jv v, const sf_jv *s, const sf_jargs *raw, sf_jv *out) {
    (void)raw;
    double f;
    *out = s[0].kind == SF_JV_MISSING ? sf_jv_float(0) : s[0];
    if (v.kind == SF_JV_UNDEF)
        return SF_FAIL_AT(x->err, SF_INVALID, x->at, "'%.100s' is undefined", v.u.hint);
    if (v.kind == SF_JV_STR) {
        SF_TRY(stripped(x, v, &v));
        if (parse_float(v.u.s, &f)) *out = sf_jv_float(f);
    } else if (sf_jv_is_num(v)) {
        *out = v.kind == SF_JV_FLOAT ? v : sf_jv_float(v.kind == SF_JV_INT ? (double)v.u.i : v.u.b);
    }
    return SF_OK;
}

static sf_code f_round(sf_jx *x, sf_jv v, const sf_jv *s, const sf_jargs *raw, sf_jv *out) {
    (void)raw;
    int64_t digits;
    const sf_jstr *how;
    char buf[400];
    SF_TRY(sf_jarg_int(x, s[0], 0, &digits));
    SF_TRY(sf_jarg_str(x, s[1], &how));
    if (!sf_jv_is_num(v)) return SF_FAIL_AT(x->err, SF_INVALID, x->at, "round of '%s'", sf_jtype_name(v));
    if (digits < 0 || digits > 15)
        return SF_FAIL_AT(x->err, SF_UNSUPPORTED, x->at, "round to %lld digits", (long long)digits);
    bool common = !how || (how->len == 6 && !memcmp(how->data, "common", 6));
    bool up = how && how->len == 4 && !memcmp(how->data, "ceil", 4);
    bool down = how && how->len == 5 && !memcmp(how->data, "floor", 5);
    if (!common && !up && !down)
        return SF_FAIL_AT(x->err, SF_INVALID, x->at, "round method must be common, ceil or floor");
    double f = v.kind == SF_JV_FLOAT ? v.u.f : v.kind == SF_JV_INT ? (double)v.u.i : v.u.b;
    if (common && v.kind != SF_JV_FLOAT) {
        *out = sf_jv_int(v.kind == SF_JV_INT ? v.u.i : v.u.b);
    } else if (common) { /* correctly rounded decimal, half to even, as Python's */
        snprintf(buf, sizeof buf, "%.*f", (int)digits, f);
        *out = sf_jv_float(strtod(buf, NULL));
    } else {
        double scale = pow(10, (double)digits), scaled = f * scale;
        if (!isfinite(scaled))
            return SF_FAIL_AT(x->err, SF_INVALID, x->at, "round of a number that is not finite");
        *out = sf_jv_float((up ? ceil(scaled) : floor(scaled)) / scale);
    }
    return SF_OK;
}

static sf_code indent_text(sf_jx *x, sf_jv width, sf_jv *out) {
    int64_t n;
    sf_jout o = {0};
    if (width.kind == SF_JV_STR) {
        *out = width;
        return SF_OK;
    }
    if (width.kind == SF_JV_NONE)
        return SF_FAIL_AT(x->err, SF_INVALID, x->at, "indent width must be a number or text");
    SF_TRY(sf_jarg_int(x, width, 4, &n));
    for (int64_t i = 0; i < n; i++)
        SF_TRY(sf_jout_add(x, &o, " ", 1, NULL, 0));
    return sf_jout_take(x, &o, out);
}

static sf_code f_indent(sf_jx *x, sf_jv v, const sf_jv *s, const sf_jargs *raw, sf_jv *out) {
    (void)raw;
    bool first, blank;
    sf_jv pad, lines;
    sf_jout o = {0};
    if (v.kind != SF_JV_STR) return SF_FAIL_AT(x->err, SF_INVALID, x->at, "indent of '%s'", sf_jtype_name(v));
    if (v.safe) return SF_FAIL_AT(x->err, SF_UNSUPPORTED, x->at, "indent of safe text is not supported");
    SF_TRY(indent_text(x, s[0], &pad));
    SF_TRY(sf_jarg_bool(x, s[1], false, &first));
    SF_TRY(sf_jarg_bool(x, s[2], false, &blank));
    SF_TRY(sf_jbinary(x, '+', v, sf_jv_of_str(&NEWLINE), &v));
    SF_TRY(sf_jtext_lines(x, v, false, &lines));
    for (size_t i = 0; i < lines.u.list->n; i++) {
        const sf_jstr *line = lines.u.list->items[i].u.s;
        if (i) SF_TRY(sf_jout_add(x, &o, "\n", 1, NULL, 0));
        if (i ? blank || line->len : first) SF_TRY(sf_jout_str(x, &o, pad.u.s));
        SF_TRY(sf_jout_str(x, &o, line));
    }
    return sf_jout_take(x, &o, out);
}

/* Hugging Face's: json.dumps with ensure_ascii off, and no HTML escaping. */
static sf_code f_tojson(sf_jx *x, sf_jv v, const sf_jv *s, const sf_jargs *raw, sf_jv *out) {
    (void)raw;
    sf_jdump how = {.item_sep = &COMMA_SPACE, .key_sep = &COLON};
    sf_jv pad;
    sf_jout o = {0};
    SF_TRY(sf_jarg_bool(x, s[0], false, &how.ascii));
    SF_TRY(sf_jarg_bool(x, s[3], false, &how.sort));
    if (s[1].kind != SF_JV_MISSING && s[1].kind != SF_JV_NONE) {
        SF_TRY(indent_text(x, s[1], &pad));
        how.indent = pad.u.s->data;
        how.indent_len = pad.u.s->len;
        how.item_sep = &COMMA;
    }
    if (s[2].kind == SF_JV_TUPLE || s[2].kind == SF_JV_LIST) {
        const sf_jlist *l = s[2].u.list;
        if (l->n != 2 || l->items[0].kind != SF_JV_STR || l->items[1].kind != SF_JV_STR)
            return SF_FAIL_AT(x->err, SF_INVALID, x->at, "tojson separators must be two texts");
        how.item_sep = l->items[0].u.s;
        how.key_sep = l->items[1].u.s;
    } else if (s[2].kind != SF_JV_MISSING && s[2].kind != SF_JV_NONE) {
        return SF_FAIL_AT(x->err, SF_INVALID, x->at, "tojson separators must be two texts");
    }
    SF_TRY(sf_jv_dump(x, &o, v, &how, 0));
    return sf_jout_take(x, &o, out);
}

static const sf_jfilter FILTERS[] = {
    {"default", f_default, "default_value boolean", 0},
    {"d", f_default, "default_value boolean", 0},
    {"string", f_string, "", 0},
    {"trim", f_trim, "chars", 0},
    {"upper", f_upper, "", 0},
    {"lower", f_lower, "", 0},
    {"title", f_title, "", 0},
    {"capitalize", f_capitalize, "", 0},
    {"replace", f_replace, "old new count", 2},
    {"escape", f_escape, "", 0},
    {"e", f_escape, "", 0},
    {"safe", f_safe, "", 0},
    {"length", f_length, "", 0},
    {"count", f_length, "", 0},
    {"abs", f_abs, "", 0},
    {"int", f_int, "default base", 0},
    {"float", f_float, "default", 0},
    {"round", f_round, "precision method", 0},
    {"indent", f_indent, "width first blank", 0},
    {"tojson", f_tojson, "ensure_ascii indent separators sort_keys", 0},
};

static const sf_jfilter *find_in(const sf_jfilter *f, size_t n, const char *name, size_t len) {
    for (; n; n--, f++)
        if (strlen(f->name) == len && !memcmp(f->name, name, len)) return f;
    return NULL;
}

const sf_jfilter *sf_jfilter_find(const char *name, size_t len) {
    size_t n;
    const sf_jfilter *f = find_in(FILTERS, sizeof FILTERS / sizeof *FILTERS, name, len);
    if (f) return f;
    f = sf_jfilters_seq(&n);
    return find_in(f, n, name, len);
}

sf_code sf_jfilter_call(sf_jx *x, const sf_jfilter *f, sf_jv self, const sf_jargs *a, sf_jv *out) {
    sf_jv slot[SF_JMAX_PARAMS];
    SF_TRY(sf_jx_enter(x));
    if (f->params) SF_TRY(sf_jargs_bind(x, a, f->name, f->params, f->min, slot));
    SF_TRY(f->fn(x, self, slot, a, out));
    x->depth--;
    return SF_OK;
}
