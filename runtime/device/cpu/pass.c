#include "device/cpu/cpu_priv.h"

#include <string.h>

/* The kernel that serves an op at this many rows; sf_cpu_check_plan saw that there is one. */
static sf_cpu_kernel_fn *route(const sf_cpu *d, const sf_op_desc *op, sf_class cls, int rows) {
    const sf_route *r = op->routes[cls];
    while (r->rows_max < rows)
        r++;
    return d->base.plan->kernels[r->kernel].cpu[d->isa];
}

static void prepare(sf_cpu *d) {
    const sf_plan *p = d->base.plan;
    const sf_pass *pass = &d->pass;
    for (int s = 0; s < pass->n_segs; s++) {
        const sf_segment *seg = pass->segs + s;
        for (int i = 0; i < seg->rows; i++)
            d->rows[seg->first_row + i] = (sf_cpu_row){.pos = seg->pos0 + i, .seg = s, .pages = seg->pages};
    }
    memcpy(d->buf[SF_BUF_TOKENS], pass->tokens, (size_t)pass->rows * sizeof *pass->tokens);
    for (int i = 0; i < p->n_ops; i++) {
        const int rows = p->ops[i].scope == SF_SCOPE_HEAD ? pass->n_logits : pass->rows;
        d->fn[i] = rows > 0 ? route(d, p->ops + i, pass->cls, rows) : NULL;
    }
}

static void run_op(const sf_cpu *d, int i, int layer, int part, int parts) {
    const sf_plan *p = d->base.plan;
    const sf_op_desc *op = p->ops + i;
    const bool head = op->scope == SF_SCOPE_HEAD;
    const void *const *w = d->weights;
    sf_cpu_args a = {
        .rows = head ? d->pass.n_logits : d->pass.rows,
        .in = d->buf[op->in],
        .out = d->buf[op->out],
        .weight = op->weight < 0 ? NULL : w[op->weight * p->model.layers + layer],
        .bias = op->bias < 0 ? NULL : w[op->bias * p->model.layers + layer],
        .gather = head ? d->pass.logit_row : NULL,
        .row = d->rows,
        .kv = d->kv + (size_t)layer * d->layer_bytes,
        .page_stride = d->page_bytes,
        .rope = d->rope,
        .samples = d->pass.samples,
        .results = d->pass.out,
        .scratch = d->scratch,
        .scratch_stride = d->scratch_stride,
    };
    if (a.rows > 0) d->fn[i](&a, part, parts);
}

/* Each part zeroes its share of every fresh page. */
static void zero_fresh(const sf_cpu *d, int part, int parts) {
    const size_t from = d->page_bytes * (size_t)part / (size_t)parts;
    const size_t to = d->page_bytes * (size_t)(part + 1) / (size_t)parts;
    for (int i = 0; i < d->pass.n_fresh; i++)
        memset(d->kv + (size_t)d->pass.fresh[i] * d->page_bytes + from, 0, to - from);
}

static void run_part(void *ctx, int part, int parts) {
    const sf_cpu *d = ctx;
    const sf_plan *p = d->base.plan;
    int first = 0, last; /* ops of the layers */
    zero_fresh(d, part, parts);
    for (; first < p->n_ops && p->ops[first].scope == SF_SCOPE_PRE; first++) {
        run_op(d, first, 0, part, parts);
        sf_pool_barrier(d->pool);
    }
    for (last = first; last < p->n_ops && p->ops[last].scope == SF_SCOPE_LAYER;)
        last++;
    for (int layer = 0; layer < p->model.layers; layer++) {
        for (int i = first; i < last; i++) {
            run_op(d, i, layer, part, parts);
            sf_pool_barrier(d->pool);
        }
    }
    if (d->pass.n_logits == 0) return;
    for (int i = last; i < p->n_ops; i++) {
        run_op(d, i, 0, part, parts);
        sf_pool_barrier(d->pool);
    }
}

void sf_cpu_run_pass(sf_cpu *d) {
    prepare(d);
    sf_pool_run(d->pool, run_part, d);
}
