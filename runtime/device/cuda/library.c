/* Which ops of the fast class a library serves: its copies of their weights, and what was faster on this
 * machine. */
#include "device/cuda/cuda_priv.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/num.h"
#include "base/progress.h"

#define WORKSPACE_BYTES ((size_t)32 << 20) /* what cuBLAS itself takes on Hopper */
#define TURNS           3                  /* timed runs each way; the median counts */
#define MARGIN          0.99               /* of our own time; more is noise */
#define LAYERS_LEAST    2                  /* timed in turn; more, while their weights fit the L2 cache */

static size_t round_up(size_t v, size_t to) {
    return (v + to - 1) / to * to;
}

static const sf_library_route *route_of(const sf_cuda *d, const sf_cuda_offer *o) {
    return d->base.plan->ops[o->op].library;
}

static CUdeviceptr layer_copy(const sf_cuda_offer *o, int layer) {
    return o->copy + o->layer_bytes * (size_t)layer;
}

sf_cuda_step sf_cuda_offer_step(const sf_cuda *d, const sf_cuda_offer *o, const sf_cuda_step *own, int layer,
                                int rows) {
    const int finish = route_of(d, o)->finish;
    sf_cuda_step s = {.product = &o->product, .made = own->args, .rows = rows};
    s.made.weight = (const void *)(uintptr_t)layer_copy(o, layer);
    if (finish < 0) return s;
    s.kernel = d->kernels + finish;
    s.args =
        (sf_cuda_args){.block = own->args.block, .in = (void *)(uintptr_t)o->scratch, .out = own->args.out};
    s.made.out = (void *)(uintptr_t)o->scratch;
    return s;
}

/* The fewest rows of a pass that bucket b holds. */
static int fewest_rows(const sf_plan *p, int b) {
    return b > 0 ? p->buckets[b - 1].rows_max + 1 : 1;
}

/* ---- what it needs ---- */

static sf_code open_product(sf_cuda *d, sf_cuda_offer *o, sf_err *err) {
    const sf_op_desc *op = d->base.plan->ops + o->op;
    const sf_product_config cfg = {.n = op->n,
                                   .k = op->k,
                                   .rows_min = op->library->rows_min,
                                   .rows_max = d->base.plan->max_rows,
                                   .adds = op->library->adds,
                                   .has_bias = op->bias >= 0,
                                   .out_bf16 = op->library->finish >= 0,
                                   .workspace = d->library.workspace,
                                   .workspace_bytes = WORKSPACE_BYTES};
    return sf_product_open(&d->library.lt, d->library.handle, &cfg, &o->product, err);
}

static size_t scratch_bytes(const sf_cuda *d, const sf_op_desc *op) {
    return op->library->finish < 0 ? 0 : (size_t)d->base.plan->max_rows * (size_t)op->n * 2;
}

/* own: the op's steps, one a layer. */
static sf_code make_copy(sf_cuda *d, sf_cuda_offer *o, const sf_cuda_step *own, int layers, sf_err *err) {
    const sf_op_desc *op = d->base.plan->ops + o->op;
    sf_cu *cu = &d->cu;
    o->layer_bytes = round_up((size_t)op->n * (size_t)op->k * 2, 256);
    SF_TRY(sf_cu_check(cu, cu->cuMemAlloc(&o->copy, o->layer_bytes * (size_t)layers),
                       "cuMemAlloc of a library's weights", op->name, SF_SRC, err));
    if (op->library->finish >= 0)
        SF_TRY(sf_cu_check(cu, cu->cuMemAlloc(&o->scratch, scratch_bytes(d, op)),
                           "cuMemAlloc of a library's product", op->name, SF_SRC, err));
    for (int l = 0; l < layers; l++) {
        const sf_cuda_args args = {.in = own[l].args.weight, .out = (void *)(uintptr_t)layer_copy(o, l)};
        SF_TRY(sf_cuda_kernel_launch(&d->gpu, d->kernels + op->library->kernel, &args, err));
    }
    return SF_OK;
}

static void drop_copy(sf_cuda *d, sf_cuda_offer *o) {
    if (o->copy) d->cu.cuMemFree(o->copy);
    if (o->scratch) d->cu.cuMemFree(o->scratch);
    o->copy = o->scratch = 0;
}

/* ---- timing ---- */

