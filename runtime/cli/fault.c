/* A device that lies, to show that the probe and the selftest notice. */
#include "cli/setup.h"

#include <stdlib.h>
#include <string.h>

typedef struct fault_device {
    sf_device base;
    sf_device *inner;
    sf_device_ops ops;
    int rows; /* pinned passes of so many rows or more are falsified */
    const sf_pass *pass;
} fault_device;

static sf_code fault_launch(sf_device *d, const sf_pass *pass, sf_err *err) {
    fault_device *f = (fault_device *)d;
    f->pass = pass;
    return f->inner->ops->launch(f->inner, pass, err);
}

static sf_code fault_sync(sf_device *d, double *us, sf_err *err) {
    fault_device *f = (fault_device *)d;
    SF_TRY(f->inner->ops->sync(f->inner, us, err));
    const sf_pass *p = f->pass;
    for (int i = 0; p->cls == SF_CLASS_PINNED && p->rows >= f->rows && i < p->n_logits; i++) {
        uint32_t bits;
        memcpy(&bits, &p->out[i].logprob, sizeof bits);
        bits ^= 1;
        memcpy(&p->out[i].logprob, &bits, sizeof bits);
    }
    return SF_OK;
}

static sf_code fault_kv_read(sf_device *d, int page, int offset, int layer, int kv_head, uint16_t *k,
                             uint16_t *v, sf_err *err) {
    fault_device *f = (fault_device *)d;
    return f->inner->ops->kv_read(f->inner, page, offset, layer, kv_head, k, v, err);
}

static void fault_destroy(sf_device *d) {
    fault_device *f = (fault_device *)d;
    f->inner->ops->destroy(f->inner);
    free(f);
}

sf_device *sf_fault_device(void *ctx, sf_device *inner) {
    fault_device *f = calloc(1, sizeof *f);
    if (!f) return inner;
    f->base = *inner;
    f->inner = inner;
    f->rows = *(const int *)ctx;
    f->ops = (sf_device_ops){fault_launch, fault_sync, fault_kv_read, fault_destroy};
    f->base.ops = &f->ops;
    return &f->base;
}
