/* One embedding row made infinite, for the selftest: rows that hold it must not be felt by others. */
#include "engine/engine_priv.h"
#include "model/weights_draw.h"

#include <stdlib.h>

#define INFINITY_BF16 0x7f80u

static const sf_op_desc *find_embed(const sf_plan *plan) {
    for (int i = 0; i < plan->n_ops; i++)
        if (plan->ops[i].op == SF_OP_EMBED && plan->ops[i].weight >= 0) return plan->ops + i;
    return NULL;
}

/* Index of (row, k), in values: layouts of sf_wformat. */
static size_t lanes_at(const sf_weight_desc *w, size_t row, size_t k) {
    const size_t pairs = ((size_t)w->k + 1) / 2;
    return (row / 16 * pairs + k / 2) * 32 + row % 16 * 2 + k % 2;
}

static size_t fragment_at(const sf_weight_desc *w, size_t row, size_t k) {
    const size_t tile = (size_t)w->tile, steps = (size_t)sf_wmma_steps(w->k), m = row % 16, kk = k % 16;
    const size_t fragment = (row / 16 / tile * steps + k / 16) * tile + row / 16 % tile;
    return fragment * 256 + (m % 8 * 4 + kk % 8 / 2) * 8 + (m / 8 + kk / 8 * 2) * 2 + k % 2;
}

/* packed begins with value `base` of the weight. */
static void swap_row(uint16_t *packed, size_t base, const sf_weight_desc *w, uint16_t *saved, bool on) {
    for (size_t k = 0; k < (size_t)w->k; k++) {
        const size_t row = (size_t)w->n - 1;
        uint16_t *at = packed + ((w->format == SF_W_BF16 ? lanes_at : fragment_at)(w, row, k) - base);
        if (on) saved[k] = *at;
        *at = on ? (uint16_t)INFINITY_BF16 : saved[k];
    }
}

/* On the GPU the group that holds the row is fetched, changed and put back. */
static sf_code swap_on_gpu(const sf_engine *e, int slot, const sf_weight_desc *w, uint16_t *saved, bool on,
                           sf_err *err) {
    const size_t group = (size_t)w->tile * 256 * (size_t)sf_wmma_steps(w->k);
    const size_t base = ((size_t)w->n - 1) / 16 / (size_t)w->tile * group;
    const size_t offset = sf_weights_offset(e->weights, slot, 0) + base * sizeof(uint16_t);
    uint16_t *mem = malloc(group * sizeof *mem);
    if (!mem) return SF_FAIL(err, SF_NOMEM, "no memory for %zu weights", group);
    sf_code rc = sf_cuda_weights_read(e->cuda, offset, mem, group * sizeof *mem, err);
    if (rc == SF_OK) {
        swap_row(mem, base, w, saved, on);
        rc = sf_cuda_weights_write(e->cuda, offset, mem, group * sizeof *mem, err);
    }
    free(mem);
    return rc;
}

sf_code sf_engine_poison(void *engine, bool on, sf_err *err) {
    sf_engine *e = engine;
    const sf_op_desc *embed = find_embed(e->plan);
    if (!embed) return SF_FAIL(err, SF_UNSUPPORTED, "the plan has no embedding");
    const sf_weight_desc *w = &e->plan->weights[embed->weight];
    if (w->format != SF_W_BF16 && w->format != SF_W_BF16_MMA)
        return SF_FAIL(err, SF_UNSUPPORTED, "the embedding's format %d cannot be poisoned", (int)w->format);
    if (!e->poisoned) e->poisoned = malloc((size_t)w->k * sizeof *e->poisoned);
    if (!e->poisoned) return SF_FAIL(err, SF_NOMEM, "no memory for an embedding row");
    if (e->cuda) return swap_on_gpu(e, embed->weight, w, e->poisoned, on, err);
    /* the weights are the engine's own memory */
    swap_row((uint16_t *)(uintptr_t)sf_weights_get(e->weights, embed->weight, 0), 0, w, e->poisoned, on);
    return SF_OK;
}
