/* The figures of config.json against a plan: each that differs is named. */
#include "model/hf_changed.h"
#include "model/weights_priv.h"

/* The plan that base describes. */
static sf_plan plan_of_base(void) {
    return (sf_plan){.model = {.name = "small",
                               .family = "llama",
                               .vocab = 1000,
                               .hidden = 64,
                               .layers = 3,
                               .heads = 8,
                               .kv_heads = 2,
                               .head_dim = 8,
                               .intermediate = 176,
                               .context = 2048,
                               .norm_eps = 1e-5f,
                               .rope_theta = 10000,
                               .bos = 1,
                               .n_eos = 2,
                               .eos = {5, 2}}};
}

static sf_code check(const sf_plan *plan, const char *change, sf_err *err) {
    sf_hf_config *c = NULL;
    if (read_changed(change, &c, err) != SF_OK) fail_msg("%s", err->msg);
    sf_code rc = sf_weights_check_config(plan, c, err);
    sf_hf_config_close(c);
    return rc;
}

static void figures_that_are_the_plans_pass(void **state) {
    (void)state;
    sf_plan plan = plan_of_base();
    assert_int_equal(check(&plan, "{}", NULL), SF_OK);
    assert_int_equal(check(&plan, "{\"bos_token_id\":null,\"eos_token_id\":null}", NULL), SF_OK);
    assert_int_equal(check(&plan, "{\"eos_token_id\":[2,5]}", NULL), SF_OK);
    plan.model.rope_kind = "llama3";
    plan.model.rope_factor = 8;
    plan.model.rope_low_freq = 1;
    plan.model.rope_high_freq = 4;
    plan.model.rope_original_context = 8192;
    assert_int_equal(check(&plan, "{\"rope_scaling\":{\"type\":\"llama3\"," LLAMA3 "}}", NULL), SF_OK);
}

