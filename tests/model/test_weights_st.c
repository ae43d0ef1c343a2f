/* Weights from safetensors: the same bytes as from GGUF, and what is refused. */
#include "model/weights.h"

#include "model/gguf_priv.h"
#include "model/hf_config_priv.h"
#include "model/safetensors_priv.h"
#include "model/tiny_st.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#define NAME "tiny.safetensors"

static sf_hf_config *config_of(const char *text) {
    sf_hf_config *c = NULL;
    sf_err err = {0};
    if (sf_hf_config_open_text("tiny", text, strlen(text), &c, &err) != SF_OK) fail_msg("%s", err.msg);
    return c;
}

static sf_code load_open(const sf_plan *plan, const sf_safetensors *st, const char *config, int threads,
                         sf_weights **out, sf_err *err) {
    sf_pool *pool = NULL;
    sf_hf_config *c = config_of(config);
    assert_int_equal(sf_pool_create(threads, &pool, NULL), SF_OK);
    sf_code rc = sf_weights_load_st(plan, st, c, pool, false, NULL, out, err);
    sf_pool_destroy(pool);
    sf_hf_config_close(c);
    return rc;
}

static sf_code load(const tiny_st_change *change, const sf_plan *plan, const char *config, sf_weights **out,
                    sf_err *err) {
    gm m = tiny_st_file(change);
    sf_safetensors *st = NULL;
    if (sf_safetensors_open_bytes(NAME, m.data, m.len, &st, err) != SF_OK) fail_msg("%s", err->msg);
    sf_code rc = load_open(plan, st, config, 2, out, err);
    sf_safetensors_close(st);
    gm_fini(&m);
    return rc;
}

static sf_weights *load_gguf(const sf_plan *plan, const tiny_change *change) {
    gm m = tiny_file(change);
    sf_gguf *g = NULL;
    sf_pool *pool = NULL;
    sf_weights *w = NULL;
    sf_err err = {0};
    assert_int_equal(sf_gguf_open_bytes("tiny.gguf", m.data, m.len, &g, &err), SF_OK);
    assert_int_equal(sf_pool_create(1, &pool, &err), SF_OK);
    if (sf_weights_load(plan, g, pool, false, NULL, &w, &err) != SF_OK) fail_msg("%s", err.msg);
    sf_pool_destroy(pool);
    sf_gguf_close(g);
    gm_fini(&m);
    return w;
}

static void expect_same(const sf_weights *a, const sf_weights *b) {
    assert_int_equal(sf_weights_bytes(a), sf_weights_bytes(b));
    assert_memory_equal(sf_weights_get(a, 0, 0), sf_weights_get(b, 0, 0), sf_weights_bytes(a));
    assert_string_equal(sf_weights_hash(a), sf_weights_hash(b));
}

static void both_formats_give_the_same_packed_bytes(void **state) {
    (void)state;
    sf_weight_desc mma[TINY_SLOTS];
    tiny_as_mma(2, mma);
    for (int i = 0; i < 2; i++) {
        sf_plan of_gguf = tiny_plan, of_st = tiny_st_plan();
        sf_weights *w = NULL;
        sf_err err = {0};
        if (i == 1) of_gguf.weights = of_st.weights = mma;
        sf_weights *g = load_gguf(&of_gguf, &(tiny_change){0});
        if (load(&(tiny_st_change){0}, &of_st, TINY_CONFIG, &w, &err) != SF_OK) fail_msg("%s", err.msg);
        expect_same(g, w);
        sf_weights_destroy(g);
        sf_weights_destroy(w);
    }
}

static void the_same_values_of_any_type_give_the_same_bytes(void **state) {
    (void)state;
    static const int types[] = {SF_GGML_F32, SF_GGML_F16, SF_GGML_BF16};
    const sf_plan plan = tiny_st_plan();
    sf_weights *w[3] = {NULL};
    sf_err err = {0};
    for (int i = 0; i < 3; i++)
        if (load(&(tiny_st_change){.type = &types[i]}, &plan, TINY_CONFIG, &w[i], &err) != SF_OK)
            fail_msg("%s", err.msg);
    expect_same(w[0], w[1]);
    expect_same(w[0], w[2]);
    for (int i = 0; i < 3; i++)
        sf_weights_destroy(w[i]);
}

