/* What a config.json says of a model, and what of it the engine doesn't compute. */
#include "model/hf_config_priv.h"

#include <string.h>

#define KEY(name, required) ((sf_hf_key){c->json, "", name, required})

#define MAX_EOS ((int)(sizeof((sf_model_desc *)0)->eos / sizeof(int)))

typedef struct family {
    const char *model_type, *family, *architecture;
    bool qkv_bias, qk_norm;
    bool full_kv_default;    /* an absent num_key_value_heads means as many as heads */
    int window_default;      /* what an absent sliding_window means; 0: none */
    bool window_is_optional; /* use_sliding_window says whether it is used, and is false where absent */
    int head_dim;            /* what an absent head_dim means; 0: hidden_size / num_attention_heads */
} family;

static const family families[] = {
    {"llama", "llama", "LlamaForCausalLM", false, false, true, 0, false, 0},
    {"mistral", "llama", "MistralForCausalLM", false, false, false, 4096, false, 0},
    {"qwen2", "qwen2", "Qwen2ForCausalLM", true, false, false, 0, true, 0},
    {"qwen3", "qwen3", "Qwen3ForCausalLM", false, true, false, 0, true, 128},
};

static sf_code read_family(sf_hf_config *c, const family **out, sf_err *err) {
    const char *type = NULL;
    SF_TRY(sf_hf_get_text(c, KEY("model_type", true), &type, err));
    for (size_t i = 0; i < sizeof families / sizeof *families; i++) {
        if (strcmp(families[i].model_type, type) == 0) *out = &families[i];
    }
    if (!*out) {
        return SF_HF_FAIL(c, SF_UNSUPPORTED,
                          "key model_type is '%.40s', expected llama, mistral, qwen2 or qwen3", type);
    }
    const json_t *list = sf_hf_value(c->json, "architectures");
    if (!list) return SF_OK;
    const char *first = json_string_value(json_array_get(list, 0));
    if (json_array_size(list) == 1 && first && strcmp(first, (*out)->architecture) == 0) return SF_OK;
    return SF_HF_FAIL(c, SF_UNSUPPORTED, "key architectures is ['%.60s'%s, expected ['%s']",
                      first ? first : "", json_array_size(list) > 1 ? ", ...]" : "]", (*out)->architecture);
}

static sf_code read_shapes(sf_hf_config *c, const family *f, sf_err *err) {
    sf_model_desc *m = &c->model;
    SF_TRY(sf_hf_get_int(c, KEY("vocab_size", true), 1, 1 << 24, &m->vocab, err));
    SF_TRY(sf_hf_get_int(c, KEY("hidden_size", true), 1, 1 << 20, &m->hidden, err));
    SF_TRY(sf_hf_get_int(c, KEY("num_hidden_layers", true), 1, 1 << 16, &m->layers, err));
    SF_TRY(sf_hf_get_int(c, KEY("num_attention_heads", true), 1, 1 << 16, &m->heads, err));
    SF_TRY(sf_hf_get_int(c, KEY("intermediate_size", true), 1, 1 << 24, &m->intermediate, err));
    SF_TRY(sf_hf_get_int(c, KEY("max_position_embeddings", true), 1, 1 << 30, &m->context, err));
    /* null means as many as heads in every family */
    const bool kv_needed = !f->full_kv_default && !json_object_get(c->json, "num_key_value_heads");
    m->kv_heads = m->heads;
    SF_TRY(sf_hf_get_int(c, KEY("num_key_value_heads", kv_needed), 1, 1 << 16, &m->kv_heads, err));
    m->head_dim = f->head_dim;
    SF_TRY(sf_hf_get_int(c, KEY("head_dim", false), 1, 1 << 16, &m->head_dim, err));
    if (m->head_dim > 0) return SF_OK;
    m->head_dim = m->hidden / m->heads;
    if (m->hidden % m->heads == 0) return SF_OK;
    return SF_HF_FAIL(
        c, SF_FORMAT,
        "key head_dim is missing, and hidden_size (%d) / num_attention_heads (%d) is no integer", m->hidden,
        m->heads);
}

/* A window as long as the context hides nothing. */
static sf_code check_window(const sf_hf_config *c, const family *f, sf_err *err) {
    int window = f->window_default;
    bool used = !f->window_is_optional;
    if (json_is_null(json_object_get(c->json, "sliding_window"))) window = 0;
    SF_TRY(sf_hf_get_int(c, KEY("sliding_window", false), 0, INT32_MAX, &window, err));
    SF_TRY(sf_hf_get_bool(c, KEY("use_sliding_window", false), &used, err));
    if (used && window > 0 && window < c->model.context) {
        return SF_HF_FAIL(c, SF_UNSUPPORTED, "key sliding_window is %s%d: a sliding window is not supported",
                          sf_hf_config_has(c, "sliding_window") ? "" : "missing, which means ", window);
    }
    const json_t *layers = sf_hf_value(c->json, "layer_types");
    for (size_t i = 0; i < json_array_size(layers); i++) {
        const char *type = json_string_value(json_array_get(layers, i));
        if (!type || strcmp(type, "full_attention") != 0) {
            return SF_HF_FAIL(c, SF_UNSUPPORTED, "key layer_types has '%.40s', expected full_attention",
                              type ? type : "");
        }
    }
    return SF_OK;
}

