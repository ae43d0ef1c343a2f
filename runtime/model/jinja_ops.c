/* Python's truth, comparison and arithmetic on values. */
#include "model/jinja_eval_priv.h"

#include <math.h>
#include <string.h>

const char *sf_jtype_name(sf_jv v) {
    static const char *const names[] = {
        "missing", "Undefined", "NoneType", "bool",      "int",       "float",     "str",         "list",
        "tuple",   "range",     "dict",     "dict view", "generator", "Namespace", "LoopContext", "function"};
    return names[v.kind];
}

static sf_code fail_undefined(sf_jx *x, sf_jv v) {
    return SF_FAIL_AT(x->err, SF_INVALID, x->at, "'%.100s' is undefined", v.u.hint);
}

bool sf_jhas_length(sf_jv v) {
    return v.kind == SF_JV_UNDEF || (v.kind >= SF_JV_STR && v.kind <= SF_JV_VIEW) || v.kind == SF_JV_LOOP;
}

sf_code sf_jlength(sf_jx *x, sf_jv v, int64_t *out) {
    switch (v.kind) {
    case SF_JV_UNDEF:
        *out = 0;
        return SF_OK;
    case SF_JV_STR:
        *out = (int64_t)v.u.s->chars;
        return SF_OK;
    case SF_JV_LIST:
    case SF_JV_TUPLE:
        *out = (int64_t)v.u.list->n;
        return SF_OK;
    case SF_JV_DICT:
        *out = (int64_t)v.u.dict->n;
        return SF_OK;
    case SF_JV_VIEW:
        *out = (int64_t)v.u.view->dict->n;
        return SF_OK;
    case SF_JV_RANGE:
        *out = v.u.range->n;
        return SF_OK;
    case SF_JV_LOOP:
        return sf_jloop_length(x, v.u.loop, out);
    default:
        return SF_FAIL_AT(x->err, SF_INVALID, x->at, "object of type '%s' has no length", sf_jtype_name(v));
    }
}

sf_code sf_jtruth(sf_jx *x, sf_jv v, bool *out) {
    int64_t n = 1;
    if (v.kind == SF_JV_NONE)
        n = 0;
    else if (v.kind == SF_JV_BOOL)
        n = v.u.b;
    else if (v.kind == SF_JV_INT)
        n = v.u.i;
    else if (v.kind == SF_JV_FLOAT)
        n = v.u.f != 0;
    else if (sf_jhas_length(v))
        SF_TRY(sf_jlength(x, v, &n));
    *out = n != 0;
    return SF_OK;
}

static int64_t as_int(sf_jv v) {
    return v.kind == SF_JV_BOOL ? v.u.b : v.u.i;
}
static double as_float(sf_jv v) {
    return v.kind == SF_JV_FLOAT ? v.u.f : (double)as_int(v);
}
static bool is_int(sf_jv v) {
    return v.kind == SF_JV_BOOL || v.kind == SF_JV_INT;
}

/* Exact, as Python compares an int with a float. NaN: 2. */
static int order_int_float(int64_t i, double f) {
    if (isnan(f)) return 2;
    if (f >= 9223372036854775808.0) return -1;
    if (f < -9223372036854775808.0) return 1;
    int64_t whole = (int64_t)f;
    if (i != whole) return i < whole ? -1 : 1;
    double part = f - (double)whole;
    return part > 0 ? -1 : part < 0;
}

static int order_nums(sf_jv a, sf_jv b) {
    if (is_int(a) && is_int(b)) return (as_int(a) > as_int(b)) - (as_int(a) < as_int(b));
    if (is_int(a)) return order_int_float(as_int(a), b.u.f);
    if (is_int(b)) {
        int r = order_int_float(as_int(b), a.u.f);
        return r == 2 ? 2 : -r;
    }
    if (isnan(a.u.f) || isnan(b.u.f)) return 2;
    return (a.u.f > b.u.f) - (a.u.f < b.u.f);
}

static int order_strs(const sf_jstr *a, const sf_jstr *b) {
    size_t n = a->len < b->len ? a->len : b->len;
    int c = n ? memcmp(a->data, b->data, n) : 0;
    return c ? (c > 0) - (c < 0) : (a->len > b->len) - (a->len < b->len);
}

static sf_code equal_lists(sf_jx *x, const sf_jlist *a, const sf_jlist *b, bool *out) {
    *out = a->n == b->n;
    for (size_t i = 0; *out && i < a->n; i++)
        SF_TRY(sf_jequal(x, a->items[i], b->items[i], out));
    return SF_OK;
}

static sf_code equal_dicts(sf_jx *x, const sf_jdict *a, const sf_jdict *b, bool *out) {
    *out = a->n == b->n;
    for (size_t i = 0; *out && i < a->n; i++) {
        const sf_jv *other;
        SF_TRY(sf_jv_find(x, b, a->keys[i], &other));
        *out = other != NULL;
        if (other) SF_TRY(sf_jequal(x, a->vals[i], *other, out));
    }
    return SF_OK;
}

