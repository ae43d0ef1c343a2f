#include "gpu/templates.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/progress.h"

#define TEMPLATES_MAX 32

typedef struct templates {
    int n;
    sf_cuda_source sources[TEMPLATES_MAX];
    sf_cubin cold[TEMPLATES_MAX], warm[TEMPLATES_MAX];
    char dir[64];
} templates;

static void templates_read(kit *k, templates *t, char **names, int n) {
    char path[1024];
    for (int i = 0; i < n && t->n < TEMPLATES_MAX; i++) {
        snprintf(path, sizeof path, "templates/cuda/%s.cu", names[i]);
        const char *text = kit_read(k, path);
        if (text) t->sources[t->n++] = (sf_cuda_source){names[i], names[i], NULL, text};
    }
}

static sf_code build(kit *k, templates *t, sf_cubin *out, sf_cubin_cache_stats *stats, double *seconds,
                     sf_err *err) {
    sf_cubin_cache *cache = NULL;
    SF_TRY(sf_cubin_cache_create(t->dir, &cache, err));
    const sf_cuda_build b = {&k->nvrtc, cache, k->gpu.arch, k->headers, k->n_headers, 16};
    const double start = sf_now_s();
    const sf_code rc = sf_cuda_build_all(&b, t->sources, t->n, out, err);
    *seconds = sf_now_s() - start;
    *stats = sf_cubin_cache_stats_get(cache);
    sf_cubin_cache_destroy(cache);
    return rc;
}

/* Flips a bit in the middle of the first source's cache file. */
static void damage(kit *k, const templates *t) {
    char key[65], path[256];
    sf_err err;
    if (sf_cubin_key(&k->nvrtc, k->gpu.arch, t->sources, k->headers, k->n_headers, key, &err) != SF_OK)
        return;
    snprintf(path, sizeof path, "%s/%s", t->dir, key);
    FILE *f = fopen(path, "r+");
    if (!f) return;
    fseek(f, 5000, SEEK_SET);
    const int c = fgetc(f);
    fseek(f, 5000, SEEK_SET);
    fputc(c ^ 1, f);
    fclose(f);
}

static int differing(const templates *t) {
    int n = 0;
    for (int i = 0; i < t->n; i++)
        n += t->cold[i].code.len != t->warm[i].code.len ||
             memcmp(t->cold[i].code.data, t->warm[i].code.data, t->cold[i].code.len) != 0;
    return n;
}

static void templates_are_cached(kit *k, templates *t) {
    sf_cubin_cache_stats s = {0};
    sf_err err = {.msg = ""};
    double cold = 0, warm = 0;
    sf_code rc = build(k, t, t->cold, &s, &cold, &err);
    kit_check(k, rc == SF_OK && s.misses == t->n, "templates compile", "%d in %.2f s %s", t->n, cold,
              err.msg);
    rc = build(k, t, t->warm, &s, &warm, &err);
    kit_check(k, rc == SF_OK && s.hits == t->n && !differing(t), "the cache gives the same code",
              "%d hits in %.4f s %s", s.hits, warm, err.msg);
    for (int i = 0; i < t->n; i++)
        sf_cubin_fini(t->warm + i);
    damage(k, t);
    rc = build(k, t, t->warm, &s, &warm, &err);
    kit_check(k, rc == SF_OK && s.damaged == 1 && s.hits == t->n - 1 && !differing(t),
              "a damaged cache file is compiled again to the same code", "%d damaged, %d hits, %.2f s %s",
              s.damaged, s.hits, warm, err.msg);
}

static void templates_load(kit *k, const templates *t) {
    for (int i = 0; i < t->n; i++) {
        sf_cuda_kernel kernel = {0};
        sf_err err = {.msg = ""};
        const sf_cubin *c = t->cold + i;
        if (c->report.n_entries == 0) continue;
        const sf_code rc =
            sf_cuda_kernel_load(&k->gpu, c->report.entries[0].name, c->code.data, &kernel, &err);
        const sf_cuda_launch *l = &kernel.launch;
        kit_check(k, rc == SF_OK && kernel.registers == c->report.entries[0].registers, t->sources[i].name,
                  "grid %d x %d, %d bytes, pdl %d, cluster %d, %d registers %s", l->grid, l->threads,
                  l->shared, l->pdl, l->cluster, kernel.registers, err.msg);
        sf_cuda_kernel_unload(&k->gpu, &kernel);
    }
}

static void templates_fini(templates *t) {
    char line[128];
    for (int i = 0; i < t->n; i++) {
        sf_cubin_fini(t->cold + i);
        sf_cubin_fini(t->warm + i);
        free((void *)(uintptr_t)t->sources[i].text);
    }
    snprintf(line, sizeof line, "rm -r %s", t->dir);
    if (system(line) != 0) printf("%s stays\n", t->dir);
}

void templates_work(kit *k, char **names, int n) {
    static templates t = {.dir = "/tmp/sf_smoke_XXXXXX"};
    templates_read(k, &t, names, n);
    if (t.n == 0 || !mkdtemp(t.dir)) return;
    templates_are_cached(k, &t);
    templates_load(k, &t);
    templates_fini(&t);
}
