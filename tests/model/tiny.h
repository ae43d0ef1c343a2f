/* The checkpoint of a model of odd sizes (tiny_plan.h) as a GGUF file in memory, with one thing changed where
 * a test wants it. */
#ifndef TESTS_MODEL_TINY_H
#define TESTS_MODEL_TINY_H

#include "model/gguf.h"
#include "model/gguf_make.h"
#include "model/tiny_plan.h"

typedef struct tiny_tensor {
    const char *name;
    uint64_t rows, cols; /* rows 0: a vector */
    uint32_t type;
} tiny_tensor;

/* The file's tensors; matrices in several types. */
static const tiny_tensor tiny_tensors[] = {
    {"token_embd.weight", 21, 7, SF_GGML_F16},       {"output.weight", 21, 7, SF_GGML_BF16},
    {"blk.0.attn_norm.weight", 0, 7, SF_GGML_F32},   {"blk.0.attn_q.weight", 8, 7, SF_GGML_F32},
    {"blk.0.attn_k.weight", 4, 7, SF_GGML_F32},      {"blk.0.attn_v.weight", 4, 7, SF_GGML_F16},
    {"blk.0.attn_q.bias", 0, 8, SF_GGML_F32},        {"blk.0.attn_k.bias", 0, 4, SF_GGML_F16},
    {"blk.0.attn_v.bias", 0, 4, SF_GGML_F32},        {"blk.0.attn_output.weight", 7, 8, SF_GGML_F32},
    {"blk.0.ffn_gate.weight", 20, 7, SF_GGML_F32},   {"blk.0.ffn_up.weight", 20, 7, SF_GGML_BF16},
    {"blk.0.ffn_down.weight", 7, 20, SF_GGML_F32},   {"blk.1.attn_norm.weight", 0, 7, SF_GGML_F32},
    {"blk.1.attn_q.weight", 8, 7, SF_GGML_F32},      {"blk.1.attn_k.weight", 4, 7, SF_GGML_F32},
    {"blk.1.attn_v.weight", 4, 7, SF_GGML_F32},      {"blk.1.attn_q.bias", 0, 8, SF_GGML_F32},
    {"blk.1.attn_k.bias", 0, 4, SF_GGML_F32},        {"blk.1.attn_v.bias", 0, 4, SF_GGML_F32},
    {"blk.1.attn_output.weight", 7, 8, SF_GGML_F32}, {"blk.1.ffn_gate.weight", 20, 7, SF_GGML_F32},
    {"blk.1.ffn_up.weight", 20, 7, SF_GGML_F32},     {"blk.1.ffn_down.weight", 7, 20, SF_GGML_F32},
};
enum { TINY_TENSORS = sizeof tiny_tensors / sizeof *tiny_tensors };

typedef struct tiny_key {
    const char *key;
    uint32_t type; /* 4 u32, 6 f32, 8 string */
    double number;
    const char *text;
} tiny_key;

static const tiny_key tiny_keys[] = {
    {"general.architecture", 8, 0, "llama"},
    {"general.name", 8, 0, "tiny"},
    {"llama.block_count", 4, 2, NULL},
    {"llama.context_length", 4, 32, NULL},
    {"llama.embedding_length", 4, 7, NULL},
    {"llama.feed_forward_length", 4, 20, NULL},
    {"llama.attention.head_count", 4, 2, NULL},
    {"llama.attention.head_count_kv", 4, 1, NULL},
    {"llama.attention.key_length", 4, 4, NULL},
    {"llama.attention.value_length", 4, 4, NULL},
    {"llama.attention.layer_norm_rms_epsilon", 6, 1e-5, NULL},
    {"llama.rope.freq_base", 6, 50000, NULL},
    {"llama.vocab_size", 4, 21, NULL},
};
enum { TINY_KEYS = sizeof tiny_keys / sizeof *tiny_keys };

/* What differs from the good file. */
typedef struct tiny_change {
    tiny_key key;             /* replaces the key of that name, or is added */
    tiny_tensor tensor;       /* likewise */
    const char *without;      /* a key or tensor left out */
    const char *values_of;    /* the tensor whose values the replaced one has instead of its own */
    const char *value_tensor; /* an F32 tensor whose element `value_at` becomes `value` */
    int value_at;
    float value;
} tiny_change;

