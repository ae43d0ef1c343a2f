/* Byte-pair merging as Hugging Face's Word::merge_all does it: a heap of candidate merges ordered by rank,
 * then by position, so that a word of n bytes takes O(n log n). */
#include "base/utf8.h"
#include "model/tokenizer_encode_priv.h"

#include <stdlib.h>
#include <string.h>

typedef struct sf_bpe_symbol {
    int32_t id; /* -1: merged into its left neighbour */
    int32_t prev, next;
} symbol;

/* A word met before in the same text: its ids are copied from where they stand in the output. */
typedef struct sf_bpe_seen {
    const char *word; /* NULL: free */
    uint32_t len, count;
    size_t ids;
} seen;

struct sf_bpe_text {
    struct sf_bpe_text *next;
    sf_buf text;
};

enum { CACHE = 4096, CACHE_WORD = 32 }; /* entries, and the bytes of the longest word kept */

void sf_bpe_fini(sf_bpe *b) {
    free(b->symbols);
    free(b->heap);
    free(b->cache);
    sf_regex_run_destroy(b->run);
    for (struct sf_bpe_text *next; b->texts; b->texts = next) {
        next = b->texts->next;
        sf_buf_fini(&b->texts->text);
        free(b->texts);
    }
    *b = (sf_bpe){0};
}

sf_code sf_bpe_text(sf_bpe *b, sf_buf **out, sf_err *err) {
    struct sf_bpe_text *text = calloc(1, sizeof *text);
    if (!text) return SF_FAIL(err, SF_NOMEM, "no memory for normalised text");
    text->next = b->texts;
    b->texts = text;
    *out = &text->text;
    return SF_OK;
}

static sf_code reserve(sf_bpe *b, size_t n, sf_err *err) {
    if (n <= b->cap) return SF_OK;
    size_t cap = b->cap ? b->cap : 64;
    while (cap < n)
        cap *= 2;
    symbol *symbols = malloc(cap * sizeof *symbols);
    uint64_t *heap = malloc(2 * cap * sizeof *heap);
    if (!symbols || !heap) {
        free(symbols);
        free(heap);
        return SF_FAIL(err, SF_NOMEM, "no memory for a word of %zu bytes", n);
    }
    free(b->symbols);
    free(b->heap);
    b->symbols = symbols;
    b->heap = heap;
    b->cap = cap;
    return SF_OK;
}

/* A heap of four children a node, of rank << 32 | position. */
static void push(uint64_t *heap, size_t *n, uint64_t e) {
    size_t i = (*n)++;
    for (size_t up; i && e < heap[up = (i - 1) / 4]; i = up)
        heap[i] = heap[up];
    heap[i] = e;
}

static uint64_t pop(uint64_t *heap, size_t *n) {
    uint64_t top = heap[0], last = heap[--*n];
    size_t i = 0;
    for (size_t c; (c = 4 * i + 1) < *n; i = c) {
        size_t end = c + 4 < *n ? c + 4 : *n;
        for (size_t k = c + 1; k < end; k++)
            if (heap[k] < heap[c]) c = k;
        if (last <= heap[c]) break;
        heap[i] = heap[c];
    }
    heap[i] = last;
    return top;
}

static void propose(const sf_tokenizer *t, const symbol *s, uint64_t *heap, size_t *n, int32_t pos) {
    int32_t next = pos < 0 ? -1 : s[pos].next;
    if (next < 0) return;
    const sf_merge *m = sf_tokenizer_merge(t, s[pos].id, s[next].id);
    if (m) push(heap, n, (uint64_t)m->rank << 32 | (uint32_t)pos);
}

/* A proposal still holds when the pair at its place makes the same token. The heap never holds more than two
 * entries a symbol: each of the fewer than n merges takes one and adds at most two. */
