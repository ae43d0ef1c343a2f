#include "ops.h"

#include <string.h>

const char *sf_op_name(sf_op op) {
    static const char *const names[] = {"embed",     "rmsnorm", "gemm",          "rope_append",
                                        "attention", "sample",  "attention_long"};
    return names[op];
}

const char *sf_epilogue_name(sf_epilogue e) {
    static const char *const names[] = {"store", "add", "swiglu"};
    return names[e];
}

const char *sf_class_name(sf_class cls) {
    return cls == SF_CLASS_PINNED ? "pinned" : "fast";
}

const char *sf_dtype_name(sf_dtype d) {
    static const char *const names[] = {"f32", "bf16", "i32"};
    return names[d];
}

int sf_dtype_bytes(sf_dtype d) {
    return d == SF_BF16 ? 2 : 4;
}

int sf_weight_tiles(const sf_weight_desc *w) {
    return w->interleave ? (w->parts[0].rows + 7) / 8 : (w->n + 15) / 16;
}

static void build_bufs(const sf_model_desc *m, sf_ops *o) {
    int q = m->heads * m->head_dim, kv = m->kv_heads * m->head_dim;
    const sf_buf_desc bufs[] = {{SF_BUF_NONE, "none", SF_F32, 0, false},
                                {SF_BUF_TOKENS, "tokens", SF_I32, 1, false},
                                {SF_BUF_X, "x", SF_F32, m->hidden, false},
                                {SF_BUF_H, "h", SF_BF16, m->hidden, false},
                                {SF_BUF_QKV, "qkv", SF_F32, q + 2 * kv, false},
                                {SF_BUF_Q, "q", SF_BF16, q, false},
                                {SF_BUF_ATTN, "attn", SF_BF16, q, false},
                                {SF_BUF_ACT, "act", SF_BF16, m->intermediate, false},
                                {SF_BUF_LOGITS, "logits", SF_F32, m->vocab, true}};
    memcpy(o->bufs, bufs, sizeof bufs);
}

static int add_matrix(sf_ops *o, const char *name, bool per_layer, int n, int k, const char *tensor) {
    o->weights[o->n_weights] = (sf_weight_desc){.name = name,
                                                .format = SF_W_BF16,
                                                .per_layer = per_layer,
                                                .n = n,
                                                .k = k,
                                                .n_parts = 1,
                                                .parts = {{tensor, n, SF_ROLE_PLAIN, NULL}}};
    return o->n_weights++;
}

static int add_vector(sf_ops *o, const char *name, bool per_layer, int k, const char *tensor) {
    int slot = add_matrix(o, name, per_layer, 1, k, tensor);
    o->weights[slot].format = SF_W_F32;
    o->weights[slot].parts[0].rows = k;
    return slot;
}

/* q, k and v stand one after another; q's and k's rows are rotary pairs. */
static void set_qkv_parts(sf_weight_desc *w, const sf_model_desc *m, const char *q, const char *k,
                          const char *v) {
    w->n_parts = 3;
    w->parts[0] = (sf_wpart){q, m->heads * m->head_dim, SF_ROLE_Q, NULL};
    w->parts[1] = (sf_wpart){k, m->kv_heads * m->head_dim, SF_ROLE_K, NULL};
    w->parts[2] = (sf_wpart){v, m->kv_heads * m->head_dim, SF_ROLE_PLAIN, NULL};
}

/* [2, head_dim]: every head of q has the same norm, and every head of k. */
static int add_qk_norm(sf_ops *o, const sf_model_desc *m) {
    int slot = add_vector(o, "qk_norm", true, 2 * m->head_dim, NULL);
    sf_weight_desc *w = &o->weights[slot];
    w->n_parts = 2;
    w->parts[0] = (sf_wpart){"blk.%d.attn_q_norm.weight", m->head_dim, SF_ROLE_Q, NULL};
    w->parts[1] = (sf_wpart){"blk.%d.attn_k_norm.weight", m->head_dim, SF_ROLE_K, NULL};
    return slot;
}

