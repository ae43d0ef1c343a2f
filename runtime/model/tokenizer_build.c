#include "base/hash.h"
#include "base/utf8.h"
#include "model/tokenizer_priv.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TOKENS "key tokenizer.ggml.tokens"
#define MERGES "key tokenizer.ggml.merges"
#define TYPES  "key tokenizer.ggml.token_type"

enum { MAX_TOKEN = 4096 }; /* bytes of a spelling */

typedef struct build {
    const sf_tokenizer_parts *p;
    sf_tokenizer *t;
    sf_err *err;
    size_t byte_cap, trie_cap;
} build;

static sf_loc place(const build *b) {
    return (sf_loc){b->p->path, 0, 0};
}

static uint64_t hash_bytes(const char *s, size_t len) {
    uint64_t h = 0xcbf29ce484222325u; /* FNV-1a, then a mixing step, since only low bits are used */
    for (size_t i = 0; i < len; i++)
        h = (h ^ (uint8_t)s[i]) * 0x100000001b3u;
    return h ^ h >> 29;
}

static uint64_t hash_pair(uint64_t pair) {
    uint64_t h = pair * 0x9e3779b97f4a7c15u;
    return h ^ h >> 32;
}

static size_t table_size(size_t n) {
    size_t cap = 16;
    while (cap < 2 * n)
        cap *= 2;
    return cap;
}

static size_t raw_slot(const sf_tokenizer *t, const char *s, size_t len) {
    size_t i = hash_bytes(s, len) & (t->raw_cap - 1);
    for (;; i = (i + 1) & (t->raw_cap - 1)) {
        int32_t id = t->by_raw[i];
        if (id < 0) return i;
        if (t->pieces[id].raw_len == len && !memcmp(t->pieces[id].raw, s, len)) return i;
    }
}

int32_t sf_tokenizer_find(const sf_tokenizer *t, const char *piece, size_t len) {
    return t->by_raw[raw_slot(t, piece, len)];
}

static size_t merge_slot(const sf_tokenizer *t, uint64_t pair) {
    size_t i = hash_pair(pair) & (t->merge_cap - 1);
    while (t->merges[i].pair != SF_NO_PAIR && t->merges[i].pair != pair)
        i = (i + 1) & (t->merge_cap - 1);
    return i;
}

static uint64_t pair_of(int32_t left, int32_t right) {
    return (uint64_t)(uint32_t)left << 32 | (uint32_t)right;
}

const sf_merge *sf_tokenizer_merge(const sf_tokenizer *t, int32_t left, int32_t right) {
    const sf_merge *m = &t->merges[merge_slot(t, pair_of(left, right))];
    return m->pair == SF_NO_PAIR ? NULL : m;
}

/* A word is looked up by its spelling in the alphabet, at most two bytes for each of its own. */
int32_t sf_tokenizer_whole(const sf_tokenizer *t, const char *word, size_t len) {
    char raw[MAX_TOKEN];
    size_t n = 0;
    if (len > t->longest || len > MAX_TOKEN / 2) return -1;
    for (size_t i = 0; i < len; i++) {
        int32_t id = t->byte_id[(uint8_t)word[i]];
        if (id < 0) return -1;
        memcpy(raw + n, t->pieces[id].raw, t->pieces[id].raw_len);
        n += t->pieces[id].raw_len;
    }
    int32_t id = sf_tokenizer_find(t, raw, n);
    return id >= 0 && t->types[id] == SF_TOKEN_NORMAL ? id : -1;
}

/* The byte a character of the byte-level alphabet stands for (GPT-2's bytes_to_unicode), or -1. */
static int byte_of(int32_t cp) {
    if ((cp >= 0x21 && cp <= 0x7e) || (cp >= 0xa1 && cp <= 0xff && cp != 0xad)) return cp;
    if (cp < 0x100 || cp > 0x143) return -1;
    int n = cp - 0x100; /* the other bytes, in order */
    if (n < 0x21) return n;
    return n < 0x43 ? n - 0x21 + 0x7f : 0xad;
}

static bool is_added(int type) {
    return type == SF_TOKEN_CONTROL || type == SF_TOKEN_USER;
}

