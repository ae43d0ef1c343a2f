/* The shapes of passes: which launches make a pass of so many rows, captured as graphs and timed. */
#include "device/cuda/cuda_priv.h"

#include <stdlib.h>
#include <string.h>

#include "base/num.h"
#include "base/progress.h"

#define TURNS      5    /* timed runs of a shape each way; the median counts */
#define GAIN       0.98 /* of the graph's time, for less of which a library's part is launched one by one */
#define TIMED_ROWS 512  /* larger passes take so long that launching is nothing of it */

/* Row buckets are the plan's; logit rows use those up to the plan's limit. */
static int bucket_rows(const sf_plan *p, int i) {
    return p->buckets[i].rows_max;
}

static int logit_bucket(const sf_plan *p, int logits) {
    if (logits == 0) return 0;
    for (int i = 0; i < p->n_buckets; i++)
        if (bucket_rows(p, i) >= logits) return sf_min_int(bucket_rows(p, i), p->max_logit_rows);
    return p->max_logit_rows;
}

static const sf_cuda_kernel *route(const sf_cuda *d, const sf_op_desc *op, sf_class cls, int rows) {
    const sf_route *r = op->routes[cls];
    while (r->rows_max < rows)
        r++;
    return r->kernel < 0 ? NULL : d->kernels + r->kernel;
}

static CUdeviceptr weight_at(const sf_cuda *d, int slot, int layer) {
    if (slot < 0) return 0;
    const bool per_layer = d->base.plan->weights[slot].per_layer;
    return d->weights + sf_weights_offset(d->loaded, slot, per_layer ? layer : 0);
}

static void *pointer(CUdeviceptr p) {
    return (void *)(uintptr_t)p;
}

static CUdeviceptr extra_of(const sf_cuda *d, const sf_op_desc *op) {
    switch (op->op) {
    case SF_OP_GEMM:
        return d->maps[op->in];
    case SF_OP_ROPE_APPEND:
        return d->rope;
    case SF_OP_ATTENTION:
    case SF_OP_ATTENTION_LONG:
        return d->workspace;
    case SF_OP_SAMPLE:
        return d->results;
    case SF_OP_EMBED:
        return d->drawn;
    case SF_OP_RMSNORM:
    case SF_OP_COUNT:
        break;
    }
    return 0;
}

static void add_step(const sf_cuda *d, sf_cuda_shape *s, int index, int layer) {
    const sf_op_desc *op = d->base.plan->ops + index;
    const int rows = op->scope == SF_SCOPE_HEAD ? s->info.logits : s->info.rows;
    const sf_cuda_kernel *k = route(d, op, s->info.cls, rows);
    if (!k) return;
    const int most = k->launch.row_blocks > 0 ? k->launch.row_blocks * rows : k->launch.grid;
    s->ops[s->info.kernels] = index;
    s->steps[s->info.kernels++] = (sf_cuda_step){
        .kernel = k,
        .grid = sf_min_int(most, k->launch.grid),
        .args = {.block = pointer(d->block),
                 .in = pointer(d->buf[op->in]),
                 .out = pointer(op->op == SF_OP_SAMPLE ? d->drawn : d->buf[op->out]),
                 .weight = pointer(weight_at(d, op->weight, layer)),
                 .bias = pointer(weight_at(d, op->bias, layer)),
                 .kv = pointer(d->kv + d->kv_layer_bytes * (size_t)layer),
                 .extra = pointer(extra_of(d, op))},
    };
}

static sf_code add_steps(const sf_cuda *d, sf_cuda_shape *s, sf_err *err) {
    const sf_plan *p = d->base.plan;
    int first = 0, last;
    while (first < p->n_ops && p->ops[first].scope == SF_SCOPE_PRE)
        first++;
    for (last = first; last < p->n_ops && p->ops[last].scope == SF_SCOPE_LAYER;)
        last++;
    const size_t most = (size_t)p->n_ops * (size_t)p->model.layers + 1;
    s->steps = calloc(most, sizeof *s->steps);
    s->ops = calloc(most, sizeof *s->ops);
    if (!s->steps || !s->ops) return SF_FAIL(err, SF_NOMEM, "no memory for the launches of a pass");
    for (int i = 0; i < first; i++)
        add_step(d, s, i, 0);
    for (int layer = 0; layer < p->model.layers; layer++)
        for (int i = first; i < last; i++)
            add_step(d, s, i, layer);
    for (int i = last; i < p->n_ops && s->info.logits > 0; i++)
        add_step(d, s, i, 0);
    return SF_OK;
}

