/* A safetensors checkpoint's tensors, by Hugging Face's names. Rows of q and k are stored as halves. */
#include "model/safetensors_priv.h"
#include "model/weights_priv.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EMBED "model.embed_tokens.weight"
#define HEAD  "lm_head.weight"

/* Without the suffix (.weight, .bias); those of a layer without blk.N. and model.layers.N. */
static const struct {
    const char *canonical, *name;
} of_model[] = {{"token_embd", "model.embed_tokens"}, {"output_norm", "model.norm"}, {"output", "lm_head"}},
  of_layer[] = {{"attn_norm", "input_layernorm"},    {"ffn_norm", "post_attention_layernorm"},
                {"attn_q", "self_attn.q_proj"},      {"attn_k", "self_attn.k_proj"},
                {"attn_v", "self_attn.v_proj"},      {"attn_output", "self_attn.o_proj"},
                {"attn_q_norm", "self_attn.q_norm"}, {"attn_k_norm", "self_attn.k_norm"},
                {"ffn_gate", "mlp.gate_proj"},       {"ffn_up", "mlp.up_proj"},
                {"ffn_down", "mlp.down_proj"}};

static bool is(const char *text, size_t len, const char *word) {
    return strlen(word) == len && memcmp(text, word, len) == 0;
}

static bool spell(const char *canonical, char out[SF_WNAME_SIZE]) {
    const char *suffix = strrchr(canonical, '.');
    if (!suffix) return false;
    if (strncmp(canonical, "blk.", 4) == 0) {
        const char *stem = canonical + 4 + strspn(canonical + 4, "0123456789") + 1;
        if (stem > suffix) return false;
        for (size_t i = 0; i < sizeof of_layer / sizeof *of_layer; i++) {
            if (!is(stem, (size_t)(suffix - stem), of_layer[i].canonical)) continue;
            snprintf(out, SF_WNAME_SIZE, "model.layers.%.*s%s%s", (int)(stem - canonical - 4), canonical + 4,
                     of_layer[i].name, suffix);
            return true;
        }
        return false;
    }
    for (size_t i = 0; i < sizeof of_model / sizeof *of_model; i++) {
        if (!is(canonical, (size_t)(suffix - canonical), of_model[i].canonical)) continue;
        snprintf(out, SF_WNAME_SIZE, "%s%s", of_model[i].name, suffix);
        return true;
    }
    return false;
}

static const sf_gguf_tensor *tensor_at(const void *file, int i) {
    return &sf_safetensors_tensor_at(file, i)->t;
}

static int find(const void *file, const char *name) {
    const sf_st_tensor *t = sf_safetensors_find_tensor(file, name);
    return t ? (int)(t - sf_safetensors_tensor_at(file, 0)) : -1;
}

static const char *label(const void *file, const sf_gguf_tensor *t) {
    return sf_safetensors_label(file, (const sf_st_tensor *)(const void *)t); /* t is its first member */
}

static int place(const void *file, const sf_gguf_tensor *t, uint64_t *offset) {
    const sf_safetensors *st = file;
    const sf_st_file *f = &st->files[((const sf_st_tensor *)(const void *)t)->file];
    *offset = (uint64_t)(t->data - f->base);
    return f->map.fd;
}

static bool ends_with(const char *name, const char *end) {
    size_t a = strlen(name), b = strlen(end);
    return a >= b && strcmp(name + a - b, end) == 0;
}

/* Old checkpoints also hold the frequencies of RoPE, which follow from the configuration. */
static sf_code surplus(const sf_wsource *s, const sf_gguf_tensor *t, bool *harmless, sf_err *err) {
    *harmless = ends_with(t->name, ".rotary_emb.inv_freq");
    return *harmless ? SF_OK : sf_wfile_tied_head(s, t, HEAD, EMBED, harmless, err);
}

sf_wsource sf_wsource_st(const sf_plan *plan, const sf_safetensors *st) {
    return sf_wsource_file(plan, (sf_wfile){.path = sf_safetensors_path(st),
                                            .file = st,
                                            .n = sf_safetensors_n_tensors(st),
                                            .at = tensor_at,
                                            .spell = spell,
                                            .find = find,
                                            .label = label,
                                            .place = place,
                                            .surplus = surplus});
}
