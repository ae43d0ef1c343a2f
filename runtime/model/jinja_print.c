/* str(), repr() and json.dumps() of values, as Python writes them. */
#include "model/jinja_eval_priv.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

static sf_code add(sf_jx *x, sf_jout *o, const char *text, uint8_t plain) {
    return sf_jout_add(x, o, text, strlen(text), NULL, plain);
}

char *sf_jv_float_text(double f, char buf[40]) {
    if (isnan(f) || isinf(f)) {
        snprintf(buf, 40, "%s", isnan(f) ? "nan" : f < 0 ? "-inf" : "inf");
        return buf;
    }
    char sci[40];
    int digits = 0;
    do
        snprintf(sci, sizeof sci, "%.*e", digits, f);
    while (strtod(sci, NULL) != f && ++digits < 17);
    int exp = (int)strtol(strchr(sci, 'e') + 1, NULL, 10);
    if (exp >= -4 && exp < 16) {
        int frac = digits - exp;
        snprintf(buf, 40, "%.*f", frac > 0 ? frac : 1, f);
    } else {
        snprintf(buf, 40, "%.*se%c%02d", (int)(strchr(sci, 'e') - sci), sci, exp < 0 ? '-' : '+', abs(exp));
    }
    return buf;
}

static sf_code print_int(sf_jx *x, sf_jout *o, sf_jv v) {
    char buf[40];
    int n = snprintf(buf, sizeof buf, "%lld", (long long)v.u.i);
    return sf_jout_add(x, o, buf, (size_t)n, NULL, v.plain);
}

static bool printable(int32_t cp) {
    if (cp < 0x7f) return cp >= 0x20;
    switch (utf8proc_category(cp)) {
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_CS:
    case UTF8PROC_CATEGORY_CO:
    case UTF8PROC_CATEGORY_CN:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
    case UTF8PROC_CATEGORY_ZS:
        return false;
    default:
        return true;
    }
}

static sf_code repr_str(sf_jx *x, sf_jout *o, const sf_jstr *s) {
    char quote = memchr(s->data, '\'', s->len) && !memchr(s->data, '"', s->len) ? '"' : '\'';
    SF_TRY(sf_jout_add(x, o, &quote, 1, NULL, 0));
    for (size_t i = 0, n; i < s->len; i += n) {
        int32_t cp = sf_jv_char(s->data + i, s->len - i, &n);
        uint8_t plain = s->plain ? s->plain[i] : 0;
        char buf[16];
        const char *named = cp == '\n'   ? "\\n"
                            : cp == '\r' ? "\\r"
                            : cp == '\t' ? "\\t"
                            : cp == '\\' ? "\\\\"
                                         : NULL;
        if (!named && cp != quote && printable(cp)) {
            SF_TRY(sf_jout_add(x, o, s->data + i, n, s->plain ? s->plain + i : NULL, 0));
            continue;
        }
        if (!named && cp == quote)
            snprintf(buf, sizeof buf, "\\%c", quote);
        else if (!named)
            snprintf(buf, sizeof buf,
                     cp < 0x100     ? "\\x%02x"
                     : cp < 0x10000 ? "\\u%04x"
                                    : "\\U%08x",
                     (unsigned)cp);
        SF_TRY(add(x, o, named ? named : buf, plain));
    }
    return sf_jout_add(x, o, &quote, 1, NULL, 0);
}

static sf_code repr_items(sf_jx *x, sf_jout *o, sf_jv v, const char *open, const char *close) {
    const sf_jlist *l = v.u.list;
    SF_TRY(add(x, o, open, v.plain));
    for (size_t i = 0; i < l->n; i++) {
        if (i) SF_TRY(add(x, o, ", ", v.plain));
        SF_TRY(sf_jv_repr(x, o, l->items[i]));
    }
    if (v.kind == SF_JV_TUPLE && l->n == 1) SF_TRY(add(x, o, ",", v.plain));
    SF_TRY(add(x, o, close, v.plain));
    return SF_OK;
}

static sf_code repr_dict(sf_jx *x, sf_jout *o, sf_jv v) {
    const sf_jdict *d = v.u.dict;
    SF_TRY(add(x, o, "{", v.plain));
    for (size_t i = 0; i < d->n; i++) {
        if (i) SF_TRY(add(x, o, ", ", v.plain));
        SF_TRY(sf_jv_repr(x, o, d->keys[i]));
        SF_TRY(add(x, o, ": ", v.plain));
        SF_TRY(sf_jv_repr(x, o, d->vals[i]));
    }
    SF_TRY(add(x, o, "}", v.plain));
    return SF_OK;
}

static sf_code repr_range(sf_jx *x, sf_jout *o, const sf_jrange *r) {
    char buf[100];
    if (r->step == 1)
        snprintf(buf, sizeof buf, "range(%lld, %lld)", (long long)r->start, (long long)r->stop);
    else
        snprintf(buf, sizeof buf, "range(%lld, %lld, %lld)", (long long)r->start, (long long)r->stop,
                 (long long)r->step);
    SF_TRY(add(x, o, buf, 0));
    return SF_OK;
}

