/* config.json: every spelling, every refusal by key. */
#include "model/hf_changed.h"
#include "model/st_make.h"

static sf_model_desc model(const char *change) {
    sf_hf_config *c = NULL;
    sf_err err = {0};
    if (read_changed(change, &c, &err) != SF_OK) fail_msg("%s: %s", change, err.msg);
    sf_model_desc m = *sf_hf_config_model(c);
    sf_hf_config_close(c);
    return m;
}

static void refused(const char *change, sf_code code, const char *text) {
    sf_hf_config *c = NULL;
    sf_err err = {0};
    char msg[600], want[600];
    sf_code rc = read_changed(change, &c, &err);
    sf_err_format(&err, msg, sizeof msg);
    snprintf(want, sizeof want, "dir: config.json: %s", text);
    if (rc != code || strcmp(msg, want) != 0)
        fail_msg("%s: code %d '%s', expected %d '%s'", change, (int)rc, msg, (int)code, want);
    assert_null(c);
}

static void figures_are_read(void **state) {
    (void)state;
    sf_model_desc m = model("{}");
    assert_string_equal(m.family, "llama");
    assert_true(m.vocab == 1000 && m.hidden == 64 && m.layers == 3 && m.heads == 8 && m.kv_heads == 2);
    assert_true(m.head_dim == 8 && m.intermediate == 176 && m.context == 2048 && m.norm_eps == 1e-5f);
    assert_true(m.rope_theta == 10000 && !m.tied_embeddings && !m.qkv_bias && m.bos == 1);
    assert_true(m.n_eos == 1 && m.eos[0] == 2);
    assert_string_equal(m.rope_kind, "default");
}

static void keys_left_out_mean_the_familys_defaults(void **state) {
    (void)state;
    assert_int_equal(model("{\"num_key_value_heads\":\"-\"}").kv_heads, 8);
    assert_int_equal(model("{\"num_key_value_heads\":null}").kv_heads, 8);
    assert_int_equal(model("{\"head_dim\":null}").head_dim, 8);
    assert_true(model("{\"rms_norm_eps\":\"-\"}").norm_eps == 1e-6f);
    assert_false(model("{\"tie_word_embeddings\":\"-\"}").tied_embeddings);
    assert_true(model("{\"tie_word_embeddings\":true}").tied_embeddings);
    assert_int_equal(model("{\"architectures\":\"-\",\"hidden_act\":\"-\"}").hidden, 64);
    refused("{\"model_type\":\"mistral\",\"architectures\":\"-\",\"sliding_window\":null,"
            "\"num_key_value_heads\":\"-\"}",
            SF_FORMAT, "key num_key_value_heads is missing"); /* there it doesn't mean as many as heads */
    assert_int_equal(
        model("{\"model_type\":\"qwen3\",\"architectures\":\"-\",\"num_key_value_heads\":null}").kv_heads, 8);
}

static void head_dim_need_not_be_hidden_over_heads(void **state) {
    (void)state;
    assert_int_equal(model("{\"head_dim\":128}").head_dim, 128);
    refused("{\"hidden_size\":65}", SF_FORMAT,
            "key head_dim is missing, and hidden_size (65) / num_attention_heads (8) is no integer");
}

static void both_spellings_of_dtype_are_read(void **state) {
    (void)state;
    assert_int_equal(model("{\"torch_dtype\":\"-\",\"dtype\":\"float16\"}").hidden, 64);
    assert_int_equal(model("{\"dtype\":\"bfloat16\"}").hidden, 64);
    assert_int_equal(model("{\"torch_dtype\":\"-\"}").hidden, 64);
    refused("{\"dtype\":\"float16\"}", SF_FORMAT,
            "keys dtype and torch_dtype are float16 and bfloat16, expected the same");
    refused("{\"torch_dtype\":\"float8_e4m3fn\"}", SF_UNSUPPORTED,
            "key torch_dtype is 'float8_e4m3fn', expected float32, float16 or bfloat16");
    refused("{\"torch_dtype\":\"-\",\"dtype\":\"int8\"}", SF_UNSUPPORTED,
            "key dtype is 'int8', expected float32, float16 or bfloat16");
}

