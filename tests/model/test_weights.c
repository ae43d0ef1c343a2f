#include "model/weights.h"

#include "base/bf16.h"
#include "model/gguf_priv.h"
#include "model/tiny.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#define NAME "tiny.gguf"

static sf_code load(const tiny_change *c, const sf_plan *plan, int threads, sf_weights **out, sf_err *err) {
    gm m = tiny_file(c);
    sf_gguf *g = NULL;
    sf_pool *pool = NULL;
    assert_int_equal(sf_gguf_open_bytes(NAME, m.data, m.len, &g, err), SF_OK);
    assert_int_equal(sf_pool_create(threads, &pool, err), SF_OK);
    sf_code rc = sf_weights_load(plan, g, pool, false, NULL, out, err);
    sf_pool_destroy(pool);
    sf_gguf_close(g);
    gm_fini(&m);
    return rc;
}

static sf_weights *load_good(int threads) {
    const tiny_change none = {0};
    sf_weights *w = NULL;
    sf_err err = {0};
    if (load(&none, &tiny_plan, threads, &w, &err) != SF_OK) fail_msg("%s", err.msg);
    return w;
}

static float packed(const sf_weights *w, int slot, int layer, int n, int k) {
    const uint16_t *p = sf_weights_get(w, slot, layer);
    int k_pad = (tiny_weights[slot].k + 1) / 2 * 2;
    return sf_bf16_to_f32(p[((n / 16) * (k_pad / 2) + k / 2) * 32 + n % 16 * 2 + k % 2]);
}

/* Rows [row0, row0 + rows) of a slot hold a tensor's rows in file order, or, with pairs, each head of 4 as 0,
 * 2, 1, 3. */
static void expect_rows(const sf_weights *w, int slot, int layer, int row0, int rows, const char *tensor,
                        bool pairs) {
    static const int halves[4] = {0, 2, 1, 3};
    for (int r = 0; r < rows; r++) {
        int source = pairs ? r / 4 * 4 + halves[r % 4] : r;
        for (int k = 0; k < tiny_weights[slot].k; k++) {
            float want = tiny_value(tensor, (uint64_t)source, (uint64_t)k),
                  got = packed(w, slot, layer, row0 + r, k);
            if (got != want)
                fail_msg("%s[%d, %d]: %g, expected %g", tensor, source, k, (double)got, (double)want);
        }
    }
}

static void matrices_are_packed_in_blocks_of_16_rows(void **state) {
    (void)state;
    sf_weights *w = load_good(1);
    expect_rows(w, TINY_EMBED, 0, 0, 21, "token_embd.weight", false);
    expect_rows(w, TINY_HEAD, 0, 0, 21, "output.weight", false);
    expect_rows(w, TINY_OUT, 0, 0, 7, "blk.0.attn_output.weight", false);
    expect_rows(w, TINY_OUT, 1, 0, 7, "blk.1.attn_output.weight", false);
    expect_rows(w, TINY_DOWN, 1, 0, 7, "blk.1.ffn_down.weight", false);
    sf_weights_destroy(w);
}

static void rotary_pairs_of_q_and_k_become_halves(void **state) {
    (void)state;
    sf_weights *w = load_good(1);
    for (int layer = 0; layer < 2; layer++) {
        expect_rows(w, TINY_QKV, layer, 0, 8, layer ? "blk.1.attn_q.weight" : "blk.0.attn_q.weight", true);
        expect_rows(w, TINY_QKV, layer, 8, 4, layer ? "blk.1.attn_k.weight" : "blk.0.attn_k.weight", true);
        expect_rows(w, TINY_QKV, layer, 12, 4, layer ? "blk.1.attn_v.weight" : "blk.0.attn_v.weight", false);
    }
    sf_weights_destroy(w);
}

static void vectors_stay_fp32_with_parts_in_order(void **state) {
    (void)state;
    static const int halves[8] = {0, 2, 1, 3, 4, 6, 5, 7};
    sf_weights *w = load_good(2);
    const float *norm = sf_weights_get(w, TINY_NORM, 1), *bias = sf_weights_get(w, TINY_BIAS, 0);
    for (uint64_t i = 0; i < 7; i++)
        assert_true(norm[i] == tiny_value("blk.1.attn_norm.weight", 0, i));
    for (uint64_t i = 0; i < 8; i++)
        assert_true(bias[i] == tiny_value("blk.0.attn_q.bias", 0, (uint64_t)halves[i]));
    for (uint64_t i = 0; i < 4; i++) {
        assert_true(bias[8 + i] == tiny_value("blk.0.attn_k.bias", 0, (uint64_t)halves[i]));
        assert_true(bias[12 + i] == tiny_value("blk.0.attn_v.bias", 0, i));
    }
    sf_weights_destroy(w);
}

