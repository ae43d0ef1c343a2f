/* config.json in tests: a small Llama whose keys the cases change. */
#ifndef SF_TESTS_MODEL_HF_CHANGED_H
#define SF_TESTS_MODEL_HF_CHANGED_H

#include "model/hf_config_priv.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static const char base[] =
    "{\"architectures\":[\"LlamaForCausalLM\"],\"attention_bias\":false,\"bos_token_id\":1,"
    "\"eos_token_id\":2,\"hidden_act\":\"silu\",\"hidden_size\":64,\"initializer_range\":0.02,"
    "\"intermediate_size\":176,\"max_position_embeddings\":2048,\"model_type\":\"llama\","
    "\"num_attention_heads\":8,\"num_hidden_layers\":3,\"num_key_value_heads\":2,\"pretraining_tp\":1,"
    "\"rms_norm_eps\":1e-05,\"rope_scaling\":null,\"tie_word_embeddings\":false,"
    "\"torch_dtype\":\"bfloat16\",\"transformers_version\":\"4.35.0\",\"use_cache\":true,"
    "\"vocab_size\":1000}";

/* base with the keys of `change` (a JSON object) put in; the value "-" takes a key out. The caller frees. */
static inline char *changed(const char *change) {
    json_t *j = json_loads(base, 0, NULL), *c = json_loads(change, 0, NULL), *v;
    const char *key;
    assert_non_null(j);
    assert_non_null(c);
    json_object_foreach(c, key, v) {
        const char *text = json_string_value(v);
        if (text && strcmp(text, "-") == 0) {
            json_object_del(j, key);
        } else {
            json_object_set(j, key, v);
        }
    }
    char *out = json_dumps(j, 0);
    assert_non_null(out);
    json_decref(j);
    json_decref(c);
    return out;
}

static inline sf_code read_changed(const char *change, sf_hf_config **out, sf_err *err) {
    char *text = changed(change);
    sf_code rc = sf_hf_config_open_text("dir", text, strlen(text), out, err);
    free(text);
    return rc;
}

/* Keys of configurations that more than one file tests. */
#define LLAMA3                                                                                               \
    "\"factor\":8.0,\"high_freq_factor\":4.0,\"low_freq_factor\":1.0,\"original_max_position_embeddings\":"  \
    "8192"
#define QWEN2 "\"model_type\":\"qwen2\",\"architectures\":[\"Qwen2ForCausalLM\"]"

#endif