static void eos_is_an_id_or_a_list(void **state) {
    (void)state;
    sf_model_desc m = model("{\"eos_token_id\":[7,9,7]}");
    assert_true(m.n_eos == 2 && m.eos[0] == 7 && m.eos[1] == 9);
    assert_int_equal(model("{\"eos_token_id\":null}").n_eos, 0);
    assert_int_equal(model("{\"bos_token_id\":null}").bos, -1);
    static const char *const bad[] = {"1000", "-1", "\"2\"", "[2,1000]", "[[2]]", "2.0"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char change[64];
        snprintf(change, sizeof change, "{\"eos_token_id\":%s}", bad[i]);
        refused(change, SF_FORMAT, "key eos_token_id is no id of 0..999, nor a list of them");
    }
    refused("{\"eos_token_id\":[1,2,3,4,5,6,7,8,9]}", SF_UNSUPPORTED, "key eos_token_id has over 8 ids");
    refused("{\"bos_token_id\":1000}", SF_FORMAT, "key bos_token_id is 1000, expected 0..999");
}

static void expect_llama3(const char *change) {
    sf_model_desc m = model(change);
    assert_string_equal(m.rope_kind, "llama3");
    assert_true(m.rope_theta == 500000 && m.rope_factor == 8 && m.rope_low_freq == 1 &&
                m.rope_high_freq == 4 && m.rope_original_context == 8192);
}

static void rope_is_read_in_every_spelling(void **state) {
    (void)state;
    expect_llama3("{\"rope_theta\":500000.0,\"rope_scaling\":{\"rope_type\":\"llama3\"," LLAMA3 "}}");
    expect_llama3("{\"rope_theta\":500000,\"rope_scaling\":{\"type\":\"llama3\"," LLAMA3 "}}");
    expect_llama3(
        "{\"rope_theta\":500000,\"rope_scaling\":{\"type\":\"llama3\",\"rope_type\":\"llama3\"," LLAMA3 "}}");
    expect_llama3("{\"rope_parameters\":{\"rope_theta\":500000,\"rope_type\":\"llama3\"," LLAMA3 "}}");
    expect_llama3(
        "{\"rope_theta\":500000,\"rope_parameters\":{\"rope_theta\":500000,\"rope_type\":\"llama3\"," LLAMA3
        "}}");
    assert_true(model("{\"rope_theta\":250000}").rope_theta == 250000);
    assert_true(model("{\"rope_parameters\":{\"rope_theta\":250000}}").rope_theta == 250000);
    assert_string_equal(model("{\"rope_scaling\":{\"type\":\"default\"}}").rope_kind, "default");
}

static void linear_rope_has_a_factor(void **state) {
    (void)state;
    sf_model_desc m = model("{\"rope_scaling\":{\"type\":\"linear\",\"factor\":2.0}}");
    assert_string_equal(m.rope_kind, "linear");
    assert_true(m.rope_factor == 2 && m.rope_original_context == 0);
    m = model("{\"rope_parameters\":{\"rope_type\":\"linear\",\"factor\":4,\"rope_theta\":500}}");
    assert_true(m.rope_factor == 4 && m.rope_theta == 500);
    refused("{\"rope_scaling\":{\"type\":\"linear\"}}", SF_FORMAT, "key rope_scaling.factor is missing");
    refused("{\"rope_scaling\":{\"type\":\"linear\",\"factor\":0.5}}", SF_FORMAT,
            "key rope_scaling.factor is 0.5, expected 1..1024");
}

