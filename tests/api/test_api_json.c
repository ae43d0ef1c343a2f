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
    } cases[] = {{"{\"a\":1,\"a\":2}", "the body is refused, column 10: duplicate"},
                 {"{\"a\":", "column"},
                 {"", "column"},
                 {"{\n\"a\"", "not valid JSON, line 2 column "},
                 {"{\"a\"", "not valid JSON, column "},
                 {"\xef\xbb\xbf{}", "begins with a byte order mark, expected none"},
                 {"\xff\xfe{", "begins with the byte order mark of UTF-16"},
                 {"{\"a\":1e400}", "real number overflow"},
                 {"{} {}", "end of file expected"},
                 {"[1,2]", "is an array of 2, expected a JSON object"},
                 {"7", "is 7, expected a JSON object"},
                 {"{\"a\":\"\xb2\xe2\"}", "unable to decode byte"},
                 {"{\"a\":\"\\ud800\"}", "invalid Unicode"},
                 {"{\"a\":\"\\u0000\"}", "the body is refused, column 13: \\u0000 is not allowed"}};
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

static void an_integer_out_of_64_bits_is_a_fault_of_its_field(void **state) {
    (void)state;
    static const struct {
        const char *text, *param, *says;
    } cases[] = {{"{\"a\":9223372036854775808}", "a", "a is an integer outside the 64-bit range"},
                 {"{\"b\":1,\"a\":-9223372036854775809}", "a", "a is an integer outside"},
                 {"{\"b\":[2],\"a\":{\"x\":[1,99999999999999999999]}}", "a", "a has an integer outside"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        sf_api_error e;
        assert_int_equal(parse(cases[i].text, &e), SF_INVALID);
        assert_string_equal(e.param, cases[i].param);
        assert_string_equal(e.reason, "invalid_value");
        assert_non_null(strstr(e.message, cases[i].says));
    }
    sf_api_error e;
    assert_int_equal(parse("[9223372036854775808]", &e), SF_INVALID); /* no field to name */
    assert_non_null(strstr(e.message, "an integer outside the 64-bit range"));
    assert_string_equal(e.reason, "invalid_json");
}

static void an_id_is_salvaged_from_what_is_refused(void **state) {
    (void)state;
    static const struct {
        const char *text, *wanted; /* NULL: nothing */
    } cases[] = {{"{\"id\":\"x\",\"seed\":9223372036854775808}", "\"x\""},
                 {"{\"seed\":9223372036854775808,\"id\":-7}", "-7"},
                 {"{\"id\":7,\"a\":1,\"a\":2}", "7"},
                 {"{\"id\":7,\"a\":\"\\u0000\"}", "7"},
                 {"{\"id\":9223372036854775808}", NULL},
                 {"{\"id\":9007199254740993,\"seed\":9223372036854775808}", NULL}, /* not exact as a real */
                 {"{\"id\":\"a\\u0000b\"}", NULL},
                 {"{\"id\":[1],\"a\":1,\"a\":1}", NULL},
                 {"{\"id\":7", NULL},
                 {"[7]", NULL}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        json_t *id = sf_json_salvage(cases[i].text, strlen(cases[i].text), "id");
        char *got = id ? json_dumps(id, JSON_ENCODE_ANY) : NULL;
        if (!cases[i].wanted) assert_null(got);
        if (cases[i].wanted) assert_string_equal(got, cases[i].wanted);
        free(got);
        json_decref(id);
    }
}

static void numbers_are_as_short_as_they_read_back(void **state) {
    (void)state;
    static const struct {
        double v;
        const char *text;
    } cases[] = {{0.1, "0.1"},   {1, "1"},         {1.0000001, "1.0000001"},
                 {2.01, "2.01"}, {1e-30, "1e-30"}, {1.0 / 3, "0.3333333333333333"},
                 {-2, "-2"}};
    char buf[32];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_string_equal(sf_json_number(cases[i].v, buf), cases[i].text);
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
        cmocka_unit_test(an_integer_out_of_64_bits_is_a_fault_of_its_field),
        cmocka_unit_test(an_id_is_salvaged_from_what_is_refused),
        cmocka_unit_test(numbers_are_as_short_as_they_read_back),
        cmocka_unit_test(ten_thousand_nested_arrays_are_refused),
        cmocka_unit_test(bytes_that_are_not_utf8_become_question_marks),
        cmocka_unit_test(an_error_object_has_openais_fields),
        cmocka_unit_test(an_error_from_below_names_its_field),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
