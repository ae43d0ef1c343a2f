/* Inside of the tokenizer: built from arrays (tokenizer_build.c), which the GGUF reader (tokenizer.c) and
 * tests provide; used by encode (tokenizer_encode.c, bpe.c, split.c) and decode (tokenizer_decode.c). */
#ifndef SF_MODEL_TOKENIZER_PRIV_H
#define SF_MODEL_TOKENIZER_PRIV_H

#include "model/split_priv.h"
#include "model/tokenizer.h"

typedef enum sf_token_type { /* tokenizer.ggml.token_type */
                             SF_TOKEN_NORMAL = 1,
                             SF_TOKEN_UNKNOWN = 2,
                             SF_TOKEN_CONTROL = 3,
                             SF_TOKEN_USER = 4,
                             SF_TOKEN_UNUSED = 5,
                             SF_TOKEN_BYTE = 6
} sf_token_type;

/* Everything borrowed for the time of the call. path is for messages. */
typedef struct sf_tokenizer_parts {
    const char *path;
    sf_str split;         /* tokenizer.ggml.pre */
    const sf_str *tokens; /* [n_tokens] */
    size_t n_tokens;
    const sf_str *merges; /* [n_merges], "left right" */
    size_t n_merges;
    const int32_t *types; /* [n_types], sf_token_type */
    size_t n_types;
    int64_t bos, eos; /* -1: none */
    bool add_bos;
} sf_tokenizer_parts;

SF_CHECKED sf_code sf_tokenizer_build(const sf_tokenizer_parts *parts, sf_tokenizer **out, sf_err *err);

typedef struct sf_merge {
    uint64_t pair; /* left << 32 | right; SF_NO_PAIR: free slot */
    int32_t rank, id;
} sf_merge;
#define SF_NO_PAIR UINT64_MAX

/* A node of the tree of special tokens' bytes. Children are a linked list; 0 is the root and "none". */
typedef struct sf_trie_node {
    int32_t id; /* token that ends here, or -1 */
    int32_t child, sibling;
    uint8_t byte;
} sf_trie_node;

typedef struct sf_piece {
    const char *raw;  /* [raw_len], the spelling in the checkpoint */
    const char *text; /* [text_len], the bytes it stands for */
    uint32_t raw_len, text_len;
} sf_piece;

struct sf_tokenizer {
    sf_piece *pieces; /* [n] */
    uint8_t *types;   /* [n], sf_token_type */
    char *bytes;      /* what pieces point into */
    int32_t *by_raw;  /* [raw_cap], ids hashed by spelling; -1: free */
    size_t raw_cap;
    sf_merge *merges; /* [merge_cap], hashed by pair */
    size_t merge_cap;
    int32_t *merge_ids; /* [n_merges], the token each merge makes, by rank */
    sf_trie_node *trie; /* [n_trie] */
    size_t n_trie;
    int32_t byte_id[256]; /* token of each byte, or -1: such a byte is left out, as Hugging Face does */
    int n;
    uint32_t longest; /* bytes of text that one token stands for at most */
    const sf_split *split;
    int32_t bos, eos;
    bool add_bos;
    char hash[65];
};

/* The merge of two adjacent tokens, or NULL. */
const sf_merge *sf_tokenizer_merge(const sf_tokenizer *t, int32_t left, int32_t right);
/* The longest special token whose bytes all have plain == 0 at the start of text, or -1. plain may be NULL.
 */
int32_t sf_tokenizer_special_at(const sf_tokenizer *t, const char *text, size_t len, const uint8_t *plain,
                                size_t *bytes);

/* Working memory of the merging, reused from word to word; zero-initialise. */
typedef struct sf_bpe {
    struct sf_bpe_symbol *symbols; /* [cap] */
    uint64_t *heap;                /* [2 * cap] */
    size_t cap;
    struct sf_bpe_seen *cache; /* words of this text, which must stay where it is until the end */
    size_t steps;              /* the work so far: merges tried, ids copied, characters looked at */
} sf_bpe;
void sf_bpe_fini(sf_bpe *b);
/* sf_tokenizer_encode with the caller's working memory, whose steps then say how much work it was. b serves
 * one call. */
SF_CHECKED sf_code sf_tokenizer_encode_with(const sf_tokenizer *t, sf_bpe *b, const char *text, size_t len,
                                            const uint8_t *plain, sf_ids *out, sf_err *err);
/* The token that a whole word is, or -1. */
int32_t sf_tokenizer_whole(const sf_tokenizer *t, const char *word, size_t len);
/* Appends the ids of one word. */
SF_CHECKED sf_code sf_bpe_word(const sf_tokenizer *t, sf_bpe *b, const char *word, size_t len, sf_ids *out,
                               sf_err *err);

#endif
