#include "tiny.h"

#include "device/rope.h"
#include "ref.h"

static const sf_plan *const plan = &sf_the_plan;

int tiny_setup(void **state) {
    sf_pool *pool = NULL;
    sf_err err;
    kit_random r = {9, 0};
    tiny *t = calloc(1, sizeof *t);
    if (!t || sf_pool_create(2, &pool, &err) != SF_OK) return -1;
    const sf_code rc = sf_weights_random(plan, 3, pool, false, NULL, &t->weights, &err);
    sf_pool_destroy(pool);
    for (int i = 0; i < TINY_TOKENS; i++)
        t->tokens[i] = kit_below(&r, plan->model.vocab);
    for (int i = 0; i < 16; i++)
        t->pages[i] = (i * 7 + 3) % TINY_PAGES;
    *state = t;
    return rc == SF_OK ? 0 : -1;
}

int tiny_teardown(void **state) {
    tiny *t = *state;
    sf_weights_destroy(t->weights);
    free(t);
    return 0;
}

bool tiny_has(sf_isa isa) {
    return sf_cpu_isa_here(isa) && plan->kernels[0].cpu[isa] != NULL;
}

sf_isa tiny_first(void) {
    int isa = 0;
    while (isa < SF_ISA_COUNT - 1 && !tiny_has((sf_isa)isa))
        isa++;
    return (sf_isa)isa;
}

sf_device *tiny_open(const tiny *t, const char *isa, int threads) {
    sf_device *d = NULL;
    sf_err err;
    const sf_cpu_config cfg = {.threads = threads, .isa = isa, .n_pages = TINY_PAGES};
    assert_int_equal(sf_cpu_open(plan, t->weights, &cfg, &d, &err), SF_OK);
    return d;
}

void tiny_close(sf_device *d) {
    d->ops->destroy(d);
}

static sf_sample sample_at(const tiny *t, int pos) {
    return (sf_sample){.temperature = pos % 3 ? 0.8f : 0.0f,
                       .top_p = 1,
                       .repetition_penalty = 1,
                       .seed = 42,
                       .position = (uint32_t)pos + 1,
                       .n_top = 5,
                       .target = t->tokens[(pos + 1) % TINY_TOKENS],
                       .draw = true};
}

static void feed_pass(sf_device *d, const tiny *t, sf_class cls, int from, int rows, tiny_result *out) {
    sf_sample samples[TINY_TOKENS];
    int32_t logit_row[TINY_TOKENS];
    sf_err err;
    const sf_segment seg = {.rows = rows, .pos0 = from, .pages = t->pages};
    for (int i = 0; i < rows; i++) {
        samples[i] = sample_at(t, from + i);
        logit_row[i] = i;
    }
    const sf_pass pass = {.cls = cls,
                          .rows = rows,
                          .tokens = t->tokens + from,
                          .n_segs = 1,
                          .segs = &seg,
                          .n_fresh = from == 0 ? 16 : 0,
                          .fresh = t->pages,
                          .n_logits = rows,
                          .logit_row = logit_row,
                          .samples = samples,
                          .out = out->row + from};
    assert_int_equal(d->ops->launch(d, &pass, &err), SF_OK);
    assert_int_equal(d->ops->sync(d, NULL, &err), SF_OK);
}

void tiny_feed(sf_device *d, const tiny *t, sf_class cls, int from, int to, int rows, tiny_result *out) {
    if (rows > plan->max_logit_rows) rows = plan->max_logit_rows;
    for (int p = from; p < to; p += rows)
        feed_pass(d, t, cls, p, to - p < rows ? to - p : rows, out);
}

static bool same_row(const sf_row_out *a, const sf_row_out *b) {
    return a->token == b->token && a->rank == b->rank && a->target_rank == b->target_rank &&
           a->bad == b->bad && a->n_top == b->n_top && memcmp(&a->logprob, &b->logprob, 4) == 0 &&
           memcmp(&a->target_logprob, &b->target_logprob, 4) == 0 &&
           memcmp(a->top_id, b->top_id, (size_t)a->n_top * 4) == 0 &&
           memcmp(a->top_logprob, b->top_logprob, (size_t)a->n_top * 4) == 0;
}

bool tiny_same(sf_device *a, sf_device *b, const tiny *t, const tiny_result *x, const tiny_result *y,
               int from, int to) {
    const sf_model_desc *m = &plan->model;
    uint16_t kv[4][64];
    sf_err err;
    bool same = true;
    for (int p = from; p < to; p++) {
        same = same && same_row(x->row + p, y->row + p);
        for (int i = 0; i < m->layers * m->kv_heads; i++) {
            const int page = t->pages[p / plan->page_size], at = p % plan->page_size, l = i / m->kv_heads,
                      h = i % m->kv_heads;
            assert_int_equal(a->ops->kv_read(a, page, at, l, h, kv[0], kv[1], &err), SF_OK);
            assert_int_equal(b->ops->kv_read(b, page, at, l, h, kv[2], kv[3], &err), SF_OK);
            same = same && memcmp(kv[0], kv[2], (size_t)m->head_dim * 2) == 0 &&
                   memcmp(kv[1], kv[3], (size_t)m->head_dim * 2) == 0;
        }
    }
    return same;
}

/* A weight as fp32: a matrix row-major [n, k], out of its packed layout; a vector as it is. */
static float *unpack(const tiny *t, int slot, int layer) {
    const sf_weight_desc *w = plan->weights + slot;
    const void *data = sf_weights_get(t->weights, slot, layer);
    float *out = calloc((size_t)w->n * (size_t)w->k, sizeof *out);
    assert_non_null(out);
    for (int r = 0; r < w->n; r++) {
        for (int c = 0; c < w->k; c++) {
            const size_t at = (size_t)r * (size_t)w->k + (size_t)c;
            out[at] = w->format == SF_W_F32
                          ? ((const float *)data)[at]
                          : sf_bf16_to_f32(
                                ((const uint16_t *)
                                     data)[kit_packed_at(w->n, w->k, w->interleave ? w->n_parts : 1, r, c)]);
        }
    }
    return out;
}

