/* The one place that knows which backends there are. */
#include "engine/engine_priv.h"

#include "device/cpu/cpu.h"

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
