/* Calls: arguments, global functions, macros. */
#include "model/chat.h"
#include "model/jinja_eval_priv.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The index of a name among space-separated parameters, and their number. */
static size_t param_index(const char *params, const char *name, size_t *count) {
    size_t at = SIZE_MAX, n = 0;
    for (const char *p = params + (*params == '/'); *p;) {
        size_t len = strcspn(p, " ");
        if (name && strlen(name) == len && !strncmp(p, name, len)) at = n;
        n++;
        p += len + (p[len] == ' ');
    }
    *count = n;
    return at;
}

sf_code sf_jargs_bind(sf_jx *x, const sf_jargs *a, const char *what, const char *params, size_t min,
                      sf_jv slot[SF_JMAX_PARAMS]) {
    size_t count, given = a->n;
    memset(slot, 0, SF_JMAX_PARAMS * sizeof *slot);
    (void)param_index(params, NULL, &count);
    if (a->n > count)
        return SF_FAIL_AT(x->err, SF_INVALID, x->at, "%s takes at most %zu arguments, got %zu", what, count,
                          a->n);
    for (size_t i = 0; i < a->n; i++)
        slot[i] = a->pos[i];
    for (size_t k = 0; k < a->n_kw; k++) {
        size_t i = *params == '/' ? SIZE_MAX : param_index(params, a->names[k], &count);
        if (i == SIZE_MAX)
            return SF_FAIL_AT(x->err, SF_INVALID, x->at, "%s has no argument '%.60s'", what, a->names[k]);
        if (slot[i].kind != SF_JV_MISSING)
            return SF_FAIL_AT(x->err, SF_INVALID, x->at, "%s got argument '%.60s' twice", what, a->names[k]);
        slot[i] = a->named[k];
        given++;
    }
    for (size_t i = 0; i < min; i++)
        if (slot[i].kind == SF_JV_MISSING)
            return SF_FAIL_AT(x->err, SF_INVALID, x->at, "%s needs %zu arguments, got %zu", what, min, given);
    return SF_OK;
}

sf_code sf_jarg_int(sf_jx *x, sf_jv v, int64_t fallback, int64_t *out) {
    if (v.kind == SF_JV_MISSING || v.kind == SF_JV_NONE)
        *out = fallback;
    else if (v.kind == SF_JV_BOOL || v.kind == SF_JV_INT)
        *out = v.kind == SF_JV_BOOL ? v.u.b : v.u.i;
    else
        return SF_FAIL_AT(x->err, SF_INVALID, x->at, "argument must be an integer, not '%s'",
                          sf_jtype_name(v));
    return SF_OK;
}

sf_code sf_jarg_str(sf_jx *x, sf_jv v, const sf_jstr **out) {
    if (v.kind == SF_JV_MISSING || v.kind == SF_JV_NONE)
        *out = NULL;
    else if (v.kind == SF_JV_STR)
        *out = v.u.s;
    else
        return SF_FAIL_AT(x->err, SF_INVALID, x->at, "argument must be text, not '%s'", sf_jtype_name(v));
    return SF_OK;
}

sf_code sf_jarg_bool(sf_jx *x, sf_jv v, bool fallback, bool *out) {
    *out = fallback;
    return v.kind == SF_JV_MISSING ? SF_OK : sf_jtruth(x, v, out);
}

static sf_code call_raise(sf_jx *x, sf_jv self, const sf_jargs *a, sf_jv *out) {
    (void)self;
    (void)out;
    sf_jv slot[SF_JMAX_PARAMS], s;
    SF_TRY(sf_jargs_bind(x, a, "raise_exception", "message", 1, slot));
    SF_TRY(sf_jv_to_str(x, slot[0], &s));
    return SF_FAIL_AT(x->err, SF_INVALID, x->at, "%.*s", (int)(s.u.s->len < 300 ? s.u.s->len : 300),
                      s.u.s->data);
}

