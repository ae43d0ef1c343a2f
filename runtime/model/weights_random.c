/* Random weights. A value is a function of (seed, slot, layer, row, column) by integer and single IEEE
 * operations only, so every machine and thread count gives the same bits. */
#include "model/weights_priv.h"

#include <assert.h>
#include <math.h>

/* One over the standard deviation of what sf_wloops' draw makes of four uniform 16-bit numbers, 2 s - 4 *
 * 65535 (s, their sum, has the variance 4 (65536^2 - 1) / 12); so |z| < 3.47. */
#define UNIT (1.0 / 75674.45447441296)

#define NORM_SPREAD 0.1    /* norms are 1 + spread * z, so that a norm left out is seen */
#define BIAS_STD    0.0625 /* biases are not 0, so that a bias left out is seen */

typedef struct shape {
    float mean, scale;
} shape;

static shape shape_of(const sf_plan *plan, int slot) {
    const sf_weight_desc *d = &plan->weights[slot];
    bool embed = false, gemm = false, bias = false;
    for (int i = 0; i < plan->n_ops; i++) {
        const sf_op_desc *op = &plan->ops[i];
        bias = bias || op->bias == slot;
        if (op->weight != slot) continue;
        embed = embed || op->op == SF_OP_EMBED;
        gemm = gemm || op->op == SF_OP_GEMM;
    }
    if (d->format == SF_W_F32)
        return bias ? (shape){0, (float)(BIAS_STD * UNIT)} : (shape){1, (float)(NORM_SPREAD * UNIT)};
    if (embed && !gemm) return (shape){0, (float)UNIT};
    return (shape){0,
                   (float)(UNIT / sqrt((double)d->k))}; /* IEEE's square root: rounded correctly everywhere */
}

static void draw(const sf_wsource *s, const sf_winst *w, int row, int from, int count, float *out) {
    assert(from % 2 == 0);
    const uint32_t key[2] = {(uint32_t)s->seed, (uint32_t)(s->seed >> 32)};
    const uint32_t counter[4] = {(uint32_t)from / 2, (uint32_t)row, (uint32_t)w->slot, (uint32_t)w->layer};
    const shape sh = shape_of(s->plan, w->slot);
    sf_wloops_best()->draw(counter, key, sh.mean, sh.scale, count, out);
}

static void read_random(const sf_wsource *s, const sf_winst *w, const sf_wrows *x, int i, int from, int count,
                        float *out) {
    draw(s, w, x->row[i], from, count, out);
}

static sf_code vector_random(const sf_wsource *s, const sf_winst *w, sf_wrows *x, float *out, sf_err *err) {
    (void)x, (void)err;
    draw(s, w, 0, 0, w->desc->k, out);
    return SF_OK;
}

static sf_code not_finite(const sf_wsource *s, const sf_winst *w, int row, sf_err *err) {
    (void)s;
    return SF_FAIL(err, SF_INVALID, "random weight %s, row %d: not finite", w->desc->name, row);
}

static void describe(const sf_wsource *s, const sf_winst *w, sf_wdraw *out) {
    const sf_weight_desc *d = w->desc;
    const shape sh = shape_of(s->plan, w->slot);
    *out = (sf_wdraw){.key = {(uint32_t)s->seed, (uint32_t)(s->seed >> 32)},
                      .slot = (uint32_t)w->slot,
                      .layer = (uint32_t)w->layer,
                      .rows = d->interleave ? d->parts[0].rows : d->n,
                      .k = d->k,
                      .interleave = d->interleave,
                      .tile = d->tile,
                      .mean = sh.mean,
                      .scale = sh.scale};
}

sf_wsource sf_wsource_random(const sf_plan *plan, uint64_t seed) {
    return (sf_wsource){.plan = plan,
                        .read = read_random,
                        .vector = vector_random,
                        .not_finite = not_finite,
                        .describe = describe,
                        .seed = seed};
}
