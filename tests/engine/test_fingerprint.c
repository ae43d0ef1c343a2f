#include "engine/fingerprint.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static void make(const char *pinned, const char *weights, const char *tokenizer,
                 char out[SF_FINGERPRINT_SIZE]) {
    sf_fingerprint_parts p = {pinned, weights, tokenizer, NULL, NULL};
    sf_err err;
    assert_int_equal(sf_fingerprint_make(&p, out, &err), SF_OK);
}

static void it_is_sf_and_32_hex_digits(void **state) {
    (void)state;
    char f[SF_FINGERPRINT_SIZE];
    make("p", "w", "t", f);
    assert_int_equal(strlen(f), 35);
    assert_memory_equal(f, "sf-", 3);
    assert_int_equal(strspn(f + 3, "0123456789abcdef"), 32);
}

static void the_same_parts_give_the_same(void **state) {
    (void)state;
    char a[SF_FINGERPRINT_SIZE], b[SF_FINGERPRINT_SIZE];
    make("p", "w", "t", a);
    make("p", "w", "t", b);
    assert_string_equal(a, b);
}

static void each_part_changes_it(void **state) {
    (void)state;
    static const char *const parts[][3] = {{"p", "w", "t"}, {"q", "w", "t"},  {"p", "v", "t"},
                                           {"p", "w", "u"}, {"p", "w", NULL}, {"pw", "", "t"},
                                           {"p", "wt", ""}};
    char f[7][SF_FINGERPRINT_SIZE];
    for (int i = 0; i < 7; i++)
        make(parts[i][0], parts[i][1], parts[i][2], f[i]);
    for (int i = 0; i < 7; i++)
        for (int k = 0; k < i; k++)
            assert_string_not_equal(f[i], f[k]);
}

static void the_chat_template_changes_it(void **state) {
    (void)state;
    char f[3][SF_FINGERPRINT_SIZE];
    const char *const chats[3] = {NULL, "a", "b"};
    sf_err err;
    for (int i = 0; i < 3; i++) {
        sf_fingerprint_parts p = {"p", "w", "t", chats[i], NULL};
        assert_int_equal(sf_fingerprint_make(&p, f[i], &err), SF_OK);
    }
    assert_string_not_equal(f[0], f[1]);
    assert_string_not_equal(f[0], f[2]);
    assert_string_not_equal(f[1], f[2]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_is_sf_and_32_hex_digits),
        cmocka_unit_test(the_same_parts_give_the_same),
        cmocka_unit_test(each_part_changes_it),
        cmocka_unit_test(the_chat_template_changes_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