/* The comparison above would see a row of q in another place, and a value that differs. */
static void another_value_gives_other_bytes(void **state) {
    (void)state;
    const sf_plan plan = tiny_st_plan();
    sf_weights *w = NULL, *good = load_gguf(&tiny_plan, &(tiny_change){0});
    sf_err err = {0};
    const tiny_st_change change = {
        .value_tensor = "model.layers.1.self_attn.q_proj.weight", .value_at = 9, .value = 0.25f};
    if (load(&change, &plan, TINY_CONFIG, &w, &err) != SF_OK) fail_msg("%s", err.msg);
    assert_string_not_equal(sf_weights_hash(good), sf_weights_hash(w));
    sf_weights_destroy(good);
    sf_weights_destroy(w);
}

/* Writes shards first..2: tensors 0..9, 10..16 and the rest; and their index. */
static void write_shards(const char *dir) {
    static const int cuts[4] = {0, 10, 17, TINY_TENSORS};
    const tiny_st_change none = {0};
    gm index = {0};
    for (int s = 0; s < 3; s++) {
        char file[40];
        snprintf(file, sizeof file, "model-%d-of-3.safetensors", s + 1);
        st_save(dir, file, tiny_st_part(&none, cuts[s], cuts[s + 1]));
        for (int i = cuts[s]; i < cuts[s + 1]; i++) {
            char name[96], line[160];
            tiny_st_name(tiny_tensors[i].name, name);
            int n = snprintf(line, sizeof line, "%s\"%s\":\"%s\"", i ? "," : "{\"weight_map\":{", name, file);
            gm_bytes(&index, line, (size_t)n);
        }
    }
    gm_bytes(&index, "}}", 2);
    st_save(dir, "model.safetensors.index.json", index);
    st_write_text(dir, "config.json", TINY_CONFIG);
}

static void shards_in_a_directory_give_the_same(void **state) {
    (void)state;
    const sf_plan plan = tiny_st_plan();
    char dir[64];
    sf_safetensors *st = NULL;
    sf_hf_config *c = NULL;
    sf_weights *w = NULL, *good = load_gguf(&tiny_plan, &(tiny_change){0});
    sf_err err = {0};
    st_directory(dir);
    write_shards(dir);
    if (sf_safetensors_open(dir, &st, &err) != SF_OK) fail_msg("%s", err.msg);
    if (sf_hf_config_open(dir, &c, &err) != SF_OK) fail_msg("%s", err.msg);
    assert_int_equal(sf_hf_config_model(c)->hidden, 7);
    if (load_open(&plan, st, TINY_CONFIG, 1, &w, &err) != SF_OK) fail_msg("%s", err.msg);
    expect_same(good, w);
    sf_hf_config_close(c);
    sf_safetensors_close(st);
    sf_weights_destroy(good);
    sf_weights_destroy(w);
    st_remove(dir);
}

static void expect_error(const tiny_st_change *change, sf_code code, const char *text) {
    const sf_plan plan = tiny_st_plan();
    sf_weights *w = NULL;
    sf_err err = {0};
    char msg[600];
    sf_code rc = load(change, &plan, TINY_CONFIG, &w, &err);
    sf_err_format(&err, msg, sizeof msg);
    if (rc != code || strncmp(msg, NAME ": ", strlen(NAME) + 2) != 0 || !strstr(msg, text))
        fail_msg("code %d '%s', expected %d '%s'", (int)rc, msg, (int)code, text);
    assert_null(w);
}

static void each_tensor_left_out_is_named(void **state) {
    (void)state;
    for (int i = 0; i < TINY_TENSORS; i++) {
        char name[96], want[160];
        tiny_st_name(tiny_tensors[i].name, name);
        snprintf(want, sizeof want, ": tensor %s is missing, expected [", name);
        expect_error(&(tiny_st_change){.without = name}, SF_FORMAT, want);
    }
}

