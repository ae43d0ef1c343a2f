/* Filters of sequences. Those that are generators in jinja2 are generators here: they run when asked for
 * their next item, have no length and can be walked once. */
#include "model/jinja_filters_priv.h"
#include "model/jinja_sort_priv.h"
#include "model/jinja_text_priv.h"

#include <stdlib.h>
#include <string.h>

static sf_code generator(sf_jx *x, sf_jiter proto, sf_jv *out) {
    sf_jiter *it;
    SF_TRY(sf_jx_get(x, sizeof *it, &it));
    *it = proto;
    *out = (sf_jv){.kind = SF_JV_ITER, .u.iter = it};
    return SF_OK;
}

/* The next item of what a generator walks, which is opened at the first call; falsy values count as empty. */
static sf_code source_next(sf_jx *x, sf_jiter *it, bool *have, sf_jv *out) {
    if (!it->in) {
        SF_TRY(sf_jtruth(x, it->of, have));
        if (!*have) it->of = sf_jv_undef("empty");
        SF_TRY(sf_jiter_open(x, it->of, &it->in));
    }
    return sf_jiter_next(x, it->in, have, out);
}

static sf_code map_next(sf_jx *x, sf_jiter *it, bool *have, sf_jv *out) {
    sf_jv v;
    SF_TRY(source_next(x, it, have, &v));
    if (!*have) return SF_OK;
    if (it->attr.kind != SF_JV_MISSING) return sf_jattr_path(x, v, it->attr, it->fallback, out);
    if (!it->args.n) return SF_FAIL_AT(x->err, SF_INVALID, x->at, "map needs a filter or an attribute");
    sf_jv name = it->args.pos[0];
    const sf_jfilter *f = name.kind == SF_JV_STR ? sf_jfilter_find(name.u.s->data, name.u.s->len) : NULL;
    if (!f) return SF_FAIL_AT(x->err, SF_UNSUPPORTED, x->at, "map: this filter is not supported");
    sf_jargs rest = it->args;
    rest.pos++;
    rest.n--;
    return sf_jfilter_call(x, f, v, &rest, out);
}

static sf_code f_map(sf_jx *x, sf_jv v, const sf_jv *s, const sf_jargs *raw, sf_jv *out) {
    (void)s;
    sf_jiter it = {.next = map_next, .of = v, .args = *raw};
    bool known = raw->n == 0;
    for (size_t k = 0; known && k < raw->n_kw; k++)
        if (!strcmp(raw->names[k], "attribute"))
            it.attr = raw->named[k];
        else if (!strcmp(raw->names[k], "default"))
            it.fallback = raw->named[k];
        else
            known = false;
    if (!known) it.attr = (sf_jv){0};
    return generator(x, it, out);
}

static sf_code select_next(sf_jx *x, sf_jiter *it, bool *have, sf_jv *out) {
    size_t skip = it->attr.kind != SF_JV_MISSING;
    for (;;) {
        sf_jv v;
        bool is;
        SF_TRY(source_next(x, it, have, out));
        if (!*have) return SF_OK;
        v = *out;
        if (skip) SF_TRY(sf_jattr_path(x, *out, it->attr, (sf_jv){0}, &v));
        if (it->args.n > skip) {
            sf_jv name = it->args.pos[skip];
            const sf_jtest *t = name.kind == SF_JV_STR ? sf_jtest_find(name.u.s->data, name.u.s->len) : NULL;
            if (!t) return SF_FAIL_AT(x->err, SF_UNSUPPORTED, x->at, "select: this test is not supported");
            sf_jargs rest = it->args;
            rest.pos += skip + 1;
            rest.n -= skip + 1;
            SF_TRY(sf_jtest_call(x, t, v, &rest, &is));
        } else {
            SF_TRY(sf_jtruth(x, v, &is));
        }
        if (is != it->negate) return SF_OK;
    }
}

static sf_code missing_attr(sf_jx *x, sf_jiter *it, bool *have, sf_jv *out) {
    SF_TRY(source_next(x, it, have, out));
    return *have ? SF_FAIL_AT(x->err, SF_INVALID, x->at, "missing attribute name") : SF_OK;
}

static sf_code select_from(sf_jx *x, sf_jv v, const sf_jargs *raw, bool negate, bool attr, sf_jv *out) {
    sf_jiter it = {.next = select_next, .of = v, .args = *raw, .negate = negate};
    if (attr && raw->n) it.attr = raw->pos[0];
    if (attr && !raw->n) it.next = missing_attr;
    return generator(x, it, out);
}

