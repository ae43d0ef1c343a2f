/* Reads the tokenizer.ggml.* keys of a GGUF file (ggml/docs/gguf.md). */
#include "model/tokenizer_priv.h"

#include <stdlib.h>
#include <string.h>

void sf_tokenizer_close(sf_tokenizer *t) {
    if (!t) return;
    free(t->pieces);
    free(t->types);
    free(t->bytes);
    free(t->by_raw);
    free(t->merges);
    free(t->merge_ids);
    free(t->trie);
    free(t);
}

int sf_tokenizer_vocab(const sf_tokenizer *t) {
    return t->n;
}
int32_t sf_tokenizer_bos(const sf_tokenizer *t) {
    return t->bos;
}
int32_t sf_tokenizer_eos(const sf_tokenizer *t) {
    return t->eos;
}
bool sf_tokenizer_add_bos(const sf_tokenizer *t) {
    return t->add_bos;
}
const char *sf_tokenizer_hash(const sf_tokenizer *t) {
    return t->hash;
}

sf_code sf_tokenizer_check_split(const sf_tokenizer *t, const char *path, const char *split, sf_err *err) {
    if (strcmp(t->split->name, split) == 0) return SF_OK;
    return SF_FAIL_AT(err, SF_INVALID, ((sf_loc){path, 0, 0}),
                      "key tokenizer.ggml.pre is '%s', this engine's tokenizer splits as '%s'",
                      t->split->name, split);
}

bool sf_tokenizer_is_special(const sf_tokenizer *t, int32_t id) {
    return id >= 0 && id < t->n && t->types[id] == SF_TOKEN_CONTROL;
}

size_t sf_tokenizer_at_least(const sf_tokenizer *t, const char *text, size_t len) {
    size_t bytes = 0; /* those that no token stands for are left out of the ids too */
    for (size_t i = 0; i < len; i++)
        bytes += t->byte_id[(uint8_t)text[i]] >= 0;
    return (bytes + t->longest - 1) / t->longest;
}

static sf_code get_id(const sf_gguf *g, const char *key, int64_t *out, sf_err *err) {
    *out = -1;
    if (!sf_gguf_has(g, key)) return SF_OK;
    SF_TRY(sf_gguf_get_i64(g, key, out, err));
    if (*out >= 0) return SF_OK;
    return SF_FAIL_AT(err, SF_FORMAT, ((sf_loc){sf_gguf_path(g), 0, 0}), "key %s is %lld", key,
                      (long long)*out);
}

static sf_code get_model(const sf_gguf *g, sf_err *err) {
    sf_str model;
    SF_TRY(sf_gguf_get_str(g, "tokenizer.ggml.model", &model, err));
    if (model.len == 4 && !memcmp(model.data, "gpt2", 4)) return SF_OK;
    return SF_FAIL_AT(err, SF_UNSUPPORTED, ((sf_loc){sf_gguf_path(g), 0, 0}),
                      "key tokenizer.ggml.model is '%.*s', expected 'gpt2'",
                      (int)(model.len < 60 ? model.len : 60), model.data);
}

sf_code sf_tokenizer_open(const sf_gguf *g, sf_tokenizer **out, sf_err *err) {
    sf_tokenizer_parts p = {.path = sf_gguf_path(g)};
    sf_str *tokens = NULL, *merges = NULL;
    int32_t *types = NULL;
    sf_code rc = get_model(g, err);
    if (rc == SF_OK) rc = sf_gguf_get_str(g, "tokenizer.ggml.pre", &p.split, err);
    if (rc == SF_OK) rc = get_id(g, "tokenizer.ggml.bos_token_id", &p.bos, err);
    if (rc == SF_OK) rc = get_id(g, "tokenizer.ggml.eos_token_id", &p.eos, err);
    if (rc == SF_OK && sf_gguf_has(g, "tokenizer.ggml.add_bos_token"))
        rc = sf_gguf_get_bool(g, "tokenizer.ggml.add_bos_token", &p.add_bos, err);
    if (rc == SF_OK) rc = sf_gguf_get_strs(g, "tokenizer.ggml.tokens", &tokens, &p.n_tokens, err);
    if (rc == SF_OK) rc = sf_gguf_get_strs(g, "tokenizer.ggml.merges", &merges, &p.n_merges, err);
    if (rc == SF_OK) rc = sf_gguf_get_i32s(g, "tokenizer.ggml.token_type", &types, &p.n_types, err);
    if (rc != SF_OK) goto done;
    p.tokens = tokens;
    p.merges = merges;
    p.types = types;
    rc = sf_tokenizer_build(&p, out, err);
done:
    free(tokens);
    free(merges);
    free(types);
    return rc;
}
