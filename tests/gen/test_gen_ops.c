#include "gen_test.h"

#include "cost.h"

static sf_model model_of(sf_arena *a, const char *path) {
    sf_buf b = {0};
    sf_err err = {0};
    sf_model m = {.file = path};
    sf_yaml_node *root = NULL;
    assert_ok(sf_buf_read_file(&b, path, SF_YAML_MAX_BYTES, &err), &err);
    assert_ok(sf_yaml_parse(a, path, b.data, b.len, &root, &err), &err);
    assert_ok(sf_model_read(root, path, &m, &err), &err);
    sf_buf_fini(&b);
    return m;
}

static sf_ops ops_of(sf_arena *a, const char *path) {
    sf_model m = model_of(a, path);
    sf_machine cpu = {.backend = "cpu"};
    sf_ops ops = {0};
    sf_err err = {0};
    assert_ok(sf_ops_build(a, &m, &cpu, &ops, &err), &err);
    sf_cost_fill(&m.desc, &ops);
    return ops;
}

static const sf_op_spec *spec(const sf_ops *o, const char *name) {
    for (int i = 0; i < o->n; i++)
        if (strcmp(o->ops[i].desc.name, name) == 0) return &o->ops[i];
    fail_msg("no op %s", name);
    return NULL;
}

static void smollm2_agrees_with_its_checkpoint(void **state) {
    (void)state;
    sf_arena *a = new_arena();
    sf_model_desc d = model_of(a, "models/smollm2-135m.yaml").desc;
    assert_int_equal(d.vocab, 49152);
    assert_int_equal(d.hidden, 576);
    assert_int_equal(d.layers, 30);
    assert_int_equal(d.heads, 9);
    assert_int_equal(d.kv_heads, 3);
    assert_int_equal(d.head_dim, 64);
    assert_int_equal(d.intermediate, 1536);
    assert_int_equal(d.context, 8192);
    assert_true(d.norm_eps == 1e-5f);
    assert_true(d.rope_theta == 100000);
    assert_true(d.tied_embeddings);
    assert_false(d.qkv_bias);
    assert_int_equal(d.bos, 1);
    assert_false(d.add_bos);
    assert_int_equal(d.n_eos, 1);
    assert_int_equal(d.eos[0], 2);
    assert_string_equal(d.tokenizer_split, "smollm");
    assert_null(d.chat_template);
    sf_arena_destroy(a);
}

static void ops_stand_in_the_order_of_a_pass(void **state) {
    (void)state;
    static const char *const names[] = {"embed",     "attn_norm",  "qkv",      "rope_append",
                                        "attention", "o",          "mlp_norm", "gate_up",
                                        "down",      "final_norm", "lm_head",  "sample"};
    static const sf_scope scopes[] = {SF_SCOPE_PRE,   SF_SCOPE_LAYER, SF_SCOPE_LAYER, SF_SCOPE_LAYER,
                                      SF_SCOPE_LAYER, SF_SCOPE_LAYER, SF_SCOPE_LAYER, SF_SCOPE_LAYER,
                                      SF_SCOPE_LAYER, SF_SCOPE_HEAD,  SF_SCOPE_HEAD,  SF_SCOPE_HEAD};
    sf_arena *a = new_arena();
    sf_ops o = ops_of(a, TINY_MODEL);
    assert_int_equal(o.n, 12);
    for (int i = 0; i < 12; i++) {
        assert_string_equal(o.ops[i].desc.name, names[i]);
        assert_int_equal(o.ops[i].desc.scope, scopes[i]);
        assert_int_equal(o.ops[i].gathered, strcmp(names[i], "final_norm") == 0);
    }
    sf_arena_destroy(a);
}

static void shapes_follow_the_model(void **state) {
    (void)state;
    sf_arena *a = new_arena();
    sf_ops o = ops_of(a, TINY_MODEL);
    const sf_op_spec *qkv = spec(&o, "qkv"), *gate_up = spec(&o, "gate_up"), *down = spec(&o, "down");
    assert_int_equal(o.bufs[SF_BUF_QKV].cols, 84);
    assert_int_equal(o.bufs[SF_BUF_ATTN].cols, 60);
    assert_int_equal(qkv->desc.n, 84);
    assert_int_equal(qkv->desc.k, 44);
    assert_int_equal(spec(&o, "o")->desc.k, 60);
    assert_int_equal(spec(&o, "o")->epilogue, SF_EPILOGUE_ADD);
    assert_int_equal(gate_up->desc.n, 148);
    assert_int_equal(gate_up->epilogue, SF_EPILOGUE_SWIGLU);
    assert_int_equal(gate_up->desc.out, SF_BUF_ACT);
    assert_int_equal(down->desc.k, 74);
    assert_string_equal(qkv->shape, "qkv [rows, 84] = store(h [rows, 44] x [84, 44]^T + bias)");
    assert_true(o.bufs[SF_BUF_LOGITS].logit_rows);
    sf_arena_destroy(a);
}

static void qkv_parts_carry_their_roles(void **state) {
    (void)state;
    sf_arena *a = new_arena();
    sf_ops o = ops_of(a, TINY_MODEL);
    const sf_op_desc *qkv = &spec(&o, "qkv")->desc;
    const int slots[] = {qkv->weight, qkv->bias};
    for (int i = 0; i < 2; i++) {
        const sf_weight_desc *w = &o.weights[slots[i]];
        assert_int_equal(w->n_parts, 3);
        assert_int_equal(w->parts[0].role, SF_ROLE_Q);
        assert_int_equal(w->parts[0].rows, 60);
        assert_int_equal(w->parts[1].role, SF_ROLE_K);
        assert_int_equal(w->parts[2].role, SF_ROLE_PLAIN);
        assert_int_equal(w->parts[2].rows, 12);
        assert_true(w->per_layer);
    }
    assert_int_equal(o.weights[qkv->bias].format, SF_W_F32);
    assert_int_equal(o.weights[qkv->bias].n, 1);
    assert_int_equal(o.weights[qkv->bias].k, 84);
    assert_string_equal(o.weights[qkv->bias].parts[1].tensor, "blk.%d.attn_k.bias");
    sf_arena_destroy(a);
}