static void alternating_parts_have_blocks_of_16_rows_each(void **state) {
    (void)state;
    sf_weights *w = load_good(2);
    /* 20 rows of each: blocks gate 0..15, up 0..15, gate 16..19 and padding, up 16..19 and padding */
    expect_rows(w, TINY_GATE_UP, 0, 0, 16, "blk.0.ffn_gate.weight", false);
    expect_rows(w, TINY_GATE_UP, 0, 16, 16, "blk.0.ffn_up.weight", false);
    for (int k = 0; k < 7; k++) {
        for (int lane = 0; lane < 16; lane++) {
            uint64_t row = 16 + (uint64_t)lane;
            float gate = lane < 4 ? tiny_value("blk.0.ffn_gate.weight", row, (uint64_t)k) : 0;
            float up = lane < 4 ? tiny_value("blk.0.ffn_up.weight", row, (uint64_t)k) : 0;
            assert_true(packed(w, TINY_GATE_UP, 0, 32 + lane, k) == gate);
            assert_true(packed(w, TINY_GATE_UP, 0, 48 + lane, k) == up);
        }
    }
    sf_weights_destroy(w);
}

static void padding_is_zero(void **state) {
    (void)state;
    sf_weights *w = load_good(1);
    for (int n = 0; n < 32; n++) {
        for (int k = 0; k < 8; k++) {
            if (n >= 21 || k >= 7) assert_true(packed(w, TINY_EMBED, 0, n, k) == 0);
        }
    }
    assert_true(packed(w, TINY_EMBED, 0, 20, 6) != 0);
    sf_weights_destroy(w);
}

static void slots_are_aligned_and_sized(void **state) {
    (void)state;
    sf_weights *w = load_good(1);
    for (int slot = 0; slot < TINY_SLOTS; slot++) {
        for (int layer = 0; layer < (tiny_weights[slot].per_layer ? 2 : 1); layer++)
            assert_int_equal((uintptr_t)sf_weights_get(w, slot, layer) % 64, 0);
    }
    /* embed, head 32 x 8; per layer: norm 64 B, qkv 16 x 8, bias 64 B, o 16 x 8, gate and up 64 x 8, down 16
     * x 20 */
    assert_int_equal(sf_weights_bytes(w), 2 * 512 + 2 * (64 + 256 + 64 + 256 + 1024 + 640));
    sf_weights_destroy(w);
}

/* A model that ties its head: absent, there and equal, there and other. */
static void a_tied_head_may_be_there_if_it_is_the_embedding(void **state) {
    (void)state;
    sf_plan plan = tiny_plan;
    sf_weights *w = NULL;
    sf_err err = {0};
    plan.n_weights = TINY_HEAD;
    plan.model.tied_embeddings = true;
    if (load(&(tiny_change){.without = "output.weight"}, &plan, 1, &w, &err) != SF_OK)
        fail_msg("%s", err.msg);
    sf_weights_destroy(w);
    w = NULL;
    const tiny_change same = {.tensor = {"output.weight", 21, 7, SF_GGML_F16},
                              .values_of = "token_embd.weight"};
    if (load(&same, &plan, 1, &w, &err) != SF_OK) fail_msg("%s", err.msg);
    sf_weights_destroy(w);
    w = NULL;
    assert_int_equal(load(&(tiny_change){0}, &plan, 1, &w, &err), SF_FORMAT);
    assert_string_equal(err.msg,
                        "tensor output.weight differs from token_embd.weight, which model tiny uses in "
                        "its place (tied embeddings)");
    assert_null(w);
}

static void other_families_keep_their_rows(void **state) {
    (void)state;
    sf_plan plan = tiny_plan;
    plan.model.family = "qwen2";
    gm m = tiny_file(&(tiny_change){0});
    for (size_t i = 0; i + 5 <= m.len; i++) {
        if (memcmp(m.data + i, "llama", 5) == 0) memcpy(m.data + i, "qwen2", 5);
    }
    sf_gguf *g = NULL;
    sf_pool *pool = NULL;
    sf_weights *w = NULL;
    sf_err err = {0};
    assert_int_equal(sf_gguf_open_bytes(NAME, m.data, m.len, &g, &err), SF_OK);
    assert_int_equal(sf_pool_create(1, &pool, &err), SF_OK);
    if (sf_weights_load(&plan, g, pool, false, NULL, &w, &err) != SF_OK) fail_msg("%s", err.msg);
    expect_rows(w, TINY_QKV, 0, 0, 8, "blk.0.attn_q.weight", false);
    sf_weights_destroy(w);
    sf_pool_destroy(pool);
    sf_gguf_close(g);
    gm_fini(&m);
}

