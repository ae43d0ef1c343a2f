#include "model.h"

#include "device/rope.h"

#include <string.h>

/* Features that other models have and this generator does not compute: an answer without them would be
 * wrong, so they are refused by name. */
static const char *const not_computed[] = {"sliding_window", "rope_scaling",  "experts",
                                           "quantization",   "logit_softcap", "attention_bias",
                                           "mlp_bias",       "alibi",         NULL};

static sf_code refuse_features(const sf_yaml_node *root, sf_err *err) {
    for (int i = 0; not_computed[i]; i++) {
        const sf_yaml_node *n = sf_yaml_find(root, not_computed[i]);
        if (n)
            return SF_FAIL_AT(err, SF_UNSUPPORTED, n->key_loc, "%s is not computed by this generator",
                              not_computed[i]);
    }
    return SF_OK;
}

/* A `kind` that is among known words but not the computed one is named as such; any other is a typing error.
 */
static sf_code check_kind(const sf_yaml_node *map, const char *what, const char *const *known,
                          const char *computed, sf_err *err) {
    int i = 0;
    const char *key = strcmp(what, "norm") == 0 ? "kind" : what;
    SF_TRY(sf_yaml_get_word(map, key, known, &i, err));
    if (strcmp(known[i], computed) == 0) return SF_OK;
    return SF_FAIL_AT(err, SF_UNSUPPORTED, sf_yaml_find(map, key)->loc,
                      "%s %s is not computed by this generator, expected %s", what, known[i], computed);
}

static sf_code read_shapes(const sf_yaml_node *root, sf_model_desc *d, sf_err *err) {
    SF_TRY(sf_yaml_get_int(root, "vocab", 2, 1 << 20, &d->vocab, err));
    SF_TRY(sf_yaml_get_int(root, "hidden", 16, 65536, &d->hidden, err));
    SF_TRY(sf_yaml_get_int(root, "layers", 1, 1024, &d->layers, err));
    SF_TRY(sf_yaml_get_int(root, "heads", 1, 1024, &d->heads, err));
    SF_TRY(sf_yaml_get_int(root, "kv_heads", 1, 1024, &d->kv_heads, err));
    SF_TRY(sf_yaml_get_int(root, "head_dim", 2, 512, &d->head_dim, err));
    SF_TRY(sf_yaml_get_int(root, "intermediate", 16, 1 << 20, &d->intermediate, err));
    return sf_yaml_get_int(root, "context", 16, 1 << 20, &d->context, err);
}

static sf_code check_shapes(const sf_yaml_node *root, const sf_model_desc *d, sf_err *err) {
    if (d->hidden % 2)
        return SF_FAIL_AT(err, SF_INVALID, sf_yaml_find(root, "hidden")->loc,
                          "hidden is %d, expected an even number", d->hidden);
    if (d->head_dim % 2)
        return SF_FAIL_AT(err, SF_INVALID, sf_yaml_find(root, "head_dim")->loc,
                          "head_dim is %d, expected an even number (rotary pairs)", d->head_dim);
    if (d->intermediate % 2)
        return SF_FAIL_AT(err, SF_INVALID, sf_yaml_find(root, "intermediate")->loc,
                          "intermediate is %d, expected an even number", d->intermediate);
    if (d->kv_heads > d->heads || d->heads % d->kv_heads)
        return SF_FAIL_AT(err, SF_INVALID, sf_yaml_find(root, "kv_heads")->loc,
                          "kv_heads is %d, expected a divisor of heads (%d)", d->kv_heads, d->heads);
    if (d->heads * d->head_dim > 65536)
        return SF_FAIL_AT(err, SF_INVALID, sf_yaml_find(root, "heads")->loc,
                          "heads x head_dim is %d, expected at most 65536", d->heads * d->head_dim);
    return SF_OK;
}

static sf_code read_llama3(const sf_yaml_node *map, sf_model_desc *d, sf_err *err) {
    static const char *const keys[] = {
        "kind", "theta", "factor", "low_freq_factor", "high_freq_factor", "original_context", NULL};
    SF_TRY(sf_yaml_check_keys(map, "rope", keys, err));
    SF_TRY(sf_yaml_get_num(map, "factor", 1, 1024, &d->rope_factor, err));
    SF_TRY(sf_yaml_get_num(map, "low_freq_factor", 0.001, 1024, &d->rope_low_freq, err));
    SF_TRY(sf_yaml_get_num(map, "high_freq_factor", 0.001, 1024, &d->rope_high_freq, err));
    if (d->rope_high_freq <= d->rope_low_freq)
        return SF_FAIL_AT(err, SF_INVALID, sf_yaml_find(map, "high_freq_factor")->loc,
                          "high_freq_factor is %g, expected over low_freq_factor (%g)", d->rope_high_freq,
                          d->rope_low_freq);
    return sf_yaml_get_int(map, "original_context", 16, 1 << 20, &d->rope_original_context, err);
}

