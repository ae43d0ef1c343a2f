/* The table of splits, what they share, and GPT-2's: 's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+|
 * ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+  The smollm split is Digits(individual_digits) and then GPT-2's on each
 * stretch between digits: a digit stands alone, and the look-ahead does not see past it. */
#include "model/split_priv.h"

#include "base/utf8.h"

#include <string.h>

#define ENDS           "|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
#define SHORT          "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
#define LLAMA(numbers) SHORT "|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|" numbers " ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*" ENDS
#define UPPER          "[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]"
#define LOWER          "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]"
#define FIRST          "[^\\r\\n\\p{L}\\p{N}]?"
#define CASED(tail, numbers)                                                                                 \
    FIRST UPPER "*" LOWER "+" tail "|" FIRST UPPER "+" LOWER "*" tail "|" numbers                            \
                "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*" ENDS

static const sf_split SPLITS[] = {
    {.name = "smollm", .ggml = {"smollm"}, .word = sf_split_gpt2, .digits = true},
    {.name = "gpt2", .ggml = {"gpt-2", "gpt2"}, .word = sf_split_gpt2},
    {.name = "llama3",
     .ggml = {"llama-bpe", "llama3", "llama-v3"},
     .word = sf_split_llama3,
     .whole_words = true,
     .pattern = LLAMA("\\p{N}{1,3}|")},
    {.name = "qwen2", .ggml = {"qwen2"}, .word = sf_split_qwen2, .nfc = true, .pattern = LLAMA("\\p{N}|")},
    {.name = "tekken",
     .ggml = {"tekken"},
     .word = sf_split_tekken,
     .whole_words = true,
     .pattern = CASED("", "\\p{N}")},
    {.name = "llama4",
     .ggml = {"llama4", "gpt-4o"},
     .word = sf_split_llama4,
     .whole_words = true,
     .pattern = CASED(SHORT "?", "\\p{N}{1,3}")},
};

static size_t whole(sf_words *w, size_t from) {
    return w->len - from;
}

static bool is_space(const sf_words *w, size_t at) {
    return w->text[at] == '\xe2' && w->len - at >= 3 && !memcmp(w->text + at, "\xe2\x96\x81", 3);
}

static size_t piece(sf_words *w, size_t from) {
    size_t at = from + 1;
    while (at < w->len && !is_space(w, at))
        at++;
    return at - from;
}

static size_t spaces_and_piece(sf_words *w, size_t from) {
    size_t at = from;
    while (at < w->len && is_space(w, at))
        at += 3;
    while (at < w->len && !is_space(w, at))
        at++;
    return at - from;
}

const sf_split sf_split_whole = {.name = "sentencepiece", .word = whole};
const sf_split sf_split_runs = {.name = "sentencepiece", .word = spaces_and_piece};
const sf_split sf_split_pieces = {.name = "sentencepiece", .word = piece};

const sf_split *sf_split_of_pattern(const char *pattern) {
    for (size_t i = 0; i < sizeof SPLITS / sizeof *SPLITS; i++)
        if (SPLITS[i].pattern && !strcmp(SPLITS[i].pattern, pattern)) return &SPLITS[i];
    return NULL;
}

const sf_split *sf_split_find(const char *ggml, size_t len) {
    for (size_t i = 0; i < sizeof SPLITS / sizeof *SPLITS; i++)
        for (size_t k = 0; k < 3 && SPLITS[i].ggml[k]; k++)
            if (strlen(SPLITS[i].ggml[k]) == len && !memcmp(SPLITS[i].ggml[k], ggml, len)) return &SPLITS[i];
    return NULL;
}

unsigned sf_words_look(sf_words *w, size_t at, size_t *bytes) {
    *bytes = 0;
    if (at >= w->len) return 0;
    w->looks++;
    unsigned bits;
    unsigned char c = (unsigned char)w->text[at];
    if (c < 0x80) {
        *bytes = 1;
        bits = sf_char_ascii[c];
    } else {
        int32_t cp = 0;
        size_t bad;
        *bytes = sf_utf8_char(w->text + at, w->len - at, &cp, &bad);
        if (!*bytes) *bytes = bad; /* encode has checked the text; this keeps a step moving for any bytes */
        bits = sf_char_bits_of(cp);
    }
    if (w->digits && (bits & SF_CHAR_DIGIT)) return SF_CHAR_DIGIT;
    bits &= ~(unsigned)SF_CHAR_DIGIT;
    return bits & (SF_CHAR_LETTER | SF_CHAR_NUMBER | SF_CHAR_SPACE) ? bits : bits | SF_CHAR_OTHER;
}

size_t sf_words_run(sf_words *w, size_t at, unsigned bits) {
    size_t n;
    while (sf_words_look(w, at, &n) & bits)
        at += n;
    return at;
}

/* All of it before a digit or the end, else all but the last character, which the next word may want; a
 * single one stands alone. */
size_t sf_split_spaces(sf_words *w, size_t from) {
    size_t at = from, last = from, n;
    unsigned bits;
    while ((bits = sf_words_look(w, at, &n)) & SF_CHAR_SPACE) {
        last = at;
        at += n;
    }
    bool ends = !n || (bits & SF_CHAR_DIGIT);
    return (ends || last == from ? at : last) - from;
}

static size_t contraction(const sf_words *w, size_t from) {
    static const char *const ends[] = {"s", "t", "re", "ve", "m", "ll", "d"};
    size_t left = w->len - from;
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        size_t n = strlen(ends[i]);
        if (left > n && !memcmp(w->text + from + 1, ends[i], n)) return n + 1;
    }
    return 0;
}

size_t sf_split_gpt2(sf_words *w, size_t from) {
    const unsigned kinds = SF_CHAR_LETTER | SF_CHAR_NUMBER | SF_CHAR_OTHER;
    size_t n;
    unsigned bits = sf_words_look(w, from, &n);
    if (bits & SF_CHAR_DIGIT) return n;
    if (w->text[from] == '\'' && (n = contraction(w, from))) return n;
    if (bits & kinds) return sf_words_run(w, from, bits & kinds) - from;
    if (w->text[from] == ' ') {
        bits = sf_words_look(w, from + 1, &n) & kinds;
        if (bits) return sf_words_run(w, from + 1, bits) - from;
    }
    return sf_split_spaces(w, from);
}