static sf_code f_select(sf_jx *x, sf_jv v, const sf_jv *s, const sf_jargs *raw, sf_jv *out) {
    return (void)s, select_from(x, v, raw, false, false, out);
}
static sf_code f_reject(sf_jx *x, sf_jv v, const sf_jv *s, const sf_jargs *raw, sf_jv *out) {
    return (void)s, select_from(x, v, raw, true, false, out);
}
static sf_code f_selectattr(sf_jx *x, sf_jv v, const sf_jv *s, const sf_jargs *raw, sf_jv *out) {
    return (void)s, select_from(x, v, raw, false, true, out);
}
static sf_code f_rejectattr(sf_jx *x, sf_jv v, const sf_jv *s, const sf_jargs *raw, sf_jv *out) {
    return (void)s, select_from(x, v, raw, true, true, out);
}

static sf_code f_first(sf_jx *x, sf_jv v, const sf_jv *s, const sf_jargs *raw, sf_jv *out) {
    (void)s;
    (void)raw;
    sf_jiter *it;
    bool have;
    SF_TRY(sf_jiter_open(x, v, &it));
    SF_TRY(sf_jiter_next(x, it, &have, out));
    if (!have) *out = sf_jv_undef("first of an empty sequence");
    return SF_OK;
}

static sf_code f_list(sf_jx *x, sf_jv v, const sf_jv *s, const sf_jargs *raw, sf_jv *out) {
    return (void)s, (void)raw, sf_jiter_list(x, v, out);
}

/* The items, last first. */
static sf_code reversed(sf_jx *x, sf_jv v, sf_jv *out) {
    SF_TRY(sf_jiter_list(x, v, out));
    sf_jlist *l = out->u.list;
    for (size_t i = 0; i < l->n / 2; i++) {
        sf_jv t = l->items[i];
        l->items[i] = l->items[l->n - 1 - i];
        l->items[l->n - 1 - i] = t;
    }
    return SF_OK;
}

static sf_code f_last(sf_jx *x, sf_jv v, const sf_jv *s, const sf_jargs *raw, sf_jv *out) {
    (void)s;
    (void)raw;
    sf_jv items;
    if (v.kind == SF_JV_ITER)
        return SF_FAIL_AT(x->err, SF_INVALID, x->at, "last of a generator: make it a list");
    SF_TRY(reversed(x, v, &items));
    *out = items.u.list->n ? items.u.list->items[0] : sf_jv_undef("last of an empty sequence");
    return SF_OK;
}

static sf_code f_reverse(sf_jx *x, sf_jv v, const sf_jv *s, const sf_jargs *raw, sf_jv *out) {
    (void)s;
    (void)raw;
    sf_jv items, whole[3] = {[2] = sf_jv_int(-1)};
    if (v.kind == SF_JV_STR) return sf_jslice(x, v, whole, out);
    SF_TRY(reversed(x, v, &items));
    *out = items;
    if (v.kind == SF_JV_ITER) return SF_OK;
    sf_jiter *it;
    SF_TRY(sf_jiter_open(x, items, &it));
    *out = (sf_jv){.kind = SF_JV_ITER, .u.iter = it};
    return SF_OK;
}

static sf_code attr_next(sf_jx *x, sf_jiter *it, bool *have, sf_jv *out) {
    sf_jv v;
    SF_TRY(sf_jiter_next(x, it->in, have, &v));
    return *have ? sf_jattr_path(x, v, it->attr, (sf_jv){0}, out) : SF_OK;
}

/* The items of v, or an attribute of each. */
static sf_code open_attr(sf_jx *x, sf_jv v, sf_jv attr, sf_jiter **out) {
    SF_TRY(sf_jiter_open(x, v, out));
    if (attr.kind == SF_JV_MISSING || attr.kind == SF_JV_NONE) return SF_OK;
    sf_jv gen;
    SF_TRY(generator(x, (sf_jiter){.next = attr_next, .in = *out, .attr = attr}, &gen));
    *out = gen.u.iter;
    return SF_OK;
}

static sf_code f_join(sf_jx *x, sf_jv v, const sf_jv *s, const sf_jargs *raw, sf_jv *out) {
    (void)raw;
    static const sf_jstr none = {"", NULL, 0, 0};
    sf_jv sep = sf_jv_of_str(&none);
    sf_jiter *it;
    SF_TRY(open_attr(x, v, s[1], &it));
    if (s[0].kind != SF_JV_MISSING) SF_TRY(sf_jv_to_str(x, s[0], &sep));
    return sf_jtext_join(x, sep.u.s, it, false, out);
}