static sf_code check_features(const sf_hf_config *c, sf_err *err) {
    static const char *const never[] = {"quantization_config", "compression_config", "num_experts",
                                        "num_local_experts", "n_routed_experts"};
    static const char *const biases[] = {"attention_bias", "mlp_bias"};
    const char *act = "silu";
    for (size_t i = 0; i < sizeof never / sizeof *never; i++) {
        if (sf_hf_config_has(c, never[i]))
            return SF_HF_FAIL(c, SF_UNSUPPORTED, "key %s is there, which is not supported", never[i]);
    }
    for (size_t i = 0; i < sizeof biases / sizeof *biases; i++) {
        bool on = false;
        SF_TRY(sf_hf_get_bool(c, KEY(biases[i], false), &on, err));
        if (on) return SF_HF_FAIL(c, SF_UNSUPPORTED, "key %s is true, expected false", biases[i]);
    }
    SF_TRY(sf_hf_get_text(c, KEY("hidden_act", false), &act, err));
    if (strcmp(act, "silu") == 0) return SF_OK;
    return SF_HF_FAIL(c, SF_UNSUPPORTED, "key hidden_act is '%.40s', expected silu", act);
}

/* What the weights were saved as: it must be a type that is read, and one if both spellings are there. */
static sf_code check_dtype(const sf_hf_config *c, sf_err *err) {
    static const char *const read[] = {"float32", "float16", "bfloat16"};
    const char *old = NULL, *now = NULL;
    SF_TRY(sf_hf_get_text(c, KEY("torch_dtype", false), &old, err));
    SF_TRY(sf_hf_get_text(c, KEY("dtype", false), &now, err));
    if (old && now && strcmp(old, now) != 0) {
        return SF_HF_FAIL(c, SF_FORMAT, "keys dtype and torch_dtype are %.40s and %.40s, expected the same",
                          now, old);
    }
    const char *dtype = now ? now : old;
    if (!dtype) return SF_OK;
    for (size_t i = 0; i < sizeof read / sizeof *read; i++) {
        if (strcmp(dtype, read[i]) == 0) return SF_OK;
    }
    return SF_HF_FAIL(c, SF_UNSUPPORTED, "key %s is '%.40s', expected float32, float16 or bfloat16",
                      now ? "dtype" : "torch_dtype", dtype);
}

static sf_code add_eos(sf_hf_config *c, const json_t *v, sf_err *err) {
    sf_model_desc *m = &c->model;
    json_int_t id = json_integer_value(v);
    if (!json_is_integer(v) || id < 0 || id >= m->vocab) {
        return SF_HF_FAIL(c, SF_FORMAT, "key eos_token_id is no id of 0..%d, nor a list of them",
                          m->vocab - 1);
    }
    for (int i = 0; i < m->n_eos; i++) {
        if (m->eos[i] == id) return SF_OK;
    }
    if (m->n_eos == MAX_EOS)
        return SF_HF_FAIL(c, SF_UNSUPPORTED, "key eos_token_id has over %d ids", MAX_EOS);
    m->eos[m->n_eos++] = (int)id;
    return SF_OK;
}

static sf_code read_ids(sf_hf_config *c, sf_err *err) {
    const json_t *eos = sf_hf_value(c->json, "eos_token_id");
    c->model.bos = -1;
    SF_TRY(sf_hf_get_int(c, KEY("bos_token_id", false), 0, c->model.vocab - 1, &c->model.bos, err));
    if (!json_is_array(eos)) return eos ? add_eos(c, eos, err) : SF_OK;
    for (size_t i = 0; i < json_array_size(eos); i++)
        SF_TRY(add_eos(c, json_array_get(eos, i), err));
    return SF_OK;
}

sf_code sf_hf_config_read(sf_hf_config *c, sf_err *err) {
    const family *f = NULL;
    double eps = 1e-6;
    SF_TRY(read_family(c, &f, err));
    c->model.family = f->family;
    c->model.qkv_bias = f->qkv_bias;
    c->model.qk_norm = f->qk_norm;
    SF_TRY(check_features(c, err));
    SF_TRY(check_dtype(c, err));
    SF_TRY(read_shapes(c, f, err));
    SF_TRY(check_window(c, f, err));
    SF_TRY(sf_hf_get_num(c, KEY("rms_norm_eps", false), 1e-12, 0.1, &eps, err));
    c->model.norm_eps = (float)eps;
    SF_TRY(sf_hf_get_bool(c, KEY("tie_word_embeddings", false), &c->model.tied_embeddings, err));
    SF_TRY(sf_hf_config_read_rope(c, err));
    return read_ids(c, err);
}