static void bits_and_hash_are_the_same_for_every_thread_count(void **state) {
    (void)state;
    sf_weights *one = load_good(1), *three = load_good(3);
    assert_memory_equal(sf_weights_get(one, 0, 0), sf_weights_get(three, 0, 0), sf_weights_bytes(one));
    assert_string_equal(sf_weights_hash(one), sf_weights_hash(three));
    assert_int_equal(strlen(sf_weights_hash(one)), 64);
    sf_weights_destroy(one);
    sf_weights_destroy(three);
}

static void one_changed_value_changes_the_hash(void **state) {
    (void)state;
    const tiny_change c = {.value_tensor = "blk.1.ffn_down.weight", .value_at = 139, .value = 1000};
    sf_weights *good = load_good(1), *other = NULL;
    sf_err err = {0};
    assert_int_equal(load(&c, &tiny_plan, 1, &other, &err), SF_OK);
    assert_string_not_equal(sf_weights_hash(good), sf_weights_hash(other));
    sf_weights_destroy(good);
    sf_weights_destroy(other);
}

static void values_round_to_bf16_operands(void **state) {
    (void)state;
    static const struct {
        float in, out;
    } cases[] = {
        {1.00390625f, 1.0f}, {1.01171875f, 1.015625f}, {0x1p-61f, 0}, {-0x1p-61f, 0}, {0x1p-60f, 0x1p-60f}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const tiny_change c = {.value_tensor = "blk.0.ffn_down.weight", .value_at = 23, .value = cases[i].in};
        sf_weights *w = NULL;
        sf_err err = {0};
        assert_int_equal(load(&c, &tiny_plan, 1, &w, &err), SF_OK);
        float got = packed(w, TINY_DOWN, 0, 1, 3);
        assert_memory_equal(&got, &cases[i].out, sizeof got); /* +0, not -0 */
        sf_weights_destroy(w);
    }
}

static void expect_error(const tiny_change *c, sf_code code, const char *text) {
    sf_weights *w = NULL;
    sf_err err = {0};
    char msg[600], want[600];
    sf_code rc = load(c, &tiny_plan, 2, &w, &err);
    sf_err_format(&err, msg, sizeof msg);
    snprintf(want, sizeof want, NAME ": %s", text);
    if (rc != code || strcmp(msg, want) != 0)
        fail_msg("code %d '%s', expected %d '%s'", (int)rc, msg, (int)code, want);
    assert_null(w);
}

#define TENSOR(...)                                                                                          \
    &(tiny_change) {                                                                                         \
        .tensor = { __VA_ARGS__ }                                                                            \
    }
#define KEY(...)                                                                                             \
    &(tiny_change) {                                                                                         \
        .key = { __VA_ARGS__ }                                                                               \
    }
#define WITHOUT(x)                                                                                           \
    &(tiny_change) {                                                                                         \
        .without = x                                                                                         \
    }

static void shapes_and_types_are_refused_by_tensor(void **state) {
    (void)state;
    expect_error(TENSOR("blk.0.attn_q.weight", 8, 6, SF_GGML_F32), SF_FORMAT,
                 "tensor blk.0.attn_q.weight is [8, 6] F32, expected [8, 7]");
    expect_error(TENSOR("blk.1.ffn_up.weight", 7, 20, SF_GGML_F16), SF_FORMAT,
                 "tensor blk.1.ffn_up.weight is [7, 20] F16, expected [20, 7]");
    expect_error(TENSOR("blk.1.ffn_up.weight", 20, 32, SF_GGML_Q4_1), SF_FORMAT,
                 "tensor blk.1.ffn_up.weight is [20, 32] Q4_1, expected [20, 7]");
    expect_error(TENSOR("blk.1.attn_norm.weight", 0, 8, SF_GGML_F32), SF_FORMAT,
                 "tensor blk.1.attn_norm.weight is [8] F32, expected [7]");
    expect_error(TENSOR("blk.0.attn_v.weight", 4, 7, 25), SF_UNSUPPORTED,
                 "tensor blk.0.attn_v.weight is I16 (25), expected F32, F16, BF16, Q8_0, Q4_0, Q4_1, Q5_0, "
                 "Q5_1, Q4_K, Q5_K or Q6_K");
    expect_error(TENSOR("blk.0.attn_v.weight", 4, 7, 77), SF_UNSUPPORTED,
                 "tensor blk.0.attn_v.weight is an unknown type (77), expected F32, F16, BF16, Q8_0, Q4_0, "
                 "Q4_1, Q5_0, Q5_1, Q4_K, Q5_K or Q6_K");
}

