#include "model/tokenizer_json_priv.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_IDS = 1 << 21 };

typedef struct lists { /* what the parts point into */
    sf_str *tokens, *lefts, *rights;
    int32_t *types;
    uint8_t *flags;
} lists;

static void free_lists(lists *l) {
    free(l->tokens);
    free(l->lefts);
    free(l->rights);
    free(l->types);
    free(l->flags);
}

static sf_code check_keys(sf_tokenizer_json *r, const json_t *o, const char *path, const char *const *keys) {
    const char *key;
    const json_t *value;
    if (!json_is_object(o)) return SF_TOKENIZER_JSON_FAIL(r, SF_FORMAT, "%s is no object", path);
    json_object_foreach((json_t *)o, key, value) {
        int i = 0;
        while (keys[i] && strcmp(keys[i], key) != 0)
            i++;
        if (!keys[i])
            return SF_TOKENIZER_JSON_FAIL(r, SF_UNSUPPORTED, "%s.%.60s is not understood", path, key);
    }
    return SF_OK;
}

static bool is_none(const json_t *v) {
    return !v || json_is_null(v) || (json_is_string(v) && !json_string_length(v));
}

/* Settings of the model that change ids and are not computed. */
static sf_code check_model(sf_tokenizer_json *r, const json_t *model) {
    static const char *const keys[] = {"type",
                                       "dropout",
                                       "unk_token",
                                       "continuing_subword_prefix",
                                       "end_of_word_suffix",
                                       "fuse_unk",
                                       "byte_fallback",
                                       "ignore_merges",
                                       "vocab",
                                       "merges",
                                       NULL};
    static const char *const none[] = {"dropout", "continuing_subword_prefix", "end_of_word_suffix"};
    SF_TRY(check_keys(r, model, "model", keys));
    const char *type = json_string_value(json_object_get(model, "type"));
    if (!type || strcmp(type, "BPE") != 0)
        return SF_TOKENIZER_JSON_FAIL(r, SF_UNSUPPORTED, "model.type is '%.60s', expected 'BPE'",
                                      type ? type : "");
    for (size_t i = 0; i < sizeof none / sizeof *none; i++)
        if (!is_none(json_object_get(model, none[i])))
            return SF_TOKENIZER_JSON_FAIL(r, SF_UNSUPPORTED, "model.%s is set", none[i]);
    r->parts.spm = json_is_true(json_object_get(model, "byte_fallback"));
    r->parts.whole_words = json_is_true(json_object_get(model, "ignore_merges"));
    return SF_OK;
}

/* Room for every id of the vocabulary and the added tokens. */
static sf_code count_ids(sf_tokenizer_json *r, const json_t *vocab, const json_t *added, lists *l) {
    const char *key;
    json_t *v;
    size_t i, n = 0;
    json_object_foreach((json_t *)vocab, key, v) {
        json_int_t id = json_is_integer(v) ? json_integer_value(v) : -1;
        if (id < 0 || id >= MAX_IDS)
            return SF_TOKENIZER_JSON_FAIL(
                r, SF_FORMAT, "model.vocab: the id of '%.60s' is no number in 0..%d", key, MAX_IDS - 1);
        if ((size_t)id >= n) n = (size_t)id + 1;
    }
    json_array_foreach(added, i, v) {
        const json_t *number = json_object_get(v, "id");
        json_int_t id = json_is_integer(number) ? json_integer_value(number) : -1;
        if (id < 0 || id >= MAX_IDS)
            return SF_TOKENIZER_JSON_FAIL(r, SF_FORMAT, "added_tokens[%zu].id is no number in 0..%d", i,
                                          MAX_IDS - 1);
        if ((size_t)id >= n) n = (size_t)id + 1;
    }
    l->tokens = calloc(n + 1, sizeof *l->tokens);
    l->types = calloc(n + 1, sizeof *l->types);
    l->flags = calloc(n + 1, 1);
    if (!l->tokens || !l->types || !l->flags)
        return SF_TOKENIZER_JSON_FAIL(r, SF_NOMEM, "no memory for %zu tokens", n);
    r->parts.n_tokens = r->parts.n_types = n;
    r->parts.tokens = l->tokens;
    r->parts.types = l->types;
    r->parts.flags = l->flags;
    return SF_OK;
}

static bool is_byte_name(const char *s) {
    return strlen(s) == 6 && !memcmp(s, "<0x", 3) && s[5] == '>' && strspn(s + 3, "0123456789ABCDEF") == 2;
}

static sf_code read_vocab(sf_tokenizer_json *r, const json_t *vocab, lists *l) {
    const char *key;
    const json_t *v;
    for (size_t i = 0; i < r->parts.n_tokens; i++)
        l->types[i] = SF_TOKEN_UNUSED; /* until something has this id */
    json_object_foreach((json_t *)vocab, key, v) {
        size_t id = (size_t)json_integer_value(v);
        if (l->tokens[id].data)
            return SF_TOKENIZER_JSON_FAIL(r, SF_FORMAT, "model.vocab: '%.60s' and '%.60s' have one id",
                                          l->tokens[id].data, key);
        l->tokens[id] = (sf_str){key, strlen(key)};
        l->types[id] = r->parts.spm && is_byte_name(key) ? SF_TOKEN_BYTE : SF_TOKEN_NORMAL;
    }
    return SF_OK;
}