static bool equal_ranges(const sf_jrange *a, const sf_jrange *b) {
    if (a->n != b->n) return false;
    return !a->n || (a->start == b->start && (a->n == 1 || a->step == b->step));
}

static sf_code equal_any(sf_jx *x, sf_jv a, sf_jv b, bool *out) {
    if (sf_jv_is_num(a) && sf_jv_is_num(b)) {
        *out = order_nums(a, b) == 0;
        return SF_OK;
    }
    *out = a.kind == b.kind;
    if (!*out || (a.kind >= SF_JV_LIST && a.u.list == b.u.list)) return SF_OK;
    switch (a.kind) {
    case SF_JV_UNDEF:
    case SF_JV_NONE:
        return SF_OK;
    case SF_JV_STR:
        SF_TRY(sf_jx_step(x, a.u.s->len));
        *out = order_strs(a.u.s, b.u.s) == 0;
        return SF_OK;
    case SF_JV_LIST:
    case SF_JV_TUPLE:
        return equal_lists(x, a.u.list, b.u.list, out);
    case SF_JV_DICT:
        return equal_dicts(x, a.u.dict, b.u.dict, out);
    case SF_JV_RANGE:
        *out = equal_ranges(a.u.range, b.u.range);
        return SF_OK;
    case SF_JV_VIEW:
    case SF_JV_FUNC:
        return SF_FAIL_AT(x->err, SF_UNSUPPORTED, x->at, "comparing values of type '%s'", sf_jtype_name(a));
    default:
        *out = a.u.iter == b.u.iter;
        return SF_OK;
    }
}

sf_code sf_jequal(sf_jx *x, sf_jv a, sf_jv b, bool *out) {
    SF_TRY(sf_jx_step(x, 0));
    SF_TRY(sf_jx_enter(x));
    SF_TRY(equal_any(x, a, b, out));
    x->depth--;
    return SF_OK;
}

/* -1, 0, 1, or 2: not ordered (NaN). */
static sf_code order_any(sf_jx *x, sf_jv a, sf_jv b, int *out) {
    if (a.kind == SF_JV_VIEW && b.kind == SF_JV_VIEW)
        return SF_FAIL_AT(x->err, SF_UNSUPPORTED, x->at, "dictionary views as sets are not supported");
    if (a.kind == SF_JV_UNDEF) return fail_undefined(x, a);
    if (b.kind == SF_JV_UNDEF) return fail_undefined(x, b);
    if (sf_jv_is_num(a) && sf_jv_is_num(b)) {
        *out = order_nums(a, b);
        return SF_OK;
    }
    if (a.kind == SF_JV_STR && b.kind == SF_JV_STR) {
        SF_TRY(sf_jx_step(x, a.u.s->len));
        *out = order_strs(a.u.s, b.u.s);
        return SF_OK;
    }
    if (a.kind != b.kind || (a.kind != SF_JV_LIST && a.kind != SF_JV_TUPLE))
        return SF_FAIL_AT(x->err, SF_INVALID, x->at, "cannot order '%s' and '%s'", sf_jtype_name(a),
                          sf_jtype_name(b));
    const sf_jlist *l = a.u.list, *r = b.u.list;
    for (size_t i = 0; i < l->n && i < r->n; i++) {
        bool same;
        SF_TRY(sf_jequal(x, l->items[i], r->items[i], &same));
        if (!same) return sf_jorder(x, l->items[i], r->items[i], out);
    }
    *out = (l->n > r->n) - (l->n < r->n);
    return SF_OK;
}

sf_code sf_jorder(sf_jx *x, sf_jv a, sf_jv b, int *out) {
    SF_TRY(sf_jx_step(x, 0));
    SF_TRY(sf_jx_enter(x));
    SF_TRY(order_any(x, a, b, out));
    x->depth--;
    return SF_OK;
}

static bool contains_bytes(const sf_jstr *in, const sf_jstr *s) {
    return !s->len || memmem(in->data, in->len, s->data, s->len) != NULL;
}