static void missing_and_surplus_tensors_are_refused_by_name(void **state) {
    (void)state;
    expect_error(WITHOUT("blk.1.attn_k.weight"), SF_FORMAT,
                 "tensor blk.1.attn_k.weight is missing, expected [4, 7]");
    expect_error(WITHOUT("blk.0.attn_v.bias"), SF_FORMAT,
                 "tensor blk.0.attn_v.bias is missing, expected [4]");
    expect_error(TENSOR("blk.0.attn_output.bias", 0, 7, SF_GGML_F32), SF_UNSUPPORTED,
                 "tensor blk.0.attn_output.bias has no place in model tiny");
    expect_error(TENSOR("rope_factors.weight", 0, 2, SF_GGML_F32), SF_UNSUPPORTED,
                 "tensor rope_factors.weight has no place in model tiny");
    expect_error(TENSOR("blk.2.attn_norm.weight", 0, 7, SF_GGML_F32), SF_UNSUPPORTED,
                 "tensor blk.2.attn_norm.weight has no place in model tiny");
}

static void values_that_are_not_finite_are_refused_by_place(void **state) {
    (void)state;
    const float nan_value = strtof("nan", NULL), inf = strtof("inf", NULL);
    expect_error(&(tiny_change){.value_tensor = "blk.1.attn_q.weight", .value_at = 15, .value = nan_value},
                 SF_FORMAT, "tensor blk.1.attn_q.weight: row 2 has a value that is not finite in bf16");
    expect_error(&(tiny_change){.value_tensor = "blk.0.ffn_gate.weight", .value_at = 139, .value = -inf},
                 SF_FORMAT, "tensor blk.0.ffn_gate.weight: row 19 has a value that is not finite in bf16");
    expect_error(&(tiny_change){.value_tensor = "blk.0.ffn_gate.weight", .value_at = 0, .value = 3.4e38f},
                 SF_FORMAT, "tensor blk.0.ffn_gate.weight: row 0 has a value that is not finite in bf16");
    expect_error(&(tiny_change){.value_tensor = "blk.0.attn_norm.weight", .value_at = 6, .value = inf},
                 SF_FORMAT, "tensor blk.0.attn_norm.weight: element 6 is not finite");
    expect_error(&(tiny_change){.value_tensor = "blk.0.attn_v.bias", .value_at = 3, .value = nan_value},
                 SF_FORMAT, "tensor blk.0.attn_v.bias: element 3 is not finite");
}

static void metadata_that_differs_is_refused_by_key(void **state) {
    (void)state;
    static const char *const ints[] = {"block_count",          "context_length",
                                       "embedding_length",     "feed_forward_length",
                                       "attention.head_count", "attention.head_count_kv",
                                       "attention.key_length", "attention.value_length",
                                       "rope.dimension_count", "vocab_size"};
    static const int expected[] = {2, 32, 7, 20, 2, 1, 4, 4, 4, 21};
    for (size_t i = 0; i < sizeof ints / sizeof *ints; i++) {
        char key[80], text[160];
        snprintf(key, sizeof key, "llama.%s", ints[i]);
        snprintf(text, sizeof text, "key %s is 99, expected %d", key, expected[i]);
        expect_error(KEY(key, 4, 99, NULL), SF_FORMAT, text);
    }
    expect_error(KEY("llama.rope.freq_base", 6, 10000, NULL), SF_FORMAT,
                 "key llama.rope.freq_base is 10000, expected 50000");
    expect_error(KEY("llama.attention.layer_norm_rms_epsilon", 6, 1e-6, NULL), SF_FORMAT,
                 "key llama.attention.layer_norm_rms_epsilon is 9.99999997e-07, expected 9.99999975e-06");
    expect_error(KEY("llama.block_count", 8, 0, "2"), SF_FORMAT,
                 "key llama.block_count has type string, expected an integer");
}

static void missing_metadata_is_refused_or_has_its_meaning(void **state) {
    (void)state;
    expect_error(WITHOUT("general.architecture"), SF_NOT_FOUND, "key general.architecture is missing");
    expect_error(WITHOUT("llama.block_count"), SF_NOT_FOUND, "key llama.block_count is missing");
    expect_error(WITHOUT("llama.rope.freq_base"), SF_FORMAT,
                 "key llama.rope.freq_base is missing, which means 10000, expected 50000");
    expect_error(WITHOUT("llama.attention.key_length"), SF_FORMAT,
                 "key llama.attention.key_length is missing, which means 3, expected 4");
    expect_error(WITHOUT("llama.attention.head_count_kv"), SF_FORMAT,
                 "key llama.attention.head_count_kv is missing, which means 2, expected 1");
    sf_weights *w = NULL;
    sf_err err = {0};
    assert_int_equal(load(WITHOUT("llama.vocab_size"), &tiny_plan, 1, &w, &err), SF_OK);
    sf_weights_destroy(w);
}