static sf_op_spec *add_op(sf_ops *o, const char *name, sf_op op, sf_scope scope, sf_buf_id in, sf_buf_id out,
                          int weight) {
    sf_op_spec *s = &o->ops[o->n++];
    *s = (sf_op_spec){.desc = {.name = name,
                               .op = op,
                               .scope = scope,
                               .in = in,
                               .out = out,
                               .weight = weight,
                               .bias = -1,
                               .n = out == SF_BUF_NONE ? 1 : o->bufs[out].cols,
                               .k = o->bufs[in].cols}};
    if (op == SF_OP_GEMM) s->desc.n = o->weights[weight].n;
    return s;
}

static void build_attention(sf_ops *o, const sf_model_desc *m, bool cuda) {
    int q = m->heads * m->head_dim, qkv = o->bufs[SF_BUF_QKV].cols;
    int norm = add_vector(o, "attn_norm", true, m->hidden, "blk.%d.attn_norm.weight");
    int w = add_matrix(o, "qkv", true, qkv, m->hidden, NULL);
    set_qkv_parts(&o->weights[w], m, "blk.%d.attn_q.weight", "blk.%d.attn_k.weight", "blk.%d.attn_v.weight");
    add_op(o, "attn_norm", SF_OP_RMSNORM, SF_SCOPE_LAYER, SF_BUF_X, SF_BUF_H, norm);
    sf_op_spec *gemm = add_op(o, "qkv", SF_OP_GEMM, SF_SCOPE_LAYER, SF_BUF_H, SF_BUF_QKV, w);
    if (m->qkv_bias) {
        gemm->desc.bias = add_vector(o, "qkv_bias", true, qkv, NULL);
        set_qkv_parts(&o->weights[gemm->desc.bias], m, "blk.%d.attn_q.bias", "blk.%d.attn_k.bias",
                      "blk.%d.attn_v.bias");
    }
    int qk_norm = m->qk_norm ? add_qk_norm(o, m) : -1;
    add_op(o, "rope_append", SF_OP_ROPE_APPEND, SF_SCOPE_LAYER, SF_BUF_QKV, SF_BUF_Q, qk_norm);
    add_op(o, "attention", SF_OP_ATTENTION, SF_SCOPE_LAYER, SF_BUF_Q, SF_BUF_ATTN, -1);
    if (cuda) add_op(o, "attention_long", SF_OP_ATTENTION_LONG, SF_SCOPE_LAYER, SF_BUF_Q, SF_BUF_ATTN, -1);
    int out = add_matrix(o, "o", true, m->hidden, q, "blk.%d.attn_output.weight");
    add_op(o, "o", SF_OP_GEMM, SF_SCOPE_LAYER, SF_BUF_ATTN, SF_BUF_X, out)->epilogue = SF_EPILOGUE_ADD;
}

static void build_mlp(sf_ops *o, const sf_model_desc *m) {
    int norm = add_vector(o, "mlp_norm", true, m->hidden, "blk.%d.ffn_norm.weight");
    int gate_up = add_matrix(o, "gate_up", true, 2 * m->intermediate, m->hidden, NULL);
    sf_weight_desc *w = &o->weights[gate_up];
    w->interleave = true;
    w->n_parts = 2;
    w->parts[0] = (sf_wpart){"blk.%d.ffn_gate.weight", m->intermediate, SF_ROLE_PLAIN, NULL};
    w->parts[1] = (sf_wpart){"blk.%d.ffn_up.weight", m->intermediate, SF_ROLE_PLAIN, NULL};
    int down = add_matrix(o, "down", true, m->hidden, m->intermediate, "blk.%d.ffn_down.weight");
    add_op(o, "mlp_norm", SF_OP_RMSNORM, SF_SCOPE_LAYER, SF_BUF_X, SF_BUF_H, norm);
    add_op(o, "gate_up", SF_OP_GEMM, SF_SCOPE_LAYER, SF_BUF_H, SF_BUF_ACT, gate_up)->epilogue =
        SF_EPILOGUE_SWIGLU;
    add_op(o, "down", SF_OP_GEMM, SF_SCOPE_LAYER, SF_BUF_ACT, SF_BUF_X, down)->epilogue = SF_EPILOGUE_ADD;
}

