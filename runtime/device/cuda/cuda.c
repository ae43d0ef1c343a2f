#include "device/cuda/cuda_priv.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/cuda/kv_layout.h"

/* sf_device is the first member */
static sf_cuda *of(sf_device *d) {
    return (sf_cuda *)(void *)d;
}
static const sf_cuda *of_const(const sf_device *d) {
    return (const sf_cuda *)(const void *)d;
}

/* ---- a pass ---- */

static sf_code queue(sf_cuda *d, const sf_cuda_flight *f, const sf_pass *pass, size_t used, sf_err *err) {
    sf_cu *cu = &d->cu;
    const CUstream s = d->gpu.stream;
    sf_cuda_shape *shape = sf_cuda_shape_find(d, pass->cls, pass->rows, pass->n_logits);
    if (!shape)
        return SF_FAIL(err, SF_INVALID, "no shape holds a pass of %d rows and %d logit rows", pass->rows,
                       pass->n_logits);
    SF_TRY(sf_cu_check(cu, cu->cuEventRecord(f->from, s), "cuEventRecord", NULL, SF_SRC, err));
    SF_TRY(sf_cu_check(cu, cu->cuMemcpyHtoDAsync(d->block, f->block, used, s),
                       "cuMemcpyHtoDAsync of the pass block", NULL, SF_SRC, err));
    SF_TRY(sf_cuda_shape_launch(d, shape, pass->rows, err));
    d->counts.copies++;
    if (pass->n_logits > 0) {
        const size_t bytes = (size_t)pass->n_logits * sizeof *f->results;
        SF_TRY(sf_cu_check(cu, cu->cuMemcpyDtoHAsync(f->results, d->results, bytes, s),
                           "cuMemcpyDtoHAsync of the results", NULL, SF_SRC, err));
        d->counts.copies++;
    }
    return sf_cu_check(cu, cu->cuEventRecord(f->to, s), "cuEventRecord", NULL, SF_SRC, err);
}

/* A pass may be fed by the one in flight before it, and by that alone. */
static sf_code check_flights(const sf_cuda *d, const sf_pass *pass, sf_err *err) {
    if (d->n_flights == SF_CUDA_FLIGHTS)
        return SF_FAIL(err, SF_INVALID, "%d passes are in flight, expected a sync before the next",
                       d->n_flights);
    const int before = d->n_flights > 0 ? d->flights[d->first_flight].pass->n_logits : 0;
    if (pass->n_fed == 0 || pass->n_fed == before) return SF_OK;
    return SF_FAIL(err, SF_INVALID, "a pass is fed by %d logit rows, the one in flight has %d", pass->n_fed,
                   before);
}

static sf_code cuda_launch(sf_device *base, const sf_pass *pass, sf_err *err) {
    sf_cuda *d = of(base);
    size_t used = 0;
    SF_TRY(check_flights(d, pass, err));
    sf_cuda_flight *f = d->flights + (d->first_flight + d->n_flights) % SF_CUDA_FLIGHTS;
    SF_TRY(sf_cuda_block_fill(&d->caps, base->plan, base->n_pages, pass, f->block, &used, err));
    d->kv_cache_page = -1;
    SF_TRY(queue(d, f, pass, used, err));
    f->pass = pass;
    d->n_flights++;
    d->counts.passes++;
    return SF_OK;
}

static sf_code cuda_sync(sf_device *base, double *us, sf_err *err) {
    sf_cuda *d = of(base);
    sf_cu *cu = &d->cu;
    const sf_cuda_flight *f = d->flights + d->first_flight;
    float ms = 0;
    if (us) *us = 0;
    if (d->n_flights == 0) return SF_OK;
    d->first_flight = (d->first_flight + 1) % SF_CUDA_FLIGHTS;
    d->n_flights--;
    d->counts.waits++;
    SF_TRY(sf_cu_check(cu, cu->cuEventSynchronize(f->to), "cuEventSynchronize of a pass", NULL, SF_SRC, err));
    SF_TRY(sf_cu_check(cu, cu->cuEventElapsedTime(&ms, f->from, f->to), "cuEventElapsedTime", NULL, SF_SRC,
                       err));
    if (us) *us = (double)ms * 1e3;
    memcpy(f->pass->out, f->results, (size_t)f->pass->n_logits * sizeof *f->results);
    return SF_OK;
}