sf_code sf_jcontains(sf_jx *x, sf_jv item, sf_jv in, bool *out) {
    *out = false;
    if (in.kind == SF_JV_STR) {
        if (item.kind != SF_JV_STR)
            return SF_FAIL_AT(x->err, SF_INVALID, x->at, "'in' of text needs text, not '%s'",
                              sf_jtype_name(item));
        SF_TRY(sf_jx_step(x, in.u.s->len));
        *out = contains_bytes(in.u.s, item.u.s);
        return SF_OK;
    }
    if (in.kind == SF_JV_DICT || (in.kind == SF_JV_VIEW && in.u.view->of == SF_JVIEW_KEYS)) {
        const sf_jv *found;
        SF_TRY(sf_jv_find(x, in.kind == SF_JV_DICT ? in.u.dict : in.u.view->dict, item, &found));
        *out = found != NULL;
        return SF_OK;
    }
    if (in.kind == SF_JV_NS) return SF_FAIL_AT(x->err, SF_INVALID, x->at, "'Namespace' is not iterable");
    sf_jiter *it;
    SF_TRY(sf_jiter_open(x, in, &it));
    for (;;) {
        bool have;
        sf_jv v;
        SF_TRY(sf_jiter_next(x, it, &have, &v));
        if (!have) return SF_OK;
        SF_TRY(sf_jequal(x, v, item, out));
        if (*out) return SF_OK;
    }
}

sf_code sf_jcompare(sf_jx *x, int op, sf_jv a, sf_jv b, bool *out) {
    int cmp = 0;
    if (op == SF_JOP_IN || op == SF_JOP_NOTIN) {
        SF_TRY(sf_jcontains(x, a, b, out));
        *out ^= op == SF_JOP_NOTIN;
        return SF_OK;
    }
    if (op == SF_JOP_EQ || op == SF_JOP_NE) {
        SF_TRY(sf_jequal(x, a, b, out));
        *out ^= op == SF_JOP_NE;
        return SF_OK;
    }
    SF_TRY(sf_jorder(x, a, b, &cmp));
    bool eq = op == SF_JOP_LE || op == SF_JOP_GE;
    bool less = op == '<' || op == SF_JOP_LE;
    *out = cmp != 2 && ((less ? cmp < 0 : cmp > 0) || (eq && cmp == 0));
    return SF_OK;
}

static sf_code overflow(sf_jx *x) {
    return SF_FAIL_AT(x->err, SF_UNSUPPORTED, x->at, "integer past 64 bits");
}

static sf_code int_pow(sf_jx *x, int64_t base, int64_t exp, sf_jv *out) {
    if (exp < 0) {
        if (!base) return SF_FAIL_AT(x->err, SF_INVALID, x->at, "zero to a negative power");
        *out = sf_jv_float(pow((double)base, (double)exp));
        return SF_OK;
    }
    int64_t r = 1;
    for (; exp; exp >>= 1) {
        if (exp & 1 && __builtin_mul_overflow(r, base, &r)) return overflow(x);
        if (exp > 1 && __builtin_mul_overflow(base, base, &base)) return overflow(x);
    }
    *out = sf_jv_int(r);
    return SF_OK;
}

static sf_code int_binary(sf_jx *x, int op, int64_t a, int64_t b, sf_jv *out) {
    int64_t r = 0;
    bool over = false;
    if (op == SF_JOP_POW) return int_pow(x, a, b, out);
    if (op == '+') over = __builtin_add_overflow(a, b, &r);
    if (op == '-') over = __builtin_sub_overflow(a, b, &r);
    if (op == '*') over = __builtin_mul_overflow(a, b, &r);
    if (op == '/' || op == '%' || op == SF_JOP_FLOORDIV) {
        if (!b) return SF_FAIL_AT(x->err, SF_INVALID, x->at, "division by zero");
        over = a == INT64_MIN && b == -1;
        if (!over && op == '/') {
            *out = sf_jv_float((double)((long double)a / (long double)b));
            return SF_OK;
        }
        if (!over) {
            int64_t q = a / b, m = a % b;
            bool down = m && (m < 0) != (b < 0);
            r = op == '%' ? (down ? m + b : m) : q - down;
        }
    }
    if (over) return overflow(x);
    *out = sf_jv_int(r);
    return SF_OK;
}

static sf_code float_binary(sf_jx *x, int op, double a, double b, sf_jv *out) {
    double r = 0;
    if ((op == '/' || op == '%' || op == SF_JOP_FLOORDIV) && b == 0)
        return SF_FAIL_AT(x->err, SF_INVALID, x->at, "division by zero");
    if (op == '+') r = a + b;
    if (op == '-') r = a - b;
    if (op == '*') r = a * b;
    if (op == '/') r = a / b;
    if (op == '%' || op == SF_JOP_FLOORDIV) {
        double m = fmod(a, b);
        bool down = m != 0 && (m < 0) != (b < 0);
        double q = (a - m) / b - down, whole = floor(q);
        m = m != 0 ? m + (down ? b : 0) : copysign(0.0, b);
        q = q != 0 ? whole + (q - whole > 0.5) : copysign(0.0, a / b);
        r = op == '%' ? m : q;
    }
    if (op == SF_JOP_POW) {
        r = pow(a, b);
        if (isnan(r) && !isnan(a) && !isnan(b))
            return SF_FAIL_AT(x->err, SF_UNSUPPORTED, x->at, "complex number");
        if ((a == 0 && b < 0) || (isinf(r) && isfinite(a) && isfinite(b)))
            return SF_FAIL_AT(x->err, SF_INVALID, x->at, "power out of range");
    }
    *out = sf_jv_float(r);
    return SF_OK;
}

