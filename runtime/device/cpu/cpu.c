#include "device/cpu/cpu.h"

#include "base/progress.h"
#include "device/rope.h"
#include "device/cpu/cpu_priv.h"
#include "device/pass_check.h"
#include "model/weights.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static sf_code cpu_launch(sf_device *base, const sf_pass *pass, sf_err *err) {
    sf_cpu *d = (sf_cpu *)base;
    if (d->pending) return SF_FAIL(err, SF_INVALID, "a pass is in flight already");
    SF_TRY(sf_pass_check(base->plan, base->n_pages, pass, err));
    if (pass->n_fed > 0)
        return SF_FAIL(err, SF_INVALID, "a pass is fed by %d logit rows, and none is in flight", pass->n_fed);
    d->pass = *pass;
    d->pending = true;
    return SF_OK;
}

static sf_code cpu_sync(sf_device *base, double *us, sf_err *err) {
    sf_cpu *d = (sf_cpu *)base;
    if (!d->pending) return SF_FAIL(err, SF_INVALID, "no pass is in flight");
    const double start = sf_now_s();
    sf_cpu_run_pass(d);
    d->pending = false;
    if (us) *us = (sf_now_s() - start) * 1e6;
    return SF_OK;
}

static sf_code cpu_kv_read(sf_device *base, int page, int offset, int layer, int kv_head, uint16_t *k,
                           uint16_t *v, sf_err *err) {
    const sf_cpu *d = (const sf_cpu *)base;
    const sf_plan *p = base->plan;
    const int dim = p->model.head_dim;
    if (page < 0 || page >= base->n_pages || offset < 0 || offset >= p->page_size || layer < 0 ||
        layer >= p->model.layers || kv_head < 0 || kv_head >= p->model.kv_heads)
        return SF_FAIL(err, SF_INVALID, "no KV at page %d, offset %d, layer %d, head %d", page, offset, layer,
                       kv_head);
    const uint8_t *at = d->kv + (size_t)page * d->page_bytes + (size_t)layer * d->layer_bytes;
    const uint16_t *keys = (const uint16_t *)at + (size_t)kv_head * sf_cpu_kv_head_size(p->page_size, dim);
    const uint16_t *values = keys + sf_cpu_kv_k_size(p->page_size, dim);
    for (int i = 0; i < dim; i++) {
        k[i] = keys[sf_cpu_kv_k_at(dim, offset, i)];
        v[i] = values[sf_cpu_kv_v_at(p->page_size, offset, i)];
    }
    return SF_OK;
}

static void cpu_destroy(sf_device *base) {
    sf_cpu *d = (sf_cpu *)base;
    if (!d) return;
    sf_pool_destroy(d->pool);
    for (int i = 0; i < SF_BUF_COUNT; i++)
        free(d->buf[i]);
    free(d->weights);
    free(d->fn);
    free(d->rows);
    free(d->scratch);
    free(d->rope);
    free(d->kv);
    free(d);
}

static const sf_device_ops cpu_ops = {
    .launch = cpu_launch, .sync = cpu_sync, .kv_read = cpu_kv_read, .destroy = cpu_destroy};

/* count x size bytes on cache lines, large ones on large pages where the system lends them. Not cleared. */
static sf_code get_raw(const char *what, size_t count, size_t size, void *out, sf_err *err) {
    const size_t align = 64, huge = (size_t)2 << 20;
    size_t bytes;
    void *p = NULL;
    if (__builtin_mul_overflow(count, size, &bytes) || bytes > SIZE_MAX / 2)
        return SF_FAIL(err, SF_NOMEM, "%s would need %zu times %zu bytes", what, count, size);
    const size_t unit = bytes >= huge ? huge : align;
    bytes = bytes == 0 ? unit : (bytes + unit - 1) / unit * unit;
    p = aligned_alloc(unit, bytes);
    if (!p) return SF_FAIL(err, SF_NOMEM, "%s needs %zu bytes", what, bytes);
    if (unit == huge) (void)madvise(p, bytes, MADV_HUGEPAGE);
    memcpy(out, &p, sizeof p);
    return SF_OK;
}

static sf_code get(const char *what, size_t count, size_t size, void *out, sf_err *err) {
    void *p = NULL;
    SF_TRY(get_raw(what, count, size, &p, err));
    memset(p, 0, count * size);
    memcpy(out, &p, sizeof p);
    return SF_OK;
}

static size_t dtype_size(sf_dtype t) {
    return t == SF_BF16 ? 2 : 4;
}

static sf_code get_buffers(sf_cpu *d, sf_err *err) {
    const sf_plan *p = d->base.plan;
    for (int i = SF_BUF_NONE + 1; i < SF_BUF_COUNT; i++) {
        const sf_buf_desc *b = p->bufs + i;
        const int rows = b->logit_rows ? p->max_logit_rows : p->max_rows;
        SF_TRY(get(b->name ? b->name : "a buffer", (size_t)rows * (size_t)b->cols, dtype_size(b->dtype),
                   &d->buf[i], err));
    }
    return SF_OK;
}

