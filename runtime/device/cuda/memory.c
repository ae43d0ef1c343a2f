#include "device/cuda/cuda_priv.h"

#include <stdlib.h>

#include "device/rope.h"
#include "device/cuda/kv_layout.h"
#include "device/cuda/maps.h"

#define GIB (1024.0 * 1024 * 1024)

sf_code sf_cuda_get(sf_cuda *d, const char *what, size_t bytes, bool zero, CUdeviceptr *out, sf_err *err) {
    sf_cu *cu = &d->cu;
    size_t free_bytes = 0, total = 0;
    if (d->n_allocs == SF_CUDA_ALLOCS_MAX)
        return SF_FAIL(err, SF_FULL, "over %d pieces of GPU memory", SF_CUDA_ALLOCS_MAX);
    SF_TRY(sf_cu_check(cu, cu->cuMemGetInfo(&free_bytes, &total), "cuMemGetInfo", NULL, SF_SRC, err));
    const CUresult r = cu->cuMemAlloc(out, bytes > 0 ? bytes : 1);
    if (r == CUDA_ERROR_OUT_OF_MEMORY)
        return SF_FAIL(
            err, SF_NOMEM,
            "%s take%s %.2f GiB, GPU %s has %.2f of %.2f GiB free (KV pages: %d; --kv-pages lowers "
            "them)",
            what, what[0] == 't' ? "s" : "", (double)bytes / GIB, d->gpu.name, (double)free_bytes / GIB,
            (double)total / GIB, d->base.n_pages);
    SF_TRY(sf_cu_check(cu, r, "cuMemAlloc", what, SF_SRC, err));
    d->allocs[d->n_allocs++] = *out;
    d->counts.allocations++;
    if (!zero || bytes == 0) return SF_OK;
    return sf_cu_check(cu, cu->cuMemsetD8Async(*out, 0, bytes, d->gpu.stream), "cuMemsetD8Async", what,
                       SF_SRC, err);
}

static size_t dtype_size(sf_dtype t) {
    return t == SF_BF16 ? 2 : 4;
}

/* The tensor maps through which products read a bf16 buffer. */
static sf_code get_maps(sf_cuda *d, int buf, int rows, int cols, sf_err *err) {
    CUtensorMap maps[SF_CUDA_MAPS];
    SF_TRY(sf_cuda_get(d, "the tensor maps", sizeof maps, false, &d->maps[buf], err));
    SF_TRY(sf_cuda_maps_make(&d->cu, d->buf[buf], rows, cols, maps, err));
    return sf_cu_check(&d->cu, d->cu.cuMemcpyHtoD(d->maps[buf], maps, sizeof maps), "cuMemcpyHtoD", NULL,
                       SF_SRC, err);
}

static sf_code get_buffers(sf_cuda *d, sf_err *err) {
    const sf_plan *p = d->base.plan;
    for (int i = SF_BUF_NONE + 1; i < SF_BUF_COUNT; i++) {
        const sf_buf_desc *b = p->bufs + i;
        const int rows = b->logit_rows ? p->max_logit_rows : p->max_rows;
        const size_t bytes = (size_t)rows * (size_t)b->cols * dtype_size(b->dtype);
        SF_TRY(sf_cuda_get(d, "the activations", bytes, true, &d->buf[i], err));
        d->start.buffer_bytes += bytes;
        if (b->dtype == SF_BF16) SF_TRY(get_maps(d, i, rows, b->cols, err));
    }
    return SF_OK;
}

/* NULL: no memory. */
static float *rope_table(const sf_model_desc *m, int positions) {
    float *table = malloc((size_t)positions * (size_t)m->head_dim * sizeof *table);
    sf_rope rope;
    sf_rope_init(m, &rope);
    for (int pos = 0; table && pos < positions; pos++)
        sf_rope_row(&rope, pos, table + (size_t)pos * (size_t)m->head_dim);
    return table;
}

static sf_code get_rope(sf_cuda *d, sf_err *err) {
    const sf_plan *p = d->base.plan;
    const size_t row = (size_t)p->model.head_dim, bytes = (size_t)p->max_context * row * sizeof(float);
    float *table = rope_table(&p->model, p->max_context);
    if (!table)
        return SF_FAIL(err, SF_NOMEM, "no memory for %d positions of the rotary table", p->max_context);
    sf_code rc = sf_cuda_get(d, "the rotary table", bytes, false, &d->rope, err);
    if (rc == SF_OK)
        rc =
            sf_cu_check(&d->cu, d->cu.cuMemcpyHtoD(d->rope, table, bytes), "cuMemcpyHtoD", NULL, SF_SRC, err);
    free(table);
    d->start.buffer_bytes += bytes;
    return rc;
}