/* Real weights stand in for activations: on zeros a GPU is faster than it will be. */
static sf_code fill_input(sf_cuda *d, const sf_op_desc *op, sf_err *err) {
    sf_cu *cu = &d->cu;
    const size_t bytes = (size_t)d->base.plan->max_rows * (size_t)op->k * 2;
    const sf_cuda_block block = {.rows = d->base.plan->max_rows};
    SF_TRY(
        sf_cu_check(cu, cu->cuMemcpyHtoD(d->block, &block, sizeof block), "cuMemcpyHtoD", NULL, SF_SRC, err));
    for (size_t at = 0; at < bytes; at += d->start.weight_bytes) {
        const size_t left = bytes - at, n = left < d->start.weight_bytes ? left : d->start.weight_bytes;
        SF_TRY(sf_cu_check(cu, cu->cuMemcpyDtoDAsync(d->buf[op->in] + at, d->weights, n, d->gpu.stream),
                           "cuMemcpyDtoDAsync", NULL, SF_SRC, err));
    }
    return SF_OK;
}

static sf_code clear(sf_cuda *d, sf_buf_id buf, sf_err *err) {
    const sf_buf_desc *b = d->base.plan->bufs + buf;
    const size_t bytes = (size_t)d->base.plan->max_rows * (size_t)b->cols * (b->dtype == SF_BF16 ? 2 : 4);
    return sf_cu_check(&d->cu, d->cu.cuMemsetD8Async(d->buf[buf], 0, bytes, d->gpu.stream), "cuMemsetD8Async",
                       NULL, SF_SRC, err);
}

/* Every way that a pass may ask for runs once: the library loads a kernel when it is used first. */
static sf_code run_all(sf_cuda *d, const sf_cuda_offer *o, const sf_cuda_step *own, sf_err *err) {
    const sf_product_config *c = &o->product.cfg;
    for (int rows = c->rows_min; rows <= c->rows_max; rows += SF_PRODUCT_ROWS) {
        const sf_cuda_step s = sf_cuda_offer_step(d, o, own, 0, rows);
        SF_TRY(sf_cuda_steps_launch(&d->gpu, &s, 1, err));
    }
    return SF_OK;
}

static sf_code time_bucket(sf_cuda *d, const sf_cuda_offer *o, const sf_cuda_step *own, int n, int rows,
                           sf_cuda_library_info *out, sf_err *err) {
    const sf_cuda_block block = {.rows = rows};
    sf_cuda_graph graph = {0};
    sf_cuda_graph_times t = {0};
    sf_cuda_step *served = calloc((size_t)n, sizeof *served);
    if (!served) return SF_FAIL(err, SF_NOMEM, "no memory for %d launches", n);
    for (int l = 0; l < n; l++)
        served[l] = sf_cuda_offer_step(d, o, own + l, l, rows);
    sf_code rc = sf_cu_check(&d->cu, d->cu.cuMemcpyHtoD(d->block, &block, sizeof block), "cuMemcpyHtoD", NULL,
                             SF_SRC, err);
    if (rc == SF_OK) rc = sf_cuda_graph_capture(&d->gpu, own, n, &graph, err);
    if (rc == SF_OK) rc = sf_cuda_graph_time(&d->gpu, &graph, served, n, TURNS, &t, err);
    sf_cuda_graph_fini(&d->gpu, &graph);
    free(served);
    const sf_op_desc *op = d->base.plan->ops + o->op;
    *out = (sf_cuda_library_info){.library = op->library->library,
                                  .op = op->name,
                                  .rows = rows,
                                  .own_us = t.graph_us / n,
                                  .library_us = t.eager_us / n,
                                  .used = t.eager_us < t.graph_us * MARGIN};
    return rc;
}

/* The shape's steps of one op, one a layer. */
static sf_code own_steps(sf_cuda *d, int op, int rows, sf_cuda_step **out, sf_err *err) {
    const sf_cuda_shape *s = sf_cuda_shape_find(d, SF_CLASS_FAST, rows, 0);
    int n = 0;
    *out = calloc((size_t)d->base.plan->model.layers, sizeof **out);
    if (!*out) return SF_FAIL(err, SF_NOMEM, "no memory for %d launches", d->base.plan->model.layers);
    for (int i = 0; s && i < s->info.kernels; i++)
        if (s->ops[i] == op) (*out)[n++] = s->steps[i];
    return SF_OK;
}

