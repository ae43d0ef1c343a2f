/* Expressions and statements evaluated, with jinja2's scopes: for, with, macros, block sets, filter blocks
 * and generation blocks open one; if does not. */
#include "model/jinja_eval_priv.h"

#include <string.h>

sf_code sf_jenv_push(sf_jx *x, sf_jenv *up, sf_jenv **out) {
    SF_TRY(sf_jx_get(x, sizeof **out, out));
    (*out)->up = up;
    return SF_OK;
}

sf_code sf_jenv_set(sf_jx *x, sf_jenv *e, const char *name, sf_jv v) {
    for (size_t i = 0; i < e->n; i++) {
        if (strcmp(e->names[i], name) != 0) continue;
        e->vals[i] = v;
        return SF_OK;
    }
    if (e->n == e->cap) {
        size_t cap = e->cap ? e->cap * 2 : 4;
        const char **names;
        sf_jv *vals;
        SF_TRY(sf_jx_get(x, cap * sizeof *names, &names));
        SF_TRY(sf_jx_get(x, cap * sizeof *vals, &vals));
        if (e->n) {
            memcpy(names, e->names, e->n * sizeof *names);
            memcpy(vals, e->vals, e->n * sizeof *vals);
        }
        e->names = names;
        e->vals = vals;
        e->cap = cap;
    }
    e->names[e->n] = name;
    e->vals[e->n++] = v;
    return SF_OK;
}

sf_code sf_jenv_find(sf_jx *x, const char *name, sf_jv *out) {
    for (const sf_jenv *e = x->env; e; e = e->up)
        for (size_t i = 0; i < e->n; i++)
            if (!strcmp(e->names[i], name)) {
                *out = e->vals[i];
                return SF_OK;
            }
    if (sf_jglobal_find(name, out)) return SF_OK;
    static const char *const refused[] = {"lipsum", "cycler", "joiner"};
    for (size_t i = 0; i < 3; i++)
        if (!strcmp(refused[i], name))
            return SF_FAIL_AT(x->err, SF_UNSUPPORTED, x->at, "'%s' is not supported", name);
    *out = sf_jv_undef(name);
    return SF_OK;
}

static sf_code assign_parts(sf_jx *x, const sf_jnode *t, sf_jv v) {
    sf_jv items;
    SF_TRY(sf_jiter_list(x, v, &items));
    if (items.u.list->n != t->n)
        return SF_FAIL_AT(x->err, SF_INVALID, x->at, "%zu values for %zu names", items.u.list->n, t->n);
    for (size_t i = 0; i < t->n; i++)
        SF_TRY(sf_jassign(x, t->list[i], items.u.list->items[i]));
    return SF_OK;
}

sf_code sf_jassign(sf_jx *x, const sf_jnode *t, sf_jv v) {
    if (t->type == SF_JN_NAME) return sf_jenv_set(x, x->env, t->name, v);
    if (t->type == SF_JN_TUPLE) return assign_parts(x, t, v);
    sf_jv ns, key;
    SF_TRY(sf_jenv_find(x, t->name, &ns));
    if (ns.kind != SF_JV_NS) return SF_FAIL_AT(x->err, SF_INVALID, x->at, "'%s' is not a namespace", t->name);
    SF_TRY(sf_jv_str_borrow(x, t->attr, NULL, strlen(t->attr), &key));
    return sf_jv_put(x, ns, key, v);
}

static sf_code eval_args(sf_jx *x, const sf_jnode *n, sf_jargs *a) {
    *a = (sf_jargs){.n = n->n, .n_kw = n->n_kw, .names = n->kw_names};
    SF_TRY(sf_jx_get(x, n->n * sizeof *a->pos, &a->pos));
    SF_TRY(sf_jx_get(x, n->n_kw * sizeof *a->named, &a->named));
    for (size_t i = 0; i < n->n; i++)
        SF_TRY(sf_jeval(x, n->list[i], &a->pos[i]));
    for (size_t i = 0; i < n->n_kw; i++)
        SF_TRY(sf_jeval(x, n->kw[i], &a->named[i]));
    return SF_OK;
}

static sf_code eval_display(sf_jx *x, const sf_jnode *n, sf_jv *out) {
    sf_jv key, v;
    if (n->type == SF_JN_DICT) {
        SF_TRY(sf_jv_dict(x, n->n / 2, out));
        for (size_t i = 0; i + 1 < n->n; i += 2) {
            SF_TRY(sf_jeval(x, n->list[i], &key));
            SF_TRY(sf_jeval(x, n->list[i + 1], &v));
            SF_TRY(sf_jv_put(x, *out, key, v));
        }
        return SF_OK;
    }
    SF_TRY(sf_jv_list(x, n->type == SF_JN_LIST ? SF_JV_LIST : SF_JV_TUPLE, n->n, out));
    for (size_t i = 0; i < n->n; i++) {
        SF_TRY(sf_jeval(x, n->list[i], &v));
        SF_TRY(sf_jv_push(x, *out, v));
    }
    return SF_OK;
}

static sf_code eval_concat(sf_jx *x, const sf_jnode *n, sf_jv *out) {
    sf_jout o = {0};
    for (size_t i = 0; i < n->n; i++) {
        sf_jv v;
        SF_TRY(sf_jeval(x, n->list[i], &v));
        SF_TRY(sf_jv_print(x, &o, v));
    }
    return sf_jout_take(x, &o, out);
}

