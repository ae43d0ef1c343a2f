/* Where everything stands: instances of slots in memory, units of work. */
#include "model/weights_priv.h"

#include <stdlib.h>

#define HOST_ALIGN 64
#define SINK_ALIGN 256
#define MAX_TILE   (SF_WROWS_MAX / 16) /* as the templates allow */

size_t sf_winst_round(const sf_weights *w, size_t n) {
    return (n + w->align - 1) / w->align * w->align;
}

int sf_winst_count(const sf_plan *plan, int slot) {
    return plan->weights[slot].per_layer ? plan->model.layers : 1;
}

size_t sf_wlayout_offset(const sf_wlayout *l, int block) {
    return (size_t)(block / l->pieces) * l->group_bytes + (size_t)(block % l->pieces) * l->piece_bytes;
}

static sf_code check_slot(const sf_plan *plan, const sf_weight_desc *d, sf_err *err) {
    int head_dim = plan->model.head_dim;
    bool matrix = d->format != SF_W_F32;
    int64_t sum = 0;
    bool good = d->n >= 1 && d->k >= 1 && d->n_parts >= 1 && d->n_parts <= 3 &&
                (matrix || (d->n == 1 && !d->interleave));
    if (d->format == SF_W_BF16_MMA)
        good = good && d->tile >= 1 && d->tile <= MAX_TILE && (!d->interleave || d->n_parts == 2);
    for (int i = 0; good && i < d->n_parts; i++) {
        const sf_wpart *p = &d->parts[i];
        sum += p->rows;
        good = p->rows >= 1 && p->tensor;
        if (d->interleave) good = good && p->rows == d->parts[0].rows && p->role == SF_ROLE_PLAIN;
        if (p->role != SF_ROLE_PLAIN)
            good = good && head_dim >= 2 && head_dim % 2 == 0 && p->rows % head_dim == 0;
    }
    if (!good || sum != (matrix ? d->n : d->k)) {
        return SF_FAIL(err, SF_INVALID, "plan %s: weight %s does not fit together", plan->engine, d->name);
    }
    return SF_OK;
}

/* Appends the units of one instance (counts them while the array isn't there). */
static void cut(sf_weights *w, int inst, const sf_wlayout *l, int64_t *n_units) {
    size_t want = l->unit_bytes / l->piece_bytes;
    int step = want < 1 ? 1 : want > (size_t)l->blocks ? l->blocks : (int)want;
    for (int b = 0; b < l->blocks; b += step, ++*n_units) {
        int n = l->blocks - b < step ? l->blocks - b : step;
        size_t bytes = sf_winst_round(w, sf_wlayout_offset(l, b + n) - sf_wlayout_offset(l, b));
        if (bytes > w->unit_bytes) w->unit_bytes = bytes;
        if (w->units) w->units[*n_units] = (sf_wunit){.inst = inst, .block = b, .blocks = n};
    }
}

/* Counts instances, units and bytes; the second time, with the arrays there, fills them. */
static sf_code lay_out(sf_weights *w, sf_err *err) {
    const sf_plan *plan = w->plan;
    size_t bytes = 0;
    int64_t n_insts = 0, n_units = 0;
    for (int slot = 0; slot < plan->n_weights; slot++) {
        const sf_weight_desc *d = &plan->weights[slot];
        sf_wlayout l;
        SF_TRY(check_slot(plan, d, err));
        SF_TRY(sf_wformat_layout(d, &l, err));
        if (w->first) w->first[slot] = (int)n_insts;
        for (int layer = 0; layer < sf_winst_count(plan, slot); layer++, n_insts++) {
            if (w->insts)
                w->insts[n_insts] = (sf_winst){.slot = slot, .layer = layer, .desc = d, .offset = bytes};
            cut(w, (int)n_insts, &l, &n_units);
            size_t more = 0;
            if (__builtin_mul_overflow((size_t)(l.blocks / l.pieces), l.group_bytes, &more) ||
                more > SIZE_MAX / 4 || bytes > SIZE_MAX / 4 || n_units > INT32_MAX || n_insts > INT32_MAX) {
                return SF_FAIL(err, SF_INVALID, "plan %s: the weights are too large", plan->engine);
            }
            bytes += sf_winst_round(w, more);
        }
    }
    w->n_insts = (int)n_insts;
    w->n_units = (int)n_units;
    w->bytes = bytes;
    return SF_OK;
}

sf_code sf_weights_create(const sf_plan *plan, const sf_weights_sink *sink, sf_weights **out, sf_err *err) {
    sf_weights *w = calloc(1, sizeof *w);
    if (!w) return SF_FAIL(err, SF_NOMEM, "no memory for the weights");
    w->plan = plan;
    w->align = sink ? SINK_ALIGN : HOST_ALIGN;
    sf_code rc = lay_out(w, err);
    if (rc != SF_OK) goto done;
    w->first = calloc((size_t)plan->n_weights + 1, sizeof *w->first);
    w->insts = calloc((size_t)w->n_insts + 1, sizeof *w->insts);
    w->units = calloc((size_t)w->n_units + 1, sizeof *w->units);
    if (!w->first || !w->insts || !w->units) {
        rc = SF_FAIL(err, SF_NOMEM, "no memory for %d weights", w->n_insts);
        goto done;
    }
    rc = lay_out(w, err);
done:
    if (rc != SF_OK) {
        sf_weights_destroy(w);
        return rc;
    }
    *out = w;
    return SF_OK;
}

void sf_weights_destroy(sf_weights *w) {
    if (!w) return;
    free(w->first);
    free(w->insts);
    free(w->units);
    free(w->data);
    free(w);
}
