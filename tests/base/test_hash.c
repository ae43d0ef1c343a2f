#include "base/hash.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

/* FIPS 180-4's examples. */
#define EMPTY "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
#define ABC   "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
#define LONG  "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"

static void known_answers(void **state) {
    (void)state;
    const char *text = "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";
    char hex[65];
    assert_true(sf_sha256_of("", 0, hex));
    assert_string_equal(hex, EMPTY);
    assert_true(sf_sha256_of("abc", 3, hex));
    assert_string_equal(hex, ABC);
    assert_true(sf_sha256_of(text, strlen(text), hex));
    assert_string_equal(hex, LONG);
}

static void pieces_equal_the_whole_and_hex_starts_anew(void **state) {
    (void)state;
    char hex[65];
    sf_sha256 *h = sf_sha256_create();
    assert_non_null(h);
    for (int i = 0; i < 2; i++) {
        sf_sha256_add(h, "a", 1);
        sf_sha256_add(h, "", 0);
        sf_sha256_add(h, "bc", 2);
        sf_sha256_hex(h, hex);
        assert_string_equal(hex, ABC);
    }
    sf_sha256_destroy(h);
    sf_sha256_destroy(NULL);
}

static void hash_pair(sf_sha256 *h, const char *a, const char *b, char hex[65]) {
    sf_sha256_add_str(h, a);
    sf_sha256_add_str(h, b);
    sf_sha256_hex(h, hex);
}

static void strings_keep_their_borders(void **state) {
    (void)state;
    char one[65], other[65], null[65], empty[65];
    sf_sha256 *h = sf_sha256_create();
    assert_non_null(h);
    hash_pair(h, "ab", "c", one);
    hash_pair(h, "a", "bc", other);
    assert_string_not_equal(one, other);
    hash_pair(h, NULL, "x", null);
    hash_pair(h, "", "x", empty);
    assert_string_equal(null, empty);
    sf_sha256_destroy(h);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_answers),
        cmocka_unit_test(pieces_equal_the_whole_and_hex_starts_anew),
        cmocka_unit_test(strings_keep_their_borders),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
