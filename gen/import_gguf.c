/* The figures of a GGUF file's metadata. */
#include "import_priv.h"

#include "model/gguf_rope.h"
#include "model/tokenizer.h"
#include "model/weights.h"

#include <stdio.h>
#include <string.h>

#define FAIL(g, code, ...) SF_FAIL_AT(err, code, ((sf_loc){sf_gguf_path(g), 0, 0}), __VA_ARGS__)

static sf_code read_family(const sf_gguf *g, sf_model_desc *m, sf_err *err) {
    static const char *const known[] = {"llama", "qwen2", "qwen3"};
    sf_str arch;
    SF_TRY(sf_gguf_get_str(g, "general.architecture", &arch, err));
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (arch.len == strlen(known[i]) && memcmp(arch.data, known[i], arch.len) == 0) m->family = known[i];
    }
    if (m->family) return SF_OK;
    return FAIL(g, SF_UNSUPPORTED, "key general.architecture is '%.*s', expected llama, qwen2 or qwen3",
                (int)(arch.len < 40 ? arch.len : 40), arch.data);
}

static void full_key(const sf_model_desc *m, const char *key, char out[96]) {
    snprintf(out, 96, "%s.%s", m->family, key);
}

/* An absent key leaves *out, unless it is required. */
static sf_code read_int(const sf_gguf *g, const sf_model_desc *m, const char *key, bool required, int *out,
                        sf_err *err) {
    char name[96];
    int64_t v = 0;
    full_key(m, key, name);
    if (!required && !sf_gguf_has(g, name)) return SF_OK;
    SF_TRY(sf_gguf_get_i64(g, name, &v, err));
    if (v < 1 || v > INT32_MAX)
        return FAIL(g, SF_FORMAT, "key %s is %lld, expected 1..%d", name, (long long)v, INT32_MAX);
    *out = (int)v;
    return SF_OK;
}

static sf_code read_shapes(const sf_gguf *g, sf_model_desc *m, sf_err *err) {
    SF_TRY(read_int(g, m, "embedding_length", true, &m->hidden, err));
    SF_TRY(read_int(g, m, "block_count", true, &m->layers, err));
    SF_TRY(read_int(g, m, "attention.head_count", true, &m->heads, err));
    m->kv_heads = m->heads;
    SF_TRY(read_int(g, m, "attention.head_count_kv", false, &m->kv_heads, err));
    m->head_dim = m->hidden / m->heads;
    SF_TRY(read_int(g, m, "attention.key_length", false, &m->head_dim, err));
    SF_TRY(read_int(g, m, "feed_forward_length", true, &m->intermediate, err));
    return read_int(g, m, "context_length", true, &m->context, err);
}

static sf_code read_numerics(const sf_gguf *g, sf_model_desc *m, sf_err *err) {
    char name[96];
    double eps = 0;
    full_key(m, "attention.layer_norm_rms_epsilon", name);
    SF_TRY(sf_gguf_get_f64(g, name, &eps, err));
    m->norm_eps = (float)eps;
    SF_TRY(sf_gguf_rope_read(g, m, err));
    if (sf_gguf_find_tensor(g, "blk.0.attn_output.bias"))
        return FAIL(g, SF_UNSUPPORTED, "tensor blk.0.attn_output.bias: this bias is not computed");
    m->qkv_bias = sf_gguf_find_tensor(g, "blk.0.attn_q.bias");
    m->qk_norm = sf_gguf_find_tensor(g, "blk.0.attn_q_norm.weight");
    m->tied_embeddings = !sf_gguf_find_tensor(g, "output.weight");
    return SF_OK;
}

static sf_code read_tokenizer(const sf_gguf *g, sf_model_desc *m, sf_err *err) {
    static const char *const others[] = {"tokenizer.ggml.eot_token_id", "tokenizer.ggml.eom_token_id"};
    sf_tokenizer *t = NULL;
    SF_TRY(sf_tokenizer_open(g, &t, err));
    const sf_gguf_tensor *embed = sf_gguf_find_tensor(g, "token_embd.weight");
    m->vocab = embed && embed->dims[1] <= INT32_MAX ? (int)embed->dims[1] : sf_tokenizer_vocab(t);
    m->bos = sf_tokenizer_bos(t);
    m->add_bos = sf_tokenizer_add_bos(t);
    m->tokenizer_split = sf_import_split(t);
    sf_code rc = SF_OK;
    if (sf_tokenizer_vocab(t) > m->vocab)
        rc = FAIL(g, SF_FORMAT, "the tokenizer has %d tokens, tensor token_embd.weight %d rows",
                  sf_tokenizer_vocab(t), m->vocab);
    else if (!m->tokenizer_split)
        rc = FAIL(g, SF_UNSUPPORTED, "its tokenizer's split has no name here");
    if (rc == SF_OK && sf_tokenizer_eos(t) >= 0)
        rc = sf_import_add_eos(m, sf_gguf_path(g), sf_tokenizer_eos(t), err);
    sf_tokenizer_close(t);
    for (size_t i = 0; rc == SF_OK && i < sizeof others / sizeof *others; i++) {
        int64_t id = -1;
        if (!sf_gguf_has(g, others[i])) continue;
        SF_TRY(sf_gguf_get_i64(g, others[i], &id, err));
        if (id < 0 || id >= m->vocab)
            return FAIL(g, SF_FORMAT, "key %s is %lld, expected 0..%d", others[i], (long long)id,
                        m->vocab - 1);
        SF_TRY(sf_import_add_eos(m, sf_gguf_path(g), (int)id, err));
    }
    return rc;
}

static sf_code read_all(const sf_gguf *g, sf_model_desc *m, sf_err *err) {
    SF_TRY(read_family(g, m, err));
    SF_TRY(read_shapes(g, m, err));
    SF_TRY(read_numerics(g, m, err));
    SF_TRY(read_tokenizer(g, m, err));
    /* the loader's own word on every key, those that nothing here reads among them */
    const sf_plan plan = {.model = *m};
    return sf_weights_check_metadata(&plan, g, err);
}

sf_code sf_import_gguf(sf_arena *a, const char *path, sf_model_desc *out, sf_err *err) {
    sf_gguf *g = NULL;
    (void)a;
    SF_TRY(sf_gguf_open(path, &g, err));
    sf_code rc = read_all(g, out, err);
    sf_gguf_close(g);
    return rc;
}