static sf_code read_flags(sf_tokenizer_json *r, size_t i, const json_t *o, uint8_t *flags, bool *special) {
    static const struct {
        const char *key;
        uint8_t flag;
    } known[] = {{"lstrip", SF_ADDED_LSTRIP},
                 {"rstrip", SF_ADDED_RSTRIP},
                 {"single_word", SF_ADDED_SINGLE_WORD},
                 {"normalized", SF_ADDED_NORMALIZED},
                 {"special", 0}};
    *flags = 0;
    *special = json_is_true(json_object_get(o, "special"));
    for (size_t k = 0; k < sizeof known / sizeof *known; k++) {
        const json_t *v = json_object_get(o, known[k].key);
        if (v && !json_is_boolean(v))
            return SF_TOKENIZER_JSON_FAIL(r, SF_FORMAT, "added_tokens[%zu].%s is no boolean", i,
                                          known[k].key);
        if (json_is_true(v)) *flags |= known[k].flag;
    }
    return SF_OK;
}

static sf_code read_added(sf_tokenizer_json *r, const json_t *added, lists *l) {
    static const char *const keys[] = {"id",     "content",    "single_word", "lstrip",
                                       "rstrip", "normalized", "special",     NULL};
    size_t i;
    json_t *o;
    char path[40];
    json_array_foreach(added, i, o) {
        const json_t *content = json_object_get(o, "content");
        size_t id = (size_t)json_integer_value(json_object_get(o, "id"));
        sf_str s = {json_string_value(content), json_string_length(content)}, had = l->tokens[id];
        bool special;
        snprintf(path, sizeof path, "added_tokens[%zu]", i);
        SF_TRY(check_keys(r, o, path, keys));
        if (!s.data || !s.len) return SF_TOKENIZER_JSON_FAIL(r, SF_FORMAT, "%s.content is no text", path);
        SF_TRY(read_flags(r, i, o, &l->flags[id], &special));
        if (had.data && (had.len != s.len || memcmp(had.data, s.data, s.len) != 0))
            return SF_TOKENIZER_JSON_FAIL(r, SF_FORMAT, "%s: id %zu is '%.60s' in model.vocab", path, id,
                                          had.data);
        if (had.data) l->flags[id] |= SF_ADDED_IN_VOCAB;
        l->tokens[id] = s;
        l->types[id] = special ? SF_TOKEN_CONTROL : SF_TOKEN_USER;
    }
    return SF_OK;
}

/* An item is "left right" or ["left", "right"]; a file has one spelling or the other. */
static sf_code read_merges(sf_tokenizer_json *r, const json_t *merges, lists *l) {
    size_t i, n = json_array_size(merges);
    json_t *m;
    if (!json_is_array(merges)) return SF_TOKENIZER_JSON_FAIL(r, SF_FORMAT, "model.%s is no list", "merges");
    l->lefts = calloc(n + 1, sizeof *l->lefts);
    l->rights = calloc(n + 1, sizeof *l->rights);
    if (!l->lefts || !l->rights) return SF_TOKENIZER_JSON_FAIL(r, SF_NOMEM, "no memory for %zu merges", n);
    json_array_foreach(merges, i, m) {
        const json_t *left = json_array_get(m, 0), *right = json_array_get(m, 1);
        const char *s = json_string_value(m), *space = s ? strchr(s, ' ') : NULL;
        if (json_array_size(m) == 2 && json_is_string(left) && json_is_string(right)) {
            l->lefts[i] = (sf_str){json_string_value(left), json_string_length(left)};
            l->rights[i] = (sf_str){json_string_value(right), json_string_length(right)};
        } else if (space && !strchr(space + 1, ' ')) {
            l->lefts[i] = (sf_str){s, (size_t)(space - s)};
            l->rights[i] = (sf_str){space + 1, json_string_length(m) - l->lefts[i].len - 1};
        } else {
            return SF_TOKENIZER_JSON_FAIL(r, SF_FORMAT,
                                          "model.merges[%zu] is neither \"left right\" nor two texts", i);
        }
    }
    r->parts.merges = l->lefts;
    r->parts.rights = l->rights;
    r->parts.n_merges = n;
    return SF_OK;
}

static sf_code find_id(sf_tokenizer_json *r, const lists *l, const char *name, const char *what,
                       int64_t *id) {
    for (size_t i = 0; i < r->parts.n_tokens; i++) {
        if (l->tokens[i].len != strlen(name) || !l->tokens[i].len ||
            memcmp(l->tokens[i].data, name, l->tokens[i].len) != 0)
            continue;
        *id = (int64_t)i;
        return SF_OK;
    }
    return SF_FAIL_AT(r->err, SF_FORMAT, r->at, "%s is '%.60s', which is no token", what, name);
}

