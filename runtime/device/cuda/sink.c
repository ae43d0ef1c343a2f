/* Packed weights to the GPU, from several threads at once, and random ones drawn there. */
#include "device/cuda/cuda_priv.h"
#include "device/cuda/draw.h"

#include <string.h>

#define STAGE_BYTES ((size_t)4 << 20)

static sf_code sink_begin(void *ctx, size_t bytes, bool draws, sf_err *err) {
    sf_cuda *d = ctx;
    if (draws) SF_TRY(sf_cuda_drawing_open(d, err));
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

static sf_code stage_of(sf_cuda *d, int part, size_t offset, size_t bytes, sf_cuda_stage **out, sf_err *err) {
    if (part < 0 || part >= d->cfg.threads || offset > d->start.weight_bytes ||
        bytes > d->start.weight_bytes - offset)
        return SF_FAIL(err, SF_INVALID, "%zu bytes of weights at %zu by part %d, of %zu bytes and %d parts",
                       bytes, offset, part, d->start.weight_bytes, d->cfg.threads);
    *out = d->stages + part;
    return stage_open(d, *out, err);
}

/* Which half of the pinned memory comes next; nothing reads or writes it any more. */
static sf_code stage_turn(sf_cu *cu, sf_cuda_stage *s, int *half, sf_err *err) {
    *half = s->next;
    s->next = !*half;
    return sf_cu_check(cu, cu->cuEventSynchronize(s->done[*half]), "cuEventSynchronize", NULL, SF_SRC, err);
}

static sf_code sink_put(void *ctx, int part, size_t offset, const void *data, size_t bytes, sf_err *err) {
    sf_cuda *d = ctx;
    sf_cu *cu = &d->cu;
    sf_cuda_stage *s = NULL;
    SF_TRY(stage_of(d, part, offset, bytes, &s, err));
    for (size_t at = 0; at < bytes;) {
        const size_t n = bytes - at < STAGE_BYTES ? bytes - at : STAGE_BYTES;
        int i = 0;
        SF_TRY(stage_turn(cu, s, &i, err));
        memcpy(s->mem[i], (const char *)data + at, n);
        SF_TRY(sf_cu_check(cu, cu->cuMemcpyHtoDAsync(d->weights + offset + at, s->mem[i], n, s->stream),
                           "cuMemcpyHtoDAsync", NULL, SF_SRC, err));
        SF_TRY(sf_cu_check(cu, cu->cuEventRecord(s->done[i], s->stream), "cuEventRecord", NULL, SF_SRC, err));
        at += n;
    }
    return SF_OK;
}

static sf_code sink_draw(void *ctx, int part, size_t offset, const sf_wdraw *what, size_t first, size_t bytes,
                         const void **data, sf_err *err) {
    sf_cuda *d = ctx;
    sf_cu *cu = &d->cu;
    sf_cuda_stage *s = NULL;
    int i = 0;
    if (bytes > STAGE_BYTES)
        return SF_FAIL(err, SF_INVALID, "%zu bytes of weights to draw at once, expected at most %zu", bytes,
                       STAGE_BYTES);
    SF_TRY(stage_of(d, part, offset, bytes, &s, err));
    SF_TRY(stage_turn(cu, s, &i, err));
    SF_TRY(sf_cuda_draw(&d->gpu, &d->drawing, s->stream, what, first, bytes, d->weights + offset, err));
    SF_TRY(sf_cu_check(cu, cu->cuMemcpyDtoHAsync(s->mem[i], d->weights + offset, bytes, s->stream),
                       "cuMemcpyDtoHAsync of drawn weights", NULL, SF_SRC, err));
    SF_TRY(sf_cu_check(cu, cu->cuEventRecord(s->done[i], s->stream), "cuEventRecord", NULL, SF_SRC, err));
    SF_TRY(sf_cu_check(cu, cu->cuEventSynchronize(s->done[i]), "cuEventSynchronize of drawn weights", NULL,
                       SF_SRC, err));
    *data = s->mem[i];
    return SF_OK;
}

sf_weights_sink sf_cuda_sink(sf_device *base) {
    return (sf_weights_sink){.ctx = base, .begin = sink_begin, .put = sink_put, .draw = sink_draw};
}

void sf_cuda_stages_close(sf_cuda *d) {
    sf_cu *cu = &d->cu;
    sf_cuda_kernel_unload(&d->gpu, &d->drawing);
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