static void each_tensor_under_another_name_is_named(void **state) {
    (void)state;
    for (int i = 0; i < TINY_TENSORS; i++) {
        char name[96], want[160];
        tiny_st_name(tiny_tensors[i].name, name);
        snprintf(want, sizeof want, ": tensor %s is missing, expected [", name);
        expect_error(&(tiny_st_change){.rename = name, .to = "other"}, SF_FORMAT, want);
    }
}

static void each_tensor_of_another_shape_is_named(void **state) {
    (void)state;
    for (int i = 0; i < TINY_TENSORS; i++) {
        const tiny_tensor *t = &tiny_tensors[i];
        char name[96], want[200];
        int rows = (int)t->rows, cols = (int)t->cols;
        const char *type = sf_ggml_type_name(t->type);
        tiny_st_name(t->name, name);
        if (rows) {
            snprintf(want, sizeof want, ": tensor %s is [%d, %d] %s, expected [%d, %d]", name, rows + 1, cols,
                     type, rows, cols);
        } else {
            snprintf(want, sizeof want, ": tensor %s is [%d] %s, expected [%d]", name, cols + 1, type, cols);
        }
        expect_error(&(tiny_st_change){.reshape = name}, SF_FORMAT, want);
    }
}

static void a_tensor_without_a_place_is_named(void **state) {
    (void)state;
    expect_error(&(tiny_st_change){.extra = "model.layers.0.self_attn.o_proj.bias"}, SF_UNSUPPORTED,
                 "tensor model.layers.0.self_attn.o_proj.bias has no place in model tiny");
    expect_error(&(tiny_st_change){.extra = "model.layers.2.input_layernorm.weight"}, SF_UNSUPPORTED,
                 "tensor model.layers.2.input_layernorm.weight has no place in model tiny");
}

static void frequencies_of_rope_may_be_there(void **state) {
    (void)state;
    const sf_plan plan = tiny_st_plan();
    sf_weights *w = NULL;
    sf_err err = {0};
    const tiny_st_change change = {.extra = "model.layers.0.self_attn.rotary_emb.inv_freq"};
    if (load(&change, &plan, TINY_CONFIG, &w, &err) != SF_OK) fail_msg("%s", err.msg);
    sf_weights_destroy(w);
}

static void values_that_are_not_finite_are_named(void **state) {
    (void)state;
    expect_error(
        &(tiny_st_change){.value_tensor = "model.layers.0.self_attn.q_proj.weight",
                          .value_at = 7 * 2 + 1,
                          .value = 3.4e38f},
        SF_FORMAT,
        "tensor model.layers.0.self_attn.q_proj.weight: row 2 has a value that is not finite in bf16");
    expect_error(&(tiny_st_change){.value_tensor = "model.layers.1.input_layernorm.weight",
                                   .value_at = 4,
                                   .value = -1.0f / 0.0f},
                 SF_FORMAT, "tensor model.layers.1.input_layernorm.weight: element 4 is not finite");
}

/* The file loses its end between opening and loading: no signal, and the tensor is named. */
static void a_file_that_is_cut_while_it_is_open_is_an_error(void **state) {
    (void)state;
    const sf_plan plan = tiny_st_plan();
    const tiny_st_change none = {0};
    char dir[64], path[80], msg[600], want[600];
    st_directory(dir);
    snprintf(path, sizeof path, "%s/cut.safetensors", dir);
    gm m = tiny_st_file(&none);
    size_t len = m.len;
    st_save(dir, "cut.safetensors", m);
    for (int threads = 1; threads <= 2; threads++) {
        sf_safetensors *st = NULL;
        sf_weights *w = NULL;
        sf_err err = {0};
        if (sf_safetensors_open(path, &st, &err) != SF_OK) fail_msg("%s", err.msg);
        assert_int_equal(load_open(&plan, st, TINY_CONFIG, threads, &w, &err), SF_OK);
        sf_weights_destroy(w);
        w = NULL;
        assert_int_equal(truncate(path, (off_t)len - 100), 0); /* inside the last tensor, of 560 bytes */
        assert_int_equal(load_open(&plan, st, TINY_CONFIG, threads, &w, &err), SF_IO);
        snprintf(want, sizeof want,
                 "%s: tensor model.layers.1.mlp.down_proj.weight: the file now ends at byte 460 of its 560 "
                 "(it has "
                 "been cut)",
                 path);
        assert_string_equal(sf_err_format(&err, msg, sizeof msg), want);
        assert_int_equal(truncate(path, (off_t)len), 0);
        assert_null(w);
        sf_safetensors_close(st);
    }
    st_remove(dir);
}

