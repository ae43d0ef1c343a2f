#include "explain.h"

#include "cost.h"

#include <stdio.h>

static void put_gpu(sf_writer *w, const sf_planned *p) {
    sf_put(w, "  %d multiprocessors; weights in groups of 16-row tiles:", p->plan.sms);
    for (int i = 0; i < p->ops.n_weights; i++)
        if (p->ops.weights[i].tile) sf_put(w, " %s %d", p->ops.weights[i].name, p->ops.weights[i].tile);
    sf_put(w, "\n");
}

static void put_header(sf_writer *w, const sf_planned *p) {
    const sf_model_desc *m = &p->plan.model;
    const sf_machine *c = &p->in->machine;
    double weights = 0;
    for (int i = 0; i < p->ops.n_weights; i++)
        weights +=
            (double)sf_cost_weight_bytes(&p->ops.weights[i]) * (p->ops.weights[i].per_layer ? m->layers : 1);
    double kv = 4.0 * m->layers * m->kv_heads * m->head_dim; /* K and V, bf16 */
    sf_put(w, "%s: %s (%s) on %s (%s: %s)\n", p->plan.engine, m->name, p->in->files[0].name, c->name,
           p->in->files[1].name, p->plan.arch ? p->plan.arch : p->plan.isas);
    sf_put(
        w,
        "  %d layers, hidden %d, %d heads of %d over %d KV heads, intermediate %d, vocabulary %d, %s head\n",
        m->layers, m->hidden, m->heads, m->head_dim, m->kv_heads, m->intermediate, m->vocab,
        m->tied_embeddings ? "tied" : "untied");
    sf_put(w, "  weights %.1f MB, KV %.1f KB a position: %d pages of %d are %.1f MB; context %d\n",
           weights / 1e6, kv / 1e3, p->plan.kv_pages, p->plan.page_size,
           kv * p->plan.kv_pages * p->plan.page_size / 1e6, p->plan.max_context);
    sf_put(w, "  passes of up to %d rows, %d logit rows; window %d, policy %s\n", p->plan.max_rows,
           p->plan.max_logit_rows, p->plan.window, p->plan.policy);
    if (p->plan.arch) put_gpu(w, p);
    sf_put(w, "  measured %.4g GB/s, %.4g GFLOP/s fast, %.4g pinned: %s\n", c->bandwidth_gbs,
           c->gflops[SF_CLASS_FAST], c->gflops[SF_CLASS_PINNED], c->measured_source);
    sf_put(w, "  inputs %s\n  pinned %s\n", p->plan.gen_hash, p->plan.pinned_hash);
}

static void put_kernels(sf_writer *w, const sf_planned *p) {
    char buf[64];
    sf_put(w, "\nkernels\n");
    for (int i = 0; i < p->plan.n_kernels; i++) {
        const sf_planned_kernel *k = &p->kernels[i];
        sf_put(w, "  %s\n    %s:", p->plan.kernels[i].name, k->t->file);
        for (int j = 0; j < k->t->n_params; j++)
            sf_put(w, " %s=%s", k->t->params[j].name.text,
                   sf_param_text(&k->t->params[j], k->values[j], buf, sizeof buf));
        sf_put(w, "\n    order: %s\n", p->plan.kernels[i].order);
    }
    sf_put(w, "\nops and routes\n");
    for (int i = 0; i < p->ops.n; i++) {
        const sf_op_desc *op = &p->plan.ops[i];
        sf_put(w, "  %-14s %s\n", op->name, p->ops.ops[i].shape);
        for (int c = 0; c < SF_CLASS_COUNT; c++)
            for (int r = 0; r < op->n_routes[c]; r++)
                sf_put(w, "    %-6s rows %d..%d  %s\n", sf_class_name((sf_class)c),
                       r ? op->routes[c][r - 1].rows_max + 1 : 1, op->routes[c][r].rows_max,
                       sf_route_name(&p->plan, &op->routes[c][r]));
        if (op->library)
            sf_put(
                w,
                "    fast   rows %d..  %s, where it is there and faster; its copy of the weight: %.1f MB\n",
                op->library->rows_min, op->library->library,
                2.0 * op->n * op->k * sf_cost_launches(&p->plan.model, op) / 1e6);
    }
}

/* One cell: microseconds of all the op's launches in a pass, or the share of the FLOP rate it can reach. */
static void put_cell(sf_writer *w, const sf_planned *p, const sf_op_desc *op, sf_class cls, int rows,
                     bool share) {
    const sf_machine *mc = &p->in->machine;
    sf_cost c = sf_cost_op(mc, op, cls, sf_cost_rows(mc, op, rows));
    double us = c.us * sf_cost_launches(&p->plan.model, op);
    char buf[32];
    if (share)
        snprintf(buf, sizeof buf, "%.1f%%%s", 100 * c.peak_share, c.compute_bound ? "c" : "m");
    else
        snprintf(buf, sizeof buf, "%.*f", us < 100 ? 1 : 0, us);
    sf_put(w, " %9s", buf);
}

static void put_table(sf_writer *w, const sf_planned *p, sf_class cls, bool share) {
    const sf_machine *mc = &p->in->machine;
    sf_put(w, "\n%s: %s, by rows of the pass\n  %-14s", sf_class_name(cls),
           share ? "share of the FLOP rate that the roofline allows (m: memory bound, c: compute bound)"
                 : "expected microseconds, all layers, without the KV read",
           "op");
    for (int b = 0; b < mc->n_buckets; b++)
        sf_put(w, " %9d", mc->buckets[b]);
    sf_put(w, "\n");
    for (int i = 0; i < p->ops.n; i++) {
        sf_put(w, "  %-14s", p->plan.ops[i].name);
        for (int b = 0; b < mc->n_buckets; b++)
            put_cell(w, p, &p->plan.ops[i], cls, mc->buckets[b], share);
        sf_put(w, "\n");
    }
    if (share) return;
    sf_put(w, "  %-14s", "pass");
    for (int b = 0; b < mc->n_buckets; b++)
        sf_put(w, " %9.0f", p->plan.buckets[b].us[cls]);
    sf_put(w, "\n  %-14s", "rows/s");
    for (int b = 0; b < mc->n_buckets; b++)
        sf_put(w, " %9.0f", p->plan.buckets[b].rows_max * 1e6 / p->plan.buckets[b].us[cls]);
    sf_put(w, "\n");
}

void sf_explain(sf_writer *w, const sf_planned *p) {
    put_header(w, p);
    put_kernels(w, p);
    for (int c = SF_CLASS_COUNT; c-- > 0;) {
        put_table(w, p, (sf_class)c, false);
        put_table(w, p, (sf_class)c, true);
    }
}