static sf_code call_range(sf_jx *x, sf_jv self, const sf_jargs *a, sf_jv *out) {
    enum { MAX_RANGE = 100000 }; /* the sandbox's */
    (void)self;
    sf_jv slot[SF_JMAX_PARAMS];
    int64_t v[3] = {0, 0, 1};
    SF_TRY(sf_jargs_bind(x, a, "range", "/start stop step", 1, slot));
    for (size_t i = 0; i < a->n; i++) {
        if (slot[i].kind == SF_JV_NONE) return SF_FAIL_AT(x->err, SF_INVALID, x->at, "range needs integers");
        SF_TRY(sf_jarg_int(x, slot[i], 0, &v[i]));
        if (v[i] > INT64_C(1) << 53 || v[i] < -(INT64_C(1) << 53))
            return SF_FAIL_AT(x->err, SF_UNSUPPORTED, x->at, "range bound too large");
    }
    if (a->n == 1) {
        v[1] = v[0];
        v[0] = 0;
    }
    if (!v[2]) return SF_FAIL_AT(x->err, SF_INVALID, x->at, "range step is zero");
    int64_t span = v[2] > 0 ? v[1] - v[0] : v[0] - v[1], stride = llabs(v[2]);
    int64_t n = span > 0 ? (span - 1) / stride + 1 : 0;
    if (n > MAX_RANGE) return SF_FAIL_AT(x->err, SF_FULL, x->at, "range of more than %d numbers", MAX_RANGE);
    sf_jrange *r;
    SF_TRY(sf_jx_get(x, sizeof *r, &r));
    *r = (sf_jrange){v[0], v[1], v[2], n};
    *out = (sf_jv){.kind = SF_JV_RANGE, .u.range = r};
    return SF_OK;
}

/* dict(...) and namespace(...): a mapping or pairs, then keywords. */
static sf_code make_dict(sf_jx *x, const sf_jargs *a, sf_jv *out) {
    SF_TRY(sf_jv_dict(x, a->n_kw, out));
    if (a->n > 1)
        return SF_FAIL_AT(x->err, SF_INVALID, x->at, "dict takes at most 1 argument, got %zu", a->n);
    if (a->n && a->pos[0].kind == SF_JV_DICT) {
        const sf_jdict *d = a->pos[0].u.dict;
        for (size_t i = 0; i < d->n; i++)
            SF_TRY(sf_jv_put(x, *out, d->keys[i], d->vals[i]));
    } else if (a->n) {
        sf_jv pairs, pair;
        SF_TRY(sf_jiter_list(x, a->pos[0], &pairs));
        for (size_t i = 0; i < pairs.u.list->n; i++) {
            SF_TRY(sf_jiter_list(x, pairs.u.list->items[i], &pair));
            if (pair.u.list->n != 2) return SF_FAIL_AT(x->err, SF_INVALID, x->at, "dict needs pairs");
            SF_TRY(sf_jv_put(x, *out, pair.u.list->items[0], pair.u.list->items[1]));
        }
    }
    for (size_t k = 0; k < a->n_kw; k++) {
        sf_jv key;
        SF_TRY(sf_jv_str_borrow(x, a->names[k], NULL, strlen(a->names[k]), &key));
        SF_TRY(sf_jv_put(x, *out, key, a->named[k]));
    }
    return SF_OK;
}

static sf_code call_dict(sf_jx *x, sf_jv self, const sf_jargs *a, sf_jv *out) {
    (void)self;
    return make_dict(x, a, out);
}

static sf_code call_namespace(sf_jx *x, sf_jv self, const sf_jargs *a, sf_jv *out) {
    (void)self;
    SF_TRY(make_dict(x, a, out));
    out->kind = SF_JV_NS;
    return SF_OK;
}

static bool leap(int y) {
    return (y % 4 == 0 && y % 100 != 0) || y % 400 == 0;
}

/* One directive of strftime for a date; NULL: needs more than a date, or unknown. */
static const char *date_part(char c, bool bare, const int d[3], char buf[32]) {
    static const char *const months[] = {"January",   "February", "March",    "April",
                                         "May",       "June",     "July",     "August",
                                         "September", "October",  "November", "December"};
    static const char *const days[] = {"Sunday",   "Monday", "Tuesday", "Wednesday",
                                       "Thursday", "Friday", "Saturday"};
    static const int before[] = {0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334};
    int y = d[0], m = d[1], day = d[2], yday = before[m - 1] + day + (m > 2 && leap(y));
    int p = y - 1, wday = (p * 365 + p / 4 - p / 100 + p / 400 + yday) % 7;
    const char *number = bare ? "%d" : "%02d";
    switch (c) {
    case 'Y':
        snprintf(buf, 32, "%d", y);
        return buf;
    case 'y':
        snprintf(buf, 32, number, y % 100);
        return buf;
    case 'm':
        snprintf(buf, 32, number, m);
        return buf;
    case 'd':
        snprintf(buf, 32, number, day);
        return buf;
    case 'e':
        snprintf(buf, 32, bare ? "%d" : "%2d", day);
        return buf;
    case 'j':
        snprintf(buf, 32, bare ? "%d" : "%03d", yday);
        return buf;
    case 'F':
        snprintf(buf, 32, "%d-%02d-%02d", y, m, day);
        return buf;
    case 'B':
        return months[m - 1];
    case 'b':
    case 'h':
        snprintf(buf, 32, "%.3s", months[m - 1]);
        return buf;
    case 'A':
        return days[wday];
    case 'a':
        snprintf(buf, 32, "%.3s", days[wday]);
        return buf;
    case '%':
        return "%";
    default:
        return NULL;
    }
}