static sf_code repr_any(sf_jx *x, sf_jout *o, sf_jv v) {
    char buf[40];
    switch (v.kind) {
    case SF_JV_UNDEF:
        SF_TRY(add(x, o, "Undefined", 0));
        return SF_OK;
    case SF_JV_NONE:
        SF_TRY(add(x, o, "None", v.plain));
        return SF_OK;
    case SF_JV_BOOL:
        SF_TRY(add(x, o, v.u.b ? "True" : "False", v.plain));
        return SF_OK;
    case SF_JV_INT:
        return print_int(x, o, v);
    case SF_JV_FLOAT:
        SF_TRY(add(x, o, sf_jv_float_text(v.u.f, buf), v.plain));
        return SF_OK;
    case SF_JV_STR:
        if (!v.safe) return repr_str(x, o, v.u.s);
        SF_TRY(add(x, o, "Markup(", 0));
        SF_TRY(repr_str(x, o, v.u.s));
        SF_TRY(add(x, o, ")", 0));
        return SF_OK;
    case SF_JV_LIST:
        return repr_items(x, o, v, "[", "]");
    case SF_JV_TUPLE:
        return repr_items(x, o, v, "(", ")");
    case SF_JV_DICT:
        return repr_dict(x, o, v);
    case SF_JV_NS:
        SF_TRY(add(x, o, "<Namespace ", 0));
        SF_TRY(repr_dict(x, o, v));
        SF_TRY(add(x, o, ">", 0));
        return SF_OK;
    case SF_JV_RANGE:
        return repr_range(x, o, v.u.range);
    default:
        return SF_FAIL_AT(x->err, SF_UNSUPPORTED, x->at, "cannot print a value of type '%s'",
                          sf_jtype_name(v));
    }
}

sf_code sf_jv_repr(sf_jx *x, sf_jout *o, sf_jv v) {
    SF_TRY(sf_jx_enter(x));
    SF_TRY(repr_any(x, o, v));
    x->depth--;
    return SF_OK;
}

sf_code sf_jv_print(sf_jx *x, sf_jout *o, sf_jv v) {
    if (v.kind == SF_JV_UNDEF) return SF_OK;
    if (v.kind == SF_JV_STR) return sf_jout_str(x, o, v.u.s);
    return sf_jv_repr(x, o, v);
}

sf_code sf_jv_to_str(sf_jx *x, sf_jv v, sf_jv *out) {
    if (v.kind == SF_JV_STR) {
        *out = v;
        return SF_OK;
    }
    sf_jout o = {0};
    SF_TRY(sf_jv_print(x, &o, v));
    return sf_jout_take(x, &o, out);
}

static sf_code dump_char(sf_jx *x, sf_jout *o, int32_t cp, uint8_t plain) {
    char buf[16];
    const char *named = cp == '"'    ? "\\\""
                        : cp == '\\' ? "\\\\"
                        : cp == '\n' ? "\\n"
                        : cp == '\r' ? "\\r"
                        : cp == '\t' ? "\\t"
                        : cp == '\f' ? "\\f"
                        : cp == '\b' ? "\\b"
                                     : NULL;
    if (!named && cp < 0x10000)
        snprintf(buf, sizeof buf, "\\u%04x", (unsigned)cp);
    else if (!named)
        snprintf(buf, sizeof buf, "\\u%04x\\u%04x", 0xd7c0u + ((unsigned)cp >> 10),
                 0xdc00u + ((unsigned)cp & 0x3ff));
    SF_TRY(add(x, o, named ? named : buf, plain));
    return SF_OK;
}

static sf_code dump_str(sf_jx *x, sf_jout *o, const sf_jstr *s, bool ascii, uint8_t quote_plain) {
    SF_TRY(add(x, o, "\"", quote_plain));
    for (size_t i = 0, from = 0, n = 0; i <= s->len; i += n) {
        int32_t cp = i < s->len ? sf_jv_char(s->data + i, s->len - i, &n) : -1;
        bool keep = cp >= 0x20 && cp != '"' && cp != '\\' && (!ascii || cp < 0x7f);
        if (keep) continue;
        SF_TRY(sf_jout_add(x, o, s->data + from, i - from, s->plain ? s->plain + from : NULL, 0));
        if (cp < 0) break;
        SF_TRY(dump_char(x, o, cp, s->plain ? s->plain[i] : 0));
        from = i + n;
    }
    SF_TRY(add(x, o, "\"", quote_plain));
    return SF_OK;
}