/* A key that may be absent, which leaves *out. */
static sf_code get_optional(const sf_yaml_node *map, const char *key, double lo, double hi, double *out,
                            sf_err *err) {
    return sf_yaml_find(map, key) ? sf_yaml_get_num(map, key, lo, hi, out, err) : SF_OK;
}

/* What is absent is what transformers takes for it. */
static sf_code read_yarn(const sf_yaml_node *map, sf_model_desc *d, sf_err *err) {
    static const char *const keys[] = {"kind",
                                       "theta",
                                       "factor",
                                       "original_context",
                                       "beta_fast",
                                       "beta_slow",
                                       "attention_factor",
                                       "mscale",
                                       "mscale_all_dim",
                                       "truncate",
                                       NULL};
    bool truncate = true;
    SF_TRY(sf_yaml_check_keys(map, "rope", keys, err));
    SF_TRY(sf_yaml_get_num(map, "theta", 1.001, 1e12, &d->rope_theta, err));
    SF_TRY(sf_yaml_get_num(map, "factor", 1, 1024, &d->rope_factor, err));
    SF_TRY(sf_yaml_get_int(map, "original_context", 16, 1 << 20, &d->rope_original_context, err));
    d->rope_beta_fast = SF_YARN_BETA_FAST;
    d->rope_beta_slow = SF_YARN_BETA_SLOW;
    SF_TRY(get_optional(map, "beta_fast", 0.001, 65536, &d->rope_beta_fast, err));
    SF_TRY(get_optional(map, "beta_slow", 0.001, 65536, &d->rope_beta_slow, err));
    if (d->rope_beta_fast < d->rope_beta_slow)
        return SF_FAIL_AT(err, SF_INVALID, map->loc, "beta_fast is %g, expected beta_slow (%g) at least",
                          d->rope_beta_fast, d->rope_beta_slow);
    SF_TRY(get_optional(map, "attention_factor", 0.001, 1024, &d->rope_attention_factor, err));
    SF_TRY(get_optional(map, "mscale", 0.001, 1024, &d->rope_mscale, err));
    SF_TRY(get_optional(map, "mscale_all_dim", 0.001, 1024, &d->rope_mscale_all_dim, err));
    if (sf_yaml_find(map, "truncate")) SF_TRY(sf_yaml_get_bool(map, "truncate", &truncate, err));
    d->rope_exact_range = !truncate;
    return SF_OK;
}

static sf_code read_linear(const sf_yaml_node *map, sf_model_desc *d, sf_err *err) {
    static const char *const keys[] = {"kind", "theta", "factor", NULL};
    SF_TRY(sf_yaml_check_keys(map, "rope", keys, err));
    return sf_yaml_get_num(map, "factor", 1, 1024, &d->rope_factor, err);
}

/* Kinds come before keys: what a yarn rope needs differs from what a plain one does. */
static sf_code read_rope(const sf_yaml_node *root, sf_model_desc *d, sf_err *err) {
    enum { DEFAULT, LINEAR, LLAMA3, YARN, COMPUTED };
    static const char *const kinds[] = {"default", "linear",   "llama3", "yarn",
                                        "dynamic", "longrope", "none",   NULL};
    static const char *const plain_keys[] = {"kind", "theta", NULL};
    const sf_yaml_node *map = NULL;
    int kind = 0;
    SF_TRY(sf_yaml_get_map(root, "rope", NULL, &map, err));
    SF_TRY(sf_yaml_get_word(map, "kind", kinds, &kind, err));
    if (kind >= COMPUTED)
        return SF_FAIL_AT(err, SF_UNSUPPORTED, sf_yaml_find(map, "kind")->loc,
                          "rope %s is not computed by this generator, expected default, linear, llama3 or "
                          "yarn",
                          kinds[kind]);
    d->rope_kind = kinds[kind];
    if (kind == DEFAULT) SF_TRY(sf_yaml_check_keys(map, "rope", plain_keys, err));
    if (kind == LINEAR) SF_TRY(read_linear(map, d, err));
    if (kind == LLAMA3) SF_TRY(read_llama3(map, d, err));
    if (kind == YARN) SF_TRY(read_yarn(map, d, err));
    return sf_yaml_get_num(map, "theta", 1, 1e12, &d->rope_theta, err);
}