/* Activations of n rows, as the plan's buffers but fp32. */
typedef struct forward {
    const tiny *t;
    int n;
    float *buf[SF_BUF_COUNT], *k, *v; /* k, v [kv_heads][n][head_dim] of the layer at hand */
} forward;

static void ref_gemm(forward *f, const sf_op_desc *op, const float *w, const float *bias) {
    const size_t size = (size_t)f->n * (size_t)op->n;
    float *y = calloc(size, sizeof *y);
    assert_non_null(y);
    if (op->out == SF_BUF_ACT) {
        const int half = op->n / 2;
        float *up = calloc(size, sizeof *up);
        assert_non_null(up);
        sf_ref_gemm(f->buf[op->in], w, NULL, f->n, half, op->k, y);
        sf_ref_gemm(f->buf[op->in], w + half * op->k, NULL, f->n, half, op->k, up);
        sf_ref_swiglu(y, up, f->n, half, f->buf[op->out]);
        free(up);
    } else {
        sf_ref_gemm(f->buf[op->in], w, bias, f->n, op->n, op->k, y);
        for (size_t i = 0; i < size; i++)
            f->buf[op->out][i] = op->out == SF_BUF_X ? f->buf[op->out][i] + y[i] : y[i];
    }
    free(y);
}

/* norms [2][head_dim], of q and of k, or NULL. */
static void ref_rope(forward *f, const float *norms) {
    const sf_model_desc *m = &plan->model;
    sf_rope rope;
    sf_rope_init(m, &rope);
    const int all = m->heads + 2 * m->kv_heads, d = m->head_dim;
    for (int r = 0; r < f->n; r++) {
        for (int h = 0; h < all; h++) {
            float x[64];
            memcpy(x, f->buf[SF_BUF_QKV] + (r * all + h) * d, (size_t)d * 4);
            if (h < m->heads + m->kv_heads) {
                if (norms) sf_ref_rmsnorm(x, norms + (h < m->heads ? 0 : d), 1, d, m->norm_eps, x);
                sf_ref_rope(x, d, r, rope.freq, rope.attention);
            }
            const int kvh = (h - m->heads) % m->kv_heads;
            float *to = h < m->heads                 ? f->buf[SF_BUF_Q] + (r * m->heads + h) * d
                        : h < m->heads + m->kv_heads ? f->k + (kvh * f->n + r) * d
                                                     : f->v + (kvh * f->n + r) * d;
            for (int i = 0; i < d; i++)
                to[i] = h < m->heads ? x[i] / sqrtf((float)d) : x[i];
        }
    }
}

static void ref_attention(forward *f) {
    const sf_model_desc *m = &plan->model;
    const int d = m->head_dim;
    for (int r = 0; r < f->n; r++) {
        for (int h = 0; h < m->heads; h++) {
            const int kvh = h / (m->heads / m->kv_heads), at = (r * m->heads + h) * d;
            sf_ref_attention(f->buf[SF_BUF_Q] + at, f->k + kvh * f->n * d, f->v + kvh * f->n * d, r + 1, d,
                             f->buf[SF_BUF_ATTN] + at);
        }
    }
}

static void ref_op(forward *f, const sf_op_desc *op, int layer) {
    float *w = op->weight < 0 ? NULL : unpack(f->t, op->weight, layer);
    float *bias = op->bias < 0 ? NULL : unpack(f->t, op->bias, layer);
    if (op->op == SF_OP_EMBED)
        sf_ref_embed(w, f->t->tokens, f->n, op->n, f->buf[op->out]);
    else if (op->op == SF_OP_RMSNORM)
        sf_ref_rmsnorm(f->buf[op->in], w, f->n, op->k, plan->model.norm_eps, f->buf[op->out]);
    else if (op->op == SF_OP_GEMM)
        ref_gemm(f, op, w, bias);
    else if (op->op == SF_OP_ROPE_APPEND)
        ref_rope(f, w);
    else if (op->op == SF_OP_ATTENTION)
        ref_attention(f);
    free(w);
    free(bias);
}

void tiny_reference(const tiny *t, int n, float *lp) {
    const sf_model_desc *m = &plan->model;
    const size_t kv = (size_t)(m->kv_heads * n * m->head_dim);
    forward f = {.t = t, .n = n, .k = calloc(kv, 4), .v = calloc(kv, 4)};
    int first = 0;
    for (int i = 1; i < SF_BUF_COUNT; i++)
        f.buf[i] = calloc((size_t)n * (size_t)plan->bufs[i].cols, 4);
    for (; plan->ops[first].scope == SF_SCOPE_PRE; first++)
        ref_op(&f, plan->ops + first, 0);
    for (int l = 0; l < m->layers; l++)
        for (int i = first; plan->ops[i].scope == SF_SCOPE_LAYER; i++)
            ref_op(&f, plan->ops + i, l);
    for (int i = first; i < plan->n_ops; i++)
        if (plan->ops[i].scope == SF_SCOPE_HEAD) ref_op(&f, plan->ops + i, 0);
    sf_ref_log_softmax(f.buf[SF_BUF_LOGITS] + (size_t)(n - 1) * (size_t)m->vocab, m->vocab, lp);
    for (int i = 1; i < SF_BUF_COUNT; i++)
        free(f.buf[i]);
    free(f.k);
    free(f.v);
}