/* A plan whose head is the embedding. */
static sf_plan tied_plan(void) {
    sf_plan plan = tiny_st_plan();
    plan.n_weights = TINY_HEAD;
    plan.model.tied_embeddings = true;
    return plan;
}

#define TIED_CONFIG                                                                                          \
    "{\"model_type\":\"qwen2\",\"vocab_size\":21,\"hidden_size\":7,\"num_hidden_layers\":2,"                 \
    "\"num_attention_heads\":2,\"num_key_value_heads\":1,\"head_dim\":4,\"intermediate_size\":20,"           \
    "\"max_position_embeddings\":32,\"rms_norm_eps\":1e-05,\"rope_theta\":50000.0,"                          \
    "\"tie_word_embeddings\":true}"

static void a_tied_head_may_be_absent(void **state) {
    (void)state;
    const sf_plan plan = tied_plan();
    sf_weights *w = NULL;
    sf_err err = {0};
    if (load(&(tiny_st_change){.without = "lm_head.weight"}, &plan, TIED_CONFIG, &w, &err) != SF_OK)
        fail_msg("%s", err.msg);
    sf_weights_destroy(w);
}

static void a_tied_head_that_is_there_must_be_the_embedding(void **state) {
    (void)state;
    const sf_plan plan = tied_plan();
    sf_weights *w = NULL;
    sf_err err = {0};
    const tiny_st_change same = {.without = "lm_head.weight", .extra = "lm_head.weight"};
    if (load(&same, &plan, TIED_CONFIG, &w, &err) != SF_OK) fail_msg("%s", err.msg);
    sf_weights_destroy(w);
    assert_int_equal(load(&(tiny_st_change){0}, &plan, TIED_CONFIG, &w, &err), SF_FORMAT);
    assert_string_equal(err.msg, "tensor lm_head.weight differs from model.embed_tokens.weight, which model "
                                 "tiny uses in its place (tied embeddings)");
}

static void a_head_of_its_own_must_be_there(void **state) {
    (void)state;
    expect_error(&(tiny_st_change){.without = "lm_head.weight"}, SF_FORMAT,
                 "tensor lm_head.weight is missing, expected [21, 7]"); /* although the plan has a fallback */
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_formats_give_the_same_packed_bytes),
        cmocka_unit_test(the_same_values_of_any_type_give_the_same_bytes),
        cmocka_unit_test(another_value_gives_other_bytes),
        cmocka_unit_test(shards_in_a_directory_give_the_same),
        cmocka_unit_test(each_tensor_left_out_is_named),
        cmocka_unit_test(each_tensor_under_another_name_is_named),
        cmocka_unit_test(each_tensor_of_another_shape_is_named),
        cmocka_unit_test(a_tensor_without_a_place_is_named),
        cmocka_unit_test(frequencies_of_rope_may_be_there),
        cmocka_unit_test(values_that_are_not_finite_are_named),
        cmocka_unit_test(a_file_that_is_cut_while_it_is_open_is_an_error),
        cmocka_unit_test(a_tied_head_may_be_absent),
        cmocka_unit_test(a_tied_head_that_is_there_must_be_the_embedding),
        cmocka_unit_test(a_head_of_its_own_must_be_there),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