static sf_code f_sum(sf_jx *x, sf_jv v, const sf_jv *s, const sf_jargs *raw, sf_jv *out) {
    (void)raw;
    sf_jiter *it;
    sf_jv total = s[1].kind == SF_JV_MISSING ? sf_jv_int(0) : s[1];
    SF_TRY(open_attr(x, v, s[0], &it));
    if (total.kind == SF_JV_STR) return SF_FAIL_AT(x->err, SF_INVALID, x->at, "sum of text");
    for (;;) {
        bool have;
        sf_jv item;
        SF_TRY(sf_jiter_next(x, it, &have, &item));
        if (!have) break;
        SF_TRY(sf_jbinary(x, '+', total, item, &total));
    }
    *out = total;
    return SF_OK;
}

static sf_code items_next(sf_jx *x, sf_jiter *it, bool *have, sf_jv *out) {
    if (!it->in) {
        sf_jv view = it->of;
        if (view.kind == SF_JV_DICT) {
            sf_jview *w;
            SF_TRY(sf_jx_get(x, sizeof *w, &w));
            *w = (sf_jview){it->of.u.dict, SF_JVIEW_ITEMS};
            view = (sf_jv){.kind = SF_JV_VIEW, .u.view = w};
        } else if (view.kind != SF_JV_UNDEF) {
            return SF_FAIL_AT(x->err, SF_INVALID, x->at, "items of '%s'", sf_jtype_name(view));
        }
        SF_TRY(sf_jiter_open(x, view, &it->in));
    }
    return sf_jiter_next(x, it->in, have, out);
}

static sf_code f_items(sf_jx *x, sf_jv v, const sf_jv *s, const sf_jargs *raw, sf_jv *out) {
    return (void)s, (void)raw, generator(x, (sf_jiter){.next = items_next, .of = v}, out);
}

/* args.pos[0] is the dictionary of keys seen; negate: case matters. */
static sf_code unique_next(sf_jx *x, sf_jiter *it, bool *have, sf_jv *out) {
    for (;;) {
        sf_jv key;
        const sf_jv *seen;
        if (!it->in) SF_TRY(sf_jiter_open(x, it->of, &it->in));
        SF_TRY(sf_jiter_next(x, it->in, have, out));
        if (!*have) return SF_OK;
        SF_TRY(sf_jsort_key(x, *out, it->attr, it->negate, &key));
        SF_TRY(sf_jv_find(x, it->args.pos[0].u.dict, key, &seen));
        if (seen) continue;
        return sf_jv_put(x, it->args.pos[0], key, sf_jv_none());
    }
}

static sf_code f_unique(sf_jx *x, sf_jv v, const sf_jv *s, const sf_jargs *raw, sf_jv *out) {
    (void)raw;
    sf_jiter it = {.next = unique_next, .of = v, .attr = s[1]};
    SF_TRY(sf_jarg_bool(x, s[0], false, &it.negate));
    SF_TRY(sf_jx_get(x, sizeof *it.args.pos, &it.args.pos));
    SF_TRY(sf_jv_dict(x, 0, it.args.pos));
    return generator(x, it, out);
}

static const sf_jfilter SEQ_FILTERS[] = {
    {"first", f_first, "", 0},
    {"last", f_last, "", 0},
    {"list", f_list, "", 0},
    {"reverse", f_reverse, "", 0},
    {"join", f_join, "d attribute", 0},
    {"sum", f_sum, "attribute start", 0},
    {"items", f_items, "", 0},
    {"unique", f_unique, "case_sensitive attribute", 0},
    {"map", f_map, NULL, 0},
    {"select", f_select, NULL, 0},
    {"reject", f_reject, NULL, 0},
    {"selectattr", f_selectattr, NULL, 0},
    {"rejectattr", f_rejectattr, NULL, 0},
    {"sort", sf_jfilter_sort, "reverse case_sensitive attribute", 0},
    {"dictsort", sf_jfilter_dictsort, "case_sensitive by reverse", 0},
    {"min", sf_jfilter_min, "case_sensitive attribute", 0},
    {"max", sf_jfilter_max, "case_sensitive attribute", 0},
};

const sf_jfilter *sf_jfilters_seq(size_t *n) {
    *n = sizeof SEQ_FILTERS / sizeof *SEQ_FILTERS;
    return SEQ_FILTERS;
}
