/* Words of the smollm split. Hugging Face's pipeline is Digits(individual_digits) and then ByteLevel with
 * GPT-2's pattern on each stretch between digits: 's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+|
 * ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+ A digit stands alone, and the look-ahead does not see past it. */
#include "model/split_priv.h"

#include "base/utf8.h"
#include "model/tokenizer_priv.h"

#include <string.h>

static sf_char_class class_at(const char *s, size_t len, size_t *n) {
    unsigned char c = (unsigned char)s[0];
    *n = 1;
    if (c < 0x80) {
        if ((c | 0x20) >= 'a' && (c | 0x20) <= 'z') return SF_CHAR_LETTER;
        if (c >= '0' && c <= '9') return SF_CHAR_NUMBER;
        return c == ' ' || (c >= 9 && c <= 13) ? SF_CHAR_SPACE : SF_CHAR_OTHER;
    }
    int32_t cp = 0;
    size_t bad;
    *n = sf_utf8_char(s, len, &cp, &bad);
    if (!*n) *n = bad; /* encode has checked the text; this keeps a step moving for any bytes */
    return sf_char_class_of(cp);
}

/* Bytes of the run of one class at s. */
static size_t run(const char *s, size_t len, sf_char_class of) {
    size_t at = 0, n;
    while (at < len && class_at(s + at, len - at, &n) == of)
        at += n;
    return at;
}

static size_t contraction(const char *s, size_t len) {
    static const char *const ends[] = {"s", "t", "re", "ve", "m", "ll", "d"};
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        size_t n = strlen(ends[i]);
        if (len > n && !memcmp(s + 1, ends[i], n)) return n + 1;
    }
    return 0;
}

/* White space: all of it before a digit or the end, else all but the last character, which the next word may
 * want; a single one stands alone. */
static size_t space_run(const char *s, size_t len) {
    size_t at = 0, last = 0, n;
    while (at < len && class_at(s + at, len - at, &n) == SF_CHAR_SPACE) {
        last = at;
        at += n;
    }
    bool ends = at == len || class_at(s + at, len - at, &n) == SF_CHAR_NUMBER;
    return ends || !last ? at : last;
}

size_t sf_split_smollm(const char *text, size_t len) {
    size_t n;
    sf_char_class c = class_at(text, len, &n);
    if (c == SF_CHAR_NUMBER) return n;
    if (*text == '\'' && (n = contraction(text, len))) return n;
    if (c == SF_CHAR_LETTER || c == SF_CHAR_OTHER) return run(text, len, c);
    if (*text == ' ' && len > 1) {
        sf_char_class next = class_at(text + 1, len - 1, &n);
        if (next == SF_CHAR_LETTER || next == SF_CHAR_OTHER) return 1 + run(text + 1, len - 1, next);
    }
    return space_run(text, len);
}
