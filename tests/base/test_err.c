#include "base/err.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static sf_code raise_at(sf_err *err, sf_loc loc) {
    return SF_FAIL_AT(err, SF_FORMAT, loc, "found %d, expected %s", 3, "4");
}

static void a_message_names_the_place_that_is_known(void **state) {
    (void)state;
    static const struct {
        sf_loc loc;
        const char *text;
    } cases[] = {{{NULL, 0, 0}, "found 3, expected 4"},
                 {{"a.yaml", 0, 0}, "a.yaml: found 3, expected 4"},
                 {{"a.yaml", 7, 0}, "a.yaml:7: found 3, expected 4"},
                 {{"a.yaml", 7, 13}, "a.yaml:7:13: found 3, expected 4"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        sf_err err = {0};
        char text[100];
        assert_int_equal(raise_at(&err, cases[i].loc), SF_FORMAT);
        assert_int_equal(err.code, SF_FORMAT);
        assert_string_equal(sf_err_format(&err, text, sizeof text), cases[i].text);
        assert_non_null(strstr(err.src.file, "test_err.c"));
        assert_true(err.src.line > 0);
    }
}

static void no_record_is_needed(void **state) {
    (void)state;
    assert_int_equal(raise_at(NULL, (sf_loc){0}), SF_FORMAT);
}

static void long_messages_are_cut(void **state) {
    (void)state;
    sf_err err;
    char big[1000], text[20];
    memset(big, 'x', sizeof big - 1);
    big[sizeof big - 1] = 0;
    assert_int_equal(SF_FAIL(&err, SF_IO, "%s", big), SF_IO);
    assert_int_equal(strlen(err.msg), sizeof err.msg - 1);
    assert_int_equal(strlen(sf_err_format(&err, text, sizeof text)), sizeof text - 1);
}

static void an_empty_message_is_the_codes_text(void **state) {
    (void)state;
    sf_err err = {.code = SF_NOMEM};
    char text[40];
    assert_string_equal(sf_err_format(&err, text, sizeof text), "out of memory");
}

static void every_code_has_a_text(void **state) {
    (void)state;
    for (int code = SF_OK; code <= SF_DRIFT; code++)
        assert_string_not_equal(sf_code_text((sf_code)code), "unknown error");
    assert_string_equal(sf_code_text(SF_OK), "ok");
    assert_string_equal(sf_code_text((sf_code)1000), "unknown error");
}

static sf_code twice(int *calls, sf_code first) {
    ++*calls;
    SF_TRY(first);
    ++*calls;
    return SF_OK;
}

static void try_returns_the_first_failure(void **state) {
    (void)state;
    int calls = 0;
    assert_int_equal(twice(&calls, SF_FULL), SF_FULL);
    assert_int_equal(calls, 1);
    assert_int_equal(twice(&calls, SF_OK), SF_OK);
    assert_int_equal(calls, 3);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_message_names_the_place_that_is_known),
        cmocka_unit_test(no_record_is_needed),
        cmocka_unit_test(long_messages_are_cut),
        cmocka_unit_test(an_empty_message_is_the_codes_text),
        cmocka_unit_test(every_code_has_a_text),
        cmocka_unit_test(try_returns_the_first_failure),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