/* The value of an element of the good file: a small integer, exact in every type; never 0 in a vector. */
static inline float tiny_value(const char *name, uint64_t row, uint64_t col) {
    uint64_t h = 0;
    for (const char *c = name; *c; c++)
        h = (h * 31 + (unsigned char)*c) % 100003;
    return (float)(int)((h + row * 37 + col * 11) % 255 + 1) - 128.5f + 0.5f;
}

static inline void tiny_put(gm *m, uint32_t type, float f) {
    uint32_t u;
    memcpy(&u, &f, sizeof u);
    if (type == SF_GGML_F32) gm_uint(m, u, 4);
    if (type == SF_GGML_BF16) gm_uint(m, u >> 16, 2);
    if (type != SF_GGML_F16) return;
    uint32_t exponent = (u >> 23 & 0xff) - 112, half = exponent << 10 | (u >> 13 & 0x3ff);
    gm_uint(m, (u >> 16 & 0x8000) | (f == 0 ? 0 : half), 2);
}

static inline int tiny_same(const char *a, const char *b) {
    return a && b && strcmp(a, b) == 0;
}

static inline void tiny_put_key(gm *m, const tiny_key *k) {
    gm_key(m, k->key, k->type);
    if (k->type == 8) gm_str(m, k->text);
    if (k->type == 6) gm_f32(m, (float)k->number);
    if (k->type == 4) gm_uint(m, (uint64_t)k->number, 4);
}

static inline size_t tiny_bytes(const tiny_tensor *t) {
    uint64_t n = (t->rows ? t->rows : 1) * t->cols;
    return (size_t)(t->type == SF_GGML_F32 ? n * 4 : t->type == SF_GGML_Q4_1 ? n / 32 * 20 : n * 2);
}

static inline void tiny_put_data(gm *m, const tiny_tensor *t, const tiny_change *c) {
    size_t end = m->len + tiny_bytes(t);
    int at = 0;
    for (uint64_t r = 0; r < (t->rows ? t->rows : 1); r++) {
        for (uint64_t k = 0; k < t->cols && t->type != SF_GGML_Q4_1; k++, at++) {
            int put = tiny_same(c->value_tensor, t->name) && at == c->value_at;
            const char *name = c->values_of && tiny_same(c->tensor.name, t->name) ? c->values_of : t->name;
            tiny_put(m, t->type, put ? c->value : tiny_value(name, r, k));
        }
    }
    while (m->len < end)
        gm_uint(m, 0, 1);
    gm_pad(m, 32);
}

static inline gm tiny_file(const tiny_change *c) {
    tiny_key keys[TINY_KEYS + 1];
    tiny_tensor tensors[TINY_TENSORS + 1];
    int n_keys = 0, n_tensors = 0, key_put = !c->key.key, tensor_put = !c->tensor.name;
    for (int i = 0; i < TINY_KEYS; i++) {
        int replace = tiny_same(tiny_keys[i].key, c->key.key);
        key_put = key_put || replace;
        if (!tiny_same(tiny_keys[i].key, c->without)) keys[n_keys++] = replace ? c->key : tiny_keys[i];
    }
    if (!key_put) keys[n_keys++] = c->key;
    for (int i = 0; i < TINY_TENSORS; i++) {
        int replace = tiny_same(tiny_tensors[i].name, c->tensor.name);
        tensor_put = tensor_put || replace;
        if (!tiny_same(tiny_tensors[i].name, c->without))
            tensors[n_tensors++] = replace ? c->tensor : tiny_tensors[i];
    }
    if (!tensor_put) tensors[n_tensors++] = c->tensor;

    gm m = {0};
    uint64_t offset = 0;
    gm_head(&m, 3, (uint64_t)n_tensors, (uint64_t)n_keys);
    for (int i = 0; i < n_keys; i++)
        tiny_put_key(&m, &keys[i]);
    for (int i = 0; i < n_tensors; i++) {
        const uint64_t dims[2] = {tensors[i].cols, tensors[i].rows};
        gm_tensor(&m, tensors[i].name, tensors[i].rows ? 2 : 1, dims, tensors[i].type, offset);
        offset += (tiny_bytes(&tensors[i]) + 31) / 32 * 32;
    }
    gm_pad(&m, 32);
    for (int i = 0; i < n_tensors; i++)
        tiny_put_data(&m, &tensors[i], c);
    return m;
}

#endif