static void what_is_not_computed_is_refused_by_name(void **state) {
    (void)state;
    expect_error(KEY("general.architecture", 8, 0, "mamba"), SF_UNSUPPORTED,
                 "key general.architecture is 'mamba', expected 'llama'");
    expect_error(KEY("llama.expert_count", 4, 8, NULL), SF_UNSUPPORTED,
                 "key llama.expert_count is 8, a mixture of experts is not supported");
    expect_error(KEY("llama.rope.scaling.type", 8, 0, "longrope"), SF_UNSUPPORTED,
                 "key llama.rope.scaling.type is 'longrope', expected none, linear or yarn");
    expect_error(KEY("llama.rope.scaling.yarn_ext_factor", 6, 1, NULL), SF_UNSUPPORTED,
                 "key llama.rope.scaling.yarn_ext_factor is not supported");
    expect_error(KEY("llama.attention.sliding_window", 4, 4096, NULL), SF_UNSUPPORTED,
                 "key llama.attention.sliding_window is not supported");
    expect_error(KEY("split.count", 4, 3, NULL), SF_UNSUPPORTED,
                 "key split.count is 3, a checkpoint in several GGUF files is not supported");
    sf_weights *w = NULL;
    sf_err err = {0};
    assert_int_equal(load(KEY("llama.expert_count", 4, 0, NULL), &tiny_plan, 1, &w, &err), SF_OK);
    sf_weights_destroy(w);
    w = NULL;
    assert_int_equal(load(KEY("llama.rope.scaling.type", 8, 0, "none"), &tiny_plan, 1, &w, &err), SF_OK);
    sf_weights_destroy(w);
}

static void a_plan_that_does_not_fit_together_is_refused(void **state) {
    (void)state;
    sf_weight_desc bad[TINY_SLOTS];
    sf_plan plan = tiny_plan;
    plan.weights = bad;
    for (int i = 0; i < 4; i++) {
        memcpy(bad, tiny_weights, sizeof bad);
        if (i == 0) bad[TINY_QKV].n = 17;                 /* parts give 16 */
        if (i == 1) bad[TINY_QKV].parts[0].rows = 6;      /* no whole heads */
        if (i == 2) bad[TINY_GATE_UP].parts[0].rows = 21; /* unequal alternating parts */
        if (i == 3) bad[TINY_DOWN].format = SF_W_COUNT;
        sf_weights *w = NULL;
        sf_err err = {0};
        sf_code rc = load(&(tiny_change){0}, &plan, 1, &w, &err);
        assert_int_equal(rc, i == 3 ? SF_UNSUPPORTED : SF_INVALID);
        assert_non_null(strstr(err.msg, i == 3 ? "weight down" : i == 2 ? "weight gate_up" : "weight qkv"));
        assert_null(w);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(matrices_are_packed_in_blocks_of_16_rows),
        cmocka_unit_test(rotary_pairs_of_q_and_k_become_halves),
        cmocka_unit_test(vectors_stay_fp32_with_parts_in_order),
        cmocka_unit_test(alternating_parts_have_blocks_of_16_rows_each),
        cmocka_unit_test(padding_is_zero),
        cmocka_unit_test(slots_are_aligned_and_sized),
        cmocka_unit_test(a_tied_head_may_be_there_if_it_is_the_embedding),
        cmocka_unit_test(other_families_keep_their_rows),
        cmocka_unit_test(bits_and_hash_are_the_same_for_every_thread_count),
        cmocka_unit_test(one_changed_value_changes_the_hash),
        cmocka_unit_test(values_round_to_bf16_operands),
        cmocka_unit_test(shapes_and_types_are_refused_by_tensor),
        cmocka_unit_test(missing_and_surplus_tensors_are_refused_by_name),
        cmocka_unit_test(values_that_are_not_finite_are_refused_by_place),
        cmocka_unit_test(metadata_that_differs_is_refused_by_key),
        cmocka_unit_test(missing_metadata_is_refused_or_has_its_meaning),
        cmocka_unit_test(what_is_not_computed_is_refused_by_name),
        cmocka_unit_test(a_plan_that_does_not_fit_together_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
