#include "sched/fake.h"

#include <string.h>

/* Characters of two, three and four bytes that come in parts, bytes that are no character, and letters from
 * a small alphabet, so that stop strings come up often and in every way. */
static const char *const pieces[FAKE_VOCAB] = {
    "<eos>", "<end>",    "a",    "b",    "c",    "ab",        "ba",           "abc",      "bca",
    " ",     "a b",      "cab",  "\xe2", "\x82", "\xac",      "\x82\xac",     "\xf0\x9f", "\x98",
    "\x80",  "\x98\x80", "\xc3", "\xa9", "\xff", "a\xe2\x82", "\254b",        "\xf0",     "d",
    "e",     "de",       "ed",   "dd",   "ee",   "e\xc3\xa9", "\xe2\x82\xac", "x",        "xy",
    "yx",    "xyx",      "y",    "z"};

const sf_tokenizer *fake_tokenizer(void) {
    static const int handle;
    return (const sf_tokenizer *)(const void *)&handle;
}

const char *fake_piece(int32_t id, size_t *len) {
    *len = strlen(pieces[id]);
    return pieces[id];
}

bool sf_tokenizer_is_special(const sf_tokenizer *t, int32_t id) {
    (void)t;
    return id == FAKE_EOS || id == FAKE_EOS2;
}

const char *sf_tokenizer_piece(const sf_tokenizer *t, int32_t id, size_t *len) {
    (void)t;
    return fake_piece(id, len);
}