/* One shape per class, row bucket and number of logit rows: none, or a bucket up to the rows'. */
static sf_code list_shapes(sf_cuda *d, sf_err *err) {
    const sf_plan *p = d->base.plan;
    const size_t most = (size_t)SF_CLASS_COUNT * (size_t)p->n_buckets * (size_t)(p->n_buckets + 1);
    d->shapes = calloc(most, sizeof *d->shapes);
    if (!d->shapes) return SF_FAIL(err, SF_NOMEM, "no memory for %zu shapes of passes", most);
    for (int c = 0; c < SF_CLASS_COUNT; c++)
        for (int b = 0; b < p->n_buckets; b++)
            for (int l = -1, before = -1; l <= b; l++) {
                const int logits = l < 0 ? 0 : sf_min_int(bucket_rows(p, l), p->max_logit_rows);
                if (logits == before) continue;
                before = logits;
                d->shapes[d->n_shapes++].info = (sf_cuda_shape_info){
                    .cls = (sf_class)c, .rows = bucket_rows(p, b), .logits = logits, .graph = true};
            }
    for (int i = 0; i < d->n_shapes; i++)
        SF_TRY(add_steps(d, d->shapes + i, err));
    return SF_OK;
}

/* A pass to time with: its rows are sequences of one token, spread over the pool's pages. */
static sf_code fill_dummy(sf_cuda *d, int rows, int logits, sf_err *err) {
    const sf_plan *p = d->base.plan;
    int32_t *tokens = calloc((size_t)rows, sizeof *tokens), *pages = calloc((size_t)rows, sizeof *pages);
    int32_t *logit_row = calloc((size_t)rows, sizeof *logit_row);
    sf_segment *segs = calloc((size_t)rows, sizeof *segs);
    sf_sample *samples = calloc((size_t)rows, sizeof *samples);
    sf_code rc = SF_OK;
    size_t used = 0;
    if (!tokens || !pages || !logit_row || !segs || !samples) {
        rc = SF_FAIL(err, SF_NOMEM, "no memory for a pass of %d rows", rows);
        goto done;
    }
    for (int i = 0; i < rows; i++) {
        tokens[i] = i % p->model.vocab;
        pages[i] = i % d->base.n_pages;
        logit_row[i] = i;
        segs[i] = (sf_segment){SF_SEG_DECODE, i, 1, i / d->base.n_pages % p->page_size, pages + i};
        samples[i] = (sf_sample){.top_p = 1, .repetition_penalty = 1, .target = -1, .draw = true};
    }
    const sf_pass pass = {.rows = rows,
                          .tokens = tokens,
                          .n_segs = rows,
                          .segs = segs,
                          .n_logits = logits,
                          .logit_row = logit_row,
                          .samples = samples};
    rc = sf_cuda_block_fill(&d->caps, p, d->base.n_pages, &pass, d->flights[0].block, &used, err);
    if (rc == SF_OK)
        rc = sf_cu_check(&d->cu, d->cu.cuMemcpyHtoD(d->block, d->flights[0].block, used), "cuMemcpyHtoD",
                         NULL, SF_SRC, err);
done:
    free(tokens);
    free(pages);
    free(logit_row);
    free(segs);
    free(samples);
    return rc;
}

/* ---- what a library serves ---- */

/* The same launches, those of ops that a library serves faster in this bucket made by it. */
static sf_code serve(const sf_cuda *d, sf_cuda_shape *s, sf_err *err) {
    if (s->info.cls != SF_CLASS_FAST) return SF_OK;
    for (int i = 0; i < s->info.kernels; i++)
        s->info.library += sf_cuda_offer_find(d, s->ops[i], s->info.rows) != NULL;
    if (s->info.library == 0) return SF_OK;
    s->served = calloc((size_t)s->info.kernels, sizeof *s->served);
    if (!s->served) return SF_FAIL(err, SF_NOMEM, "no memory for the launches of a pass");
    memcpy(s->served, s->steps, (size_t)s->info.kernels * sizeof *s->served);
    for (int op = 0; op < d->base.plan->n_ops; op++) {
        const sf_cuda_offer *o = sf_cuda_offer_find(d, op, s->info.rows);
        for (int i = 0, layer = 0; o && i < s->info.kernels; i++)
            if (s->ops[i] == op) {
                s->served[i] = sf_cuda_offer_step(d, o, s->steps + i, layer++, s->info.rows);
                s->finishing += s->served[i].kernel != NULL;
            }
    }
    return SF_OK;
}

