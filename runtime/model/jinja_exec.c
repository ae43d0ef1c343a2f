/* Statements. */
#include "model/jinja_eval_priv.h"

#include <string.h>

static sf_code exec_scoped(sf_jx *x, const sf_jnode *body, sf_jflow *flow) {
    sf_jenv *outer = x->env;
    SF_TRY(sf_jenv_push(x, outer, &x->env));
    SF_TRY(sf_jexec(x, body, flow));
    x->env = outer;
    return SF_OK;
}

/* Runs body in a scope of its own and hands back what it wrote. */
static sf_code capture(sf_jx *x, const sf_jnode *body, sf_jflow *flow, sf_jv *out) {
    sf_jout *outer = x->out, mine = {0};
    x->out = &mine;
    SF_TRY(exec_scoped(x, body, flow));
    x->out = outer;
    return sf_jout_take(x, &mine, out);
}

/* Filters of a block: a chain whose innermost link has no operand. */
static sf_code filter_block(sf_jx *x, const sf_jnode *f, sf_jv *v) {
    if (!f) return SF_OK;
    SF_TRY(sf_jx_enter(x));
    SF_TRY(filter_block(x, f->a, v));
    sf_jnode link = *f;
    sf_jnode value = {.type = SF_JN_CONST, .line = f->line, .col = f->col, .value = *v};
    link.a = &value;
    SF_TRY(sf_jeval(x, &link, v));
    x->depth--;
    return SF_OK;
}

static sf_code exec_capture(sf_jx *x, const sf_jnode *n, sf_jflow *flow) {
    sf_jv v;
    SF_TRY(capture(x, n->body, flow, &v));
    if (*flow != SF_JFLOW_NEXT) return SF_OK;
    SF_TRY(filter_block(x, n->b, &v));
    if (n->type == SF_JN_SETBLOCK) return sf_jassign(x, n->a, v);
    if (v.kind != SF_JV_STR)
        return SF_FAIL_AT(x->err, SF_INVALID, x->at, "a filter block must give text, not '%s'",
                          sf_jtype_name(v));
    return sf_jv_print(x, x->out, v);
}

/* `for x in xs if cond`: evaluated when the loop asks for its next item, as jinja2 does. */
static sf_code next_chosen(sf_jx *x, sf_jiter *it, bool *have, sf_jv *out) {
    sf_jenv *outer = x->env;
    for (;;) {
        SF_TRY(sf_jiter_next(x, it->in, have, out));
        if (!*have) break;
        sf_jv v;
        bool is;
        SF_TRY(sf_jenv_push(x, it->env, &x->env));
        SF_TRY(sf_jassign(x, it->target, *out));
        SF_TRY(sf_jeval(x, it->cond, &v));
        SF_TRY(sf_jtruth(x, v, &is));
        x->env = outer;
        if (is) break;
    }
    x->env = outer;
    return SF_OK;
}

static sf_code open_loop(sf_jx *x, const sf_jnode *n, sf_jloop **out) {
    sf_jv of;
    sf_jloop *l;
    SF_TRY(sf_jeval(x, n->b, &of));
    SF_TRY(sf_jx_get(x, sizeof *l, &l));
    SF_TRY(sf_jiter_open(x, of, &l->it));
    l->of = of;
    l->index0 = -1;
    l->length = -1;
    *out = l;
    if (!n->d) return SF_OK;
    sf_jiter *it;
    SF_TRY(sf_jx_get(x, sizeof *it, &it));
    *it = (sf_jiter){.next = next_chosen, .in = l->it, .target = n->a, .cond = n->d, .env = x->env};
    l->it = it;
    l->of = (sf_jv){.kind = SF_JV_ITER, .u.iter = it};
    return SF_OK;
}

