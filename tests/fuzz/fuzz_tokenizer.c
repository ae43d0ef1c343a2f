/* Fuzz target: the first byte chooses. Even: the rest is text for a tokenizer of all bytes and a few merges,
 * with marks made from it; what decodes must equal what was encoded. Odd: the rest is cut at newlines into
 * tokens and merges, which a tokenizer is built from, or refused. */
#include "model/tokenizer_priv.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MAX_ITEMS = 64 };

static void spell(uint8_t byte, char out[3]) { /* GPT-2's bytes_to_unicode */
    int cp = byte;
    if (byte < 0x21) cp = 0x100 + byte;
    if (byte >= 0x7f && byte <= 0xa0) cp = 0x121 + byte - 0x7f;
    if (byte == 0xad) cp = 0x143;
    memset(out, 0, 3);
    if (cp < 0x80) {
        out[0] = (char)cp;
    } else {
        out[0] = (char)(0xc0 | cp >> 6);
        out[1] = (char)(0x80 | (cp & 0x3f));
    }
}

static sf_tokenizer *all_bytes(const char *split) {
    static char names[256][3];
    static const char *const more[] = {
        "<|x|>", "<|", "aa", "aaaa", "th", "the", "\xc4\xa0t", "\xc4\xa0th", "\xc4\xa0\xc4\xa0"};
    static const char *const merges[] = {"a a",         "aa aa", "\xc4\xa0 t",       "t h",
                                         "\xc4\xa0t h", "th e",  "\xc4\xa0 \xc4\xa0"};
    enum { MORE = sizeof more / sizeof *more, MERGES = sizeof merges / sizeof *merges };
    static sf_str tokens[256 + MORE], pairs[MERGES];
    static int32_t types[256 + MORE];
    for (int i = 0; i < 256 + MORE; i++) {
        if (i < 256) spell((uint8_t)i, names[i]);
        const char *s = i < 256 ? names[i] : more[i - 256];
        tokens[i] = (sf_str){s, strlen(s)};
        types[i] = i == 256 ? SF_TOKEN_CONTROL : i == 257 ? SF_TOKEN_USER : SF_TOKEN_NORMAL;
    }
    for (int i = 0; i < MERGES; i++)
        pairs[i] = (sf_str){merges[i], strlen(merges[i])};
    sf_tokenizer_parts p = {.path = "fuzz",
                            .split = {split, strlen(split)},
                            .tokens = tokens,
                            .n_tokens = 256 + MORE,
                            .merges = pairs,
                            .n_merges = MERGES,
                            .types = types,
                            .n_types = 256 + MORE,
                            .bos = -1,
                            .eos = -1};
    sf_tokenizer *t = NULL;
    if (sf_tokenizer_build(&p, &t, NULL) != SF_OK) __builtin_trap();
    return t;
}

static void attack_text(const char *text, size_t len) {
    static const char *const splits[] = {"smollm", "gpt-2", "llama-bpe", "tekken", "llama4"};
    enum { SPLITS = sizeof splits / sizeof *splits };
    static sf_tokenizer *all[SPLITS];
    for (int i = 0; i < SPLITS && !all[i]; i++)
        all[i] = all_bytes(splits[i]);
    const sf_tokenizer *t = all[len % SPLITS];
    sf_ids ids = {0};
    sf_buf back = {0};
    sf_err err;
    uint8_t marks[4096];
    if (len > sizeof marks) len = sizeof marks;
    for (size_t i = 0; i < len; i++)
        marks[i] = (uint8_t)text[i] & 1;
    for (int k = 0; k < 2; k++) {
        ids.len = back.len = 0;
        if (sf_tokenizer_encode(t, text, len, k ? marks : NULL, &ids, &err) != SF_OK) break;
        if (sf_tokenizer_decode(t, ids.data, ids.len, true, &back, &err) != SF_OK) __builtin_trap();
        if (back.len != len || (len && memcmp(back.data, text, len) != 0)) __builtin_trap();
    }
    sf_ids_fini(&ids);
    sf_buf_fini(&back);
}

static void attack_parts(const char *text, size_t len) {
    sf_str items[MAX_ITEMS];
    int32_t types[MAX_ITEMS];
    size_t n = 0, from = 0, n_tokens;
    for (size_t i = 0; i <= len && n < MAX_ITEMS; i++) {
        if (i < len && text[i] != '\n') continue;
        items[n] = (sf_str){text + from, i - from};
        types[n] = 1 + (int32_t)(i % 6);
        n++;
        from = i + 1;
    }
    for (n_tokens = 0; n_tokens < n && !memchr(items[n_tokens].data, ' ', items[n_tokens].len);)
        n_tokens++;
    sf_tokenizer_parts p = {.path = "fuzz",
                            .split = {"smollm", 6},
                            .tokens = items,
                            .n_tokens = n_tokens,
                            .merges = items + n_tokens,
                            .n_merges = n - n_tokens,
                            .types = types,
                            .n_types = n_tokens,
                            .bos = 0,
                            .eos = -1};
    sf_tokenizer *t = NULL;
    sf_ids ids = {0};
    sf_buf back = {0};
    sf_err err;
    uint8_t zeros[4096] = {0};
    if (sf_tokenizer_build(&p, &t, &err) != SF_OK) return;
    if (len <= sizeof zeros && sf_tokenizer_encode(t, text, len, zeros, &ids, &err) == SF_OK &&
        sf_tokenizer_decode(t, ids.data, ids.len, false, &back, &err) != SF_OK)
        __builtin_trap();
    sf_ids_fini(&ids);
    sf_buf_fini(&back);
    sf_tokenizer_close(t);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < 2) return 0;
    if (data[0] & 1)
        attack_parts((const char *)data + 1, size - 1);
    else
        attack_text((const char *)data + 1, size - 1);
    return 0;
}