static void unserve(sf_cuda_shape *s) {
    free(s->served);
    s->served = NULL;
    s->info.library = 0;
}

static const sf_cuda_step *eager_steps(const sf_cuda *d, const sf_cuda_shape *s) {
    return s->served && !d->library.unused ? s->served : s->steps;
}

const sf_cuda_step *sf_cuda_shape_steps(const sf_cuda *d, sf_cuda_shape *s, int rows) {
    for (int i = 0; s->served && i < s->info.kernels; i++)
        s->served[i].rows = rows;
    return eager_steps(d, s);
}

/* ---- timing ---- */

static sf_code time_shape(sf_cuda *d, sf_cuda_shape *s, sf_err *err) {
    sf_cuda_graph_times t;
    SF_TRY(fill_dummy(d, s->info.rows, s->info.logits, err));
    SF_TRY(sf_cuda_graph_time(&d->gpu, &s->graph, eager_steps(d, s), s->info.kernels, TURNS, &t, err));
    s->info.timed = true;
    s->info.graph_us = t.graph_us;
    s->info.eager_us = t.eager_us;
    s->info.graph = t.graph_us * (s->served ? GAIN : 1) <= t.eager_us;
    return SF_OK;
}

/* The shapes of whole decode and verify passes are timed, the others follow them. */
static sf_code time_all(sf_cuda *d, sf_err *err) {
    for (int i = 0; i < d->n_shapes; i++) {
        sf_cuda_shape *s = d->shapes + i;
        if (s->info.rows <= TIMED_ROWS &&
            s->info.logits == sf_min_int(s->info.rows, d->base.plan->max_logit_rows))
            SF_TRY(time_shape(d, s, err));
    }
    for (int i = 0; i < d->n_shapes; i++) {
        sf_cuda_shape *s = d->shapes + i;
        for (int k = 0; k < d->n_shapes && !s->info.timed; k++) {
            const sf_cuda_shape_info *t = &d->shapes[k].info;
            if (t->timed && t->cls == s->info.cls && t->rows <= s->info.rows) s->info.graph = t->graph;
        }
        if (s->served && s->info.rows > TIMED_ROWS) s->info.graph = false; /* its ops were timed */
        if (s->info.graph) unserve(s);
    }
    return SF_OK;
}

sf_code sf_cuda_shapes_open(sf_cuda *d, sf_err *err) {
    const double t0 = sf_now_s();
    SF_TRY(list_shapes(d, err));
    for (int i = 0; i < d->n_shapes; i++) {
        sf_cuda_shape *s = d->shapes + i;
        SF_TRY(sf_cuda_graph_capture(&d->gpu, s->steps, s->info.kernels, &s->graph, err));
    }
    SF_TRY(sf_cuda_library_open(d, err));
    for (int i = 0; i < d->n_shapes; i++)
        SF_TRY(serve(d, d->shapes + i, err));
    SF_TRY(time_all(d, err));
    sf_cuda_library_keep(d);
    d->start.graphs = d->n_shapes;
    d->start.graphs_s = sf_now_s() - t0 - d->start.library_s;
    return SF_OK;
}

void sf_cuda_shapes_close(sf_cuda *d) {
    for (int i = 0; i < d->n_shapes; i++) {
        sf_cuda_graph_fini(&d->gpu, &d->shapes[i].graph);
        free(d->shapes[i].steps);
        free(d->shapes[i].served);
        free(d->shapes[i].ops);
    }
    free(d->shapes);
}

sf_cuda_shape *sf_cuda_shape_find(sf_cuda *d, sf_class cls, int rows, int logits) {
    const int wanted = logit_bucket(d->base.plan, logits);
    for (int i = 0; i < d->n_shapes; i++) {
        sf_cuda_shape *s = d->shapes + i;
        if (s->info.cls == cls && s->info.rows >= rows && s->info.logits == wanted) return s;
    }
    return NULL;
}

sf_code sf_cuda_shape_launch(sf_cuda *d, sf_cuda_shape *s, int rows, sf_err *err) {
    const bool graph = (s->served ? d->library.unused : s->info.graph) && !d->force_eager;
    const bool served = s->served && !d->library.unused;
    d->counts.launches += graph ? 1 : s->info.kernels + (served ? s->finishing : 0);
    d->counts.library += served ? s->info.library : 0;
    if (graph) return sf_cuda_graph_launch(&d->gpu, &s->graph, err);
    return sf_cuda_steps_launch(&d->gpu, sf_cuda_shape_steps(d, s, rows), s->info.kernels, err);
}