static size_t merge_all(const sf_tokenizer *t, symbol *s, uint64_t *heap, int32_t count) {
    size_t n = 0, pops = 0;
    for (int32_t i = 0; i < count; i++)
        propose(t, s, heap, &n, i);
    for (; n; pops++) {
        uint64_t e = pop(heap, &n);
        int32_t pos = (int32_t)(uint32_t)e, id = t->merge_ids[e >> 32];
        symbol *left = &s[pos];
        if (left->id < 0 || left->next < 0) continue;
        symbol *right = &s[left->next];
        const sf_merge *m = sf_tokenizer_merge(t, left->id, right->id);
        if (!m || (m->id != id && m->rank != (int32_t)(e >> 32))) continue;
        left->id = m->id;
        left->next = right->next;
        right->id = -1;
        if (left->next >= 0) s[left->next].prev = pos;
        propose(t, s, heap, &n, left->prev);
        propose(t, s, heap, &n, pos);
    }
    return (size_t)count + pops;
}

static int32_t add_symbol(symbol *s, int32_t n, int32_t id) {
    if (id < 0) return n;
    s[n] = (symbol){id, n - 1, n + 1};
    return n + 1;
}

/* The symbols that merging begins with: bytes, or characters and the bytes of those that are no token. */
static int32_t first_symbols(const sf_tokenizer *t, symbol *s, const char *word, size_t len) {
    int32_t n = 0;
    for (size_t i = 0, bytes; i < len; i += bytes) {
        int32_t id = -1;
        bytes = 1;
        if (t->spm) {
            int of = sf_utf8_len((unsigned char)word[i]);
            if (of > 1 && (size_t)of <= len - i) bytes = (size_t)of;
            id = sf_tokenizer_find(t, word + i, bytes);
            if (!sf_token_is_piece(t, id)) id = -1;
        }
        for (size_t k = 0; id < 0 && k < bytes; k++) {
            int32_t byte = t->byte_id[(uint8_t)word[i + k]];
            bool again = t->fuse_unk && n && s[n - 1].id == t->unk;
            n = add_symbol(s, n, byte >= 0 || again ? byte : t->unk);
        }
        n = add_symbol(s, n, id);
    }
    return n;
}

static sf_code merge_word(const sf_tokenizer *t, sf_bpe *b, const char *word, size_t len, sf_ids *out,
                          sf_err *err) {
    if (len > INT32_MAX / 4) return SF_FAIL(err, SF_FULL, "a word of %zu bytes", len);
    SF_TRY(reserve(b, len, err));
    int32_t whole = t->whole_words ? sf_tokenizer_whole(t, word, len) : -1;
    if (whole >= 0) return sf_ids_push(out, whole, err);
    int32_t n = first_symbols(t, b->symbols, word, len);
    if (!n) return SF_OK;
    b->symbols[n - 1].next = -1;
    if (n > 1) b->steps += merge_all(t, b->symbols, b->heap, n);
    for (int32_t i = 0; i >= 0; i = b->symbols[i].next)
        SF_TRY(sf_ids_push(out, b->symbols[i].id, err));
    return SF_OK;
}

static seen *slot(sf_bpe *b, const char *word, size_t len) {
    uint64_t h = len;
    for (size_t i = 0; i < len; i++)
        h = (h ^ (uint8_t)word[i]) * 0x100000001b3u;
    return &b->cache[(h ^ h >> 25) % CACHE];
}

sf_code sf_bpe_word(const sf_tokenizer *t, sf_bpe *b, const char *word, size_t len, sf_ids *out,
                    sf_err *err) {
    if (len < 2 || len > CACHE_WORD) return merge_word(t, b, word, len, out, err);
    if (!b->cache) b->cache = calloc(CACHE, sizeof *b->cache);
    if (!b->cache) return SF_FAIL(err, SF_NOMEM, "no memory for a cache of words");
    seen *hit = slot(b, word, len);
    size_t at = out->len;
    if (!hit->word || hit->len != len || memcmp(hit->word, word, len) != 0) {
        SF_TRY(merge_word(t, b, word, len, out, err));
        *hit = (seen){word, (uint32_t)len, (uint32_t)(out->len - at), at};
        return SF_OK;
    }
    b->steps += hit->count;
    for (size_t i = 0; i < hit->count; i++)
        SF_TRY(sf_ids_push(out, out->data[hit->ids + i], err));
    return SF_OK;
}
