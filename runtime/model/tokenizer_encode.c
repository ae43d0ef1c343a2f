#include "model/tokenizer_priv.h"

#include "base/utf8.h"

#include <stdlib.h>
#include <string.h>

void sf_ids_fini(sf_ids *ids) {
    free(ids->data);
    *ids = (sf_ids){0};
}

sf_code sf_ids_push(sf_ids *ids, int32_t id, sf_err *err) {
    if (ids->len == ids->cap) {
        size_t cap = ids->cap ? ids->cap * 2 : 64;
        int32_t *data = realloc(ids->data, cap * sizeof *data);
        if (!data) return SF_FAIL(err, SF_NOMEM, "no memory for %zu token ids", cap);
        ids->data = data;
        ids->cap = cap;
    }
    ids->data[ids->len++] = id;
    return SF_OK;
}

static sf_code check_utf8(const char *text, size_t len, sf_err *err) {
    size_t good = sf_utf8_prefix(text, len);
    if (good == len) return SF_OK;
    return SF_FAIL(err, SF_FORMAT, "text is not valid UTF-8 at byte %zu", good);
}

static sf_code encode_words(const sf_tokenizer *t, sf_bpe *b, const char *text, size_t len, sf_ids *out,
                            sf_err *err) {
    sf_words w = {.text = text, .len = len, .digits = t->split->digits};
    sf_code rc = SF_OK;
    for (size_t i = 0, n; i < len && rc == SF_OK; i += n) {
        n = t->split->word(&w, i);
        rc = sf_bpe_word(t, b, text + i, n, out, err);
    }
    b->steps += w.looks;
    return rc;
}

static sf_code encode(const sf_tokenizer *t, sf_bpe *b, const char *text, size_t len, const uint8_t *plain,
                      sf_ids *out, sf_err *err) {
    bool starts[256] = {false}; /* first bytes of special tokens */
    for (int32_t c = t->trie[0].child; c; c = t->trie[c].sibling)
        starts[t->trie[c].byte] = true;
    size_t from = 0, at = 0;
    while (plain && at < len) {
        size_t n = 0;
        int32_t id = -1;
        if (starts[(uint8_t)text[at]] && !plain[at])
            id = sf_tokenizer_special_at(t, text + at, len - at, plain + at, &n);
        if (id < 0) {
            at++;
            continue;
        }
        SF_TRY(encode_words(t, b, text + from, at - from, out, err));
        SF_TRY(sf_ids_push(out, id, err));
        from = at += n;
    }
    return encode_words(t, b, text + from, len - from, out, err);
}

sf_code sf_tokenizer_encode_with(const sf_tokenizer *t, sf_bpe *b, const char *text, size_t len,
                                 const uint8_t *plain, sf_ids *out, sf_err *err) {
    size_t before = out->len;
    if (!len) return SF_OK; /* text may be NULL then */
    sf_code rc = check_utf8(text, len, err);
    if (rc == SF_OK) rc = encode(t, b, text, len, plain, out, err);
    if (rc != SF_OK) out->len = before;
    return rc;
}

sf_code sf_tokenizer_encode(const sf_tokenizer *t, const char *text, size_t len, const uint8_t *plain,
                            sf_ids *out, sf_err *err) {
    sf_bpe b = {0};
    sf_code rc = sf_tokenizer_encode_with(t, &b, text, len, plain, out, err);
    sf_bpe_fini(&b);
    return rc;
}
