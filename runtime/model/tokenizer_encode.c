#include "model/tokenizer_encode_priv.h"

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

typedef struct job {
    const sf_tokenizer *t;
    sf_bpe *b;
    sf_ids *out;
    sf_err *err;
} job;

/* A stretch without added tokens. first: the text begins with it. */
static sf_code encode_words(job *j, const char *text, size_t len, bool first) {
    const sf_tokenizer *t = j->t;
    sf_code rc = SF_OK;
    if (t->spm && t->prefix != SF_PREFIX_PREPEND) {
        bool has =
            *text == ' ' || (len >= SF_PIECE_SPACE_LEN && !memcmp(text, SF_PIECE_SPACE, SF_PIECE_SPACE_LEN));
        bool wants = t->prefix == SF_PREFIX_ALWAYS || (t->prefix == SF_PREFIX_FIRST && first);
        sf_buf *spaced;
        SF_TRY(sf_bpe_text(j->b, &spaced, j->err));
        SF_TRY(sf_tokenizer_put_spaces(text, len, wants && !has, NULL, spaced, NULL, j->err));
        text = spaced->data;
        len = spaced->len;
    }
    sf_words w = {.text = text, .len = len, .digits = t->split->digits, .run = j->b->run};
    for (size_t i = 0, n; i < len && rc == SF_OK; i += n) {
        n = t->split->word(&w, i);
        if (w.failed != SF_OK)
            return SF_FAIL(j->err, w.failed, "this text takes the split's pattern too many steps");
        rc = sf_bpe_word(t, j->b, text + i, n, j->out, j->err);
    }
    j->b->steps += w.looks;
    return rc;
}

/* A stretch between the added tokens of the text as it came. */
static sf_code encode_stretch(job *j, const char *text, size_t len, const uint8_t *plain, bool first) {
    if (sf_tokenizer_normal_differs(j->t, text, len)) {
        sf_buf *normal, *marks;
        SF_TRY(sf_bpe_text(j->b, &normal, j->err));
        SF_TRY(sf_bpe_text(j->b, &marks, j->err));
        SF_TRY(sf_tokenizer_normalise(j->t, text, len, plain, normal, marks, j->err));
        text = normal->data;
        len = normal->len;
        if (plain) plain = (const uint8_t *)marks->data;
    }
    sf_added_scan scan = {j->t, &j->t->normal, text, len, plain, .at = 0};
    for (struct sf_stretch s; sf_added_scan_next(&scan, &s);) {
        if (s.id >= 0)
            SF_TRY(sf_ids_push(j->out, s.id, j->err));
        else
            SF_TRY(encode_words(j, text + s.from, s.to - s.from, first && s.from == 0));
    }
    return SF_OK;
}

static sf_code encode(job *j, const char *text, size_t len, const uint8_t *plain) {
    sf_added_scan scan = {j->t, &j->t->raw, text, len, plain, .at = 0};
    for (struct sf_stretch s; sf_added_scan_next(&scan, &s);) {
        if (s.id >= 0)
            SF_TRY(sf_ids_push(j->out, s.id, j->err));
        else
            SF_TRY(
                encode_stretch(j, text + s.from, s.to - s.from, plain ? plain + s.from : NULL, s.from == 0));
    }
    return SF_OK;
}

sf_code sf_tokenizer_encode_with(const sf_tokenizer *t, sf_bpe *b, const char *text, size_t len,
                                 const uint8_t *plain, sf_ids *out, sf_err *err) {
    size_t before = out->len;
    if (!len) return SF_OK; /* text may be NULL then */
    sf_code rc = check_utf8(text, len, err);
    if (rc == SF_OK && t->regex && !b->run && !(b->run = sf_regex_run_create(t->regex)))
        rc = SF_FAIL(err, SF_NOMEM, "no memory for the split's pattern");
    if (rc == SF_OK) rc = encode(&(job){t, b, out, err}, text, len, plain);
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
