/* Byte-level BPE tokenizer from GGUF metadata (tokenizer.ggml.*). Ids equal the Hugging Face `tokenizers`
 * library's on any valid UTF-8. Immutable after open, so any thread may use it. Time is linear (n log n) in
 * the text. */
#ifndef SF_MODEL_TOKENIZER_H
#define SF_MODEL_TOKENIZER_H

#include "base/buf.h"
#include "model/gguf.h"

typedef struct sf_tokenizer sf_tokenizer;

typedef struct sf_ids { /* growable id list; zero-initialise, sf_ids_fini frees */
    int32_t *data;
    size_t len, cap;
} sf_ids;
void sf_ids_fini(sf_ids *ids);
SF_CHECKED sf_code sf_ids_push(sf_ids *ids, int32_t id, sf_err *err);

/* Reads tokens, merges, types, special ids and the split named by tokenizer.ggml.pre (smollm, gpt-2,
 * llama-bpe, qwen2, tekken; another is SF_UNSUPPORTED by name). */
SF_CHECKED sf_code sf_tokenizer_open(const sf_gguf *g, sf_tokenizer **out, sf_err *err);
void sf_tokenizer_close(sf_tokenizer *t);

/* Whether the checkpoint splits text into words as the engine does (plan's model.tokenizer_split, not NULL);
 * else SF_INVALID names the file and both splits. */
SF_CHECKED sf_code sf_tokenizer_check_split(const sf_tokenizer *t, const char *path, const char *split,
                                            sf_err *err);

int sf_tokenizer_vocab(const sf_tokenizer *t);
int32_t sf_tokenizer_bos(const sf_tokenizer *t);  /* -1: none */
bool sf_tokenizer_add_bos(const sf_tokenizer *t); /* the checkpoint asks for a BOS before plain prompts */
int32_t sf_tokenizer_eos(const sf_tokenizer *t);  /* -1: none */
bool sf_tokenizer_is_special(const sf_tokenizer *t, int32_t id);
/* Id of the token with exactly this spelling, or -1. */
int32_t sf_tokenizer_find(const sf_tokenizer *t, const char *piece, size_t len);
const char *sf_tokenizer_hash(const sf_tokenizer *t); /* SHA-256 of vocabulary, merges, split */

/* Appends the ids of text (valid UTF-8, else SF_FORMAT with the byte offset). plain (may be NULL: all plain)
 * is one byte per text byte: nonzero means user text, in which a special token's spelling is plain text; a
 * special token is recognised only where all its bytes have plain == 0. Pass all zeros to recognise them
 * everywhere. Never adds BOS. */
SF_CHECKED sf_code sf_tokenizer_encode(const sf_tokenizer *t, const char *text, size_t len,
                                       const uint8_t *plain, sf_ids *out, sf_err *err);

/* A number of tokens that text has at least, by its bytes alone: for refusing what is far too long without
 * encoding it. */
size_t sf_tokenizer_at_least(const sf_tokenizer *t, const char *text, size_t len);

/* The bytes a token stands for (not always whole characters). Special tokens give their spelling; NULL and 0
 * for an id out of range. Borrowed. */
const char *sf_tokenizer_piece(const sf_tokenizer *t, int32_t id, size_t *len);
/* Appends the text of ids; special tokens left out unless `special`. Invalid UTF-8 becomes U+FFFD. */
SF_CHECKED sf_code sf_tokenizer_decode(const sf_tokenizer *t, const int32_t *ids, size_t n, bool special,
                                       sf_buf *out, sf_err *err);

#endif