static void build_head(sf_ops *o, const sf_model_desc *m, int embed) {
    int norm = add_vector(o, "final_norm", false, m->hidden, "output_norm.weight");
    int head = embed;
    if (!m->tied_embeddings) {
        head = add_matrix(o, "lm_head", false, m->vocab, m->hidden, "output.weight");
        o->weights[head].parts[0].fallback = "token_embd.weight";
    }
    add_op(o, "final_norm", SF_OP_RMSNORM, SF_SCOPE_HEAD, SF_BUF_X, SF_BUF_H, norm)->gathered = true;
    add_op(o, "lm_head", SF_OP_GEMM, SF_SCOPE_HEAD, SF_BUF_H, SF_BUF_LOGITS, head);
    add_op(o, "sample", SF_OP_SAMPLE, SF_SCOPE_HEAD, SF_BUF_LOGITS, SF_BUF_NONE, -1);
}

/* Every matrix, the embedding too, so that a tied head and an untied one read the same form. Activations
 * enter a product as rows of whole 16-byte pieces (device/cuda/tensor_maps.h). */
static sf_code pack_in_tiles(sf_ops *o, const sf_model *m, const sf_machine *mc, sf_err *err) {
    for (int i = 0; i < o->n_weights; i++) {
        sf_weight_desc *w = &o->weights[i];
        if (w->format != SF_W_BF16) continue;
        if (w->k % 8)
            return SF_FAIL_AT(err, SF_UNSUPPORTED, ((sf_loc){m->file, 0, 0}),
                              "weight %s has %d columns, expected a multiple of 8 for backend cuda", w->name,
                              w->k);
        w->format = SF_W_BF16_MMA;
        w->tile = sf_machine_tile(mc, w->n, w->k, sf_weight_tiles(w));
    }
    for (int i = 0; i < o->n; i++)
        if (o->ops[i].desc.weight >= 0) o->ops[i].tile = o->weights[o->ops[i].desc.weight].tile;
    return SF_OK;
}

static sf_code describe(sf_arena *a, sf_ops *o, sf_err *err) {
    for (int i = 0; i < o->n; i++) {
        sf_op_spec *s = &o->ops[i];
        const sf_buf_desc *in = &o->bufs[s->desc.in], *out = &o->bufs[s->desc.out];
        const char *rows = s->desc.scope == SF_SCOPE_HEAD ? "logit rows" : "rows";
        if (s->desc.op == SF_OP_GEMM)
            s->shape = sf_arena_printf(a, "%s [%s, %d] = %s(%s [%s, %d] x [%d, %d]^T%s)", out->name, rows,
                                       out->cols, sf_epilogue_name(s->epilogue), in->name, rows, in->cols,
                                       s->desc.n, s->desc.k, s->desc.bias >= 0 ? " + bias" : "");
        else
            s->shape =
                sf_arena_printf(a, "%s [%s, %d] = %s(%s [%s, %d])", out->name, rows, s->desc.n,
                                sf_op_name(s->desc.op), in->name, s->gathered ? "rows" : rows, in->cols);
        if (!s->shape) return sf_arena_full(err);
    }
    return SF_OK;
}

sf_code sf_ops_build(sf_arena *a, const sf_model *m, const sf_machine *mc, sf_ops *out, sf_err *err) {
    const sf_model_desc *d = &m->desc;
    sf_ops o = {0};
    build_bufs(d, &o);
    int embed = add_matrix(&o, "tok_embd", false, d->vocab, d->hidden, "token_embd.weight");
    add_op(&o, "embed", SF_OP_EMBED, SF_SCOPE_PRE, SF_BUF_TOKENS, SF_BUF_X, embed);
    build_attention(&o, d, mc->cuda);
    build_mlp(&o, d);
    build_head(&o, d, embed);
    if (mc->cuda) SF_TRY(pack_in_tiles(&o, m, mc, err));
    SF_TRY(describe(a, &o, err));
    *out = o;
    return SF_OK;
}
