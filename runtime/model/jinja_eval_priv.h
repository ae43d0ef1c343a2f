/* Rendering: the context of one call, scopes, and the operations that nodes, filters and methods share. */
#ifndef SF_MODEL_JINJA_EVAL_PRIV_H
#define SF_MODEL_JINJA_EVAL_PRIV_H

#include "model/jinja_ast_priv.h"

typedef struct sf_jenv { /* one scope */
    struct sf_jenv *up;
    const char **names; /* [n] */
    sf_jv *vals;        /* [n] */
    size_t n, cap;
} sf_jenv;

typedef struct sf_jx {
    sf_jarena arena;
    sf_loc at; /* of the node being evaluated */
    sf_err *err;
    uint64_t steps, max_steps; /* nodes, and bytes moved by the sixteen */
    size_t max_out;            /* bytes of any one string */
    int depth;
    sf_jenv *env;
    sf_jout *out;
    const char *date; /* YYYY-MM-DD or NULL */
} sf_jx;

SF_CHECKED sf_code sf_jx_get(sf_jx *x, size_t bytes, void *out); /* *(void **)out = zeroed memory */
SF_CHECKED sf_code sf_jx_step(sf_jx *x, uint64_t bytes);         /* counts work; SF_FULL past the limit */
SF_CHECKED sf_code sf_jx_enter(sf_jx *x);                        /* one level deeper; leave by x->depth-- */

SF_CHECKED sf_code sf_jeval(sf_jx *x, const sf_jnode *n, sf_jv *out);
typedef enum sf_jflow { SF_JFLOW_NEXT, SF_JFLOW_BREAK, SF_JFLOW_CONTINUE } sf_jflow;
SF_CHECKED sf_code sf_jexec(sf_jx *x, const sf_jnode *n, sf_jflow *flow);
SF_CHECKED sf_code sf_jassign(sf_jx *x, const sf_jnode *target, sf_jv v);

SF_CHECKED sf_code sf_jenv_push(sf_jx *x, sf_jenv *up, sf_jenv **out);
SF_CHECKED sf_code sf_jenv_set(sf_jx *x, sf_jenv *e, const char *name, sf_jv v);
SF_CHECKED sf_code sf_jenv_find(sf_jx *x, const char *name,
                                sf_jv *out); /* then the globals; else undefined */

/* Arguments of a call. */
typedef struct sf_jargs {
    sf_jv *pos; /* [n] */
    size_t n;
    const char *const *names; /* [n_kw] */
    sf_jv *named;             /* [n_kw] */
    size_t n_kw;
} sf_jargs;

enum { SF_JMAX_PARAMS = 6 };
/* Puts args into slots by the parameters' names ("a b c"; a leading '/': positional only), absent ones
 * MISSING. At least min must be there. */
SF_CHECKED sf_code sf_jargs_bind(sf_jx *x, const sf_jargs *a, const char *what, const char *params,
                                 size_t min, sf_jv slot[SF_JMAX_PARAMS]);
/* An argument with a default, of the type asked for; None counts as absent. */
SF_CHECKED sf_code sf_jarg_int(sf_jx *x, sf_jv v, int64_t fallback, int64_t *out);
SF_CHECKED sf_code sf_jarg_str(sf_jx *x, sf_jv v, const sf_jstr **out); /* NULL: absent */
SF_CHECKED sf_code sf_jarg_bool(sf_jx *x, sf_jv v, bool fallback, bool *out);

/* Functions as values: builtin, bound method or macro. */
typedef sf_code sf_jfn(sf_jx *x, sf_jv self, const sf_jargs *a, sf_jv *out);
typedef struct sf_jfunc {
    const char *name;
    sf_jfn *fn; /* NULL: a macro */
    sf_jv self;
    const sf_jnode *macro;
    sf_jenv *env; /* where the macro was defined */
} sf_jfunc;
SF_CHECKED sf_code sf_jcall(sf_jx *x, sf_jv fn, const sf_jargs *a, sf_jv *out);
bool sf_jglobal_find(const char *name, sf_jv *out); /* range, namespace, ... */
SF_CHECKED sf_code sf_jmethod_find(sf_jx *x, sf_jv self, const char *name, size_t len, bool *found,
                                   sf_jv *out);
SF_CHECKED sf_code sf_jmacro_call(sf_jx *x, const sf_jfunc *f, const sf_jargs *a, sf_jv *out);

