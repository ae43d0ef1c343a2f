/* Tests: `x is name`. */
#include "model/jinja_text_priv.h"

#include <string.h>

static sf_code divides(sf_jx *x, sf_jv v, int64_t by, int64_t want, bool *out) {
    sf_jv rest;
    SF_TRY(sf_jbinary(x, '%', v, sf_jv_int(by), &rest));
    return sf_jequal(x, rest, sf_jv_int(want), out);
}

static sf_code is_odd(sf_jx *x, sf_jv v, sf_jv arg, bool *out) {
    return (void)arg, divides(x, v, 2, 1, out);
}
static sf_code is_even(sf_jx *x, sf_jv v, sf_jv arg, bool *out) {
    return (void)arg, divides(x, v, 2, 0, out);
}
static sf_code is_divisibleby(sf_jx *x, sf_jv v, sf_jv arg, bool *out) {
    sf_jv rest;
    SF_TRY(sf_jbinary(x, '%', v, arg, &rest));
    return sf_jequal(x, rest, sf_jv_int(0), out);
}

static sf_code is_true(sf_jx *x, sf_jv v, sf_jv arg, bool *out) {
    (void)x;
    (void)arg;
    *out = v.kind == SF_JV_BOOL && v.u.b;
    return SF_OK;
}
static sf_code is_false(sf_jx *x, sf_jv v, sf_jv arg, bool *out) {
    (void)x;
    (void)arg;
    *out = v.kind == SF_JV_BOOL && !v.u.b;
    return SF_OK;
}
static sf_code is_escaped(sf_jx *x, sf_jv v, sf_jv arg, bool *out) {
    (void)x;
    (void)arg;
    *out = v.kind == SF_JV_STR && v.safe;
    return SF_OK;
}

static sf_code is_case(sf_jx *x, sf_jv v, bool upper, bool *out) {
    sf_jv s;
    SF_TRY(sf_jv_to_str(x, v, &s));
    return sf_jtext_is_case(x, s.u.s, upper, out);
}
static sf_code is_lower(sf_jx *x, sf_jv v, sf_jv arg, bool *out) {
    return (void)arg, is_case(x, v, false, out);
}
static sf_code is_upper(sf_jx *x, sf_jv v, sf_jv arg, bool *out) {
    return (void)arg, is_case(x, v, true, out);
}

static sf_code is_filter(sf_jx *x, sf_jv v, sf_jv arg, bool *out) {
    (void)x;
    (void)arg;
    *out = v.kind == SF_JV_STR && sf_jfilter_find(v.u.s->data, v.u.s->len) != NULL;
    return SF_OK;
}
static sf_code is_test(sf_jx *x, sf_jv v, sf_jv arg, bool *out) {
    (void)x;
    (void)arg;
    *out = v.kind == SF_JV_STR && sf_jtest_find(v.u.s->data, v.u.s->len) != NULL;
    return SF_OK;
}

/* Identity: of singletons, small integers and objects. */
static sf_code is_sameas(sf_jx *x, sf_jv v, sf_jv arg, bool *out) {
    *out = false;
    if (v.kind != arg.kind) return SF_OK;
    bool small = v.kind == SF_JV_INT && v.u.i >= -5 && v.u.i <= 256;
    if (v.kind <= SF_JV_BOOL || small) return sf_jequal(x, v, arg, out);
    if (v.kind <= SF_JV_STR)
        return SF_FAIL_AT(x->err, SF_UNSUPPORTED, x->at, "'sameas' of '%s' is not supported",
                          sf_jtype_name(v));
    *out = v.u.iter == arg.u.iter;
    return SF_OK;
}

static sf_code is_eq(sf_jx *x, sf_jv v, sf_jv arg, bool *out) {
    return sf_jequal(x, v, arg, out);
}
static sf_code is_ne(sf_jx *x, sf_jv v, sf_jv arg, bool *out) {
    return sf_jcompare(x, SF_JOP_NE, v, arg, out);
}
static sf_code is_lt(sf_jx *x, sf_jv v, sf_jv arg, bool *out) {
    return sf_jcompare(x, '<', v, arg, out);
}
static sf_code is_gt(sf_jx *x, sf_jv v, sf_jv arg, bool *out) {
    return sf_jcompare(x, '>', v, arg, out);
}
static sf_code is_le(sf_jx *x, sf_jv v, sf_jv arg, bool *out) {
    return sf_jcompare(x, SF_JOP_LE, v, arg, out);
}
static sf_code is_ge(sf_jx *x, sf_jv v, sf_jv arg, bool *out) {
    return sf_jcompare(x, SF_JOP_GE, v, arg, out);
}
static sf_code is_in(sf_jx *x, sf_jv v, sf_jv arg, bool *out) {
    return sf_jcontains(x, v, arg, out);
}