/* tokenizer_config.json spells a token as a text, or an object with its content. *out is NULL if there is
 * none. */
static sf_code named(sf_tokenizer_json *r, const json_t *config, const char *key, const char **out) {
    const json_t *v = json_object_get(config, key);
    *out = json_string_value(json_is_object(v) ? json_object_get(v, "content") : v);
    if (*out || !v || json_is_null(v)) return SF_OK;
    return SF_FAIL_AT(r->err, SF_FORMAT, r->at, "tokenizer_config.json: %s is no text", key);
}

static sf_code read_unk(sf_tokenizer_json *r, const json_t *root, const lists *l) {
    const json_t *unk = json_object_get(json_object_get(root, "model"), "unk_token");
    const json_t *fuse = json_object_get(json_object_get(root, "model"), "fuse_unk");
    int64_t unk_id = -1;
    if (json_is_string(unk)) {
        SF_TRY(find_id(r, l, json_string_value(unk), "tokenizer.json: model.unk_token", &unk_id));
        r->parts.has_unk = true;
        r->parts.unk = (int32_t)unk_id;
        r->parts.fuse_unk = json_is_true(fuse);
    }
    return SF_OK;
}

static sf_code read_special_ids(sf_tokenizer_json *r, const json_t *config, const lists *l) {
    const char *bos = NULL, *eos = NULL;
    const json_t *add = json_object_get(config, "add_bos_token"),
                 *add_eos = json_object_get(config, "add_eos_token");
    SF_TRY(named(r, config, "bos_token", &bos));
    SF_TRY(named(r, config, "eos_token", &eos));
    if (r->bos_name)
        SF_TRY(find_id(r, l, r->bos_name, "tokenizer.json: post_processor's first token", &r->parts.bos));
    if (bos) {
        int64_t id = -1;
        SF_TRY(find_id(r, l, bos, "tokenizer_config.json: bos_token", &id));
        if (r->bos_name && id != r->parts.bos)
            return SF_TOKENIZER_JSON_FAIL(r, SF_UNSUPPORTED,
                                          "post_processor puts '%.60s' first, and bos_token is '%.60s'",
                                          r->bos_name, bos);
        r->parts.bos = id;
    }
    if (eos) SF_TRY(find_id(r, l, eos, "tokenizer_config.json: eos_token", &r->parts.eos));
    if (json_is_true(add_eos))
        return SF_FAIL_AT(r->err, SF_UNSUPPORTED, r->at, "tokenizer_config.json: add_eos_token is true");
    if (add && !json_is_boolean(add) && !json_is_null(add))
        return SF_FAIL_AT(r->err, SF_FORMAT, r->at, "tokenizer_config.json: add_bos_token is no boolean");
    if (json_is_boolean(add)) r->parts.add_bos = json_is_true(add);
    if (r->parts.add_bos && r->parts.bos < 0)
        return SF_FAIL_AT(r->err, SF_FORMAT, r->at,
                          "tokenizer_config.json: add_bos_token is true, and there is no bos_token");
    return SF_OK;
}

static sf_code read_all(sf_tokenizer_json *r, const json_t *root, const json_t *config, lists *l) {
    static const char *const keys[] = {
        "version",       "truncation",     "padding", "added_tokens", "normalizer",
        "pre_tokenizer", "post_processor", "decoder", "model",        NULL};
    const json_t *model = json_object_get(root, "model"), *added = json_object_get(root, "added_tokens");
    SF_TRY(check_keys(r, root, "the whole", keys));
    SF_TRY(check_model(r, model));
    const json_t *vocab = json_object_get(model, "vocab");
    if (!json_is_object(vocab)) return SF_TOKENIZER_JSON_FAIL(r, SF_FORMAT, "model.%s is no object", "vocab");
    if (added && !json_is_array(added))
        return SF_TOKENIZER_JSON_FAIL(r, SF_FORMAT, "%s is no list", "added_tokens");
    SF_TRY(sf_tokenizer_json_pipeline(r, root));
    SF_TRY(count_ids(r, vocab, added, l));
    SF_TRY(read_vocab(r, vocab, l));
    SF_TRY(read_added(r, added, l));
    SF_TRY(read_merges(r, json_object_get(model, "merges"), l));
    SF_TRY(read_unk(r, root, l));
    return read_special_ids(r, config, l);
}

sf_code sf_tokenizer_json_build(const char *dir, const json_t *root, const json_t *config, sf_tokenizer **out,
                                sf_err *err) {
    sf_tokenizer_json r = {
        .at = {dir, 0, 0}, .err = err, .parts = {.path = dir, .json = true, .bos = -1, .eos = -1}};
    lists l = {0};
    sf_code rc = read_all(&r, root, config, &l);
    if (rc == SF_OK) rc = sf_tokenizer_build(&r.parts, out, err);
    free_lists(&l);
    return rc;
}
