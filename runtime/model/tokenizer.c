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
    free(t->flags);
    free(t->raw.nodes);
    free(t->normal.nodes);
    sf_regex_destroy(t->regex);
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
    if (t->strips) return len > 0; /* a token may take any amount of white space with it */
    size_t bytes = 0;              /* those that no token stands for are left out of the ids too */
    for (size_t i = 0; i < len; i++)
        bytes += t->byte_id[(uint8_t)text[i]] >= 0;
    size_t longest =
        (size_t)t->longest * (t->nfc ? 3 : 1); /* three jamo become one syllable as long as each */
    return (bytes + longest - 1) / longest;
}

static sf_code get_id(const sf_gguf *g, const char *key, int64_t *out, sf_err *err) {
    *out = -1;
    if (!sf_gguf_has(g, key)) return SF_OK;
    SF_TRY(sf_gguf_get_i64(g, key, out, err));
    if (*out >= 0) return SF_OK;
    return SF_FAIL_AT(err, SF_FORMAT, ((sf_loc){sf_gguf_path(g), 0, 0}), "key %s is %lld", key,
                      (long long)*out);
}

/* "gpt2" is byte-level BPE, "llama" SentencePiece's. */
static sf_code get_model(const sf_gguf *g, bool *spm, sf_err *err) {
    sf_str model;
    SF_TRY(sf_gguf_get_str(g, "tokenizer.ggml.model", &model, err));
    *spm = model.len == 5 && !memcmp(model.data, "llama", 5);
    if (*spm || (model.len == 4 && !memcmp(model.data, "gpt2", 4))) return SF_OK;
    return SF_FAIL_AT(err, SF_UNSUPPORTED, ((sf_loc){sf_gguf_path(g), 0, 0}),
                      "key tokenizer.ggml.model is '%.*s', expected 'gpt2' or 'llama'",
                      (int)(model.len < 60 ? model.len : 60), model.data);
}

static sf_code get_flag(const sf_gguf *g, const char *key, bool *out, sf_err *err) {
    return sf_gguf_has(g, key) ? sf_gguf_get_bool(g, key, out, err) : SF_OK;
}

/* The rules that SentencePiece's models are read with unless the file says otherwise: a BOS, and U+2581
 * before each stretch of text. */
static sf_code get_rules(const sf_gguf *g, sf_tokenizer_parts *p, sf_err *err) {
    bool prefix = true, removes = false;
    if (!p->spm) {
        SF_TRY(sf_gguf_get_str(g, "tokenizer.ggml.pre", &p->split, err));
        return get_flag(g, "tokenizer.ggml.add_bos_token", &p->add_bos, err);
    }
    p->add_bos = p->bos >= 0;
    p->words = &sf_split_whole;
    SF_TRY(get_flag(g, "tokenizer.ggml.add_bos_token", &p->add_bos, err));
    SF_TRY(get_flag(g, "tokenizer.ggml.add_space_prefix", &prefix, err));
    SF_TRY(get_flag(g, "tokenizer.ggml.remove_extra_whitespaces", &removes, err));
    if (removes)
        return SF_FAIL_AT(err, SF_UNSUPPORTED, ((sf_loc){p->path, 0, 0}),
                          "key tokenizer.ggml.remove_extra_whitespaces is true");
    p->prefix = prefix ? SF_PREFIX_PREPEND : SF_PREFIX_NONE;
    p->strip = prefix;
    return SF_OK;
}

typedef struct arrays {
    sf_str *tokens, *merges;
    int32_t *types;
    float *scores;
} arrays;

static sf_code get_arrays(const sf_gguf *g, sf_tokenizer_parts *p, arrays *a, sf_err *err) {
    size_t n_scores = 0;
    SF_TRY(sf_gguf_get_strs(g, "tokenizer.ggml.tokens", &a->tokens, &p->n_tokens, err));
    if (p->spm)
        SF_TRY(sf_gguf_get_f32s(g, "tokenizer.ggml.scores", &a->scores, &n_scores, err));
    else
        SF_TRY(sf_gguf_get_strs(g, "tokenizer.ggml.merges", &a->merges, &p->n_merges, err));
    SF_TRY(sf_gguf_get_i32s(g, "tokenizer.ggml.token_type", &a->types, &p->n_types, err));
    if (p->spm && n_scores != p->n_tokens)
        return SF_FAIL_AT(err, SF_FORMAT, ((sf_loc){p->path, 0, 0}),
                          "key tokenizer.ggml.scores has %zu items, expected %zu as for the tokens", n_scores,
                          p->n_tokens);
    p->tokens = a->tokens;
    p->merges = a->merges;
    p->scores = a->scores;
    p->types = a->types;
    return SF_OK;
}

sf_code sf_tokenizer_open(const sf_gguf *g, sf_tokenizer **out, sf_err *err) {
    sf_tokenizer_parts p = {.path = sf_gguf_path(g)};
    arrays a = {0};
    sf_code rc = get_model(g, &p.spm, err);
    if (rc == SF_OK) rc = get_id(g, "tokenizer.ggml.bos_token_id", &p.bos, err);
    if (rc == SF_OK) rc = get_id(g, "tokenizer.ggml.eos_token_id", &p.eos, err);
    if (rc == SF_OK) rc = get_rules(g, &p, err);
    if (rc == SF_OK) rc = get_arrays(g, &p, &a, err);
    if (rc == SF_OK) rc = sf_tokenizer_build(&p, out, err);
    free(a.tokens);
    free(a.merges);
    free(a.types);
    free(a.scores);
    return rc;
}