static sf_code read_numerics(const sf_yaml_node *root, sf_model_desc *d, sf_err *err) {
    static const char *const norm_keys[] = {"kind", "eps", NULL};
    static const char *const norms[] = {"rmsnorm", "layernorm", NULL};
    static const char *const activations[] = {"silu", "gelu", "relu", NULL};
    static const char *const biases[] = {"none", "qkv", NULL};
    static const char *const qk_norms[] = {"none", "rmsnorm", NULL};
    const sf_yaml_node *map = NULL;
    double eps = 0;
    int bias = 0, qk_norm = 0;
    SF_TRY(sf_yaml_get_map(root, "norm", norm_keys, &map, err));
    SF_TRY(check_kind(map, "norm", norms, "rmsnorm", err));
    SF_TRY(sf_yaml_get_num(map, "eps", 1e-12, 0.1, &eps, err));
    d->norm_eps = (float)eps;
    SF_TRY(read_rope(root, d, err));
    SF_TRY(check_kind(root, "activation", activations, "silu", err));
    SF_TRY(sf_yaml_get_word(root, "biases", biases, &bias, err));
    d->qkv_bias = bias == 1;
    if (sf_yaml_find(root, "qk_norm")) SF_TRY(sf_yaml_get_word(root, "qk_norm", qk_norms, &qk_norm, err));
    d->qk_norm = qk_norm == 1;
    return sf_yaml_get_bool(root, "tied_embeddings", &d->tied_embeddings, err);
}

static sf_code read_tokenizer(const sf_yaml_node *root, sf_model_desc *d, sf_err *err) {
    static const char *const keys[] = {"split", "bos", "add_bos", "eos", NULL};
    static const char *const splits[] = {"smollm", "gpt2",          "llama3", "qwen2", "tekken",
                                         "llama4", "sentencepiece", "regex",  NULL};
    const sf_yaml_node *map = NULL;
    int split = 0;
    SF_TRY(sf_yaml_get_map(root, "tokenizer", keys, &map, err));
    SF_TRY(sf_yaml_get_word(map, "split", splits, &split, err));
    d->tokenizer_split = splits[split];
    const sf_yaml_node *bos = sf_yaml_find(map, "bos");
    d->bos = -1;
    if (!bos || bos->kind != SF_YAML_SCALAR || bos->quoted || strcmp(bos->text, "none") != 0)
        SF_TRY(sf_yaml_get_int(map, "bos", 0, d->vocab - 1, &d->bos, err));
    SF_TRY(sf_yaml_get_bool(map, "add_bos", &d->add_bos, err));
    if (d->add_bos && d->bos < 0)
        return SF_FAIL_AT(err, SF_INVALID, sf_yaml_find(map, "add_bos")->loc,
                          "add_bos is true and bos is none, expected a bos id");
    SF_TRY(sf_yaml_get_ints(map, "eos", 0, d->vocab - 1, (int)(sizeof d->eos / sizeof *d->eos), d->eos,
                            &d->n_eos, err));
    for (int i = 0; i < d->n_eos; i++)
        for (int j = 0; j < i; j++)
            if (d->eos[i] == d->eos[j])
                return SF_FAIL_AT(err, SF_INVALID, sf_yaml_find(map, "eos")->loc,
                                  "eos has %d twice, expected it once", d->eos[i]);
    return SF_OK;
}

/* `checkpoint`, or `{text: ...}`. */
static sf_code read_chat_template(const sf_yaml_node *root, sf_model_desc *d, sf_err *err) {
    static const char *const words[] = {"checkpoint", NULL};
    static const char *const keys[] = {"text", NULL};
    const sf_yaml_node *n = sf_yaml_find(root, "chat_template");
    int i = 0;
    d->chat_template = NULL;
    if (!n || n->kind != SF_YAML_MAP) return sf_yaml_get_word(root, "chat_template", words, &i, err);
    SF_TRY(sf_yaml_check_keys(n, "chat_template", keys, err));
    return sf_yaml_get_text(n, "text", &d->chat_template, err);
}

sf_code sf_model_read(const sf_yaml_node *root, const char *file, sf_model *out, sf_err *err) {
    static const char *const keys[] = {
        "name",     "family",          "vocab",     "hidden",        "layers", "heads",      "kv_heads",
        "head_dim", "intermediate",    "context",   "norm",          "rope",   "activation", "biases",
        "qk_norm",  "tied_embeddings", "tokenizer", "chat_template", NULL};
    static const char *const families[] = {"llama", "qwen2", "qwen3", NULL};
    sf_model m = {.file = file};
    int family = 0;
    SF_TRY(refuse_features(root, err));
    SF_TRY(sf_yaml_check_keys(root, "a model", keys, err));
    SF_TRY(sf_yaml_get_name(root, "name", &m.desc.name, err));
    SF_TRY(sf_yaml_get_word(root, "family", families, &family, err));
    m.desc.family = families[family];
    SF_TRY(read_shapes(root, &m.desc, err));
    SF_TRY(check_shapes(root, &m.desc, err));
    SF_TRY(read_numerics(root, &m.desc, err));
    SF_TRY(read_tokenizer(root, &m.desc, err));
    SF_TRY(read_chat_template(root, &m.desc, err));
    *out = m;
    return SF_OK;
}