/* Writes the bytes of a normal token's spelling behind its raw spelling. */
static sf_code decode_spelling(build *b, size_t id, char *to) {
    sf_piece *p = &b->t->pieces[id];
    p->text = to;
    for (size_t i = 0, n, bad; i < p->raw_len; i += n) {
        int32_t cp = 0;
        n = sf_utf8_char(p->raw + i, p->raw_len - i, &cp, &bad);
        int byte = n ? byte_of(cp) : -1;
        if (byte < 0)
            return SF_FAIL_AT(b->err, SF_FORMAT, place(b),
                              TOKENS ": item %zu is not in the byte-level alphabet", id);
        to[p->text_len++] = (char)byte;
    }
    return SF_OK;
}

static sf_code check_types(const build *b) {
    const sf_tokenizer_parts *p = b->p;
    if (p->n_types != p->n_tokens)
        return SF_FAIL_AT(b->err, SF_FORMAT, place(b), TYPES " has %zu items, expected %zu as for the tokens",
                          p->n_types, p->n_tokens);
    for (size_t i = 0; i < p->n_types; i++)
        if (p->types[i] < SF_TOKEN_NORMAL || p->types[i] > SF_TOKEN_BYTE)
            return SF_FAIL_AT(b->err, SF_FORMAT, place(b), TYPES ": item %zu is %d, expected 1..6", i,
                              (int)p->types[i]);
    return SF_OK;
}

static sf_code build_tokens(build *b) {
    const sf_tokenizer_parts *p = b->p;
    sf_tokenizer *t = b->t;
    size_t total = 0, at = 0;
    for (size_t i = 0; i < p->n_tokens; i++)
        total += 2 * p->tokens[i].len + 2;
    t->raw_cap = table_size(p->n_tokens);
    t->pieces = calloc(p->n_tokens, sizeof *t->pieces);
    t->types = calloc(p->n_tokens, 1);
    t->bytes = malloc(total);
    t->by_raw = malloc(t->raw_cap * sizeof *t->by_raw);
    if (!t->pieces || !t->types || !t->bytes || !t->by_raw)
        return SF_FAIL_AT(b->err, SF_NOMEM, place(b), "no memory for %zu tokens", p->n_tokens);
    memset(t->by_raw, 0xff, t->raw_cap * sizeof *t->by_raw);
    for (size_t i = 0; i < p->n_tokens; i++) {
        sf_str s = p->tokens[i];
        sf_piece *piece = &t->pieces[i];
        if (!s.len || s.len > MAX_TOKEN)
            return SF_FAIL_AT(b->err, SF_FORMAT, place(b), TOKENS ": item %zu has %zu bytes, expected 1..%d",
                              i, s.len, MAX_TOKEN);
        memcpy(t->bytes + at, s.data, s.len);
        *piece = (sf_piece){.raw = t->bytes + at, .text = t->bytes + at, .raw_len = (uint32_t)s.len};
        piece->text_len = 0;
        t->types[i] = (uint8_t)p->types[i];
        at += s.len;
        if (is_added(p->types[i]) || p->types[i] == SF_TOKEN_UNKNOWN || p->types[i] == SF_TOKEN_UNUSED)
            piece->text_len = piece->raw_len;
        else
            SF_TRY(decode_spelling(b, i, t->bytes + at));
        at += s.len;
        size_t slot = raw_slot(t, s.data, s.len);
        if (t->by_raw[slot] >= 0)
            return SF_FAIL_AT(b->err, SF_FORMAT, place(b), TOKENS ": items %d and %zu are the same",
                              (int)t->by_raw[slot], i);
        t->by_raw[slot] = (int32_t)i;
        t->n = (int)i + 1;
        if (piece->text_len > t->longest) t->longest = piece->text_len;
    }
    return SF_OK;
}

/* The single-byte tokens. Which bytes have none is the vocabulary's business. */
static void find_bytes(sf_tokenizer *t) {
    memset(t->byte_id, 0xff, sizeof t->byte_id);
    for (int i = 0; i < t->n; i++)
        if ((t->types[i] == SF_TOKEN_NORMAL || t->types[i] == SF_TOKEN_BYTE) && t->pieces[i].text_len == 1)
            t->byte_id[(uint8_t)t->pieces[i].text[0]] = i;
}

