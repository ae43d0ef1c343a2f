/* The steps of encoding: added tokens (tokenizer_added.c), normalisation (tokenizer_normal.c), merging of
 * words (bpe.c), and all of it (tokenizer_encode.c). */
#ifndef SF_MODEL_TOKENIZER_ENCODE_PRIV_H
#define SF_MODEL_TOKENIZER_ENCODE_PRIV_H

#include "model/tokenizer_priv.h"

/* Whether a stretch of text must be normalised before the second kind of added tokens is looked for, and
 * that; marks and out_marks go along or are both NULL. */
bool sf_tokenizer_normal_differs(const sf_tokenizer *t, const char *text, size_t len);
SF_CHECKED sf_code sf_tokenizer_normalise(const sf_tokenizer *t, const char *text, size_t len,
                                          const uint8_t *marks, sf_buf *out, sf_buf *out_marks, sf_err *err);
/* Appends text with U+2581 for its spaces, and one before it if asked. */
SF_CHECKED sf_code sf_tokenizer_put_spaces(const char *text, size_t len, bool prefix, const uint8_t *marks,
                                           sf_buf *out, sf_buf *out_marks, sf_err *err);

/* Cuts a text at the added tokens of one tree: zero-initialise, set the first five. */
typedef struct sf_added_scan {
    const sf_tokenizer *t;
    const sf_trie *trie;
    const char *text;
    size_t len;
    const uint8_t *plain; /* [len]; NULL: no token is found */
    size_t at, done, space_from, space_to;
    struct sf_stretch {
        size_t from, to;
        int32_t id; /* -1: text */
    } next;
    bool waits; /* next is to be given */
} sf_added_scan;
bool sf_added_scan_next(sf_added_scan *s, struct sf_stretch *out);

/* Working memory of the merging, reused from word to word; zero-initialise. */
typedef struct sf_bpe {
    struct sf_bpe_symbol *symbols; /* [cap] */
    uint64_t *heap;                /* [2 * cap] */
    size_t cap;
    struct sf_bpe_seen *cache; /* words of this text, which must stay where it is until the end */
    struct sf_bpe_text *texts; /* normalised text, kept for the cache */
    sf_regex_run *run;         /* where the split is a regular expression */
    size_t steps;              /* the work so far: merges tried, ids copied, characters looked at */
} sf_bpe;
void sf_bpe_fini(sf_bpe *b);
/* An empty buffer that lives as long as b. */
SF_CHECKED sf_code sf_bpe_text(sf_bpe *b, sf_buf **out, sf_err *err);
/* sf_tokenizer_encode with the caller's working memory, whose steps then say how much work it was. b serves
 * one call. */
SF_CHECKED sf_code sf_tokenizer_encode_with(const sf_tokenizer *t, sf_bpe *b, const char *text, size_t len,
                                            const uint8_t *plain, sf_ids *out, sf_err *err);
/* Appends the ids of one word. */
SF_CHECKED sf_code sf_bpe_word(const sf_tokenizer *t, sf_bpe *b, const char *word, size_t len, sf_ids *out,
                               sf_err *err);

#endif