/* ---- reading back ---- */

/* A page is read whole, all layers, and kept: tests read it position by position. */
static sf_code read_page(sf_cuda *d, int page, sf_err *err) {
    sf_cu *cu = &d->cu;
    for (int l = 0; l < d->base.plan->model.layers; l++) {
        char *to = (char *)d->kv_cache + d->kv_page_bytes * (size_t)l;
        const CUdeviceptr from = d->kv + d->kv_layer_bytes * (size_t)l + d->kv_page_bytes * (size_t)page;
        SF_TRY(sf_cu_check(cu, cu->cuMemcpyDtoHAsync(to, from, d->kv_page_bytes, d->gpu.stream),
                           "cuMemcpyDtoHAsync of a KV page", NULL, SF_SRC, err));
    }
    SF_TRY(sf_cu_check(cu, cu->cuStreamSynchronize(d->gpu.stream), "cuStreamSynchronize", NULL, SF_SRC, err));
    d->kv_cache_page = page;
    return SF_OK;
}

static sf_code cuda_kv_read(sf_device *base, int page, int offset, int layer, int kv_head, uint16_t *k,
                            uint16_t *v, sf_err *err) {
    sf_cuda *d = of(base);
    const sf_model_desc *m = &base->plan->model;
    if (page < 0 || page >= base->n_pages || offset < 0 || offset >= base->plan->page_size || layer < 0 ||
        layer >= m->layers || kv_head < 0 || kv_head >= m->kv_heads)
        return SF_FAIL(err, SF_INVALID, "no KV at page %d, offset %d, layer %d, head %d", page, offset, layer,
                       kv_head);
    if (d->kv_cache_page != page) SF_TRY(read_page(d, page, err));
    const uint16_t *from = d->kv_cache + d->kv_page_bytes / 2 * (size_t)layer;
    for (int i = 0; i < m->head_dim; i++) {
        k[i] = from[sf_cuda_kv_at(m->head_dim, kv_head, 0, offset, i)];
        v[i] = from[sf_cuda_kv_at(m->head_dim, kv_head, 1, offset, i)];
    }
    return SF_OK;
}

sf_code sf_cuda_weights_read(sf_device *base, size_t offset, void *to, size_t bytes, sf_err *err) {
    sf_cuda *d = of(base);
    return sf_cu_check(&d->cu, d->cu.cuMemcpyDtoH(to, d->weights + offset, bytes), "cuMemcpyDtoH", NULL,
                       SF_SRC, err);
}

sf_code sf_cuda_weights_write(sf_device *base, size_t offset, const void *from, size_t bytes, sf_err *err) {
    sf_cuda *d = of(base);
    return sf_cu_check(&d->cu, d->cu.cuMemcpyHtoD(d->weights + offset, from, bytes), "cuMemcpyHtoD", NULL,
                       SF_SRC, err);
}

/* ---- life ---- */

static void cuda_destroy(sf_device *base) {
    sf_cuda *d = base ? of(base) : NULL;
    if (!d) return;
    if (d->gpu.cu) {
        (void)d->cu.cuStreamSynchronize(d->gpu.stream); /* a pass may be under way over this memory */
        sf_cuda_shapes_close(d);
        sf_cuda_library_close(d);
        sf_cuda_stages_close(d);
        sf_cuda_memory_close(d);
        sf_cuda_kernels_close(d);
        sf_gpu_close(&d->gpu);
    }
    sf_nvrtc_close(&d->nvrtc);
    sf_cu_close(&d->cu);
    free(d);
}