static sf_code add_merge(build *b, size_t i) {
    sf_tokenizer *t = b->t;
    sf_str m = b->p->merges[i];
    const char *space = memchr(m.data, ' ', m.len);
    size_t left = space ? (size_t)(space - m.data) : 0, right = space ? m.len - left - 1 : 0;
    if (!left || !right || memchr(space + 1, ' ', right))
        return SF_FAIL_AT(b->err, SF_FORMAT, place(b), MERGES ": item %zu is not two tokens and a space", i);
    char joined[MAX_TOKEN];
    if (left + right > MAX_TOKEN)
        return SF_FAIL_AT(b->err, SF_FORMAT, place(b), MERGES ": item %zu has %zu bytes", i, m.len);
    memcpy(joined, m.data, left);
    memcpy(joined + left, space + 1, right);
    int32_t l = sf_tokenizer_find(t, m.data, left), r = sf_tokenizer_find(t, space + 1, right);
    int32_t id = sf_tokenizer_find(t, joined, left + right);
    if (l < 0 || r < 0 || id < 0)
        return SF_FAIL_AT(b->err, SF_FORMAT, place(b), MERGES ": item %zu %s not in the vocabulary", i,
                          id < 0 ? "makes a token that is" : "joins a token that is");
    sf_merge *slot = &t->merges[merge_slot(t, pair_of(l, r))];
    if (slot->pair != SF_NO_PAIR)
        return SF_FAIL_AT(b->err, SF_FORMAT, place(b), MERGES ": items %d and %zu are the same",
                          (int)slot->rank, i);
    *slot = (sf_merge){pair_of(l, r), (int32_t)i, id};
    t->merge_ids[i] = id;
    return SF_OK;
}

static sf_code build_merges(build *b) {
    sf_tokenizer *t = b->t;
    t->merge_cap = table_size(b->p->n_merges);
    t->merges = malloc(t->merge_cap * sizeof *t->merges);
    t->merge_ids = malloc((b->p->n_merges + 1) * sizeof *t->merge_ids);
    if (!t->merges || !t->merge_ids)
        return SF_FAIL_AT(b->err, SF_NOMEM, place(b), "no memory for %zu merges", b->p->n_merges);
    memset(t->merges, 0xff, t->merge_cap * sizeof *t->merges);
    for (size_t i = 0; i < b->p->n_merges; i++)
        SF_TRY(add_merge(b, i));
    return SF_OK;
}

/* The child of node with this byte, made if `make`; 0: none (or, when made, out of memory). */
static int32_t trie_child(build *b, int32_t node, uint8_t byte) {
    sf_tokenizer *t = b->t;
    for (int32_t c = t->trie[node].child; c; c = t->trie[c].sibling)
        if (t->trie[c].byte == byte) return c;
    if (t->n_trie == b->trie_cap) {
        sf_trie_node *grown = realloc(t->trie, 2 * b->trie_cap * sizeof *grown);
        if (!grown) return 0;
        t->trie = grown;
        b->trie_cap *= 2;
    }
    int32_t c = (int32_t)t->n_trie++;
    t->trie[c] = (sf_trie_node){.id = -1, .byte = byte, .sibling = t->trie[node].child};
    t->trie[node].child = c;
    return c;
}

static sf_code build_trie(build *b) {
    sf_tokenizer *t = b->t;
    b->trie_cap = 256;
    t->trie = calloc(b->trie_cap, sizeof *t->trie);
    if (!t->trie) return SF_FAIL_AT(b->err, SF_NOMEM, place(b), "no memory for special tokens");
    t->trie[0].id = -1;
    t->n_trie = 1;
    for (int i = 0; i < t->n; i++) {
        int32_t node = 0;
        for (size_t k = 0; is_added(t->types[i]) && k < t->pieces[i].raw_len; k++) {
            node = trie_child(b, node, (uint8_t)t->pieces[i].raw[k]);
            if (!node) return SF_FAIL_AT(b->err, SF_NOMEM, place(b), "no memory for special tokens");
        }
        if (node) t->trie[node].id = i;
    }
    return SF_OK;
}

