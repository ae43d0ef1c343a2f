/* Splits: how a text is cut into words before byte pairs are merged. Each is the regular expression of its
 * family, written by hand so that its time is linear; character classes are those of the Hugging Face
 * `tokenizers` library (generated, so that ids do not follow the Unicode version of the machine's
 * libraries). */
#ifndef SF_MODEL_SPLIT_PRIV_H
#define SF_MODEL_SPLIT_PRIV_H

#include "base/err.h"

#include <stdbool.h>

typedef enum sf_char_bits {
    SF_CHAR_LETTER = 1, /* \p{L} */
    SF_CHAR_NUMBER = 2, /* \p{N} */
    SF_CHAR_DIGIT = 4,  /* what the library's Digits isolates */
    SF_CHAR_SPACE = 8,  /* \s */
    SF_CHAR_UPPER = 16, /* [\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}] */
    SF_CHAR_LOWER = 32, /* [\p{Ll}\p{Lm}\p{Lo}\p{M}] */
    SF_CHAR_WORD = 64,  /* \w, for added tokens that stand alone */
    SF_CHAR_NFC = 128,  /* NFC may change it or what stands before it */
    SF_CHAR_OTHER = 256 /* a character, and neither letter, number nor space */
} sf_char_bits;

extern const uint8_t sf_char_ascii[0x80];
/* Of a code point from U+0080; without SF_CHAR_OTHER. */
unsigned sf_char_bits_of(int32_t cp);

typedef struct sf_words { /* a text that is being cut; it ends where a special token stands */
    const char *text;     /* [len], valid UTF-8 */
    size_t len;
    bool digits;  /* SF_CHAR_DIGIT is a class of its own, which hides the others (Digits comes first) */
    size_t looks; /* characters looked at so far: at most a few times the length of the text */
    struct sf_regex_run *run; /* of sf_split_regex */
    sf_code failed;           /* SF_OK, or why that one could not cut: what it then gave is no word */
} sf_words;

/* Bits of the character at `at` and its bytes; 0 and 0 at the end. */
unsigned sf_words_look(sf_words *w, size_t at, size_t *bytes);
/* Where the run of characters with any of these bits ends. */
size_t sf_words_run(sf_words *w, size_t at, unsigned bits);

typedef struct sf_split {
    const char *name;    /* in a model description and a plan */
    const char *ggml[3]; /* in tokenizer.ggml.pre; NULL: fewer */
    /* The bytes of the word that begins at `from` < len. */
    size_t (*word)(sf_words *w, size_t from);
    bool digits;
    /* Of a GGUF file, which does not say: a word that is a token is that token, whatever the merges say; text
     * is normalised to NFC first. */
    bool whole_words, nfc;
    const char *pattern; /* in tokenizer.json; NULL: no Split, but other kinds */
} sf_split;

/* SentencePiece's: a stretch of text is one word; cut before each U+2581; cut before each run of them. */
extern const sf_split sf_split_whole, sf_split_pieces, sf_split_runs;

/* A pattern that is none of the built-in ones, run by PCRE2 with UTF and UCP. Classes are those of PCRE2's
 * Unicode version, so ids of characters that were assigned later may differ from the library's. Its time is
 * the pattern's; a match that takes more steps than a few for each character left is given up. */
extern const sf_split sf_split_regex;
typedef struct sf_regex sf_regex;
typedef struct sf_regex_run sf_regex_run; /* what one thread needs for matching */
enum { SF_REGEX_WHY = 240 };
/* SF_UNSUPPORTED: PCRE2 does not take the pattern, or it may match the empty text; the reason is in why. */
SF_CHECKED sf_code sf_regex_create(const char *pattern, size_t len, sf_regex **out, char why[SF_REGEX_WHY]);
void sf_regex_destroy(sf_regex *r);
const char *sf_regex_version(const sf_regex *r);      /* "10.42 2022-12-11": part of the tokenizer's hash */
sf_regex_run *sf_regex_run_create(const sf_regex *r); /* NULL: no memory. r outlives it */
void sf_regex_run_destroy(sf_regex_run *run);

/* By its regular expression, or NULL. */
const sf_split *sf_split_of_pattern(const char *pattern);

/* By one of its names in GGUF files, or NULL. */
const sf_split *sf_split_find(const char *ggml, size_t len);

size_t sf_split_gpt2(sf_words *w, size_t from);
size_t sf_split_llama3(sf_words *w, size_t from);
size_t sf_split_qwen2(sf_words *w, size_t from);
size_t sf_split_tekken(sf_words *w, size_t from);
size_t sf_split_llama4(sf_words *w, size_t from);
/* What the families end with: \s+(?!\S)|\s+ */
size_t sf_split_spaces(sf_words *w, size_t from);

#endif