/* The attention factor counts, not the keys that give it. */
static void yarn_is_compared_by_what_it_computes(void **state) {
    (void)state;
    sf_err err = {0};
    sf_plan plan = plan_of_base();
    plan.model.rope_kind = "yarn";
    plan.model.rope_factor = 4;
    plan.model.rope_original_context = 2048;
    plan.model.rope_beta_fast = 32;
    plan.model.rope_beta_slow = 1;
    plan.model.rope_attention_factor = 1.138629436111989;
    assert_int_equal(check(&plan, "{\"rope_scaling\":{\"type\":\"yarn\",\"factor\":4}}", NULL), SF_OK);
    static const char *const bad[][2] = {
        {"\"factor\":2", "RoPE's key factor is 2, expected 4"},
        {"\"factor\":4,\"original_max_position_embeddings\":1024",
         "RoPE's key original_max_position_embeddings is 1024, expected 2048"},
        {"\"factor\":4,\"beta_fast\":31", "RoPE's key beta_fast is 31, expected 32"},
        {"\"factor\":4,\"beta_slow\":2", "RoPE's key beta_slow is 2, expected 1"},
        {"\"factor\":4,\"truncate\":false", "RoPE's key truncate is 0, expected 1"},
        {"\"factor\":4,\"mscale\":1,\"mscale_all_dim\":1",
         "RoPE's key attention_factor (or mscale and mscale_all_dim) is 1, expected 1.13862944"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char change[160], want[160];
        snprintf(change, sizeof change, "{\"rope_scaling\":{\"type\":\"yarn\",%s}}", bad[i][0]);
        snprintf(want, sizeof want, "config.json: %s", bad[i][1]);
        assert_int_equal(check(&plan, change, &err), SF_FORMAT);
        assert_string_equal(err.msg, want);
    }
}

static void each_figure_that_differs_is_named(void **state) {
    (void)state;
    static const struct {
        const char *change, *message;
        sf_code code;
    } cases[] = {
        {"{\"vocab_size\":1001}", "key vocab_size is 1001, expected 1000", SF_FORMAT},
        {"{\"hidden_size\":72}", "key hidden_size is 72, expected 64", SF_FORMAT},
        {"{\"num_hidden_layers\":4}", "key num_hidden_layers is 4, expected 3", SF_FORMAT},
        {"{\"num_attention_heads\":4}", "key num_attention_heads is 4, expected 8", SF_FORMAT},
        {"{\"num_key_value_heads\":\"-\"}", "key num_key_value_heads is missing, which means 8, expected 2",
         SF_FORMAT},
        {"{\"head_dim\":16}", "key head_dim is 16, expected 8", SF_FORMAT},
        {"{\"intermediate_size\":177}", "key intermediate_size is 177, expected 176", SF_FORMAT},
        {"{\"max_position_embeddings\":4096}", "key max_position_embeddings is 4096, expected 2048",
         SF_FORMAT},
        {"{\"rms_norm_eps\":1e-6}", "key rms_norm_eps is 9.99999997e-07, expected 9.99999975e-06", SF_FORMAT},
        {"{\"tie_word_embeddings\":true}", "key tie_word_embeddings is true, expected false", SF_FORMAT},
        {"{\"rope_theta\":500000}", "key rope_theta is 500000, expected 10000", SF_FORMAT},
        {"{\"rope_scaling\":{\"type\":\"llama3\"," LLAMA3 "}}", "key rope_type is llama3, expected default",
         SF_FORMAT},
        {"{\"bos_token_id\":3}", "key bos_token_id is 3, expected 1", SF_FORMAT},
        {"{\"eos_token_id\":[2,7]}", "key eos_token_id has 7, which model small does not list", SF_FORMAT},
        {"{" QWEN2 "}", "key model_type belongs to family qwen2, expected llama", SF_UNSUPPORTED},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const sf_plan plan = plan_of_base();
        sf_err err = {0};
        char msg[600], want[600];
        assert_int_equal(check(&plan, cases[i].change, &err), cases[i].code);
        snprintf(want, sizeof want, "dir: config.json: %s", cases[i].message);
        assert_string_equal(sf_err_format(&err, msg, sizeof msg), want);
    }
}

static void a_plan_that_differs_is_told_what_it_expects(void **state) {
    (void)state;
    sf_plan plan = plan_of_base();
    sf_err err = {0};
    plan.model.tied_embeddings = true;
    assert_int_equal(check(&plan, "{\"tie_word_embeddings\":\"-\"}", &err), SF_FORMAT);
    assert_string_equal(err.msg,
                        "config.json: key tie_word_embeddings is missing, which means false, expected true");
    plan = plan_of_base();
    plan.model.qkv_bias = true;
    assert_int_equal(check(&plan, "{}", &err), SF_FORMAT);
    assert_string_equal(err.msg, "config.json: the model has no biases of q, k and v, expected them");
    plan = plan_of_base();
    plan.model.qk_norm = true;
    assert_int_equal(check(&plan, "{}", &err), SF_FORMAT);
    assert_string_equal(err.msg, "config.json: the model has no norms of q and k, expected them");
    plan = plan_of_base();
    plan.model.rope_kind = "llama3";
    plan.model.rope_factor = 32;
    plan.model.rope_low_freq = 1;
    plan.model.rope_high_freq = 4;
    plan.model.rope_original_context = 8192;
    assert_int_equal(check(&plan, "{\"rope_scaling\":{\"type\":\"llama3\"," LLAMA3 "}}", &err), SF_FORMAT);
    assert_string_equal(err.msg, "config.json: RoPE's key factor is 8, expected 32");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(figures_that_are_the_plans_pass),
        cmocka_unit_test(yarn_is_compared_by_what_it_computes),
        cmocka_unit_test(each_figure_that_differs_is_named),
        cmocka_unit_test(a_plan_that_differs_is_told_what_it_expects),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