const sf_device_ops sf_cuda_ops = {
    .launch = cuda_launch, .sync = cuda_sync, .kv_read = cuda_kv_read, .destroy = cuda_destroy};

static sf_code check_gpu(const sf_cuda *d, sf_err *err) {
    const sf_plan *p = d->base.plan;
    if (!p->arch || strcmp(p->arch, d->gpu.arch) != 0)
        return SF_FAIL(err, SF_UNSUPPORTED, "engine %s was built for %s, GPU %s is %s", p->engine,
                       p->arch ? p->arch : "no architecture", d->gpu.name, d->gpu.arch);
    return SF_OK;
}

static sf_code open_parts(sf_cuda *d, sf_err *err) {
    SF_TRY(sf_cu_open(&d->cu, err));
    SF_TRY(sf_gpu_open(&d->cu, d->cfg.ordinal, &d->gpu, err));
    SF_TRY(check_gpu(d, err));
    SF_TRY(sf_nvrtc_open(&d->nvrtc, err));
    SF_TRY(sf_cuda_kernels_open(d, err));
    SF_TRY(sf_cuda_memory_open(d, err));
    (void)snprintf(d->base.desc, sizeof d->base.desc, "cuda %s, %s, %d multiprocessors, driver %d.%d",
                   d->gpu.name, d->gpu.arch, d->gpu.sms, d->cu.version / 1000, d->cu.version % 1000 / 10);
    return SF_OK;
}

sf_code sf_cuda_open(const sf_plan *plan, const sf_cuda_config *cfg, sf_device **out, sf_err *err) {
    if (strcmp(plan->backend, "cuda") != 0)
        return SF_FAIL(err, SF_UNSUPPORTED, "the plan is for %s, this is the cuda backend", plan->backend);
    if (cfg->n_pages < 1 || cfg->threads < 1 || cfg->threads > SF_CUDA_PARTS_MAX)
        return SF_FAIL(err, SF_INVALID, "%d KV pages and %d threads, expected 1 or more and 1..%d",
                       cfg->n_pages, cfg->threads, SF_CUDA_PARTS_MAX);
    sf_cuda *d = calloc(1, sizeof *d);
    if (!d) return SF_FAIL(err, SF_NOMEM, "a device record needs %zu bytes", sizeof *d);
    d->base = (sf_device){.ops = &sf_cuda_ops, .plan = plan, .n_pages = cfg->n_pages, .feeds = true};
    d->cfg = *cfg;
    d->kv_cache_page = -1;
    const sf_code rc = open_parts(d, err);
    if (rc == SF_OK)
        *out = &d->base;
    else
        cuda_destroy(&d->base);
    return rc;
}

sf_code sf_cuda_ready(sf_device *base, const sf_weights *w, sf_err *err) {
    sf_cuda *d = of(base);
    SF_TRY(
        sf_cu_check(&d->cu, d->cu.cuCtxSynchronize(), "cuCtxSynchronize after loading", NULL, SF_SRC, err));
    sf_cuda_stages_close(d);
    d->loaded = w;
    const sf_code rc = sf_cuda_shapes_open(d, err);
    d->loaded = NULL;
    d->counts = (sf_cuda_counts){0};
    return rc;
}

const char *sf_cuda_identity(const sf_device *d) {
    return of_const(d)->identity;
}

sf_cuda_start sf_cuda_start_get(const sf_device *d) {
    return of_const(d)->start;
}

bool sf_cuda_shape_get(const sf_device *d, int i, sf_cuda_shape_info *out) {
    if (i < 0 || i >= of_const(d)->n_shapes) return false;
    *out = of_const(d)->shapes[i].info;
    return true;
}

void sf_cuda_force_eager(sf_device *d, bool eager) {
    of(d)->force_eager = eager;
}

sf_cuda_counts sf_cuda_counts_get(const sf_device *d) {
    return of_const(d)->counts;
}