static sf_code get_kv(sf_cuda *d, sf_err *err) {
    const sf_model_desc *m = &d->base.plan->model;
    if (d->base.plan->page_size != SF_CUDA_KV_PAGE)
        return SF_FAIL(err, SF_UNSUPPORTED, "KV pages hold %d positions, expected %d",
                       d->base.plan->page_size, SF_CUDA_KV_PAGE);
    d->kv_page_bytes = sf_cuda_kv_page_bytes(m->kv_heads, m->head_dim);
    d->kv_layer_bytes = d->kv_page_bytes * (size_t)d->base.n_pages;
    d->start.kv_bytes = d->kv_layer_bytes * (size_t)m->layers;
    d->kv_cache = malloc(d->kv_page_bytes * (size_t)m->layers);
    if (!d->kv_cache) return SF_FAIL(err, SF_NOMEM, "no memory for a KV page");
    return sf_cuda_get(d, "the KV pool", d->start.kv_bytes, true, &d->kv, err);
}

static sf_code get_workspace(sf_cuda *d, sf_err *err) {
    size_t most = 0;
    for (int i = 0; i < d->base.plan->n_kernels; i++)
        if (d->kernels[i].launch.workspace > most) most = d->kernels[i].launch.workspace;
    d->start.buffer_bytes += most;
    return sf_cuda_get(d, "the attention's partial results", most, true, &d->workspace, err);
}

static sf_code get_pinned(sf_cuda *d, size_t bytes, void *out, sf_err *err) {
    d->counts.allocations++;
    return sf_cu_check(&d->cu, d->cu.cuMemHostAlloc(out, bytes, 0), "cuMemHostAlloc", NULL, SF_SRC, err);
}

static sf_code flight_open(sf_cuda *d, sf_cuda_flight *f, sf_err *err) {
    sf_cu *cu = &d->cu;
    const size_t results = (size_t)d->base.plan->max_logit_rows * sizeof *f->results;
    SF_TRY(get_pinned(d, d->caps.bytes, &f->block, err));
    SF_TRY(get_pinned(d, results, &f->results, err));
    SF_TRY(
        sf_cu_check(cu, cu->cuEventCreate(&f->from, CU_EVENT_DEFAULT), "cuEventCreate", NULL, SF_SRC, err));
    return sf_cu_check(cu, cu->cuEventCreate(&f->to, CU_EVENT_DEFAULT), "cuEventCreate", NULL, SF_SRC, err);
}

sf_code sf_cuda_memory_open(sf_cuda *d, sf_err *err) {
    const sf_plan *p = d->base.plan;
    const size_t results = (size_t)p->max_logit_rows * sizeof(sf_row_out);
    SF_TRY(sf_cuda_block_caps_of(p, d->base.n_pages, d->cfg.max_seqs, &d->caps, err));
    SF_TRY(get_buffers(d, err));
    SF_TRY(get_rope(d, err));
    SF_TRY(get_workspace(d, err));
    SF_TRY(sf_cuda_get(d, "the pass block", d->caps.bytes, true, &d->block, err));
    SF_TRY(sf_cuda_get(d, "the results", results, true, &d->results, err));
    SF_TRY(sf_cuda_get(d, "the drawn tokens", (size_t)p->max_logit_rows * sizeof(int32_t), true, &d->drawn,
                       err));
    for (int i = 0; i < SF_CUDA_FLIGHTS; i++)
        SF_TRY(flight_open(d, d->flights + i, err));
    return get_kv(d, err);
}

void sf_cuda_memory_close(sf_cuda *d) {
    sf_cu *cu = &d->cu;
    for (int i = 0; i < d->n_allocs; i++)
        cu->cuMemFree(d->allocs[i]);
    for (int i = 0; i < SF_CUDA_FLIGHTS; i++) {
        const sf_cuda_flight *f = d->flights + i;
        if (f->block) cu->cuMemFreeHost(f->block);
        if (f->results) cu->cuMemFreeHost(f->results);
        if (f->from) cu->cuEventDestroy(f->from);
        if (f->to) cu->cuEventDestroy(f->to);
    }
    free(d->kv_cache);
}
