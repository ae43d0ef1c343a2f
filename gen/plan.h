/* The plan: which kernel serves which op at which row count, with names, expanded sources and hashes. */
#ifndef SF_GEN_PLAN_H
#define SF_GEN_PLAN_H

#include "inputs.h"
#include "ops.h"

#define SF_GEN_VERSION "1"
#define SF_KERNELS_MAX 256

/* A kernel's origin; the plan's descriptor table has the rest at the same index. */
typedef struct sf_planned_kernel {
    const sf_template *t;
    sf_value values[SF_PARAMS_MAX];
    int op;           /* the first op that it serves */
    const char *text; /* expanded source, without the head */
    size_t len;
} sf_planned_kernel;

typedef struct sf_planned {
    const sf_inputs *in;
    sf_ops ops;
    sf_plan plan;               /* complete but for the kernels' function pointers */
    sf_planned_kernel *kernels; /* [plan.n_kernels] */
} sf_planned;

/* The kernel's name, or "none". */
const char *sf_route_name(const sf_plan *p, const sf_route *r);

/* Plans. Everything lives in the arena. Errors: SF_INVALID (a row count that no template covers, a tuned
 * parameter that does not exist, two templates for the same rows), and the expander's. */
SF_CHECKED sf_code sf_planned_build(sf_arena *a, const sf_inputs *in, sf_planned **out, sf_err *err);

#endif