typedef struct sf_jfilter {
    const char *name;
    sf_code (*fn)(sf_jx *x, sf_jv self, const sf_jv *slot, const sf_jargs *raw, sf_jv *out);
    const char *params; /* as in sf_jargs_bind; NULL: raw arguments */
    size_t min;
} sf_jfilter;
typedef struct sf_jtest {
    const char *name;
    sf_code (*fn)(sf_jx *x, sf_jv self, sf_jv arg, bool *out);
    size_t n_args;  /* exactly */
    unsigned kinds; /* where fn is NULL: the bits 1 << sf_jkind for which it holds */
} sf_jtest;
const sf_jfilter *sf_jfilter_find(const char *name, size_t len);
const sf_jtest *sf_jtest_find(const char *name, size_t len);
SF_CHECKED sf_code sf_jfilter_call(sf_jx *x, const sf_jfilter *f, sf_jv self, const sf_jargs *a, sf_jv *out);
SF_CHECKED sf_code sf_jtest_call(sf_jx *x, const sf_jtest *t, sf_jv self, const sf_jargs *a, bool *out);

/* Python's operations. */
SF_CHECKED sf_code sf_jtruth(sf_jx *x, sf_jv v, bool *out);
SF_CHECKED sf_code sf_jlength(sf_jx *x, sf_jv v, int64_t *out);
bool sf_jhas_length(sf_jv v);
SF_CHECKED sf_code sf_jequal(sf_jx *x, sf_jv a, sf_jv b, bool *out);
SF_CHECKED sf_code sf_jorder(sf_jx *x, sf_jv a, sf_jv b, int *out); /* -1, 0, 1; 2: NaN */
SF_CHECKED sf_code sf_jcompare(sf_jx *x, int op, sf_jv a, sf_jv b, bool *out);
SF_CHECKED sf_code sf_jcontains(sf_jx *x, sf_jv item, sf_jv in, bool *out);
SF_CHECKED sf_code sf_jbinary(sf_jx *x, int op, sf_jv a, sf_jv b, sf_jv *out);
SF_CHECKED sf_code sf_junary(sf_jx *x, int op, sf_jv a, sf_jv *out);
SF_CHECKED sf_code sf_jattr(sf_jx *x, sf_jv v, const char *name, sf_jv *out);
SF_CHECKED sf_code sf_jitem(sf_jx *x, sf_jv v, sf_jv key, sf_jv *out);
SF_CHECKED sf_code sf_jslice(sf_jx *x, sf_jv v, const sf_jv part[3], sf_jv *out);
SF_CHECKED sf_code sf_jescape(sf_jx *x, sf_jv v, sf_jv *out); /* to Markup */
const char *sf_jtype_name(sf_jv v);

/* Iteration. A generator's next is called by sf_jiter_next; everything else is walked by index. */
typedef struct sf_jiter {
    sf_code (*next)(sf_jx *x, struct sf_jiter *it, bool *have, sf_jv *out);
    sf_jv of;             /* what is walked */
    size_t pos;           /* items (bytes of a string) passed */
    struct sf_jiter *in;  /* generators: the source */
    const void *def;      /* map, select: filter or test */
    sf_jv attr, fallback; /* MISSING: none */
    sf_jargs args;
    const sf_jnode *target, *cond; /* a for statement's filter, evaluated in env */
    sf_jenv *env;
    bool negate;
} sf_jiter;
SF_CHECKED sf_code sf_jiter_open(sf_jx *x, sf_jv v, sf_jiter **out);
SF_CHECKED sf_code sf_jiter_next(sf_jx *x, sf_jiter *it, bool *have, sf_jv *out);
SF_CHECKED sf_code sf_jiter_list(sf_jx *x, sf_jv v, sf_jv *out); /* list(v) */

/* The loop variable. */
typedef struct sf_jloop {
    sf_jv of;
    sf_jiter *it;
    int64_t index0, length;                /* length -1: not known yet */
    sf_jv before, current, after, changed; /* MISSING: none */
} sf_jloop;
SF_CHECKED sf_code sf_jloop_next(sf_jx *x, sf_jloop *l, bool *have, sf_jv *out);
SF_CHECKED sf_code sf_jloop_attr(sf_jx *x, sf_jloop *l, sf_jv self, const char *name, bool *found,
                                 sf_jv *out);
SF_CHECKED sf_code sf_jloop_length(sf_jx *x, sf_jloop *l, int64_t *out);

#endif
