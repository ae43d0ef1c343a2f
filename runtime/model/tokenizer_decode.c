#include "model/tokenizer_priv.h"

#include "base/utf8.h"

#include <string.h>

const char *sf_tokenizer_piece(const sf_tokenizer *t, int32_t id, size_t *len) {
    *len = 0;
    if (id < 0 || id >= t->n) return NULL;
    *len = t->pieces[id].text_len;
    return t->pieces[id].text;
}

/* Appends bytes, each maximal malformed part of them as U+FFFD (Unicode 15, section 3.9). */
static sf_code append_valid(sf_buf *out, const char *s, size_t len, sf_err *err) {
    size_t from = 0;
    for (size_t i = 0, n, bad; i < len; i += n) {
        int32_t cp;
        n = sf_utf8_char(s + i, len - i, &cp, &bad);
        if (n) continue;
        SF_TRY(sf_buf_append(out, s + from, i - from, err));
        SF_TRY(sf_buf_append(out, "\xef\xbf\xbd", 3, err));
        n = bad;
        from = i + n;
    }
    return sf_buf_append(out, s + from, len - from, err);
}

sf_code sf_tokenizer_decode(const sf_tokenizer *t, const int32_t *ids, size_t n, bool special, sf_buf *out,
                            sf_err *err) {
    sf_code rc = SF_OK;
    size_t before = out->len;
    sf_buf raw = {0};
    for (size_t i = 0; i < n; i++) {
        size_t len;
        const char *piece = sf_tokenizer_piece(t, ids[i], &len);
        if (ids[i] < 0) {
            rc = SF_FAIL(err, SF_INVALID, "token id %d, expected 0 at least", (int)ids[i]);
            goto done;
        }
        if (!piece) continue; /* a row of the embedding without a token */
        if (!special && sf_tokenizer_is_special(t, ids[i])) continue;
        rc = sf_buf_append(&raw, piece, len, err);
        if (rc != SF_OK) goto done;
    }
    size_t space = t->strip && raw.len && *raw.data == ' ';
    if (raw.len) rc = append_valid(out, raw.data + space, raw.len - space, err);
done:
    if (rc != SF_OK && out->data) {
        out->len = before;
        out->data[before] = 0;
    }
    sf_buf_fini(&raw);
    return rc;
}