static sf_code concat_str(sf_jx *x, sf_jv a, sf_jv b, sf_jv *out) {
    bool safe = a.safe || b.safe;
    if (safe && !a.safe) SF_TRY(sf_jescape(x, a, &a));
    if (safe && !b.safe) SF_TRY(sf_jescape(x, b, &b));
    sf_jout o = {0};
    SF_TRY(sf_jout_str(x, &o, a.u.s));
    SF_TRY(sf_jout_str(x, &o, b.u.s));
    SF_TRY(sf_jout_take(x, &o, out));
    out->safe = safe;
    return SF_OK;
}

static sf_code concat_list(sf_jx *x, sf_jv a, sf_jv b, sf_jv *out) {
    SF_TRY(sf_jv_list(x, (sf_jkind)a.kind, a.u.list->n + b.u.list->n, out));
    for (size_t i = 0; i < a.u.list->n; i++)
        SF_TRY(sf_jv_push(x, *out, a.u.list->items[i]));
    for (size_t i = 0; i < b.u.list->n; i++)
        SF_TRY(sf_jv_push(x, *out, b.u.list->items[i]));
    return SF_OK;
}

static sf_code repeat(sf_jx *x, sf_jv v, int64_t times, sf_jv *out) {
    sf_jout o = {0};
    if (v.kind != SF_JV_STR) SF_TRY(sf_jv_list(x, (sf_jkind)v.kind, 0, out));
    if (v.kind == SF_JV_STR ? !v.u.s->len : !v.u.list->n) times = 0;
    for (int64_t k = 0; k < times; k++) {
        if (v.kind == SF_JV_STR)
            SF_TRY(sf_jout_str(x, &o, v.u.s));
        else
            for (size_t i = 0; i < v.u.list->n; i++)
                SF_TRY(sf_jv_push(x, *out, v.u.list->items[i]));
    }
    if (v.kind != SF_JV_STR) return SF_OK;
    SF_TRY(sf_jout_take(x, &o, out));
    out->safe = v.safe;
    return SF_OK;
}

static bool is_seq(sf_jv v) {
    return v.kind == SF_JV_STR || v.kind == SF_JV_LIST || v.kind == SF_JV_TUPLE;
}

sf_code sf_jbinary(sf_jx *x, int op, sf_jv a, sf_jv b, sf_jv *out) {
    if (op == '-' && (a.kind == SF_JV_VIEW || b.kind == SF_JV_VIEW))
        return SF_FAIL_AT(x->err, SF_UNSUPPORTED, x->at, "dictionary views as sets are not supported");
    if (op == '%' && a.kind == SF_JV_STR)
        return SF_FAIL_AT(x->err, SF_UNSUPPORTED, x->at, "'%%' formatting is not supported");
    if (a.kind == SF_JV_UNDEF) return fail_undefined(x, a);
    if (b.kind == SF_JV_UNDEF) return fail_undefined(x, b);
    if (is_int(a) && is_int(b)) return int_binary(x, op, as_int(a), as_int(b), out);
    if (sf_jv_is_num(a) && sf_jv_is_num(b)) return float_binary(x, op, as_float(a), as_float(b), out);
    if (op == '+' && a.kind == SF_JV_STR && b.kind == SF_JV_STR) return concat_str(x, a, b, out);
    if (op == '+' && a.kind == b.kind && is_seq(a)) return concat_list(x, a, b, out);
    if (op == '*' && is_seq(a) && is_int(b)) return repeat(x, a, as_int(b), out);
    if (op == '*' && is_seq(b) && is_int(a)) return repeat(x, b, as_int(a), out);
    return SF_FAIL_AT(x->err, SF_INVALID, x->at, "cannot apply '%c%s' to '%s' and '%s'",
                      op > 255 ? op >> 8 : op, op > 255 ? (char[]){(char)(op & 255), 0} : "",
                      sf_jtype_name(a), sf_jtype_name(b));
}

sf_code sf_junary(sf_jx *x, int op, sf_jv a, sf_jv *out) {
    if (a.kind == SF_JV_UNDEF) return fail_undefined(x, a);
    if (a.kind == SF_JV_FLOAT)
        *out = sf_jv_float(op == '-' ? -a.u.f : a.u.f);
    else if (is_int(a) && as_int(a) != INT64_MIN)
        *out = sf_jv_int(op == '-' ? -as_int(a) : as_int(a));
    else
        return SF_FAIL_AT(x->err, SF_INVALID, x->at, "cannot apply '%c' to '%s'", op, sf_jtype_name(a));
    return SF_OK;
}