static sf_code eval_compare(sf_jx *x, const sf_jnode *n, sf_jv *out) {
    sf_jv left, right;
    bool is = true;
    SF_TRY(sf_jeval(x, n->a, &left));
    for (size_t i = 0; is && i < n->n; i++) {
        SF_TRY(sf_jeval(x, n->list[i]->a, &right));
        x->at = (sf_loc){x->at.file, n->list[i]->line, n->list[i]->col};
        SF_TRY(sf_jcompare(x, n->list[i]->op, left, right, &is));
        left = right;
    }
    *out = sf_jv_bool(is);
    return SF_OK;
}

static sf_code eval_truth(sf_jx *x, const sf_jnode *n, bool *out) {
    sf_jv v;
    SF_TRY(sf_jeval(x, n, &v));
    return sf_jtruth(x, v, out);
}

static sf_code eval_logic(sf_jx *x, const sf_jnode *n, sf_jv *out) {
    bool is;
    if (n->type == SF_JN_NOT) {
        SF_TRY(eval_truth(x, n->a, &is));
        *out = sf_jv_bool(!is);
        return SF_OK;
    }
    if (n->type == SF_JN_COND) {
        SF_TRY(eval_truth(x, n->b, &is));
        if (is) return sf_jeval(x, n->a, out);
        if (n->c) return sf_jeval(x, n->c, out);
        *out = sf_jv_undef("if-expression without else");
        return SF_OK;
    }
    SF_TRY(sf_jeval(x, n->a, out));
    SF_TRY(sf_jtruth(x, *out, &is));
    return is == (n->type == SF_JN_AND) ? sf_jeval(x, n->b, out) : SF_OK;
}

static sf_code eval_access(sf_jx *x, const sf_jnode *n, sf_jv *out) {
    sf_jv v, key, part[3] = {0};
    SF_TRY(sf_jeval(x, n->a, &v));
    if (n->type == SF_JN_ITEM) SF_TRY(sf_jeval(x, n->b, &key));
    if (n->type == SF_JN_SLICE)
        for (size_t i = 0; i < 3; i++)
            if (n->list[i]) SF_TRY(sf_jeval(x, n->list[i], &part[i]));
    x->at = (sf_loc){x->at.file, n->line, n->col};
    if (n->type == SF_JN_ATTR) return sf_jattr(x, v, n->name, out);
    return n->type == SF_JN_ITEM ? sf_jitem(x, v, key, out) : sf_jslice(x, v, part, out);
}

static sf_code eval_apply(sf_jx *x, const sf_jnode *n, sf_jv *out) {
    sf_jv v;
    sf_jargs args;
    bool is;
    SF_TRY(sf_jeval(x, n->a, &v));
    SF_TRY(eval_args(x, n, &args));
    x->at = (sf_loc){x->at.file, n->line, n->col};
    if (n->type == SF_JN_CALL) return sf_jcall(x, v, &args, out);
    if (n->type == SF_JN_FILTER) return sf_jfilter_call(x, n->def, v, &args, out);
    SF_TRY(sf_jtest_call(x, n->def, v, &args, &is));
    *out = sf_jv_bool(is);
    return SF_OK;
}

static sf_code eval_arith(sf_jx *x, const sf_jnode *n, sf_jv *out) {
    sf_jv a, b;
    SF_TRY(sf_jeval(x, n->a, &a));
    if (n->type == SF_JN_BINARY) SF_TRY(sf_jeval(x, n->b, &b));
    x->at = (sf_loc){x->at.file, n->line, n->col};
    return n->type == SF_JN_BINARY ? sf_jbinary(x, n->op, a, b, out) : sf_junary(x, n->op, a, out);
}

static sf_code eval_any(sf_jx *x, const sf_jnode *n, sf_jv *out) {
    switch (n->type) {
    case SF_JN_CONST:
        *out = n->value;
        return SF_OK;
    case SF_JN_NAME:
        return sf_jenv_find(x, n->name, out);
    case SF_JN_LIST:
    case SF_JN_TUPLE:
    case SF_JN_DICT:
        return eval_display(x, n, out);
    case SF_JN_ATTR:
    case SF_JN_ITEM:
    case SF_JN_SLICE:
        return eval_access(x, n, out);
    case SF_JN_CALL:
    case SF_JN_FILTER:
    case SF_JN_TEST:
        return eval_apply(x, n, out);
    case SF_JN_UNARY:
    case SF_JN_BINARY:
        return eval_arith(x, n, out);
    case SF_JN_NOT:
    case SF_JN_AND:
    case SF_JN_OR:
    case SF_JN_COND:
        return eval_logic(x, n, out);
    case SF_JN_CONCAT:
        return eval_concat(x, n, out);
    case SF_JN_COMPARE:
        return eval_compare(x, n, out);
    default:
        return SF_FAIL_AT(x->err, SF_UNSUPPORTED, x->at, "not an expression");
    }
}

sf_code sf_jeval(sf_jx *x, const sf_jnode *n, sf_jv *out) {
    x->at = (sf_loc){x->at.file, n->line, n->col};
    SF_TRY(sf_jx_step(x, 0));
    SF_TRY(sf_jx_enter(x));
    SF_TRY(eval_any(x, n, out));
    x->depth--;
    return SF_OK;
}
