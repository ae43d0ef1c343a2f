/* What one op of a pass takes. */
#include "device/cuda/cuda_priv.h"

#include <stdlib.h>

/* The shape's steps of one op, in order; returns how many. */
static int gather(const sf_cuda_shape *s, const sf_cuda_step *steps, int op, sf_cuda_step *out) {
    int n = 0;
    for (int i = 0; i < s->info.kernels; i++)
        if (s->ops[i] == op) out[n++] = steps[i];
    return n;
}

static sf_code time_steps(sf_cuda *d, const sf_cuda_step *steps, int n, int turns, double *us, sf_err *err) {
    sf_cuda_graph graph = {0};
    sf_cuda_graph_times t = {0};
    SF_TRY(sf_cuda_graph_capture(&d->gpu, steps, n, &graph, err));
    const sf_code rc = sf_cuda_graph_time(&d->gpu, &graph, steps, n, turns, &t, err);
    sf_cuda_graph_fini(&d->gpu, &graph);
    *us = t.graph_us / n;
    return rc;
}

sf_code sf_cuda_op_time_get(sf_device *base, const sf_pass *pass, int op, int turns, sf_cuda_op_time *out,
                            sf_err *err) {
    sf_cuda *d = (sf_cuda *)(void *)base;
    const sf_plan *p = base->plan;
    size_t used = 0;
    if (d->n_flights > 0 || op < 0 || op >= p->n_ops)
        return SF_FAIL(err, SF_INVALID, "op %d of %d, or a pass is queued", op, p->n_ops);
    SF_TRY(sf_cuda_block_fill(&d->caps, p, base->n_pages, pass, d->flights[0].block, &used, err));
    SF_TRY(sf_cu_check(&d->cu, d->cu.cuMemcpyHtoD(d->block, d->flights[0].block, used), "cuMemcpyHtoD", NULL,
                       SF_SRC, err));
    sf_cuda_shape *s = sf_cuda_shape_find(d, pass->cls, pass->rows, pass->n_logits);
    if (!s) return SF_FAIL(err, SF_INVALID, "no shape holds a pass of %d rows", pass->rows);
    sf_cuda_step *steps = calloc((size_t)s->info.kernels + 1, sizeof *steps);
    if (!steps) return SF_FAIL(err, SF_NOMEM, "no memory for %d launches", s->info.kernels);
    const int n = gather(s, sf_cuda_shape_steps(d, s, pass->rows), op, steps);
    *out = (sf_cuda_op_time){.op = p->ops[op].name, .launches = n};
    sf_code rc = SF_OK;
    if (n > 0) {
        out->kernel = steps[0].product ? p->ops[op].library->library : steps[0].kernel->name;
        rc = time_steps(d, steps, n, turns, &out->us, err);
    }
    free(steps);
    return rc;
}
