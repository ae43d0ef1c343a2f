/* The one place that knows which backends there are. */
#include "engine/engine_priv.h"

#include "device/cpu/cpu.h"
#include "engine/proof.h"

#include <stdio.h>
#include <string.h>

bool sf_backend_is_cuda(const sf_plan *plan) {
    return strcmp(plan->backend, "cuda") == 0;
}

static sf_code open_cuda(sf_engine *e, const sf_engine_config *cfg, sf_err *err) {
    if (cfg->isa && strcmp(cfg->isa, "auto") != 0)
        return SF_FAIL(err, SF_INVALID, "isa is %s: engine %s runs on a GPU and has no CPU kernels", cfg->isa,
                       e->plan->engine);
    const sf_cuda_config c = {.ordinal = cfg->gpu,
                              .n_pages = e->pages,
                              .max_seqs = e->sched_config.max_seqs,
                              .threads = e->threads,
                              .cache = cfg->kernel_cache};
    SF_TRY(sf_cuda_open(e->plan, &c, &e->cuda, err));
    e->device = e->cuda;
    e->sink = sf_cuda_sink(e->cuda);
    return SF_OK;
}

sf_code sf_backend_begin(sf_engine *e, const sf_engine_config *cfg, sf_err *err) {
    if (sf_backend_is_cuda(e->plan)) return open_cuda(e, cfg, err);
    if (strcmp(e->plan->backend, "cpu") != 0)
        return SF_FAIL(err, SF_UNSUPPORTED, "backend %s is not in this build", e->plan->backend);
    if (cfg->gpu > 0)
        return SF_FAIL(err, SF_INVALID, "gpu is %d: engine %s runs on the CPU", cfg->gpu, e->plan->engine);
    return SF_OK;
}

const sf_weights_sink *sf_backend_sink(const sf_engine *e) {
    return e->cuda ? &e->sink : NULL;
}

sf_code sf_backend_ready(sf_engine *e, const sf_engine_config *cfg, sf_err *err) {
    if (e->cuda) return sf_cuda_ready(e->cuda, e->weights, err);
    return sf_engine_device_open(e, cfg->isa ? cfg->isa : "auto", e->threads, e->pages, &e->device, err);
}

/* Where a proof holds: the GPU and the driver's build, which its version for programs does not tell apart.
 * False: the build cannot be known, and no proof is kept. */
static bool proving_ground(const sf_engine *e, char *out, size_t size) {
    char build[256] = "";
    FILE *f = fopen("/proc/driver/nvidia/version", "r");
    if (!f) return false;
    const bool read = fgets(build, sizeof build, f);
    (void)fclose(f);
    return read && snprintf(out, size, "%s, %s", e->cuda->desc, build) < (int)size;
}

bool sf_backend_proves(const sf_engine *e, const sf_engine_config *cfg) {
    char ground[512];
    if (!e->cuda) return false;
    return cfg->wrap_device || !proving_ground(e, ground, sizeof ground) ||
           !sf_proof_known(cfg->proof_dir, e->fingerprint, ground);
}

typedef struct proof {
    char *why;
    size_t size;
    int failed;
} proof;

static void note_failure(void *ctx, const sf_selftest_line *l) {
    proof *p = ctx;
    if (l->failed && p->failed++ == 0)
        snprintf(p->why, p->size, "the selftest at start failed: %s: %s", l->name, l->first);
}

static const char *proof_room(const sf_engine *e, char *why, size_t size) {
    snprintf(
        why, size,
        "these kernels are not proved on this GPU yet, and that needs %d KV pages, the pool has %d (run the "
        "verb selftest once, or raise --kv-pages)",
        sf_selftest_pages(e->plan), e->device->n_pages);
    return why;
}

sf_code sf_backend_prove(sf_engine *e, const sf_engine_config *cfg, char *why, size_t why_size, sf_err *err) {
    char ground[512];
    proof p = {.why = why, .size = why_size};
    sf_selftest_config c = {.device = e->device,
                            .poison = sf_engine_poison,
                            .poison_ctx = e,
                            .report = note_failure,
                            .report_ctx = &p};
    sf_selftest_result result;
    if (e->device->n_pages < sf_selftest_pages(e->plan))
        return SF_FAIL(err, SF_NONDET, "%s", proof_room(e, why, why_size));
    sf_engine_selftest_modes(e, &c);
    SF_TRY(sf_selftest_run(&c, &result, err));
    if (p.failed > 0) return SF_FAIL(err, SF_NONDET, "%s", why);
    if (!cfg->wrap_device && proving_ground(e, ground, sizeof ground))
        (void)sf_proof_keep(cfg->proof_dir, e->fingerprint, ground);
    return SF_OK;
}

static void set_mode(void *ctx, int mode) {
    sf_cuda_force_eager(ctx, mode >= 0);
}

void sf_engine_selftest_modes(const sf_engine *e, sf_selftest_config *out) {
    static const char *const modes[] = {"eager launches"};
    if (!e->cuda) return;
    out->modes = modes;
    out->n_modes = (int)(sizeof modes / sizeof *modes);
    out->set_mode = set_mode;
    out->mode_ctx = e->cuda;
}

const char *sf_backend_identity(const sf_engine *e) {
    return e->cuda ? sf_cuda_identity(e->cuda) : NULL;
}

sf_device *sf_engine_cuda(const sf_engine *e) {
    return e->cuda;
}

sf_code sf_engine_device_open(const sf_engine *e, const char *isa, int threads, int n_pages, sf_device **out,
                              sf_err *err) {
    if (e->cuda) return SF_FAIL(err, SF_UNSUPPORTED, "a GPU has one device an engine");
    sf_cpu_config cfg = {.threads = threads, .isa = isa, .n_pages = n_pages};
    return sf_cpu_open(e->plan, e->weights, &cfg, out, err);
}
