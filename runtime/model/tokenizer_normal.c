/* Normalisers: NFC, and SentencePiece's visible space. */
#include "model/nfc_priv.h"
#include "model/tokenizer_encode_priv.h"

#include <string.h>

bool sf_tokenizer_normal_differs(const sf_tokenizer *t, const char *text, size_t len) {
    return t->prefix == SF_PREFIX_PREPEND || (t->nfc && sf_nfc_needed(text, len));
}

static sf_code put_piece_space(uint8_t mark, bool marked, sf_buf *out, sf_buf *out_marks, sf_err *err) {
    const uint8_t marks[SF_PIECE_SPACE_LEN] = {mark, mark, mark};
    SF_TRY(sf_buf_append(out, SF_PIECE_SPACE, SF_PIECE_SPACE_LEN, err));
    return marked ? sf_buf_append(out_marks, marks, sizeof marks, err) : SF_OK;
}

sf_code sf_tokenizer_put_spaces(const char *text, size_t len, bool prefix, const uint8_t *marks, sf_buf *out,
                                sf_buf *out_marks, sf_err *err) {
    if (prefix && len) SF_TRY(put_piece_space(marks ? marks[0] : 0, marks != NULL, out, out_marks, err));
    for (size_t i = 0, n; i < len; i += n) {
        if (text[i] == ' ') {
            n = 1;
            SF_TRY(put_piece_space(marks ? marks[i] : 0, marks != NULL, out, out_marks, err));
            continue;
        }
        const char *space = memchr(text + i, ' ', len - i);
        n = space ? (size_t)(space - text) - i : len - i;
        SF_TRY(sf_buf_append(out, text + i, n, err));
        if (marks) SF_TRY(sf_buf_append(out_marks, marks + i, n, err));
    }
    return SF_OK;
}

sf_code sf_tokenizer_normalise(const sf_tokenizer *t, const char *text, size_t len, const uint8_t *marks,
                               sf_buf *out, sf_buf *out_marks, sf_err *err) {
    if (t->nfc) return sf_nfc_append(text, len, marks, out, out_marks, err);
    return sf_tokenizer_put_spaces(text, len, true, marks, out, out_marks, err);
}
