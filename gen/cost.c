#include "cost.h"

static uint64_t round_up(int v, int to) {
    return (uint64_t)((v + to - 1) / to * to);
}

uint64_t sf_cost_weight_bytes(const sf_weight_desc *w) {
    if (w->format == SF_W_F32) return (uint64_t)w->n * (uint64_t)w->k * 4;
    uint64_t n = 0;
    if (w->format == SF_W_BF16_MMA)
        return round_up(sf_weight_tiles(w), w->tile) * 16 * round_up(w->k, 64) * 2;
    if (w->interleave)
        for (int i = 0; i < w->n_parts; i++)
            n += round_up(w->parts[i].rows, 16);
    else
        n = round_up(w->n, 16);
    return n * round_up(w->k, 2) * 2;
}

static uint64_t row_flops(const sf_model_desc *m, const sf_op_desc *op) {
    uint64_t n = (uint64_t)op->n, k = (uint64_t)op->k;
    switch (op->op) {
    case SF_OP_ATTENTION_LONG: /* its rows are counted by attention */
        return 0;
    case SF_OP_GEMM:
        return 2 * n * k;
    case SF_OP_RMSNORM:
        return 4 * k; /* square, sum, scale, weight */
    case SF_OP_ROPE_APPEND:
        /* rotation, q's scale; a norm's square, sum, scale and weight */
        return (m->qk_norm ? 7u : 3u) * (uint64_t)(m->heads + m->kv_heads) * (uint64_t)m->head_dim + n;
    case SF_OP_SAMPLE:
        return 8 * k; /* maximum, exponential sum, draw */
    default:
        return n;
    }
}

void sf_cost_fill(const sf_model_desc *m, sf_ops *ops) {
    for (int i = 0; i < ops->n; i++) {
        sf_op_spec *s = &ops->ops[i];
        sf_op_desc *op = &s->desc;
        const sf_buf_desc *in = &ops->bufs[op->in], *out = &ops->bufs[op->out];
        op->row_flops = row_flops(m, op);
        op->row_bytes = (uint64_t)in->cols * (uint64_t)sf_dtype_bytes(in->dtype) +
                        (uint64_t)out->cols * (uint64_t)sf_dtype_bytes(out->dtype);
        if (op->op == SF_OP_ATTENTION_LONG) op->row_bytes = 0;
        if (s->epilogue == SF_EPILOGUE_ADD) /* reads what it adds to */
            op->row_bytes += (uint64_t)out->cols * (uint64_t)sf_dtype_bytes(out->dtype);
        if (op->op == SF_OP_ROPE_APPEND) /* K and V written to the cache */
            op->row_bytes += 4 * (uint64_t)m->kv_heads * (uint64_t)m->head_dim;
        if (op->op == SF_OP_EMBED) { /* one row of the table per token, not the table */
            op->row_bytes += 2 * (uint64_t)m->hidden;
            continue;
        }
        if (op->weight >= 0) op->weight_bytes += sf_cost_weight_bytes(&ops->weights[op->weight]);
        if (op->bias >= 0) op->weight_bytes += sf_cost_weight_bytes(&ops->weights[op->bias]);
    }
}

sf_cost sf_cost_op(const sf_machine *mc, const sf_op_desc *op, sf_class cls, int rows) {
    sf_cost c = {.bytes = (double)op->weight_bytes + (double)op->row_bytes * rows,
                 .flops = (double)op->row_flops * rows};
    double memory_us = c.bytes / (mc->bandwidth_gbs * 1e3), compute_us = c.flops / (mc->gflops[cls] * 1e3);
    c.compute_bound = compute_us > memory_us;
    c.us = c.compute_bound ? compute_us : memory_us;
    c.peak_share = c.us > 0 ? compute_us / c.us : 0;
    return c;
}

int sf_cost_rows(const sf_machine *mc, const sf_op_desc *op, int rows) {
    return op->scope == SF_SCOPE_HEAD && rows > mc->max_logit_rows ? mc->max_logit_rows : rows;
}

int sf_cost_launches(const sf_model_desc *m, const sf_op_desc *op) {
    return op->scope == SF_SCOPE_LAYER ? m->layers : 1;
}

double sf_cost_pass_us(const sf_machine *mc, const sf_model_desc *m, const sf_ops *ops, sf_class cls,
                       int rows) {
    double us = 0;
    for (int i = 0; i < ops->n; i++) {
        const sf_op_desc *op = &ops->ops[i].desc;
        us += sf_cost_launches(m, op) * sf_cost_op(mc, op, cls, sf_cost_rows(mc, op, rows)).us;
    }
    return us;
}
