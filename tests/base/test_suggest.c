#include "base/suggest.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static const char *const words[] = {"temperature", "top_k", "top_p", "n", "max_tokens", NULL};

static void a_slip_of_up_to_two_letters_finds_its_word(void **state) {
    (void)state;
    assert_string_equal(sf_suggest("tempratur", words), "temperature");
    assert_string_equal(sf_suggest("max_token", words), "max_tokens");
    assert_string_equal(sf_suggest("topp", words), "top_p");
    assert_null(sf_suggest("tempertrxyz", words));
}

static void a_short_word_is_not_everybodys_neighbour(void **state) {
    (void)state;
    assert_null(sf_suggest("x", words));
    assert_null(sf_suggest("", words));
}

static void a_word_too_long_to_compare_has_no_neighbour(void **state) {
    (void)state;
    char longest[200];
    memset(longest, 'a', sizeof longest - 1);
    longest[sizeof longest - 1] = 0;
    assert_null(sf_suggest(longest, words));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_slip_of_up_to_two_letters_finds_its_word),
        cmocka_unit_test(a_short_word_is_not_everybodys_neighbour),
        cmocka_unit_test(a_word_too_long_to_compare_has_no_neighbour),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
