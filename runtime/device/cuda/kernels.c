/* The plan's kernels, compiled and loaded, and the one that draws random weights. */
#include "device/cuda/cuda_priv.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/hash.h"
#include "base/progress.h"
#include "device/cuda/build.h"
#include "device/cuda/draw.h"

typedef struct sources {
    sf_cuda_source *list;
    sf_cuda_header *headers;
    sf_cubin *cubins;
} sources;

static sf_code sources_make(const sf_plan *p, sources *s, sf_err *err) {
    s->list = calloc((size_t)p->n_kernels + 1, sizeof *s->list);
    s->headers = calloc((size_t)p->n_headers + 1, sizeof *s->headers);
    s->cubins = calloc((size_t)p->n_kernels + 1, sizeof *s->cubins);
    if (!s->list || !s->headers || !s->cubins)
        return SF_FAIL(err, SF_NOMEM, "no memory for the sources of %d kernels", p->n_kernels);
    for (int i = 0; i < p->n_kernels; i++) {
        const sf_kernel *k = p->kernels + i;
        if (!k->source) return SF_FAIL(err, SF_INVALID, "the plan holds no source of kernel %s", k->name);
        s->list[i] = (sf_cuda_source){k->name, k->file, k->template, k->source};
    }
    for (int i = 0; i < p->n_headers; i++)
        s->headers[i] = (sf_cuda_header){p->headers[i].name, p->headers[i].text};
    return SF_OK;
}

static void sources_free(const sf_plan *p, sources *s) {
    for (int i = 0; s->cubins && i < p->n_kernels; i++)
        sf_cubin_fini(s->cubins + i);
    free(s->list);
    free(s->headers);
    free(s->cubins);
}

/* Pinned bits follow the machine code, so the code itself is hashed, not what it was made from. */
static sf_code identify(sf_cuda *d, const sources *s, sf_err *err) {
    const sf_plan *p = d->base.plan;
    char hex[65];
    sf_sha256 *h = sf_sha256_create();
    if (!h) return SF_FAIL(err, SF_NOMEM, "no memory for a hash");
    sf_sha256_add_str(h, d->nvrtc.build);
    sf_sha256_add_str(h, d->gpu.arch);
    sf_code rc = SF_OK;
    for (int i = 0; rc == SF_OK && i < p->n_kernels; i++) {
        if (p->kernels[i].cls != SF_CLASS_PINNED) continue;
        if (!sf_sha256_of(s->cubins[i].code.data, s->cubins[i].code.len, hex))
            rc = SF_FAIL(err, SF_NOMEM, "no memory for a hash");
        else
            sf_sha256_add_str(h, hex);
    }
    sf_sha256_hex(h, d->identity);
    sf_sha256_destroy(h);
    return rc;
}

/* Through the disk cache. */
static sf_code compile(sf_cuda *d, const sf_cuda_header *headers, int n_headers, const sf_cuda_source *list,
                       int n, sf_cubin *out, sf_err *err) {
    sf_cubin_cache *cache = NULL;
    const double t0 = sf_now_s();
    SF_TRY(sf_cubin_cache_create(d->cfg.cache, &cache, err));
    const sf_cuda_build b = {&d->nvrtc, cache, d->gpu.arch, headers, n_headers, d->cfg.threads};
    const sf_code rc = sf_cuda_build_all(&b, list, n, out, err);
    const char *note = sf_cubin_cache_note_take(cache);
    if (note) snprintf(d->start.note, sizeof d->start.note, "%s", note);
    d->start.kernels += n;
    d->start.cached += sf_cubin_cache_stats_get(cache).hits;
    sf_cubin_cache_destroy(cache);
    d->start.compile_s += sf_now_s() - t0;
    return rc;
}

static sf_code load(sf_cuda *d, const sources *s, sf_err *err) {
    const sf_plan *p = d->base.plan;
    d->kernels = calloc((size_t)p->n_kernels + 1, sizeof *d->kernels);
    if (!d->kernels) return SF_FAIL(err, SF_NOMEM, "no memory for %d kernels", p->n_kernels);
    for (int i = 0; i < p->n_kernels; i++)
        SF_TRY(sf_cuda_kernel_load(&d->gpu, p->kernels[i].name, s->cubins[i].code.data, d->kernels + i, err));
    return SF_OK;
}

sf_code sf_cuda_kernels_open(sf_cuda *d, sf_err *err) {
    sources s = {0};
    const sf_plan *p = d->base.plan;
    sf_code rc = sources_make(p, &s, err);
    if (rc == SF_OK) rc = compile(d, s.headers, p->n_headers, s.list, p->n_kernels, s.cubins, err);
    if (rc == SF_OK) rc = identify(d, &s, err);
    if (rc == SF_OK) rc = load(d, &s, err);
    sources_free(p, &s);
    return rc;
}

sf_code sf_cuda_drawing_open(sf_cuda *d, sf_err *err) {
    sf_cubin cubin = {0};
    if (d->drawing.fn) return SF_OK;
    sf_code rc = compile(d, sf_cuda_draw_headers, SF_CUDA_DRAW_HEADERS, &sf_cuda_draw_source, 1, &cubin, err);
    if (rc == SF_OK)
        rc = sf_cuda_kernel_load(&d->gpu, sf_cuda_draw_source.name, cubin.code.data, &d->drawing, err);
    sf_cubin_fini(&cubin);
    return rc;
}

void sf_cuda_kernels_close(sf_cuda *d) {
    for (int i = 0; d->kernels && i < d->base.plan->n_kernels; i++)
        sf_cuda_kernel_unload(&d->gpu, d->kernels + i);
    free(d->kernels);
}
