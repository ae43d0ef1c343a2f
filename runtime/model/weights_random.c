/* Random weights. A value is a function of (seed, slot, layer, row, column) by integer and single IEEE
 * operations only, so every machine and thread count gives the same bits. */
#include "model/weights_priv.h"

#include "base/philox.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#define PAIRS 16 /* draws at a time */

/* z = (2 s - 4 * 65535) * UNIT, s the sum of four uniform 16-bit numbers: mean 0, variance 1 (Irwin-Hall),
 * |z| < 3.47. The variance of s is 4 (65536^2 - 1) / 12. */
#define CENTRE 262140
#define UNIT   (1.0 / 75674.45447441296)

#define NORM_SPREAD 0.1    /* norms are 1 + spread * z, so that a norm left out is seen */
#define BIAS_STD    0.0625 /* biases are not 0, so that a bias left out is seen */

typedef struct shape {
    float mean, scale; /* value = mean + scale * (2 s - CENTRE) */
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

/* A number of two 32-bit draws. */
static float value(shape s, uint32_t a, uint32_t b) {
    int32_t sum = (int32_t)((a & 0xffff) + (a >> 16) + (b & 0xffff) + (b >> 16));
    return s.mean + s.scale * (float)(2 * sum - CENTRE);
}

/* Counters first .. first+PAIRS-1 (the others of `counter` are the same for all) give two values each. The
 * loops are as compilers vectorise them: whole arrays, one step of all draws after another. */
static void draw(const uint32_t counter[4], const uint32_t key[2], shape s, float out[2 * PAIRS]) {
    uint32_t c0[PAIRS], c1[PAIRS], c2[PAIRS], c3[PAIRS];
    for (uint32_t i = 0; i < PAIRS; i++) {
        uint32_t c[4] = {counter[0] + i, counter[1], counter[2], counter[3]}, r[4];
        sf_philox4x32(c, key, r);
        c0[i] = r[0];
        c1[i] = r[1];
        c2[i] = r[2];
        c3[i] = r[3];
    }
    for (int i = 0; i < PAIRS; i++) {
        out[2 * i] = value(s, c0[i], c1[i]);
        out[2 * i + 1] = value(s, c2[i], c3[i]);
    }
}

static sf_code read_random(const sf_wsource *s, const sf_winst *w, int row, int from, int count, float *out,
                           sf_err *err) {
    (void)err;
    assert(from % 2 == 0);
    const uint32_t key[2] = {(uint32_t)s->seed, (uint32_t)(s->seed >> 32)};
    const shape sh = shape_of(s->plan, w->slot);
    for (int i = 0; i < count; i += 2 * PAIRS) {
        const uint32_t counter[4] = {(uint32_t)(from + i) / 2, (uint32_t)row, (uint32_t)w->slot,
                                     (uint32_t)w->layer};
        if (count - i >= 2 * PAIRS) {
            draw(counter, key, sh, out + i);
        } else {
            float last[2 * PAIRS];
            draw(counter, key, sh, last);
            memcpy(out + i, last, (size_t)(count - i) * sizeof *last);
        }
    }
    return SF_OK;
}

static sf_code not_finite(const sf_wsource *s, const sf_winst *w, int row, sf_err *err) {
    (void)s;
    return SF_FAIL(err, SF_INVALID, "random weight %s, row %d: not finite", w->desc->name, row);
}

sf_wsource sf_wsource_random(const sf_plan *plan, uint64_t seed) {
    return (sf_wsource){.plan = plan, .read = read_random, .not_finite = not_finite, .seed = seed};
}