static bool parse_date(const char *s, int d[3]) {
    if (strlen(s) != 10 || s[4] != '-' || s[7] != '-') return false;
    for (int i = 0; i < 10; i++)
        if (i != 4 && i != 7 && (s[i] < '0' || s[i] > '9')) return false;
    d[0] = (int)strtol(s, NULL, 10);
    d[1] = (int)strtol(s + 5, NULL, 10);
    d[2] = (int)strtol(s + 8, NULL, 10);
    static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    return d[0] >= 1000 && d[1] >= 1 && d[1] <= 12 && d[2] >= 1 &&
           d[2] <= days[d[1] - 1] + (d[1] == 2 && leap(d[0]));
}

bool sf_chat_date_valid(const char *s) {
    int d[3];
    return parse_date(s, d);
}

static sf_code call_strftime(sf_jx *x, sf_jv self, const sf_jargs *a, sf_jv *out) {
    (void)self;
    sf_jv slot[SF_JMAX_PARAMS];
    const sf_jstr *f;
    int d[3];
    char buf[32];
    sf_jout o = {0};
    SF_TRY(sf_jargs_bind(x, a, "strftime_now", "format", 1, slot));
    SF_TRY(sf_jarg_str(x, slot[0], &f));
    if (!f) return SF_FAIL_AT(x->err, SF_INVALID, x->at, "strftime_now needs a format");
    if (!x->date)
        return SF_FAIL_AT(x->err, SF_INVALID, x->at,
                          "the template asks for today's date: give one explicitly");
    if (!parse_date(x->date, d))
        return SF_FAIL_AT(x->err, SF_INVALID, x->at, "date '%.20s', expected YYYY-MM-DD", x->date);
    for (size_t i = 0; i < f->len; i++) {
        if (f->data[i] != '%' || i + 1 == f->len) {
            SF_TRY(sf_jout_add(x, &o, f->data + i, 1, f->plain ? f->plain + i : NULL, 0));
            continue;
        }
        bool bare = f->data[++i] == '-' && i + 1 < f->len;
        i += bare;
        const char *part = date_part(f->data[i], bare, d, buf);
        if (!part)
            return SF_FAIL_AT(x->err, SF_UNSUPPORTED, x->at, "strftime_now: '%%%c' is not supported",
                              f->data[i]);
        SF_TRY(sf_jout_add(x, &o, part, strlen(part), NULL, 0));
    }
    return sf_jout_take(x, &o, out);
}

bool sf_jglobal_find(const char *name, sf_jv *out) {
    static const sf_jfunc globals[] = {
        {.name = "range", .fn = call_range},           {.name = "dict", .fn = call_dict},
        {.name = "namespace", .fn = call_namespace},   {.name = "raise_exception", .fn = call_raise},
        {.name = "strftime_now", .fn = call_strftime},
    };
    for (size_t i = 0; i < sizeof globals / sizeof *globals; i++) {
        if (strcmp(globals[i].name, name) != 0) continue;
        *out = (sf_jv){.kind = SF_JV_FUNC, .u.fn = &globals[i]};
        return true;
    }
    return false;
}

sf_code sf_jcall(sf_jx *x, sf_jv fn, const sf_jargs *a, sf_jv *out) {
    if (fn.kind == SF_JV_UNDEF)
        return SF_FAIL_AT(x->err, SF_INVALID, x->at, "'%.100s' is undefined", fn.u.hint);
    if (fn.kind != SF_JV_FUNC)
        return SF_FAIL_AT(x->err, SF_INVALID, x->at, "'%s' cannot be called", sf_jtype_name(fn));
    const sf_jfunc *f = fn.u.fn;
    SF_TRY(sf_jx_enter(x));
    SF_TRY(f->fn ? f->fn(x, f->self, a, out) : sf_jmacro_call(x, f, a, out));
    x->depth--;
    return SF_OK;
}
