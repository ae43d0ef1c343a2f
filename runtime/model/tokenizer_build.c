#include "base/hash.h"
#include "base/utf8.h"
#include "model/tokenizer_priv.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TYPES "key tokenizer.ggml.token_type"

enum { MAX_TOKEN = 4096 }; /* bytes of a spelling */

typedef struct build {
    const sf_tokenizer_parts *p;
    sf_tokenizer *t;
    sf_err *err;
} build;

static sf_loc place(const build *b) {
    return sf_tokenizer_place(b->p);
}

static const char *tokens_key(const build *b) {
    return b->p->json ? "tokenizer.json: model.vocab" : "key tokenizer.ggml.tokens";
}

static uint64_t hash_bytes(const char *s, size_t len) {
    uint64_t h = 0xcbf29ce484222325u; /* FNV-1a, then a mixing step, since only low bits are used */
    for (size_t i = 0; i < len; i++)
        h = (h ^ (uint8_t)s[i]) * 0x100000001b3u;
    return h ^ h >> 29;
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

/* A word is looked up by its spelling in the alphabet, at most two bytes for each of its own. */
int32_t sf_tokenizer_whole(const sf_tokenizer *t, const char *word, size_t len) {
    char raw[MAX_TOKEN];
    size_t n = 0;
    if (t->spm) {
        int32_t id = sf_tokenizer_find(t, word, len);
        return sf_token_is_piece(t, id) ? id : -1;
    }
    if (len > t->longest || len > MAX_TOKEN / 2) return -1;
    for (size_t i = 0; i < len; i++) {
        int32_t id = t->byte_id[(uint8_t)word[i]];
        if (id < 0) return -1;
        memcpy(raw + n, t->pieces[id].raw, t->pieces[id].raw_len);
        n += t->pieces[id].raw_len;
    }
    int32_t id = sf_tokenizer_find(t, raw, n);
    return sf_token_is_piece(t, id) ? id : -1;
}

/* The byte a character of the byte-level alphabet stands for (GPT-2's bytes_to_unicode), or -1. */
static int byte_of(int32_t cp) {
    if ((cp >= 0x21 && cp <= 0x7e) || (cp >= 0xa1 && cp <= 0xff && cp != 0xad)) return cp;
    if (cp < 0x100 || cp > 0x143) return -1;
    int n = cp - 0x100; /* the other bytes, in order */
    if (n < 0x21) return n;
    return n < 0x43 ? n - 0x21 + 0x7f : 0xad;
}

/* The byte of a token <0xHH>, or -1. */
static int byte_token(sf_str s) {
    static const char digits[] = "0123456789ABCDEF";
    if (s.len != 6 || memcmp(s.data, "<0x", 3) != 0 || s.data[5] != '>') return -1;
    const char *high = memchr(digits, s.data[3], 16), *low = memchr(digits, s.data[4], 16);
    return high && low ? (int)((high - digits) * 16 + (low - digits)) : -1;
}

/* Likewise of SentencePiece's: U+2581 is a space, and byte tokens name their byte. */
static sf_code decode_piece(build *b, size_t id, char *to) {
    sf_piece *p = &b->t->pieces[id];
    p->text = to;
    if (b->t->types[id] == SF_TOKEN_BYTE) {
        int byte = byte_token((sf_str){p->raw, p->raw_len});
        if (byte < 0)
            return SF_FAIL_AT(b->err, SF_FORMAT, place(b), "%s: item %zu is a byte token, expected <0xHH>",
                              tokens_key(b), id);
        to[p->text_len++] = (char)byte;
        return SF_OK;
    }
    if (!sf_utf8_valid(p->raw, p->raw_len))
        return SF_FAIL_AT(b->err, SF_FORMAT, place(b), "%s: item %zu is not valid UTF-8", tokens_key(b), id);
    for (size_t i = 0; i < p->raw_len;) {
        bool space =
            p->raw_len - i >= SF_PIECE_SPACE_LEN && !memcmp(p->raw + i, SF_PIECE_SPACE, SF_PIECE_SPACE_LEN);
        to[p->text_len++] = space ? ' ' : p->raw[i];
        i += space ? SF_PIECE_SPACE_LEN : 1;
    }
    return SF_OK;
}

/* Writes the bytes of a normal token's spelling behind its raw spelling. */
static sf_code decode_spelling(build *b, size_t id, char *to) {
    if (b->t->spm) return decode_piece(b, id, to);
    sf_piece *p = &b->t->pieces[id];
    p->text = to;
    for (size_t i = 0, n, bad; i < p->raw_len; i += n) {
        int32_t cp = 0;
        n = sf_utf8_char(p->raw + i, p->raw_len - i, &cp, &bad);
        int byte = n ? byte_of(cp) : -1;
        if (byte < 0)
            return SF_FAIL_AT(b->err, SF_FORMAT, place(b), "%s: item %zu is not in the byte-level alphabet",
                              tokens_key(b), id);
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

static sf_code alloc_tokens(build *b) {
    const sf_tokenizer_parts *p = b->p;
    sf_tokenizer *t = b->t;
    size_t total = 0;
    for (size_t i = 0; i < p->n_tokens; i++)
        total += 2 * p->tokens[i].len + 2;
    t->raw_cap = table_size(p->n_tokens);
    t->pieces = calloc(p->n_tokens, sizeof *t->pieces);
    t->types = calloc(p->n_tokens, 1);
    t->flags = calloc(p->n_tokens, 1);
    t->bytes = malloc(total);
    t->by_raw = malloc(t->raw_cap * sizeof *t->by_raw);
    if (!t->pieces || !t->types || !t->flags || !t->bytes || !t->by_raw)
        return SF_FAIL_AT(b->err, SF_NOMEM, place(b), "no memory for %zu tokens", p->n_tokens);
    memset(t->by_raw, 0xff, t->raw_cap * sizeof *t->by_raw);
    return SF_OK;
}

/* Writes spelling and text of a token to `to`. */
static sf_code build_token(build *b, size_t i, char *to) {
    const sf_tokenizer_parts *p = b->p;
    sf_tokenizer *t = b->t;
    sf_str s = p->tokens[i];
    sf_piece *piece = &t->pieces[i];
    if (!s.len || s.len > MAX_TOKEN)
        return SF_FAIL_AT(b->err, SF_FORMAT, place(b), "%s: item %zu has %zu bytes, expected 1..%d",
                          tokens_key(b), i, s.len, MAX_TOKEN);
    memcpy(to, s.data, s.len);
    *piece = (sf_piece){.raw = to, .text = to, .raw_len = (uint32_t)s.len};
    bool as_it_is =
        sf_token_is_added(p->types[i]) || p->types[i] == SF_TOKEN_UNKNOWN || p->types[i] == SF_TOKEN_UNUSED;
    if (as_it_is && !(t->spm && p->types[i] == SF_TOKEN_USER))
        piece->text_len = piece->raw_len;
    else
        SF_TRY(decode_spelling(b, i, to + s.len));
    size_t slot = raw_slot(t, s.data, s.len);
    if (t->by_raw[slot] >= 0)
        return SF_FAIL_AT(b->err, SF_FORMAT, place(b), "%s: items %d and %zu are the same", tokens_key(b),
                          (int)t->by_raw[slot], i);
    t->by_raw[slot] = (int32_t)i;
    if (piece->text_len > t->longest) t->longest = piece->text_len;
    return SF_OK;
}

static sf_code build_tokens(build *b) {
    const sf_tokenizer_parts *p = b->p;
    sf_tokenizer *t = b->t;
    size_t at = 0;
    SF_TRY(alloc_tokens(b));
    for (size_t i = 0; i < p->n_tokens; i++) {
        bool hole = p->json && p->types[i] == SF_TOKEN_UNUSED && !p->tokens[i].len;
        t->types[i] = (uint8_t)p->types[i];
        t->flags[i] = p->flags ? p->flags[i] : 0;
        t->pieces[i] = (sf_piece){.raw = t->bytes, .text = t->bytes};
        if (!hole) SF_TRY(build_token(b, i, t->bytes + at));
        at += 2 * p->tokens[i].len;
        t->n = (int)i + 1;
    }
    return SF_OK;
}

/* The single-byte tokens. Which bytes have none is the vocabulary's business, except for SentencePiece's,
 * whose characters may all come apart into bytes. */
static sf_code find_bytes(build *b) {
    sf_tokenizer *t = b->t;
    memset(t->byte_id, 0xff, sizeof t->byte_id);
    for (int i = 0; i < t->n; i++) {
        bool is_byte = t->types[i] == SF_TOKEN_BYTE || (!t->spm && t->types[i] == SF_TOKEN_NORMAL);
        if (is_byte && t->pieces[i].text_len == 1) t->byte_id[(uint8_t)t->pieces[i].text[0]] = i;
    }
    for (int i = 0; t->spm && i < 256; i++)
        if (t->byte_id[i] < 0)
            return SF_FAIL_AT(b->err, SF_FORMAT, place(b), "%s: has no byte token <0x%02X>", tokens_key(b),
                              (unsigned)i);
    return SF_OK;
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
    const sf_tokenizer *t = b->t;
    sf_sha256 *h = sf_sha256_create();
    if (!h) return SF_FAIL_AT(b->err, SF_NOMEM, place(b), "no memory for a hash");
    uint64_t head[4] = {p->n_tokens, p->n_merges, (uint64_t)p->bos, (uint64_t)p->eos};
    const uint8_t rules[5] = {t->spm, t->nfc, t->strip, t->whole_words, (uint8_t)t->prefix};
    hash_str(h, (sf_str){t->split->name, strlen(t->split->name)});
    if (t->regex) {
        hash_str(h, p->pattern);
        hash_str(h, (sf_str){sf_regex_version(t->regex), strlen(sf_regex_version(t->regex))});
    }
    sf_sha256_add(h, head, sizeof head);
    if (p->json || p->spm) sf_sha256_add(h, rules, sizeof rules); /* elsewhere the split says them */
    for (size_t i = 0; i < p->n_tokens; i++)
        hash_str(h, p->tokens[i]);
    for (size_t i = 0; i < p->n_merges; i++)
        hash_str(h, p->merges[i]);
    for (size_t i = 0; p->rights && i < p->n_merges; i++)
        hash_str(h, p->rights[i]);
    if (p->scores) sf_sha256_add(h, p->scores, p->n_tokens * sizeof *p->scores);
    sf_sha256_add(h, p->types, p->n_types * sizeof *p->types);
    if (p->has_unk) sf_sha256_add(h, &t->unk, sizeof t->unk);
    if (p->has_unk) sf_sha256_add(h, &t->fuse_unk, sizeof t->fuse_unk);
    if (p->flags) sf_sha256_add(h, p->flags, p->n_tokens);
    sf_sha256_hex(h, b->t->hash);
    sf_sha256_destroy(h);
    return SF_OK;
}

static sf_code take_rules(build *b) {
    const sf_tokenizer_parts *p = b->p;
    sf_tokenizer *t = b->t;
    t->split = p->words ? p->words : sf_split_find(p->split.data, p->split.len);
    if (!t->split)
        return SF_FAIL_AT(
            b->err, SF_UNSUPPORTED, place(b),
            "key tokenizer.ggml.pre is '%.*s', expected smollm, gpt-2, llama-bpe, qwen2, tekken "
            "or llama4",
            (int)(p->split.len < 60 ? p->split.len : 60), p->split.data);
    t->spm = p->spm;
    t->prefix = p->prefix;
    t->strip = p->strip;
    t->nfc = p->json ? p->nfc : t->split->nfc;
    t->whole_words = p->json ? p->whole_words : t->split->whole_words;
    t->unk = p->has_unk ? p->unk : -1;
    t->fuse_unk = p->fuse_unk;
    t->bos = (int32_t)p->bos;
    t->eos = (int32_t)p->eos;
    t->add_bos = p->add_bos;
    return SF_OK;
}

/* Whether a token has U+2581 behind something else: else no merge reaches from a word into the spaces behind
 * it, and a whole text may be merged word by word with the same ids. */
static bool reaches_into_spaces(const sf_piece *p) {
    bool other = false;
    for (size_t i = 0; i < p->raw_len;) {
        bool space =
            p->raw_len - i >= SF_PIECE_SPACE_LEN && !memcmp(p->raw + i, SF_PIECE_SPACE, SF_PIECE_SPACE_LEN);
        if (space && other) return true;
        other = other || !space;
        i += space ? SF_PIECE_SPACE_LEN : 1;
    }
    return false;
}

static void cut_whole_texts(sf_tokenizer *t) {
    int32_t space = sf_tokenizer_find(t, SF_PIECE_SPACE, SF_PIECE_SPACE_LEN);
    if (t->split != &sf_split_whole || t->whole_words || !sf_token_is_piece(t, space)) return;
    for (int i = 0; i < t->n; i++)
        if (reaches_into_spaces(&t->pieces[i])) return;
    t->split = &sf_split_runs;
}

static sf_code compile_split(build *b) {
    char why[SF_REGEX_WHY];
    if (b->t->split != &sf_split_regex) return SF_OK;
    sf_code rc = sf_regex_create(b->p->pattern.data, b->p->pattern.len, &b->t->regex, why);
    if (rc == SF_OK) return SF_OK;
    return SF_FAIL_AT(b->err, rc, place(b), "tokenizer.json: pre_tokenizer: %s", why);
}

static sf_code build_all(build *b) {
    const sf_tokenizer_parts *p = b->p;
    SF_TRY(take_rules(b));
    SF_TRY(compile_split(b));
    if (!p->n_tokens || p->n_tokens > INT32_MAX / 2 || p->n_merges > INT32_MAX / 2)
        return SF_FAIL_AT(b->err, SF_FORMAT, place(b), "%s has %zu items, and there are %zu merges",
                          tokens_key(b), p->n_tokens, p->n_merges);
    SF_TRY(check_types(b));
    SF_TRY(check_special_id(b, "bos_token_id", p->bos));
    SF_TRY(check_special_id(b, "eos_token_id", p->eos));
    SF_TRY(build_tokens(b));
    SF_TRY(find_bytes(b));
    cut_whole_texts(b->t);
    SF_TRY(sf_tokenizer_build_merges(b->t, p, b->err));
    SF_TRY(sf_tokenizer_build_added(b->t, p, b->err));
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