/* Tests of the kind alone. */
enum {
    UNDEF = 1 << SF_JV_UNDEF,
    NUMBERS = 1 << SF_JV_BOOL | 1 << SF_JV_INT | 1 << SF_JV_FLOAT,
    SEQUENCES =
        UNDEF | 1 << SF_JV_STR | 1 << SF_JV_LIST | 1 << SF_JV_TUPLE | 1 << SF_JV_RANGE | 1 << SF_JV_DICT,
    ITERABLES = SEQUENCES | 1 << SF_JV_VIEW | 1 << SF_JV_ITER | 1 << SF_JV_LOOP,
    CALLABLES = UNDEF | 1 << SF_JV_LOOP | 1 << SF_JV_FUNC
};

static const sf_jtest TESTS[] = {
    {"odd", is_odd, 0, 0},
    {"even", is_even, 0, 0},
    {"divisibleby", is_divisibleby, 1, 0},
    {"defined", NULL, 0, ~(unsigned)UNDEF},
    {"undefined", NULL, 0, UNDEF},
    {"none", NULL, 0, 1 << SF_JV_NONE},
    {"boolean", NULL, 0, 1 << SF_JV_BOOL},
    {"true", is_true, 0, 0},
    {"false", is_false, 0, 0},
    {"integer", NULL, 0, 1 << SF_JV_INT},
    {"float", NULL, 0, 1 << SF_JV_FLOAT},
    {"number", NULL, 0, NUMBERS},
    {"string", NULL, 0, 1 << SF_JV_STR},
    {"mapping", NULL, 0, 1 << SF_JV_DICT},
    {"sequence", NULL, 0, SEQUENCES},
    {"iterable", NULL, 0, ITERABLES},
    {"callable", NULL, 0, CALLABLES},
    {"escaped", is_escaped, 0, 0},
    {"lower", is_lower, 0, 0},
    {"upper", is_upper, 0, 0},
    {"filter", is_filter, 0, 0},
    {"test", is_test, 0, 0},
    {"sameas", is_sameas, 1, 0},
    {"eq", is_eq, 1, 0},
    {"equalto", is_eq, 1, 0},
    {"==", is_eq, 1, 0},
    {"ne", is_ne, 1, 0},
    {"!=", is_ne, 1, 0},
    {"lt", is_lt, 1, 0},
    {"lessthan", is_lt, 1, 0},
    {"<", is_lt, 1, 0},
    {"gt", is_gt, 1, 0},
    {"greaterthan", is_gt, 1, 0},
    {">", is_gt, 1, 0},
    {"le", is_le, 1, 0},
    {"<=", is_le, 1, 0},
    {"ge", is_ge, 1, 0},
    {">=", is_ge, 1, 0},
    {"in", is_in, 1, 0},
};

const sf_jtest *sf_jtest_find(const char *name, size_t len) {
    for (size_t i = 0; i < sizeof TESTS / sizeof *TESTS; i++)
        if (strlen(TESTS[i].name) == len && !memcmp(TESTS[i].name, name, len)) return &TESTS[i];
    return NULL;
}

sf_code sf_jtest_call(sf_jx *x, const sf_jtest *t, sf_jv self, const sf_jargs *a, bool *out) {
    if (a->n != t->n_args || a->n_kw)
        return SF_FAIL_AT(x->err, SF_INVALID, x->at, "test '%s' takes %zu arguments, got %zu", t->name,
                          t->n_args, a->n + a->n_kw);
    *out = t->kinds >> self.kind & 1;
    if (!t->fn) return SF_OK;
    return t->fn(x, self, a->n ? a->pos[0] : (sf_jv){0}, out);
}
