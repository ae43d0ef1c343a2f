/* The checkpoint of tiny.h as Hugging Face stores it: the same values under its names, the rows of q and k as
 * halves; with one thing changed where a test wants it. */
#ifndef TESTS_MODEL_TINY_ST_H
#define TESTS_MODEL_TINY_ST_H

#include "model/st_make.h"
#include "model/tiny.h"

/* Of a model with the biases of Qwen2. */
#define TINY_CONFIG                                                                                          \
    "{\"architectures\":[\"Qwen2ForCausalLM\"],\"model_type\":\"qwen2\",\"vocab_size\":21,"                  \
    "\"hidden_size\":7,\"num_hidden_layers\":2,\"num_attention_heads\":2,\"num_key_value_heads\":1,"         \
    "\"head_dim\":4,\"intermediate_size\":20,\"max_position_embeddings\":32,\"rms_norm_eps\":1e-05,"         \
    "\"rope_theta\":50000.0,\"tie_word_embeddings\":false,\"torch_dtype\":\"float32\"}"

static inline sf_plan tiny_st_plan(void) {
    sf_plan plan = tiny_plan;
    plan.model.family = "qwen2";
    return plan;
}

/* "blk.1.ffn_up.weight" -> "model.layers.1.mlp.up_proj.weight", written down apart from the loader's table.
 */
static inline void tiny_st_name(const char *name, char out[96]) {
    static const char *const table[][2] = {
        {"attn_norm.weight", "input_layernorm.weight"},
        {"attn_q.weight", "self_attn.q_proj.weight"},
        {"attn_k.weight", "self_attn.k_proj.weight"},
        {"attn_v.weight", "self_attn.v_proj.weight"},
        {"attn_q.bias", "self_attn.q_proj.bias"},
        {"attn_k.bias", "self_attn.k_proj.bias"},
        {"attn_v.bias", "self_attn.v_proj.bias"},
        {"attn_output.weight", "self_attn.o_proj.weight"},
        {"attn_q_norm.weight", "self_attn.q_norm.weight"},
        {"attn_k_norm.weight", "self_attn.k_norm.weight"},
        {"ffn_gate.weight", "mlp.gate_proj.weight"},
        {"ffn_up.weight", "mlp.up_proj.weight"},
        {"ffn_down.weight", "mlp.down_proj.weight"},
        {"ffn_norm.weight", "post_attention_layernorm.weight"},
    };
    if (strcmp(name, "token_embd.weight") == 0) snprintf(out, 96, "model.embed_tokens.weight");
    if (strcmp(name, "output_norm.weight") == 0) snprintf(out, 96, "model.norm.weight");
    if (strcmp(name, "output.weight") == 0) snprintf(out, 96, "lm_head.weight");
    if (strncmp(name, "blk.", 4) != 0) return;
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        if (strcmp(name + 6, table[i][0]) == 0) snprintf(out, 96, "model.layers.%c.%s", name[4], table[i][1]);
    }
}

typedef struct tiny_st_change {
    const char *without;      /* Hugging Face's name of a tensor left out */
    const char *rename, *to;  /* likewise, and its new name */
    const char *reshape;      /* likewise: one more row (of a vector: element) */
    const char *retype;       /* likewise: its dtype is spelled I32 or, where two bytes wide, I16 */
    const int *type;          /* every tensor is stored as this (SF_GGML_F32, F16 or BF16) */
    const char *extra;        /* a tensor added, of the embedding's shape and values */
    const char *value_tensor; /* an F32 tensor whose element `value_at` becomes `value` */
    int value_at;
    float value;
} tiny_st_change;

static inline bool tiny_is_rotary(const char *name) {
    return strstr(name, "attn_q.") || strstr(name, "attn_k.");
}

/* Heads of 4: halves 0, 1 and 2, 3 where the GGUF file has neighbours. */
static inline uint64_t tiny_st_row(const char *name, uint64_t row) {
    static const uint64_t from[4] = {0, 2, 1, 3};
    return tiny_is_rotary(name) ? row / 4 * 4 + from[row % 4] : row;
}

static inline void tiny_st_put(gm *header, gm *data, const tiny_tensor *t, const char *name,
                               const tiny_st_change *c) {
    static const char *const dtypes[] = {
        [SF_GGML_F32] = "F32", [SF_GGML_F16] = "F16", [SF_GGML_BF16] = "BF16"};
    uint64_t more = tiny_same(name, c->reshape) ? 1 : 0, rows = t->rows, cols = t->cols;
    const uint32_t type = c->type ? (uint32_t)*c->type : t->type;
    size_t from = data->len;
    char text[320], shape[48];
    if (rows) {
        rows += more;
        snprintf(shape, sizeof shape, "%d,%d", (int)rows, (int)cols);
    } else {
        cols += more;
        snprintf(shape, sizeof shape, "%d", (int)cols);
    }
    int at = 0;
    for (uint64_t r = 0; r < (rows ? rows : 1); r++) {
        for (uint64_t k = 0; k < cols; k++, at++) {
            float value = rows ? tiny_value(t->name, tiny_st_row(t->name, r), k)
                               : tiny_value(t->name, 0, tiny_st_row(t->name, k));
            bool put = tiny_same(name, c->value_tensor) && at == c->value_at;
            tiny_put(data, type, put ? c->value : value);
        }
    }
    int n =
        snprintf(text, sizeof text, "%s\"%s\":{\"dtype\":\"%s\",\"shape\":[%s],\"data_offsets\":[%zu,%zu]}",
                 header->len ? "," : "{", tiny_same(name, c->rename) ? c->to : name,
                 tiny_same(name, c->retype) ? (type == SF_GGML_F32 ? "I32" : "I16") : dtypes[type], shape,
                 from, data->len);
    gm_bytes(header, text, (size_t)n);
}

/* The tensors from `first` to before `end` as one file. */
static inline gm tiny_st_part(const tiny_st_change *c, int first, int end) {
    gm header = {0}, data = {0};
    for (int i = first; i < end; i++) {
        char name[96] = "";
        tiny_st_name(tiny_tensors[i].name, name);
        if (!tiny_same(name, c->without)) tiny_st_put(&header, &data, &tiny_tensors[i], name, c);
    }
    if (c->extra && first == 0) tiny_st_put(&header, &data, &tiny_tensors[0], c->extra, c);
    gm_bytes(&header, "}", 2); /* with its NUL */
    gm m = {0};
    gm_str(&m, (const char *)header.data);
    gm_bytes(&m, data.data, data.len);
    gm_fini(&header);
    gm_fini(&data);
    return m;
}

static inline gm tiny_st_file(const tiny_st_change *c) {
    return tiny_st_part(c, 0, TINY_TENSORS);
}

#endif