static void yarn_rope_has_the_defaults_of_transformers(void **state) {
    (void)state;
    sf_model_desc m = model("{\"rope_scaling\":{\"type\":\"yarn\",\"factor\":4.0}}");
    assert_string_equal(m.rope_kind, "yarn");
    assert_true(m.rope_factor == 4 && m.rope_original_context == 2048 && m.rope_beta_fast == 32 &&
                m.rope_beta_slow == 1 && !m.rope_exact_range);
    assert_true(m.rope_attention_factor == 0 && m.rope_mscale == 0 && m.rope_mscale_all_dim == 0);
    m = model("{\"rope_parameters\":{\"rope_type\":\"yarn\",\"rope_theta\":1000000,\"factor\":8,"
              "\"original_max_position_embeddings\":1024,\"beta_fast\":16,\"beta_slow\":2.5,"
              "\"attention_factor\":1.5,\"mscale\":0.707,\"mscale_all_dim\":1.0,\"truncate\":false}}");
    assert_true(m.rope_factor == 8 && m.rope_theta == 1e6 && m.rope_original_context == 1024 &&
                m.rope_beta_fast == 16 && m.rope_beta_slow == 2.5 && m.rope_exact_range);
    assert_true(m.rope_attention_factor == 1.5 && m.rope_mscale == 0.707 && m.rope_mscale_all_dim == 1);
    m = model("{\"rope_scaling\":{\"type\":\"yarn\",\"factor\":4,\"beta_fast\":null,\"mscale\":null}}");
    assert_true(m.rope_beta_fast == 32 && m.rope_mscale == 0);
    refused("{\"rope_scaling\":{\"type\":\"yarn\"}}", SF_FORMAT, "key rope_scaling.factor is missing");
    refused("{\"rope_scaling\":{\"type\":\"yarn\",\"factor\":4,\"beta_slow\":64}}", SF_FORMAT,
            "key rope_scaling.beta_fast is 32, expected beta_slow (64) at least");
    refused("{\"rope_scaling\":{\"type\":\"yarn\",\"factor\":4,\"truncate\":1}}", SF_FORMAT,
            "key rope_scaling.truncate is an integer, expected true or false");
    refused("{\"rope_theta\":1,\"rope_scaling\":{\"type\":\"yarn\",\"factor\":4}}", SF_FORMAT,
            "key rope_theta is 1, expected 1.001 at least for yarn");
}

static void rope_that_is_not_computed_is_refused_by_name(void **state) {
    (void)state;
    static const char *const kinds[] = {"dynamic", "longrope", "mrope", "su"};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        char change[128], want[128];
        snprintf(change, sizeof change, "{\"rope_scaling\":{\"type\":\"%s\",\"factor\":2.0}}", kinds[i]);
        snprintf(want, sizeof want,
                 "key rope_scaling.rope_type is '%s', expected default, linear, llama3 or yarn", kinds[i]);
        refused(change, SF_UNSUPPORTED, want);
    }
    refused("{\"rope_parameters\":{\"full_attention\":{\"rope_type\":\"default\"}}}", SF_UNSUPPORTED,
            "key rope_parameters.full_attention: RoPE by kind of layer is not supported");
    refused("{\"partial_rotary_factor\":0.5}", SF_UNSUPPORTED,
            "key partial_rotary_factor is 0.5, expected 1");
    refused("{\"rope_parameters\":{\"partial_rotary_factor\":0.5}}", SF_UNSUPPORTED,
            "key partial_rotary_factor is 0.5, expected 1");
}

static void rope_that_disagrees_is_refused(void **state) {
    (void)state;
    refused("{\"rope_scaling\":{\"type\":\"llama3\",\"rope_type\":\"default\"}}", SF_FORMAT,
            "keys rope_scaling.rope_type and rope_scaling.type are default and llama3, expected the same");
    refused("{\"rope_theta\":1000,\"rope_parameters\":{\"rope_theta\":2000}}", SF_FORMAT,
            "keys rope_theta and rope_parameters.rope_theta are 1000 and 2000, expected the same");
    refused("{\"rope_scaling\":{},\"rope_parameters\":{}}", SF_FORMAT,
            "keys rope_scaling and rope_parameters are both there");
    refused("{\"rope_scaling\":{\"factor\":2}}", SF_FORMAT,
            "key rope_scaling.rope_type is missing, and rope_scaling.factor is there");
    refused("{\"rope_scaling\":2}", SF_FORMAT, "key rope_scaling is no object");
    refused("{\"rope_parameters\":[]}", SF_FORMAT, "key rope_parameters is no object");
    refused("{\"rope_scaling\":{\"type\":\"llama3\",\"factor\":8}}", SF_FORMAT,
            "key rope_scaling.low_freq_factor is missing");
    refused(
        "{\"rope_scaling\":{\"type\":\"llama3\",\"factor\":8,\"low_freq_factor\":4,\"high_freq_factor\":4,"
        "\"original_max_position_embeddings\":8192}}",
        SF_FORMAT, "key rope_scaling.high_freq_factor is 4, expected over low_freq_factor (4)");
}

#define MISTRAL                                                                                              \
    "\"model_type\":\"mistral\",\"architectures\":[\"MistralForCausalLM\"],\"max_position_embeddings\":"     \
    "32768"
