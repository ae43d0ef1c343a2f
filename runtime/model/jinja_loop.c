/* The loop variable of a for statement (jinja2's LoopContext). */
#include "model/jinja_eval_priv.h"

#include <string.h>

sf_code sf_jloop_next(sf_jx *x, sf_jloop *l, bool *have, sf_jv *out) {
    if (l->after.kind != SF_JV_MISSING) {
        *out = l->after;
        l->after = (sf_jv){0};
        *have = true;
    } else {
        SF_TRY(sf_jiter_next(x, l->it, have, out));
    }
    if (!*have) return SF_OK;
    l->index0++;
    l->before = l->current;
    l->current = *out;
    return SF_OK;
}

static sf_code peek(sf_jx *x, sf_jloop *l, bool *have) {
    *have = l->after.kind != SF_JV_MISSING;
    if (*have) return SF_OK;
    sf_jv v;
    SF_TRY(sf_jiter_next(x, l->it, have, &v));
    if (*have) l->after = v;
    return SF_OK;
}

/* Of a generator: what is left is fetched, once. */
sf_code sf_jloop_length(sf_jx *x, sf_jloop *l, int64_t *out) {
    if (l->length < 0 && sf_jhas_length(l->of)) SF_TRY(sf_jlength(x, l->of, &l->length));
    if (l->length < 0) {
        sf_jv rest;
        SF_TRY(sf_jiter_list(x, (sf_jv){.kind = SF_JV_ITER, .u.iter = l->it}, &rest));
        SF_TRY(sf_jiter_open(x, rest, &l->it));
        l->length = (int64_t)rest.u.list->n + l->index0 + 1 + (l->after.kind != SF_JV_MISSING);
    }
    *out = l->length;
    return SF_OK;
}

static sf_code loop_cycle(sf_jx *x, sf_jv self, const sf_jargs *a, sf_jv *out) {
    if (!a->n || a->n_kw) return SF_FAIL_AT(x->err, SF_INVALID, x->at, "loop.cycle needs items");
    *out = a->pos[(size_t)self.u.loop->index0 % a->n];
    return SF_OK;
}

static sf_code loop_changed(sf_jx *x, sf_jv self, const sf_jargs *a, sf_jv *out) {
    sf_jloop *l = self.u.loop;
    sf_jv now;
    bool same = false;
    SF_TRY(sf_jv_list(x, SF_JV_TUPLE, a->n, &now));
    for (size_t i = 0; i < a->n; i++)
        SF_TRY(sf_jv_push(x, now, a->pos[i]));
    if (l->changed.kind != SF_JV_MISSING) SF_TRY(sf_jequal(x, l->changed, now, &same));
    if (!same) l->changed = now;
    *out = sf_jv_bool(!same);
    return SF_OK;
}

static sf_code bound(sf_jx *x, const char *name, sf_jfn *fn, sf_jv self, sf_jv *out) {
    sf_jfunc *f;
    SF_TRY(sf_jx_get(x, sizeof *f, &f));
    *f = (sf_jfunc){.name = name, .fn = fn, .self = self};
    *out = (sf_jv){.kind = SF_JV_FUNC, .u.fn = f};
    return SF_OK;
}

sf_code sf_jloop_attr(sf_jx *x, sf_jloop *l, sf_jv self, const char *name, bool *found, sf_jv *out) {
    int64_t n;
    bool have;
    *found = true;
    if (!strcmp(name, "index")) {
        *out = sf_jv_int(l->index0 + 1);
    } else if (!strcmp(name, "index0")) {
        *out = sf_jv_int(l->index0);
    } else if (!strcmp(name, "first")) {
        *out = sf_jv_bool(l->index0 == 0);
    } else if (!strcmp(name, "last")) {
        SF_TRY(peek(x, l, &have));
        *out = sf_jv_bool(!have);
    } else if (!strcmp(name, "length")) {
        SF_TRY(sf_jloop_length(x, l, &n));
        *out = sf_jv_int(n);
    } else if (!strcmp(name, "revindex") || !strcmp(name, "revindex0")) {
        SF_TRY(sf_jloop_length(x, l, &n));
        *out = sf_jv_int(n - l->index0 - (name[8] == '0'));
    } else if (!strcmp(name, "previtem")) {
        *out = l->index0 ? l->before : sf_jv_undef("previtem");
    } else if (!strcmp(name, "nextitem")) {
        SF_TRY(peek(x, l, &have));
        *out = have ? l->after : sf_jv_undef("nextitem");
    } else if (!strcmp(name, "depth") || !strcmp(name, "depth0")) {
        *out = sf_jv_int(name[5] != '0');
    } else if (!strcmp(name, "cycle")) {
        return bound(x, "cycle", loop_cycle, self, out);
    } else if (!strcmp(name, "changed")) {
        return bound(x, "changed", loop_changed, self, out);
    } else {
        *found = false;
    }
    return SF_OK;
}
