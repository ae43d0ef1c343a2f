#include "device/cuda/build.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "base/pool.h"
#include "base/progress.h"

typedef struct work {
    const sf_cuda_build *build;
    const sf_cuda_source *sources;
    sf_cubin *out;
    sf_code *rc; /* [n] */
    sf_err *err; /* [n] */
    int n;
    atomic_int next, done;
    sf_progress *progress;
} work;

static sf_code build_one(const sf_cuda_build *b, const sf_cuda_source *s, sf_cubin *out, sf_err *err) {
    char key[65] = "";
    if (b->cache) SF_TRY(sf_cubin_key(b->nvrtc, b->arch, s, b->headers, b->n_headers, key, err));
    if (!b->cache || !sf_cubin_cache_find(b->cache, key, out)) {
        SF_TRY(sf_nvrtc_compile(b->nvrtc, b->arch, s, b->headers, b->n_headers, out, err));
        if (b->cache) sf_cubin_cache_put(b->cache, key, out);
    }
    return sf_cuda_report_check(&out->report, s->name, err);
}

static void build_part(void *ctx, int part, int parts) {
    (void)parts;
    work *w = ctx;
    for (int i; (i = atomic_fetch_add(&w->next, 1)) < w->n;) {
        w->rc[i] = build_one(w->build, w->sources + i, w->out + i, w->err + i);
        const int done = atomic_fetch_add(&w->done, 1) + 1;
        if (part == 0) sf_progress_note(w->progress, (uint64_t)done, w->sources[i].name);
    }
}

sf_code sf_cuda_build_all(const sf_cuda_build *b, const sf_cuda_source *sources, int n, sf_cubin *out,
                          sf_err *err) {
    sf_pool *pool = NULL;
    sf_progress progress;
    work w = {.build = b, .sources = sources, .out = out, .n = n, .progress = &progress};
    w.rc = calloc((size_t)n + 1, sizeof *w.rc);
    w.err = calloc((size_t)n + 1, sizeof *w.err);
    sf_code rc = SF_OK;
    if (!w.rc || !w.err) {
        rc = SF_FAIL(err, SF_NOMEM, "no memory to compile %d kernels", n);
        goto done;
    }
    rc = sf_pool_create(b->threads < n ? b->threads : n > 0 ? n : 1, &pool, err);
    if (rc != SF_OK) goto done;
    sf_progress_init(&progress, "compiling kernels", "kernels", (uint64_t)n);
    sf_pool_run(pool, build_part, &w);
    sf_progress_fini(&progress);
    for (int i = 0; i < n && rc == SF_OK; i++) {
        rc = w.rc[i];
        if (rc != SF_OK && err) *err = w.err[i];
    }
done:
    sf_pool_destroy(pool);
    free(w.rc);
    free(w.err);
    return rc;
}