static sf_code dump_scalar(sf_jx *x, sf_jout *o, sf_jv v) {
    char buf[40];
    if (v.kind == SF_JV_NONE) {
        SF_TRY(add(x, o, "null", v.plain));
    } else if (v.kind == SF_JV_BOOL) {
        SF_TRY(add(x, o, v.u.b ? "true" : "false", v.plain));
    } else if (v.kind == SF_JV_INT) {
        return print_int(x, o, v);
    } else if (v.kind == SF_JV_FLOAT) {
        double f = v.u.f;
        SF_TRY(add(x, o,
                   isnan(f)   ? "NaN"
                   : isinf(f) ? (f < 0 ? "-Infinity" : "Infinity")
                              : sf_jv_float_text(f, buf),
                   v.plain));
    } else {
        return SF_FAIL_AT(x->err, SF_INVALID, x->at, "a value of type '%s' cannot be written as JSON",
                          sf_jtype_name(v));
    }
    return SF_OK;
}

static sf_code newline(sf_jx *x, sf_jout *o, const sf_jdump *how, int level, uint8_t plain) {
    if (!how->indent) return SF_OK;
    SF_TRY(add(x, o, "\n", plain));
    for (int i = 0; i < level; i++)
        SF_TRY(sf_jout_add(x, o, how->indent, how->indent_len, NULL, plain));
    return SF_OK;
}

static sf_code dump_items(sf_jx *x, sf_jout *o, sf_jv v, const sf_jdump *how, int level) {
    const sf_jlist *l = v.u.list;
    SF_TRY(add(x, o, "[", v.plain));
    for (size_t i = 0; i < l->n; i++) {
        if (i)
            SF_TRY(sf_jout_add(x, o, how->item_sep->data, how->item_sep->len, how->item_sep->plain, v.plain));
        SF_TRY(newline(x, o, how, level + 1, v.plain));
        SF_TRY(sf_jv_dump(x, o, l->items[i], how, level + 1));
    }
    if (l->n) SF_TRY(newline(x, o, how, level, v.plain));
    SF_TRY(add(x, o, "]", v.plain));
    return SF_OK;
}

static sf_code dump_key(sf_jx *x, sf_jout *o, sf_jv key, const sf_jdump *how, uint8_t plain) {
    if (key.kind == SF_JV_STR) return dump_str(x, o, key.u.s, how->ascii, plain);
    if (key.kind != SF_JV_NONE && !sf_jv_is_num(key))
        return SF_FAIL_AT(x->err, SF_INVALID, x->at, "JSON keys must be text or numbers, not '%s'",
                          sf_jtype_name(key));
    SF_TRY(add(x, o, "\"", plain));
    SF_TRY(dump_scalar(x, o, key));
    SF_TRY(add(x, o, "\"", plain));
    return SF_OK;
}

/* Indices of the keys in the order to write; an insertion sort, since sort_keys is rare and objects are
 * small. */
static sf_code key_order(sf_jx *x, const sf_jdict *d, bool sort, size_t **order) {
    SF_TRY(sf_jx_get(x, d->n * sizeof **order, order));
    for (size_t i = 0; i < d->n; i++) {
        size_t k = i;
        for (; sort && k; k--) {
            int cmp;
            SF_TRY(sf_jx_step(x, 0));
            SF_TRY(sf_jorder(x, d->keys[(*order)[k - 1]], d->keys[i], &cmp));
            if (cmp <= 0) break;
            (*order)[k] = (*order)[k - 1];
        }
        (*order)[k] = i;
    }
    return SF_OK;
}

static sf_code dump_dict(sf_jx *x, sf_jout *o, sf_jv v, const sf_jdump *how, int level) {
    const sf_jdict *d = v.u.dict;
    size_t *order;
    SF_TRY(key_order(x, d, how->sort, &order));
    SF_TRY(add(x, o, "{", v.plain));
    for (size_t i = 0; i < d->n; i++) {
        if (i)
            SF_TRY(sf_jout_add(x, o, how->item_sep->data, how->item_sep->len, how->item_sep->plain, v.plain));
        SF_TRY(newline(x, o, how, level + 1, v.plain));
        SF_TRY(dump_key(x, o, d->keys[order[i]], how, v.plain));
        SF_TRY(sf_jout_add(x, o, how->key_sep->data, how->key_sep->len, how->key_sep->plain, v.plain));
        SF_TRY(sf_jv_dump(x, o, d->vals[order[i]], how, level + 1));
    }
    if (d->n) SF_TRY(newline(x, o, how, level, v.plain));
    SF_TRY(add(x, o, "}", v.plain));
    return SF_OK;
}

sf_code sf_jv_dump(sf_jx *x, sf_jout *o, sf_jv v, const sf_jdump *how, int level) {
    SF_TRY(sf_jx_enter(x));
    if (v.kind == SF_JV_STR)
        SF_TRY(dump_str(x, o, v.u.s, how->ascii, v.plain));
    else if (v.kind == SF_JV_LIST || v.kind == SF_JV_TUPLE)
        SF_TRY(dump_items(x, o, v, how, level));
    else if (v.kind == SF_JV_DICT)
        SF_TRY(dump_dict(x, o, v, how, level));
    else
        SF_TRY(dump_scalar(x, o, v));
    x->depth--;
    return SF_OK;
}
