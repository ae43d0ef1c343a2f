/* Packed weights to the GPU, from several threads at once. */
#include "device/cuda/cuda_priv.h"

#include <string.h>

#define STAGE_BYTES ((size_t)4 << 20)

static sf_code sink_begin(void *ctx, size_t bytes, sf_err *err) {
    sf_cuda *d = ctx;
    d->start.weight_bytes = bytes;
    return sf_cuda_get(d, "the weights", bytes, false, &d->weights, err);
}

/* A thread's first use: the context becomes its own, and it gets a stream and pinned memory. */
static sf_code stage_open(sf_cuda *d, sf_cuda_stage *s, sf_err *err) {
    sf_cu *cu = &d->cu;
    SF_TRY(sf_cu_check(cu, cu->cuCtxSetCurrent(d->gpu.ctx), "cuCtxSetCurrent", NULL, SF_SRC, err));
    if (s->stream) return SF_OK;
    SF_TRY(sf_cu_check(cu, cu->cuStreamCreate(&s->stream, CU_STREAM_NON_BLOCKING), "cuStreamCreate", NULL,
                       SF_SRC, err));
    for (int i = 0; i < 2; i++) {
        SF_TRY(sf_cu_check(cu, cu->cuMemHostAlloc(&s->mem[i], STAGE_BYTES, 0), "cuMemHostAlloc", NULL, SF_SRC,
                           err));
        SF_TRY(sf_cu_check(cu, cu->cuEventCreate(&s->done[i], CU_EVENT_DEFAULT), "cuEventCreate", NULL,
                           SF_SRC, err));
    }
    return SF_OK;
}

static sf_code sink_put(void *ctx, int part, size_t offset, const void *data, size_t bytes, sf_err *err) {
    sf_cuda *d = ctx;
    sf_cu *cu = &d->cu;
    if (part < 0 || part >= d->cfg.threads || offset > d->start.weight_bytes ||
        bytes > d->start.weight_bytes - offset)
        return SF_FAIL(err, SF_INVALID, "%zu bytes of weights at %zu by part %d, of %zu bytes and %d parts",
                       bytes, offset, part, d->start.weight_bytes, d->cfg.threads);
    sf_cuda_stage *s = d->stages + part;
    SF_TRY(stage_open(d, s, err));
    for (size_t at = 0; at < bytes;) {
        const size_t n = bytes - at < STAGE_BYTES ? bytes - at : STAGE_BYTES;
        const int i = s->next;
        s->next = !i;
        SF_TRY(sf_cu_check(cu, cu->cuEventSynchronize(s->done[i]), "cuEventSynchronize", NULL, SF_SRC, err));
        memcpy(s->mem[i], (const char *)data + at, n);
        SF_TRY(sf_cu_check(cu, cu->cuMemcpyHtoDAsync(d->weights + offset + at, s->mem[i], n, s->stream),
                           "cuMemcpyHtoDAsync", NULL, SF_SRC, err));
        SF_TRY(sf_cu_check(cu, cu->cuEventRecord(s->done[i], s->stream), "cuEventRecord", NULL, SF_SRC, err));
        at += n;
    }
    return SF_OK;
}

sf_weights_sink sf_cuda_sink(sf_device *base) {
    return (sf_weights_sink){.ctx = base, .begin = sink_begin, .put = sink_put};
}

void sf_cuda_stages_close(sf_cuda *d) {
    sf_cu *cu = &d->cu;
    for (int i = 0; i < SF_CUDA_PARTS_MAX; i++) {
        sf_cuda_stage *s = d->stages + i;
        for (int k = 0; k < 2; k++) {
            if (s->mem[k]) cu->cuMemFreeHost(s->mem[k]);
            if (s->done[k]) cu->cuEventDestroy(s->done[k]);
        }
        if (s->stream) cu->cuStreamDestroy(s->stream);
        *s = (sf_cuda_stage){0};
    }
}