static sf_code exec_for(sf_jx *x, const sf_jnode *n, sf_jflow *flow) {
    sf_jenv *outer = x->env;
    sf_jloop *l;
    bool none = true;
    SF_TRY(open_loop(x, n, &l));
    const sf_jv loop = {.kind = SF_JV_LOOP, .u.loop = l};
    for (;;) {
        bool have;
        sf_jv item;
        sf_jflow inner = SF_JFLOW_NEXT;
        x->at = (sf_loc){x->at.file, n->line, n->col};
        SF_TRY(sf_jloop_next(x, l, &have, &item));
        if (!have) break;
        SF_TRY(sf_jenv_push(x, outer, &x->env));
        SF_TRY(sf_jenv_set(x, x->env, "loop", loop));
        SF_TRY(sf_jassign(x, n->a, item));
        SF_TRY(sf_jexec(x, n->body, &inner));
        x->env = outer;
        if (inner == SF_JFLOW_BREAK) break;
        if (inner == SF_JFLOW_NEXT) none = false; /* jinja2 runs else unless a body ran to its end */
    }
    x->env = outer;
    return none && n->c ? exec_scoped(x, n->c, flow) : SF_OK;
}

static sf_code exec_if(sf_jx *x, const sf_jnode *n, sf_jflow *flow) {
    sf_jv v;
    bool is;
    SF_TRY(sf_jeval(x, n->a, &v));
    SF_TRY(sf_jtruth(x, v, &is));
    if (is) return sf_jexec(x, n->b, flow);
    return n->c ? sf_jexec(x, n->c, flow) : SF_OK;
}

static sf_code exec_with(sf_jx *x, const sf_jnode *n, sf_jflow *flow) {
    sf_jenv *outer = x->env, *mine;
    SF_TRY(sf_jenv_push(x, outer, &mine));
    for (size_t i = 0; i + 1 < n->n; i += 2) {
        sf_jv v;
        x->env = outer;
        SF_TRY(sf_jeval(x, n->list[i + 1], &v));
        x->env = mine;
        SF_TRY(sf_jassign(x, n->list[i], v));
    }
    x->env = mine;
    SF_TRY(sf_jexec(x, n->body, flow));
    x->env = outer;
    return SF_OK;
}

static sf_code exec_macro(sf_jx *x, const sf_jnode *n) {
    sf_jfunc *f;
    SF_TRY(sf_jx_get(x, sizeof *f, &f));
    *f = (sf_jfunc){.name = n->name, .macro = n, .env = x->env};
    return sf_jenv_set(x, x->env, n->name, (sf_jv){.kind = SF_JV_FUNC, .u.fn = f});
}

static sf_code exec_body(sf_jx *x, const sf_jnode *n, sf_jflow *flow) {
    for (size_t i = 0; i < n->n && *flow == SF_JFLOW_NEXT; i++)
        SF_TRY(sf_jexec(x, n->list[i], flow));
    return SF_OK;
}

static sf_code exec_any(sf_jx *x, const sf_jnode *n, sf_jflow *flow) {
    sf_jv v;
    switch (n->type) {
    case SF_JN_BODY:
        return exec_body(x, n, flow);
    case SF_JN_DATA:
        return sf_jout_str(x, x->out, n->value.u.s);
    case SF_JN_PRINT:
        SF_TRY(sf_jeval(x, n->a, &v));
        return sf_jv_print(x, x->out, v);
    case SF_JN_IF:
        return exec_if(x, n, flow);
    case SF_JN_FOR:
        return exec_for(x, n, flow);
    case SF_JN_SET:
        SF_TRY(sf_jeval(x, n->b, &v));
        return sf_jassign(x, n->a, v);
    case SF_JN_SETBLOCK:
    case SF_JN_CAPTURE:
        return exec_capture(x, n, flow);
    case SF_JN_MACRO:
        return exec_macro(x, n);
    case SF_JN_WITH:
        return exec_with(x, n, flow);
    case SF_JN_SCOPE:
        return exec_scoped(x, n->body, flow);
    case SF_JN_BREAK:
        *flow = SF_JFLOW_BREAK;
        return SF_OK;
    case SF_JN_CONTINUE:
        *flow = SF_JFLOW_CONTINUE;
        return SF_OK;
    default:
        return SF_FAIL_AT(x->err, SF_UNSUPPORTED, x->at, "not a statement");
    }
}