static size_t scratch_bytes(const sf_plan *p) {
    size_t most = sf_cpu_scratch_attention(p->max_context, p->model.head_dim);
    const size_t sample = sf_cpu_scratch_sample(p->model.vocab);
    if (sample > most) most = sample;
    for (int i = 0; i < p->n_ops; i++) {
        const size_t gemm = p->ops[i].op == SF_OP_GEMM ? sf_cpu_scratch_gemm(p->ops[i].k) : 0;
        if (gemm > most) most = gemm;
    }
    return (most + 63) / 64 * 64 + 64; /* a line apart, so that parts share none */
}

static sf_code get_memory(sf_cpu *d, int threads, sf_err *err) {
    const sf_plan *p = d->base.plan;
    const size_t layers = (size_t)p->model.layers, heads = (size_t)p->model.kv_heads;
    d->layer_bytes = heads * sf_cpu_kv_head_size(p->page_size, p->model.head_dim) * sizeof(uint16_t);
    d->page_bytes = layers * d->layer_bytes;
    d->scratch_stride = scratch_bytes(p);
    /* left as it comes: a pass zeroes its fresh pages, and what is never used is never paged in */
    SF_TRY(get_raw("the KV pool", (size_t)d->base.n_pages, d->page_bytes, &d->kv, err));
    SF_TRY(get("the table of weights", (size_t)p->n_weights * layers, sizeof *d->weights, &d->weights, err));
    SF_TRY(get("the table of kernels", (size_t)p->n_ops, sizeof *d->fn, &d->fn, err));
    SF_TRY(get("the table of rows", (size_t)p->max_rows, sizeof *d->rows, &d->rows, err));
    SF_TRY(get_buffers(d, err));
    SF_TRY(get("scratch memory", (size_t)threads, d->scratch_stride, &d->scratch, err));
    return get("the rotary table", (size_t)p->max_context * (size_t)p->model.head_dim, sizeof *d->rope,
               &d->rope, err);
}

typedef struct rope_job {
    sf_cpu *d;
    sf_rope rope;
} rope_job;

static void rope_part(void *ctx, int part, int parts) {
    const rope_job *job = ctx;
    const sf_plan *p = job->d->base.plan;
    for (int pos = part; pos < p->max_context; pos += parts)
        sf_rope_row(&job->rope, pos, job->d->rope + (size_t)pos * (size_t)p->model.head_dim);
}

static void fill_rope(sf_cpu *d) {
    rope_job job = {.d = d};
    sf_rope_init(&d->base.plan->model, &job.rope);
    sf_pool_run(d->pool, rope_part, &job);
}

static sf_code open_parts(sf_cpu *d, const struct sf_weights *weights, const sf_cpu_config *cfg,
                          sf_err *err) {
    const sf_plan *plan = d->base.plan;
    SF_TRY(sf_cpu_isa_pick(plan, cfg->isa, &d->isa, err));
    SF_TRY(sf_pool_create(cfg->threads, &d->pool, err));
    SF_TRY(get_memory(d, cfg->threads, err));
    fill_rope(d);
    for (int i = 0; i < plan->n_weights; i++)
        for (int l = 0; l < plan->model.layers; l++)
            d->weights[i * plan->model.layers + l] =
                sf_weights_get(weights, i, plan->weights[i].per_layer ? l : 0);
    (void)snprintf(d->base.desc, sizeof d->base.desc, "cpu %s, %d thread%s", sf_isa_name(d->isa),
                   cfg->threads, cfg->threads == 1 ? "" : "s");
    return SF_OK;
}

sf_code sf_cpu_open(const sf_plan *plan, const struct sf_weights *weights, const sf_cpu_config *cfg,
                    sf_device **out, sf_err *err) {
    if (strcmp(plan->backend, "cpu") != 0)
        return SF_FAIL(err, SF_UNSUPPORTED, "the plan is for %s, this is the cpu backend", plan->backend);
    if (cfg->n_pages < 1)
        return SF_FAIL(err, SF_INVALID, "the KV pool has %d pages, expected 1 or more", cfg->n_pages);
    SF_TRY(sf_cpu_check_plan(plan, err));
    sf_cpu *d = calloc(1, sizeof *d);
    if (!d) return SF_FAIL(err, SF_NOMEM, "a device record needs %zu bytes", sizeof *d);
    d->base = (sf_device){.ops = &cpu_ops, .plan = plan, .n_pages = cfg->n_pages};
    const sf_code rc = open_parts(d, weights, cfg, err);
    if (rc == SF_OK)
        *out = &d->base;
    else
        cpu_destroy(&d->base);
    return rc;
}