#define QWEN3 "\"model_type\":\"qwen3\",\"architectures\":[\"Qwen3ForCausalLM\"]"

static void other_families_are_read(void **state) {
    (void)state;
    sf_model_desc m = model("{" MISTRAL ",\"sliding_window\":null}"), q = model("{" QWEN2 "}");
    assert_string_equal(m.family, "llama");
    assert_false(m.qkv_bias);
    assert_string_equal(q.family, "qwen2");
    assert_true(q.qkv_bias && !q.qk_norm);
}

static void qwen3_norms_q_and_k(void **state) {
    (void)state;
    sf_model_desc m = model("{" QWEN3 ",\"head_dim\":16,\"sliding_window\":null,\"use_sliding_window\":false,"
                            "\"max_window_layers\":3}");
    assert_string_equal(m.family, "qwen3");
    assert_true(m.qk_norm && !m.qkv_bias && m.head_dim == 16 && m.kv_heads == 2);
    assert_int_equal(model("{" QWEN3 "}").head_dim, 128); /* not hidden / heads, which is 8 */
    assert_false(model("{}").qk_norm);
    refused("{" QWEN3 ",\"attention_bias\":true}", SF_UNSUPPORTED,
            "key attention_bias is true, expected false");
    refused("{" QWEN3 ",\"use_sliding_window\":true,\"sliding_window\":1024}", SF_UNSUPPORTED,
            "key sliding_window is 1024: a sliding window is not supported");
    refused("{\"model_type\":\"qwen3_moe\"}", SF_UNSUPPORTED,
            "key model_type is 'qwen3_moe', expected llama, mistral, qwen2 or qwen3");
}

static void a_sliding_window_in_use_is_refused(void **state) {
    (void)state;
    refused("{" MISTRAL ",\"sliding_window\":4096}", SF_UNSUPPORTED,
            "key sliding_window is 4096: a sliding window is not supported");
    refused("{" MISTRAL "}", SF_UNSUPPORTED,
            "key sliding_window is missing, which means 4096: a sliding window is not supported");
    refused("{\"sliding_window\":128}", SF_UNSUPPORTED,
            "key sliding_window is 128: a sliding window is not supported");
    refused("{" QWEN2 ",\"sliding_window\":1024,\"use_sliding_window\":true}", SF_UNSUPPORTED,
            "key sliding_window is 1024: a sliding window is not supported");
    refused("{" QWEN2 ",\"layer_types\":[\"full_attention\",\"sliding_attention\",\"full_attention\"]}",
            SF_UNSUPPORTED, "key layer_types has 'sliding_attention', expected full_attention");
}

static void a_sliding_window_out_of_use_is_none(void **state) {
    (void)state;
    assert_int_equal(model("{" QWEN2 ",\"sliding_window\":1024,\"use_sliding_window\":false}").layers, 3);
    assert_int_equal(model("{" QWEN2 ",\"sliding_window\":1024}").layers, 3);
    assert_int_equal(model("{" MISTRAL ",\"sliding_window\":32768}").layers, 3); /* as long as the context */
    assert_int_equal(model("{" QWEN2 ",\"layer_types\":[\"full_attention\"]}").layers, 3);
}

static void what_is_not_computed_is_refused_by_name(void **state) {
    (void)state;
    refused("{\"model_type\":\"gemma2\"}", SF_UNSUPPORTED,
            "key model_type is 'gemma2', expected llama, mistral, qwen2 or qwen3");
    refused("{\"model_type\":\"-\"}", SF_FORMAT, "key model_type is missing");
    refused("{\"architectures\":[\"LlamaForSequenceClassification\"]}", SF_UNSUPPORTED,
            "key architectures is ['LlamaForSequenceClassification'], expected ['LlamaForCausalLM']");
    refused("{\"architectures\":[\"LlamaForCausalLM\",\"X\"]}", SF_UNSUPPORTED,
            "key architectures is ['LlamaForCausalLM', ...], expected ['LlamaForCausalLM']");
    refused("{\"quantization_config\":{\"quant_method\":\"awq\"}}", SF_UNSUPPORTED,
            "key quantization_config is there, which is not supported");
    refused("{\"num_local_experts\":8}", SF_UNSUPPORTED,
            "key num_local_experts is there, which is not supported");
    refused("{\"attention_bias\":true}", SF_UNSUPPORTED, "key attention_bias is true, expected false");
    refused("{\"mlp_bias\":true}", SF_UNSUPPORTED, "key mlp_bias is true, expected false");
    refused("{\"hidden_act\":\"gelu\"}", SF_UNSUPPORTED, "key hidden_act is 'gelu', expected silu");
}

