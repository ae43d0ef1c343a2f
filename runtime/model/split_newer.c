/* The splits of Llama 3 and 4, Qwen 2 and Tekken: what a word may begin with differs, the rest they share.
 * The regular expressions are greedy and backtrack; each function says in what way that is linear here. */
#include "model/split_priv.h"

#include <string.h>

static bool is_newline(char c) {
    return c == '\n' || c == '\r';
}

/* (?i:'s|'t|'re|'ve|'m|'ll|'d), where U+017F folds to s. */
static size_t contraction(const sf_words *w, size_t from) {
    static const char *const ends[] = {"s", "\xc5\xbf", "t", "re", "ve", "m", "ll", "d"};
    const char *s = w->text + from + 1;
    size_t left = w->len - from - 1;
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        size_t n = strlen(ends[i]), k = 0;
        while (k < n && k < left &&
               (s[k] == ends[i][k] || (s[k] >= 'A' && s[k] <= 'Z' && (s[k] | 0x20) == ends[i][k])))
            k++;
        if (k == n) return n + 1;
    }
    return 0;
}

static size_t numbers(sf_words *w, size_t from, int most) {
    size_t at = from, n;
    for (int i = 0; i < most && (sf_words_look(w, at, &n) & SF_CHAR_NUMBER); i++)
        at += n;
    return at - from;
}

/* " ?[^\s\p{L}\p{N}]+[ends]*|\s*[\r\n]+|\s+(?!\S)|\s+", for what is neither letter nor number. White space
 * is looked at twice: for its last newline, and for its end when there is none. */
static size_t others(sf_words *w, size_t from, const char *ends) {
    size_t at = from + (w->text[from] == ' '), n, newline = 0;
    if (sf_words_look(w, at, &n) & SF_CHAR_OTHER) {
        at = sf_words_run(w, at, SF_CHAR_OTHER);
        while (at < w->len && w->text[at] && strchr(ends, w->text[at]))
            at++;
        return at - from;
    }
    for (at = from; sf_words_look(w, at, &n) & SF_CHAR_SPACE; at += n)
        if (is_newline(w->text[at])) newline = at + 1;
    return newline ? newline - from : sf_split_spaces(w, from);
}

/* CONTRACTION|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,most}|... */
static size_t llama_word(sf_words *w, size_t from, int most) {
    size_t n;
    unsigned bits = sf_words_look(w, from, &n);
    size_t short_word = w->text[from] == '\'' ? contraction(w, from) : 0;
    if (short_word) return short_word;
    if (bits & SF_CHAR_NUMBER) return numbers(w, from, most);
    size_t letters = bits & SF_CHAR_LETTER || is_newline(w->text[from]) ? from : from + n;
    size_t end = sf_words_run(w, letters, SF_CHAR_LETTER);
    return end > letters ? end - from : others(w, from, "\r\n");
}

size_t sf_split_llama3(sf_words *w, size_t from) {
    return llama_word(w, from, 3);
}

size_t sf_split_qwen2(sf_words *w, size_t from) {
    return llama_word(w, from, 1);
}

/* Where UPPER*LOWER+ ends, or 0. UPPER* takes all it can; if no LOWER follows, it gives back up to the last
 * of its characters that is LOWER too. What it gave back is none of them, so the next word takes it whole. */
static size_t capitals_then_small(sf_words *w, size_t from) {
    size_t at = from, back = 0, n;
    unsigned bits;
    while ((bits = sf_words_look(w, at, &n)) & SF_CHAR_UPPER) {
        at += n;
        if (bits & SF_CHAR_LOWER) back = at;
    }
    return bits & SF_CHAR_LOWER ? sf_words_run(w, at, SF_CHAR_LOWER) : back;
}

/* P?UPPER*LOWER+|P?UPPER+LOWER*, or 0, with P = [^\r\n\p{L}\p{N}]. A mark is UPPER, LOWER and P. The second
 * alternative is met without a LOWER in reach, so its LOWER* is empty. */
static size_t cased_word(sf_words *w, size_t from, unsigned bits, size_t n) {
    size_t end;
    bool first = !(bits & SF_CHAR_LETTER) && !is_newline(w->text[from]);
    size_t letters = first ? from + n : from;
    if ((end = capitals_then_small(w, letters))) return end;
    if (first && (end = capitals_then_small(w, from))) return end;
    end = sf_words_run(w, letters, SF_CHAR_UPPER);
    return end > letters ? end : 0;
}

/* WORD|\p{N}|... */
size_t sf_split_tekken(sf_words *w, size_t from) {
    size_t n;
    unsigned bits = sf_words_look(w, from, &n);
    if (bits & SF_CHAR_NUMBER) return n;
    size_t end = cased_word(w, from, bits, n);
    return end ? end - from : others(w, from, "\r\n/");
}

/* WORD(CONTRACTION)?|\p{N}{1,3}|... */
size_t sf_split_llama4(sf_words *w, size_t from) {
    size_t n;
    unsigned bits = sf_words_look(w, from, &n);
    if (bits & SF_CHAR_NUMBER) return numbers(w, from, 3);
    size_t end = cased_word(w, from, bits, n);
    if (!end) return others(w, from, "\r\n/");
    if (end < w->len && w->text[end] == '\'') end += contraction(w, end);
    return end - from;
}