sf_code sf_jexec(sf_jx *x, const sf_jnode *n, sf_jflow *flow) {
    x->at = (sf_loc){x->at.file, n->line, n->col};
    SF_TRY(sf_jx_step(x, 0));
    SF_TRY(sf_jx_enter(x));
    SF_TRY(exec_any(x, n, flow));
    x->depth--;
    return SF_OK;
}

/* Parameters that were not given: their default, evaluated in the macro's scope, or undefined. */
static sf_code macro_defaults(sf_jx *x, const sf_jnode *m, const sf_jv *given) {
    size_t first = m->n - m->n_kw;
    for (size_t i = 0; i < m->n; i++) {
        sf_jv v = given[i];
        if (v.kind == SF_JV_MISSING && i >= first)
            SF_TRY(sf_jeval(x, m->kw[i - first], &v));
        else if (v.kind == SF_JV_MISSING)
            v = sf_jv_undef(m->list[i]->name);
        SF_TRY(sf_jenv_set(x, x->env, m->list[i]->name, v));
    }
    return SF_OK;
}

/* varargs and kwargs exist for a macro that names them; others refuse extra arguments. */
static sf_code macro_extras(sf_jx *x, const sf_jnode *m, const sf_jargs *a, sf_jv *given) {
    sf_jv varargs, kwargs;
    if (a->n > m->n && !m->varargs)
        return SF_FAIL_AT(x->err, SF_INVALID, x->at, "macro '%s' takes %zu arguments, got %zu", m->name, m->n,
                          a->n);
    SF_TRY(sf_jv_list(x, SF_JV_TUPLE, 0, &varargs));
    SF_TRY(sf_jv_dict(x, 0, &kwargs));
    for (size_t i = m->n; i < a->n; i++)
        SF_TRY(sf_jv_push(x, varargs, a->pos[i]));
    for (size_t k = 0; k < a->n_kw; k++) {
        size_t i = a->n < m->n ? a->n : m->n;
        while (i < m->n && strcmp(m->list[i]->name, a->names[k]) != 0)
            i++;
        if (i < m->n) {
            given[i] = a->named[k];
            continue;
        }
        if (!m->kwargs)
            return SF_FAIL_AT(x->err, SF_INVALID, x->at, "macro '%s' takes no keyword '%s'", m->name,
                              a->names[k]);
        sf_jv key;
        SF_TRY(sf_jv_str_borrow(x, a->names[k], NULL, strlen(a->names[k]), &key));
        SF_TRY(sf_jv_put(x, kwargs, key, a->named[k]));
    }
    if (m->varargs) SF_TRY(sf_jenv_set(x, x->env, "varargs", varargs));
    return m->kwargs ? sf_jenv_set(x, x->env, "kwargs", kwargs) : SF_OK;
}

sf_code sf_jmacro_call(sf_jx *x, const sf_jfunc *f, const sf_jargs *a, sf_jv *out) {
    const sf_jnode *m = f->macro;
    sf_jenv *caller = x->env;
    sf_jflow flow = SF_JFLOW_NEXT;
    sf_jv *given;
    SF_TRY(sf_jx_get(x, m->n * sizeof *given, &given));
    for (size_t i = 0; i < m->n && i < a->n; i++)
        given[i] = a->pos[i];
    SF_TRY(sf_jenv_push(x, f->env, &x->env));
    SF_TRY(macro_extras(x, m, a, given));
    SF_TRY(macro_defaults(x, m, given));
    SF_TRY(capture(x, m->body, &flow, out));
    x->env = caller;
    return SF_OK;
}