int32_t sf_tokenizer_special_at(const sf_tokenizer *t, const char *text, size_t len, const uint8_t *plain,
                                size_t *bytes) {
    int32_t node = 0, id = -1;
    for (size_t i = 0; i < len && !(plain && plain[i]); i++) {
        int32_t c = t->trie[node].child;
        while (c && t->trie[c].byte != (uint8_t)text[i])
            c = t->trie[c].sibling;
        if (!c) break;
        node = c;
        if (t->trie[node].id < 0) continue;
        id = t->trie[node].id;
        *bytes = i + 1;
    }
    return id;
}

static sf_code check_special_id(const build *b, const char *key, int64_t id) {
    if (id >= -1 && id < (int64_t)b->p->n_tokens) return SF_OK;
    return SF_FAIL_AT(b->err, SF_FORMAT, place(b), "key tokenizer.ggml.%s is %lld, expected 0..%zu", key,
                      (long long)id, b->p->n_tokens - 1);
}

static void hash_str(sf_sha256 *h, sf_str s) {
    uint64_t len = s.len;
    sf_sha256_add(h, &len, sizeof len);
    sf_sha256_add(h, s.data, s.len);
}

static sf_code hash_all(build *b) {
    const sf_tokenizer_parts *p = b->p;
    sf_sha256 *h = sf_sha256_create();
    if (!h) return SF_FAIL_AT(b->err, SF_NOMEM, place(b), "no memory for a hash");
    uint64_t head[4] = {p->n_tokens, p->n_merges, (uint64_t)p->bos, (uint64_t)p->eos};
    hash_str(h, (sf_str){b->t->split->name, strlen(b->t->split->name)});
    sf_sha256_add(h, head, sizeof head);
    for (size_t i = 0; i < p->n_tokens; i++)
        hash_str(h, p->tokens[i]);
    for (size_t i = 0; i < p->n_merges; i++)
        hash_str(h, p->merges[i]);
    sf_sha256_add(h, p->types, p->n_types * sizeof *p->types);
    sf_sha256_hex(h, b->t->hash);
    sf_sha256_destroy(h);
    return SF_OK;
}

static sf_code build_all(build *b) {
    const sf_tokenizer_parts *p = b->p;
    b->t->split = sf_split_find(p->split.data, p->split.len);
    if (!b->t->split)
        return SF_FAIL_AT(b->err, SF_UNSUPPORTED, place(b),
                          "key tokenizer.ggml.pre is '%.*s', expected smollm, gpt-2, llama-bpe, qwen2 or "
                          "tekken",
                          (int)(p->split.len < 60 ? p->split.len : 60), p->split.data);
    if (!p->n_tokens || p->n_tokens > INT32_MAX / 2 || p->n_merges > INT32_MAX / 2)
        return SF_FAIL_AT(b->err, SF_FORMAT, place(b), TOKENS " has %zu items, " MERGES " %zu", p->n_tokens,
                          p->n_merges);
    SF_TRY(check_types(b));
    SF_TRY(check_special_id(b, "bos_token_id", p->bos));
    SF_TRY(check_special_id(b, "eos_token_id", p->eos));
    b->t->bos = (int32_t)p->bos;
    b->t->eos = (int32_t)p->eos;
    b->t->add_bos = p->add_bos;
    SF_TRY(build_tokens(b));
    find_bytes(b->t);
    SF_TRY(build_merges(b));
    SF_TRY(build_trie(b));
    return hash_all(b);
}

sf_code sf_tokenizer_build(const sf_tokenizer_parts *parts, sf_tokenizer **out, sf_err *err) {
    build b = {.p = parts, .t = calloc(1, sizeof *b.t), .err = err};
    if (!b.t) return SF_FAIL_AT(err, SF_NOMEM, place(&b), "no memory for a tokenizer");
    sf_code rc = build_all(&b);
    if (rc == SF_OK)
        *out = b.t;
    else
        sf_tokenizer_close(b.t);
    return rc;
}