static void norms_of_q_and_k_are_one_vector(void **state) {
    (void)state;
    sf_arena *a = new_arena();
    sf_ops with = ops_of(a, TINY_MODEL), without = ops_of(a, "models/smollm2-135m.yaml");
    const sf_op_desc *rope = &spec(&with, "rope_append")->desc;
    assert_true(rope->weight >= 0);
    const sf_weight_desc *w = &with.weights[rope->weight];
    assert_int_equal(w->format, SF_W_F32);
    assert_true(w->per_layer && w->n == 1 && w->k == 24 && w->n_parts == 2);
    assert_string_equal(w->parts[0].tensor, "blk.%d.attn_q_norm.weight");
    assert_string_equal(w->parts[1].tensor, "blk.%d.attn_k_norm.weight");
    assert_true(w->parts[0].rows == 12 && w->parts[0].role == SF_ROLE_Q);
    assert_true(w->parts[1].rows == 12 && w->parts[1].role == SF_ROLE_K);
    assert_int_equal(rope->weight_bytes, 24 * 4);
    assert_int_equal(spec(&without, "rope_append")->desc.weight, -1);
    sf_arena_destroy(a);
}

static void a_tied_head_shares_the_embedding_slot(void **state) {
    (void)state;
    sf_arena *a = new_arena();
    sf_ops tied = ops_of(a, "models/smollm2-135m.yaml"), untied = ops_of(a, TINY_MODEL);
    assert_int_equal(spec(&tied, "lm_head")->desc.weight, spec(&tied, "embed")->desc.weight);
    assert_int_equal(spec(&tied, "qkv")->desc.bias, -1);
    const sf_op_desc *head = &spec(&untied, "lm_head")->desc;
    assert_int_not_equal(head->weight, spec(&untied, "embed")->desc.weight);
    assert_string_equal(untied.weights[head->weight].parts[0].tensor, "output.weight");
    assert_string_equal(untied.weights[head->weight].parts[0].fallback, "token_embd.weight");
    assert_int_equal(untied.n_weights, tied.n_weights + 3); /* the head, the bias, the norms of q and k */
    sf_arena_destroy(a);
}

static void weight_bytes_count_the_padding(void **state) {
    (void)state;
    sf_arena *a = new_arena();
    sf_ops o = ops_of(a, TINY_MODEL);
    const sf_op_desc *qkv = &spec(&o, "qkv")->desc;
    assert_int_equal(sf_cost_weight_bytes(&o.weights[qkv->weight]), 96 * 44 * 2); /* 84 rows to 96 */
    assert_int_equal(qkv->weight_bytes, 96 * 44 * 2 + 84 * 4);
    /* gate and up are padded apart: 74 to 80 each */
    assert_int_equal(spec(&o, "gate_up")->desc.weight_bytes, 160 * 44 * 2);
    assert_int_equal(spec(&o, "embed")->desc.weight_bytes, 0); /* rows of it, per token */
    assert_int_equal(spec(&o, "embed")->desc.row_bytes, 4 + 44 * 4 + 44 * 2);
    assert_int_equal(spec(&o, "o")->desc.row_bytes, 60 * 2 + 2 * 44 * 4); /* reads and writes x */
    assert_int_equal(qkv->row_flops, 2 * 84 * 44);
    sf_arena_destroy(a);
}

static void cost_is_the_larger_of_memory_and_compute(void **state) {
    (void)state;
    sf_machine mc = {.bandwidth_gbs = 1, .gflops = {100, 10}, .max_logit_rows = 4};
    sf_op_desc op = {.scope = SF_SCOPE_HEAD, .weight_bytes = 1000, .row_bytes = 0, .row_flops = 10000};
    sf_cost one = sf_cost_op(&mc, &op, SF_CLASS_FAST, 1), many = sf_cost_op(&mc, &op, SF_CLASS_PINNED, 8);
    assert_true(one.us == 1.0); /* 1000 bytes at 1 GB/s */
    assert_false(one.compute_bound);
    assert_true(one.peak_share > 0.0999 && one.peak_share < 0.1001); /* 0.1 us of work in 1 us */
    assert_true(many.us == 8.0);                                     /* 80,000 FLOPs at 10 GFLOP/s */
    assert_true(many.compute_bound);
    assert_true(many.peak_share == 1.0);
    assert_int_equal(sf_cost_rows(&mc, &op, 9), 4);
    op.scope = SF_SCOPE_LAYER;
    assert_int_equal(sf_cost_rows(&mc, &op, 9), 9);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(smollm2_agrees_with_its_checkpoint),
        cmocka_unit_test(ops_stand_in_the_order_of_a_pass),
        cmocka_unit_test(shapes_follow_the_model),
        cmocka_unit_test(qkv_parts_carry_their_roles),
        cmocka_unit_test(norms_of_q_and_k_are_one_vector),
        cmocka_unit_test(a_tied_head_shares_the_embedding_slot),
        cmocka_unit_test(weight_bytes_count_the_padding),
        cmocka_unit_test(cost_is_the_larger_of_memory_and_compute),
    };
    return cmocka_run_group_tests(tests, go_to_root, NULL);
}