static void values_of_other_types_are_refused(void **state) {
    (void)state;
    refused("{\"hidden_size\":\"64\"}", SF_FORMAT, "key hidden_size is a text, expected an integer");
    refused("{\"hidden_size\":64.0}", SF_FORMAT,
            "key hidden_size is a number with a point, expected an integer");
    refused("{\"hidden_size\":null}", SF_FORMAT, "key hidden_size is missing");
    refused("{\"hidden_size\":0}", SF_FORMAT, "key hidden_size is 0, expected 1..1048576");
    refused("{\"num_hidden_layers\":9223372036854775807}", SF_FORMAT,
            "key num_hidden_layers is 9223372036854775807, expected 1..65536");
    refused("{\"rms_norm_eps\":true}", SF_FORMAT, "key rms_norm_eps is true or false, expected a number");
    refused("{\"rms_norm_eps\":0}", SF_FORMAT, "key rms_norm_eps is 0, expected 1e-12..0.1");
    refused("{\"tie_word_embeddings\":1}", SF_FORMAT,
            "key tie_word_embeddings is an integer, expected true or false");
    refused("{\"model_type\":[]}", SF_FORMAT, "key model_type is a list, expected a text");
}

static void broken_json_is_refused(void **state) {
    (void)state;
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"", "config.json: broken JSON, line 1, column 0: '[' or '{' expected near end of file"},
        {"[]", "config.json: the JSON is an array, expected an object"},
        {"{\"a\":1,\n\"a\":2}",
         "config.json: broken JSON, line 2, column 3: duplicate object key near '\"a\"'"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        sf_hf_config *c = NULL;
        sf_err err = {0};
        assert_int_equal(sf_hf_config_open_text("dir", cases[i].text, strlen(cases[i].text), &c, &err),
                         SF_FORMAT);
        assert_string_equal(err.msg, cases[i].message);
        assert_null(c);
    }
}

static void it_is_found_beside_the_weights(void **state) {
    (void)state;
    char dir[64], file[96];
    sf_hf_config *c = NULL;
    sf_err err = {0};
    st_directory(dir);
    snprintf(file, sizeof file, "%s/model.safetensors", dir);
    assert_int_equal(sf_hf_config_open(dir, &c, &err), SF_IO);
    assert_string_equal(err.msg, "config.json: No such file or directory");
    assert_string_equal(err.user.file, dir);
    st_write_text(dir, "config.json", base);
    const char *const paths[] = {dir, file};
    for (int i = 0; i < 2; i++) {
        if (sf_hf_config_open(paths[i], &c, &err) != SF_OK) fail_msg("%s", err.msg);
        assert_int_equal(sf_hf_config_model(c)->hidden, 64);
        assert_string_equal(sf_hf_config_path(c), paths[i]);
        sf_hf_config_close(c);
    }
    st_remove(dir);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(figures_are_read),
        cmocka_unit_test(keys_left_out_mean_the_familys_defaults),
        cmocka_unit_test(head_dim_need_not_be_hidden_over_heads),
        cmocka_unit_test(both_spellings_of_dtype_are_read),
        cmocka_unit_test(eos_is_an_id_or_a_list),
        cmocka_unit_test(rope_is_read_in_every_spelling),
        cmocka_unit_test(linear_rope_has_a_factor),
        cmocka_unit_test(yarn_rope_has_the_defaults_of_transformers),
        cmocka_unit_test(rope_that_is_not_computed_is_refused_by_name),
        cmocka_unit_test(rope_that_disagrees_is_refused),
        cmocka_unit_test(other_families_are_read),
        cmocka_unit_test(qwen3_norms_q_and_k),
        cmocka_unit_test(a_sliding_window_in_use_is_refused),
        cmocka_unit_test(a_sliding_window_out_of_use_is_none),
        cmocka_unit_test(what_is_not_computed_is_refused_by_name),
        cmocka_unit_test(values_of_other_types_are_refused),
        cmocka_unit_test(broken_json_is_refused),
        cmocka_unit_test(it_is_found_beside_the_weights),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