/* Layers timed in turn, so that no weight is in the L2 cache when its turn comes. */
static int layers_timed(const sf_cuda *d, const sf_cuda_offer *o) {
    const size_t out_of_l2 = 2 * (size_t)d->gpu.l2 / o->layer_bytes + 1;
    const int least = out_of_l2 > LAYERS_LEAST ? (int)out_of_l2 : LAYERS_LEAST;
    return sf_min_int(least, d->base.plan->model.layers);
}

static sf_code time_offer(sf_cuda *d, const sf_cuda_offer *o, int rows, sf_cuda_library_info *out,
                          sf_err *err) {
    sf_cuda_step *own = NULL;
    sf_code rc = own_steps(d, o->op, rows, &own, err);
    if (rc == SF_OK) rc = time_bucket(d, o, own, layers_timed(d, o), rows, out, err);
    free(own);
    return rc;
}

/* Copies the weights and runs everything once. */
static sf_code prepare(sf_cuda *d, sf_cuda_offer *o, sf_err *err) {
    const sf_plan *p = d->base.plan;
    const int rows_min = route_of(d, o)->rows_min;
    sf_cuda_step *own = NULL;
    if (fewest_rows(p, p->n_buckets - 1) < rows_min)
        return SF_FAIL(err, SF_UNSUPPORTED, "no row bucket lies at %d rows and more", rows_min);
    o->found = calloc((size_t)p->n_buckets, sizeof *o->found);
    if (!o->found) return SF_FAIL(err, SF_NOMEM, "no memory for %d row buckets", p->n_buckets);
    sf_code rc = own_steps(d, o->op, p->max_rows, &own, err);
    if (rc == SF_OK) rc = open_product(d, o, err);
    if (rc == SF_OK) rc = make_copy(d, o, own, p->model.layers, err);
    if (rc == SF_OK) rc = fill_input(d, p->ops + o->op, err);
    if (rc == SF_OK) rc = run_all(d, o, own, err);
    /* as under load, for which a GPU lowers its clocks, and not for all kernels alike */
    if (rc == SF_OK) rc = sf_cuda_steps_launch(&d->gpu, own, p->model.layers, err);
    free(own);
    return rc;
}

/* The first reason is the one to tell. */
static void give_up(sf_cuda *d, sf_cuda_offer *o, const sf_err *why) {
    drop_copy(d, o);
    o->failed = true;
    if (!d->library.why.msg[0]) d->library.why = *why;
}

/* The largest passes first: they load the GPU most, and matter most. */
static void compare(sf_cuda *d, sf_err *why) {
    const sf_plan *p = d->base.plan;
    for (int b = p->n_buckets - 1; b >= 0; b--)
        for (int i = 0; i < d->library.n && !d->cu.dead; i++) {
            sf_cuda_offer *o = d->library.offers + i;
            const int rows = p->buckets[b].rows_max;
            if (!o->copy || fewest_rows(p, b) < route_of(d, o)->rows_min) continue;
            if (time_offer(d, o, rows, o->found + o->n_found, why) == SF_OK)
                o->n_found++;
            else
                give_up(d, o, why);
        }
}

/* Leaves the buffers as they were. */
static sf_code restore(sf_cuda *d, const sf_cuda_offer *o, sf_err *why) {
    const sf_op_desc *op = d->base.plan->ops + o->op;
    SF_TRY(clear(d, op->in, why));
    return clear(d, op->out, why);
}

/* ---- what is kept ---- */

static bool is_served(const sf_cuda *d, int bucket) {
    for (int i = 0; i < d->n_shapes; i++)
        if (d->shapes[i].served && d->shapes[i].info.rows == bucket) return true;
    return false;
}

static void keep_served(sf_cuda *d, sf_cuda_offer *o) {
    const sf_plan *p = d->base.plan;
    bool used = false;
    for (int i = 0; i < o->n_found; i++) {
        o->found[i].used = o->found[i].used && o->copy && is_served(d, o->found[i].rows);
        used = used || o->found[i].used;
    }
    if (!used) {
        drop_copy(d, o);
        return;
    }
    d->start.library_version = d->library.lt.version;
    d->start.library_bytes += o->layer_bytes * (size_t)p->model.layers + scratch_bytes(d, p->ops + o->op);
}

