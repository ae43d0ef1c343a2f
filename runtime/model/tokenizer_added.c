/* Added tokens as the Hugging Face library's AddedVocabulary finds them: leftmost, then longest; first those
 * of the text as it comes, then, between them, those of the normalised text. */
#include "model/tokenizer_encode_priv.h"

#include "base/utf8.h"

#include <stdlib.h>
#include <string.h>

/* The child of node with this byte, made if there is none; 0: out of memory. */
static int32_t child(sf_trie *trie, int32_t node, uint8_t byte) {
    for (int32_t c = trie->nodes[node].child; c; c = trie->nodes[c].sibling)
        if (trie->nodes[c].byte == byte) return c;
    if (trie->n == trie->cap) {
        sf_trie_node *grown = realloc(trie->nodes, 2 * trie->cap * sizeof *grown);
        if (!grown) return 0;
        trie->nodes = grown;
        trie->cap *= 2;
    }
    int32_t c = (int32_t)trie->n++;
    trie->nodes[c] = (sf_trie_node){.id = -1, .byte = byte, .sibling = trie->nodes[node].child};
    trie->nodes[node].child = c;
    return c;
}

static bool init(sf_trie *trie) {
    trie->cap = 64;
    trie->nodes = calloc(trie->cap, sizeof *trie->nodes);
    if (!trie->nodes) return false;
    trie->nodes[0].id = -1;
    trie->n = 1;
    return true;
}

static bool put(sf_trie *trie, const char *s, size_t len, int32_t id) {
    int32_t node = 0;
    for (size_t k = 0; k < len; k++) {
        node = child(trie, node, (uint8_t)s[k]);
        if (!node) return false;
    }
    if (node) trie->nodes[node].id = id;
    if (node) trie->starts[(uint8_t)s[0]] = true;
    return true;
}

sf_code sf_tokenizer_build_added(sf_tokenizer *t, const sf_tokenizer_parts *p, sf_err *err) {
    sf_buf spelling = {0};
    sf_code rc = SF_OK;
    bool ok = init(&t->raw) && init(&t->normal);
    for (int32_t i = 0; ok && rc == SF_OK && i < t->n; i++) {
        if (!sf_token_is_added(t->types[i])) continue;
        const sf_piece *piece = &t->pieces[i];
        t->strips = t->strips || (t->flags[i] & (SF_ADDED_LSTRIP | SF_ADDED_RSTRIP));
        spelling.len = 0;
        if (!(t->flags[i] & SF_ADDED_NORMALIZED)) {
            ok = put(&t->raw, piece->raw, piece->raw_len, i);
        } else if (sf_tokenizer_normal_differs(t, piece->raw, piece->raw_len)) {
            rc = sf_tokenizer_normalise(t, piece->raw, piece->raw_len, NULL, &spelling, NULL, err);
            if (rc == SF_OK) ok = put(&t->normal, spelling.data, spelling.len, i);
        } else {
            ok = put(&t->normal, piece->raw, piece->raw_len, i);
        }
    }
    sf_buf_fini(&spelling);
    if (rc == SF_OK && !ok)
        rc = SF_FAIL_AT(err, SF_NOMEM, sf_tokenizer_place(p), "no memory for special tokens");
    return rc;
}

/* The longest token at the start of text whose bytes all have plain == 0, or -1. */
static int32_t longest_at(const sf_trie *trie, const char *text, size_t len, const uint8_t *plain,
                          size_t *bytes) {
    int32_t node = 0, id = -1;
    for (size_t i = 0; i < len && !plain[i]; i++) {
        int32_t c = trie->nodes[node].child;
        while (c && trie->nodes[c].byte != (uint8_t)text[i])
            c = trie->nodes[c].sibling;
        if (!c) break;
        node = c;
        if (trie->nodes[node].id < 0) continue;
        id = trie->nodes[node].id;
        *bytes = i + 1;
    }
    return id;
}

static size_t char_before(const char *text, size_t end) {
    size_t at = end - 1;
    while (at && ((unsigned char)text[at] & 0xc0) == 0x80)
        at--;
    return at;
}

static bool has_bits(const sf_added_scan *s, size_t at, unsigned bits, size_t *n) {
    sf_words w = {.text = s->text, .len = s->len};
    return sf_words_look(&w, at, n) & bits;
}

static bool stands_alone(const sf_added_scan *s, size_t from, size_t to) {
    size_t n;
    return !(from && has_bits(s, char_before(s->text, from), SF_CHAR_WORD, &n)) &&
           !has_bits(s, to, SF_CHAR_WORD, &n);
}

static size_t strip_left(const sf_added_scan *s, size_t from) {
    size_t n;
    if (from < s->done) return s->done;
    while (from > s->done) {
        size_t before = char_before(s->text, from);
        if (before < s->done || !has_bits(s, before, SF_CHAR_SPACE, &n)) break;
        from = before;
    }
    return from;
}

/* A stretch of white space is walked over once, even if tokens inside it all ask. */
static size_t strip_right(sf_added_scan *s, size_t to) {
    size_t n;
    if (to >= s->space_from && to < s->space_to) return s->space_to;
    s->space_from = to;
    while (has_bits(s, to, SF_CHAR_SPACE, &n))
        to += n;
    s->space_to = to;
    return to;
}

bool sf_added_scan_next(sf_added_scan *s, struct sf_stretch *out) {
    if (s->waits) {
        s->waits = false;
        *out = s->next;
        return true;
    }
    while (s->plain && s->at < s->len) {
        size_t from = s->at, n = 0;
        int32_t id = -1;
        if (s->trie->starts[(uint8_t)s->text[from]])
            id = longest_at(s->trie, s->text + from, s->len - from, s->plain + from, &n);
        s->at += id < 0 ? 1 : n;
        if (id < 0) continue;
        size_t to = from + n;
        unsigned flags = s->t->flags[id];
        if ((flags & SF_ADDED_SINGLE_WORD) && !stands_alone(s, from, to)) continue;
        if (flags & SF_ADDED_LSTRIP) from = strip_left(s, from);
        if (flags & SF_ADDED_RSTRIP) to = strip_right(s, to);
        if (from >= to) continue; /* white space that the token before has taken, where this one is too */
        s->next = (struct sf_stretch){from, to, id};
        s->waits = s->done < from;
        *out = s->waits ? (struct sf_stretch){s->done, from, -1} : s->next;
        s->done = to;
        return true;
    }
    if (s->done >= s->len) return false;
    *out = (struct sf_stretch){s->done, s->len, -1};
    s->done = s->len;
    return true;
}
