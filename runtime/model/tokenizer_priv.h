/* Inside of the tokenizer: built from arrays (tokenizer_build.c), which the readers of GGUF (tokenizer.c) and
 * tokenizer.json (tokenizer_json.c) and tests provide; used by encode (tokenizer_encode.c, bpe.c, split.c)
 * and decode (tokenizer_decode.c). */
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

typedef enum sf_added_flags { /* of tokenizer.json's added_tokens */
                              SF_ADDED_LSTRIP = 1,
                              SF_ADDED_RSTRIP = 2,
                              SF_ADDED_SINGLE_WORD = 4,
                              SF_ADDED_NORMALIZED = 8, /* is looked for in normalised text */
                              SF_ADDED_IN_VOCAB = 16   /* merging knows it too */
} sf_added_flags;

typedef enum sf_prefix { /* where SentencePiece's U+2581 is put before a text */
                         SF_PREFIX_NONE,
                         SF_PREFIX_PREPEND, /* before every stretch between special tokens, by the normaliser
                                             */
                         SF_PREFIX_FIRST,   /* where the text begins, unless it begins with one */
                         SF_PREFIX_ALWAYS   /* every stretch, unless it begins with one */
} sf_prefix;

/* Everything borrowed for the time of the call. path is for messages. */
typedef struct sf_tokenizer_parts {
    const char *path;
    bool json;             /* from tokenizer.json: messages speak of it, ids may have holes (no spelling) */
    const sf_split *words; /* NULL: the split of this name */
    sf_str pattern;        /* of sf_split_regex */
    sf_str split;          /* tokenizer.ggml.pre */
    const sf_str *tokens;  /* [n_tokens] */
    size_t n_tokens;
    const sf_str *merges; /* [n_merges], "left right"; the left ones alone where there are right ones */
    const sf_str *rights; /* [n_merges] or NULL */
    size_t n_merges;
    const float *scores;  /* [n_tokens] or NULL; SentencePiece's, which the merges then come from */
    const int32_t *types; /* [n_types], sf_token_type */
    size_t n_types;
    const uint8_t *flags; /* [n_tokens] or NULL, sf_added_flags */
    int64_t bos, eos;     /* -1: none */
    bool has_unk, fuse_unk;
    int32_t unk; /* stands for a byte that is no token, or a run of such; without one they are left out */
    bool add_bos;
    bool spm; /* SentencePiece's: characters and byte tokens, U+2581 for a space */
    sf_prefix prefix;
    bool strip;       /* decoding takes one space from the beginning */
    bool nfc;         /* of tokenizer.json; otherwise as the split says */
    bool whole_words; /* likewise */
} sf_tokenizer_parts;

static inline sf_loc sf_tokenizer_place(const sf_tokenizer_parts *p) {
    return (sf_loc){p->path, 0, 0};
}

SF_CHECKED sf_code sf_tokenizer_build(const sf_tokenizer_parts *parts, sf_tokenizer **out, sf_err *err);

typedef struct sf_merge {
    uint64_t pair; /* left << 32 | right; SF_NO_PAIR: free slot */
    int32_t rank, id;
} sf_merge;
#define SF_NO_PAIR UINT64_MAX

/* A node of a tree of special tokens' bytes. Children are a linked list; 0 is the root and "none". */
typedef struct sf_trie_node {
    int32_t id; /* token that ends here, or -1 */
    int32_t child, sibling;
    uint8_t byte;
} sf_trie_node;

typedef struct sf_trie {
    sf_trie_node *nodes; /* [n] */
    size_t n, cap;
    bool starts[256]; /* first bytes */
} sf_trie;

typedef struct sf_piece {
    const char *raw;  /* [raw_len], the spelling in the checkpoint */
    const char *text; /* [text_len], the bytes it stands for */
    uint32_t raw_len, text_len;
} sf_piece;

struct sf_tokenizer {
    sf_piece *pieces; /* [n] */
    uint8_t *types;   /* [n], sf_token_type */
    uint8_t *flags;   /* [n], sf_added_flags */
    char *bytes;      /* what pieces point into */
    int32_t *by_raw;  /* [raw_cap], ids hashed by spelling; -1: free */
    size_t raw_cap;
    sf_merge *merges; /* [merge_cap], hashed by pair */
    size_t merge_cap;
    int32_t *merge_ids;   /* [n_merges], the token each merge makes, by rank; -1: several, of one score */
    sf_trie raw;          /* added tokens that are looked for in the text as it comes */
    sf_trie normal;       /* those that are looked for once it is normalised, by their normalised spelling */
    int32_t byte_id[256]; /* token of each byte, or -1: such a byte is left out, as Hugging Face does */
    int n;
    uint32_t longest; /* bytes of text that one token stands for at most */
    bool strips;      /* some added token takes the white space beside it */
    const sf_split *split;
    sf_regex *regex; /* of sf_split_regex, else NULL */
    bool spm, nfc, strip, whole_words;
    sf_prefix prefix;
    int32_t bos, eos, unk; /* -1: none */
    bool add_bos, fuse_unk;
    char hash[65];
};

/* The merge of two adjacent tokens, or NULL. */
const sf_merge *sf_tokenizer_merge(const sf_tokenizer *t, int32_t left, int32_t right);
/* Steps of building; p names itself in messages. */
SF_CHECKED sf_code sf_tokenizer_build_merges(sf_tokenizer *t, const sf_tokenizer_parts *p, sf_err *err);
SF_CHECKED sf_code sf_tokenizer_build_added(sf_tokenizer *t, const sf_tokenizer_parts *p, sf_err *err);
static inline bool sf_token_is_added(int type) {
    return type == SF_TOKEN_CONTROL || type == SF_TOKEN_USER;
}

/* Whether merging may begin with this token, or make a word of it; a control token only its spelling makes.
 */
static inline bool sf_token_is_piece(const sf_tokenizer *t, int32_t id) {
    return id >= 0 && (t->types[id] == SF_TOKEN_NORMAL ||
                       (t->types[id] == SF_TOKEN_USER && (t->flags[id] & SF_ADDED_IN_VOCAB)));
}

/* What U+2581 is in UTF-8. */
#define SF_PIECE_SPACE     "\xe2\x96\x81"
#define SF_PIECE_SPACE_LEN 3
/* The token that a whole word is, or -1. */
int32_t sf_tokenizer_whole(const sf_tokenizer *t, const char *word, size_t len);

#endif