static void tell_failed(sf_cuda *d) {
    char *note = d->start.library_note;
    const size_t size = sizeof d->start.library_note;
    size_t at = 0;
    for (int i = 0; i < d->library.n && at < size; i++) {
        const sf_cuda_offer *o = d->library.offers + i;
        if (o->failed)
            at +=
                (size_t)snprintf(note + at, size - at, "%s%s", at ? ", " : "", d->base.plan->ops[o->op].name);
    }
    if (at > 0 && at < size) snprintf(note + at, size - at, ": %.*s", (int)(size - at), d->library.why.msg);
}

void sf_cuda_library_keep(sf_cuda *d) {
    sf_cuda_library *l = &d->library;
    for (int i = 0; i < l->n; i++)
        keep_served(d, l->offers + i);
    if (d->start.library_version > 0) {
        d->start.library_bytes += WORKSPACE_BYTES;
    } else if (l->workspace) {
        d->cu.cuMemFree(l->workspace);
        l->workspace = 0;
    }
    tell_failed(d);
}

/* ---- life ---- */

static sf_code open_library(sf_cuda *d, sf_err *err) {
    sf_cuda_library *l = &d->library;
    sf_cu *cu = &d->cu;
    if (!l->lt.cublasLtCreate) SF_TRY(sf_cublaslt_open(&l->lt, err));
    SF_TRY(sf_cublaslt_check(&l->lt, l->lt.cublasLtCreate(&l->handle), "cublasLtCreate", SF_SRC, err));
    return sf_cu_check(cu, cu->cuMemAlloc(&l->workspace, WORKSPACE_BYTES),
                       "cuMemAlloc of a library's workspace", NULL, SF_SRC, err);
}

sf_code sf_cuda_library_open(sf_cuda *d, sf_err *err) {
    const double t0 = sf_now_s();
    sf_cuda_library *l = &d->library;
    sf_err why = {.msg = ""};
    sf_code rc = SF_OK;
    for (int i = 0; i < d->base.plan->n_ops && l->n < SF_CUDA_OFFERS_MAX; i++) {
        if (!d->base.plan->ops[i].library) continue;
        if (l->n == 0) rc = open_library(d, &why);
        sf_cuda_offer *o = l->offers + l->n++;
        o->op = i;
        if (rc != SF_OK || prepare(d, o, &why) != SF_OK) give_up(d, o, &why);
    }
    compare(d, &why);
    for (int i = 0; i < l->n && !d->cu.dead; i++)
        if (restore(d, l->offers + i, &why) != SF_OK) give_up(d, l->offers + i, &why);
    d->start.library_s = sf_now_s() - t0;
    if (!d->cu.dead) return SF_OK;
    return SF_FAIL(err, SF_DEVICE, "%.230s", why.msg);
}

void sf_cuda_library_close(sf_cuda *d) {
    sf_cuda_library *l = &d->library;
    for (int i = 0; i < l->n; i++) {
        drop_copy(d, l->offers + i);
        sf_product_close(&l->offers[i].product);
        free(l->offers[i].found);
    }
    if (l->workspace) d->cu.cuMemFree(l->workspace);
    if (l->handle) l->lt.cublasLtDestroy(l->handle);
    if (l->lt.lib) sf_cublaslt_close(&l->lt);
    *l = (sf_cuda_library){0};
}

const sf_cuda_offer *sf_cuda_offer_find(const sf_cuda *d, int op, int bucket) {
    for (int i = 0; i < d->library.n; i++) {
        const sf_cuda_offer *o = d->library.offers + i;
        for (int f = 0; o->op == op && o->copy && f < o->n_found; f++)
            if (o->found[f].rows == bucket && o->found[f].used) return o;
    }
    return NULL;
}

bool sf_cuda_library_get(const sf_device *base, int i, sf_cuda_library_info *out) {
    const sf_cuda *d = (const sf_cuda *)(const void *)base;
    for (int k = 0; k < d->library.n; i -= d->library.offers[k++].n_found) {
        const sf_cuda_offer *o = d->library.offers + k;
        if (i < 0 || i >= o->n_found) continue;
        *out = o->found[o->n_found - 1 - i];
        return true;
    }
    return false;
}

void sf_cuda_library_use(sf_device *base, bool use) {
    ((sf_cuda *)(void *)base)->library.unused = !use;
}
