#include "api/json.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static sf_code parse(const char *text, sf_api_error *e) {
    json_t *j = NULL;
    *e = (sf_api_error){0};
    sf_code rc = sf_json_parse(text, strlen(text), "the body", &j, e);
    json_decref(j);
    return rc;
}

static void every_fp32_comes_back(void **state) {
    (void)state;
    uint32_t bits = 1;
    for (int i = 0; i < 20000; i++) {
        bits = bits * 1664525u + 1013904223u;
        float f, g;
        memcpy(&f, &bits, sizeof f);
        if (!isfinite(f)) continue;
        json_t *o = json_pack("{s:o}", "x", sf_json_logprob(f));
        char *text = sf_json_dump(o);
        json_decref(o);
        json_t *back;
        sf_api_error e;
        assert_int_equal(sf_json_parse(text, strlen(text), "it", &back, &e), SF_OK);
        g = (float)json_real_value(json_object_get(back, "x"));
        assert_memory_equal(&f, &g, sizeof f);
        json_decref(back);
        free(text);
    }
}

static void minus_infinity_has_a_number(void **state) {
    (void)state;
    json_t *j = sf_json_logprob(-INFINITY);
    assert_true(json_real_value(j) == -9999.0);
    json_decref(j);
}

static void int64_are_exact(void **state) {
    (void)state;
    static const char text[] = "{\"a\":-9223372036854775808,\"b\":9223372036854775807}";
    json_t *j;
    sf_api_error e;
    assert_int_equal(sf_json_parse(text, strlen(text), "it", &j, &e), SF_OK);
    char *back = sf_json_dump(j);
    assert_string_equal(back, text);
    free(back);
    json_decref(j);
}

static void bad_text_says_where_and_why(void **state) {
    (void)state;
    static const struct {
        const char *text, *says;
    } cases[] = {{"{\"a\":1,\"a\":2}", "duplicate"},
                 {"{\"a\":9223372036854775808}", "64-bit"},
                 {"{\"a\":", "column"},
                 {"", "column"},
                 {"{} {}", "end of file expected"},
                 {"[1,2]", "is an array of 2, expected a JSON object"},
                 {"7", "is an integer (7), expected a JSON object"},
                 {"{\"a\":\"\xb2\xe2\"}", "unable to decode byte"},
                 {"{\"a\":\"\\ud800\"}", "invalid Unicode"},
                 {"{\"a\":\"\\u0000\"}", "\\u0000 is not allowed"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        sf_api_error e;
        assert_int_equal(parse(cases[i].text, &e), SF_INVALID);
        assert_non_null(strstr(e.message, cases[i].says));
        assert_non_null(strstr(e.message, "the body"));
        assert_int_equal(e.status, 400);
        json_t *o = sf_api_error_json(&e);
        assert_non_null(o); /* also where the message quotes bytes that are not UTF-8 */
        json_decref(o);
    }
}

static void ten_thousand_nested_arrays_are_refused(void **state) {
    (void)state;
    char *text = malloc(10006);
    assert_non_null(text);
    memcpy(text, "{\"a\":", 5);
    memset(text + 5, '[', 10000);
    text[10005] = 0;
    sf_api_error e;
    assert_int_equal(parse(text, &e), SF_INVALID);
    assert_non_null(strstr(e.message, "nested too deeply"));
    free(text);
}

static void bytes_that_are_not_utf8_become_question_marks(void **state) {
    (void)state;
    static const char in[] = "a\xff"
                             "b\xe2\x82"
                             "c\xed\xa0\x80";
    json_t *j = sf_json_text(in, strlen(in));
    assert_string_equal(json_string_value(j), "a?b??c???");
    json_decref(j);
}

static void an_error_object_has_openais_fields(void **state) {
    (void)state;
    sf_api_error e;
    assert_int_equal(sf_api_fail(&e, "top_p", "invalid_value", "top_p is %d", 2), SF_INVALID);
    e.n_prompt_tokens = 40;
    e.n_ctx = 32;
    json_t *o = sf_api_error_json(&e);
    char *text = sf_json_dump(o);
    assert_string_equal(text,
                        "{\"message\":\"top_p is 2\",\"type\":\"invalid_request_error\",\"param\":\"top_p\","
                        "\"code\":\"invalid_value\",\"n_prompt_tokens\":40,\"n_ctx\":32}");
    free(text);
    json_decref(o);
}

static void an_error_from_below_names_its_field(void **state) {
    (void)state;
    sf_err below;
    sf_api_error e;
    sf_err_set(&below, SF_INVALID, (sf_loc){0}, SF_SRC, "min_tokens is 5, expected at most 4");
    sf_api_error_from(&below, &e);
    assert_string_equal(e.param, "min_tokens");
    assert_int_equal(e.status, 400);
    sf_err_set(&below, SF_NONDET, (sf_loc){0}, SF_SRC, "the probe failed");
    sf_api_error_from(&below, &e);
    assert_string_equal(e.reason, "determinism_unavailable");
    assert_string_equal(e.param, "");
    sf_err_set(&below, SF_FULL, (sf_loc){0}, SF_SRC, "the queue is full");
    sf_api_error_from(&below, &e);
    assert_int_equal(e.status, 429);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_fp32_comes_back),
        cmocka_unit_test(minus_infinity_has_a_number),
        cmocka_unit_test(int64_are_exact),
        cmocka_unit_test(bad_text_says_where_and_why),
        cmocka_unit_test(ten_thousand_nested_arrays_are_refused),
        cmocka_unit_test(bytes_that_are_not_utf8_become_question_marks),
        cmocka_unit_test(an_error_object_has_openais_fields),
        cmocka_unit_test(an_error_from_below_names_its_field),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
