/* BPE tokenizer, byte-level or of SentencePiece's kind, from GGUF metadata (tokenizer.ggml.*) or from a
 * Hugging Face directory. Ids equal the Hugging Face `tokenizers` library's on any valid UTF-8; those of a
 * GGUF file with scores equal SentencePiece's. Immutable after open, so any thread may use it. Time is linear
 * (n log n) in the text. */
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

/* Reads tokens, merges or scores, types and special ids. tokenizer.ggml.model is gpt2, with the split of
 * tokenizer.ggml.pre (smollm, gpt-2, llama-bpe, qwen2, tekken, llama4), or llama: SentencePiece's. Others are
 * SF_UNSUPPORTED by name. */
SF_CHECKED sf_code sf_tokenizer_open(const sf_gguf *g, sf_tokenizer **out, sf_err *err);
/* Likewise of a Hugging Face directory: tokenizer.json, and, where they are, tokenizer_config.json
 * (bos_token, eos_token, add_bos_token, chat_template) and chat_template.jinja, which goes before the other.
 * The chat template is appended to *chat_template (may be NULL), nothing where there is none. Byte-level BPE
 * with the same splits or a pattern of its own, or SentencePiece's with byte tokens; kinds and settings of
 * normalizer, pre_tokenizer, decoder, post_processor and model that are not computed are SF_UNSUPPORTED by
 * file and JSON path. Ids may have holes: such an id stands for nothing. dir outlives every error record that
 * names it. */
SF_CHECKED sf_code sf_tokenizer_open_dir(const char *dir, sf_tokenizer **out, sf_buf *chat_template,
                                         sf_err *err);
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
/* Appends the text of ids; special tokens left out unless `special`. Invalid UTF-8 becomes U+FFFD. An id past
 * the last token has no text: the embedding may have more rows than there are tokens. */
SF_CHECKED sf_code sf_tokenizer_decode(const sf_tokenizer *t, const int32_t *ids, size_t n, bool special,
                                       sf_buf *out, sf_err *err);

#endif
