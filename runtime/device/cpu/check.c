#include "device/cpu/cpu_priv.h"

static sf_code check_op(const sf_plan *p, const sf_op_desc *op, sf_err *err) {
    const int rows = op->scope == SF_SCOPE_HEAD ? p->max_logit_rows : p->max_rows;
    const bool weighted = op->op == SF_OP_EMBED || op->op == SF_OP_RMSNORM || op->op == SF_OP_GEMM ||
                          (op->op == SF_OP_ROPE_APPEND && p->model.qk_norm);
    if (op->weight >= p->n_weights || op->bias >= p->n_weights || (weighted && op->weight < 0))
        return SF_FAIL(err, SF_UNSUPPORTED, "the plan's op %s names a weight that is not there", op->name);
    for (int c = 0; c < SF_CLASS_COUNT; c++) {
        const int n = op->n_routes[c];
        if (n < 1 || op->routes[c][n - 1].rows_max < rows)
            return SF_FAIL(err, SF_UNSUPPORTED, "the plan's op %s has no %s kernel for %d rows", op->name,
                           c == SF_CLASS_PINNED ? "pinned" : "fast", rows);
        for (int i = 0; i < n; i++)
            if (op->routes[c][i].kernel < 0 || op->routes[c][i].kernel >= p->n_kernels)
                return SF_FAIL(err, SF_UNSUPPORTED, "the plan's op %s names a kernel that is not there",
                               op->name);
    }
    return SF_OK;
}

sf_code sf_cpu_check_plan(const sf_plan *p, sf_err *err) {
    const sf_model_desc *m = &p->model;
    if (p->page_size < 16 || p->page_size % 16 != 0)
        return SF_FAIL(err, SF_UNSUPPORTED, "the plan's page size is %d, expected a multiple of 16",
                       p->page_size);
    if (m->head_dim < 2 || m->head_dim % 2 != 0 || m->kv_heads < 1 || m->heads % m->kv_heads != 0)
        return SF_FAIL(err, SF_UNSUPPORTED,
                       "the plan has %d heads of %d over %d KV heads, expected an even size and whole groups",
                       m->heads, m->head_dim, m->kv_heads);
    for (int i = 0; i < p->n_ops; i++)
        SF_TRY(check_op(p, p->ops + i, err));
    return SF_OK;
}
