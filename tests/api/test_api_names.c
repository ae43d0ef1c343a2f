/* Other names of request fields, and names that are none. */
#include "api/fields.h"

#include "api/json.h"
#include "fake_text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Reads a line of a run; e says what was wrong. */
static sf_code read_line(const char *json, sf_api_request *r, sf_api_error *e) {
    *e = (sf_api_error){0};
    return fake_read(&fake_model, SF_API_RUN, json, r, e);
}

static void deterministic_is_another_name_of_is_deterministic(void **state) {
    (void)state;
    static const struct {
        const char *fields;
        bool value;
    } good[] = {{"\"deterministic\": true", true},
                {"\"deterministic\": false", false},
                {"\"deterministic\": true, \"is_deterministic\": true", true},
                {"\"deterministic\": null, \"is_deterministic\": true", true},
                {"\"is_deterministic\": null, \"deterministic\": true", true}};
    sf_api_request r;
    sf_api_error e;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        char json[120];
        snprintf(json, sizeof json, "{\"prompt\": \"p\", %s}", good[i].fields);
        assert_int_equal(read_line(json, &r, &e), SF_OK);
        assert_int_equal(r.params.deterministic, good[i].value);
        assert_null(r.ignored);
        sf_api_request_fini(&r);
    }
    assert_int_equal(read_line("{\"prompt\": \"p\", \"deterministic\": 1}", &r, &e), SF_INVALID);
    assert_string_equal(e.message, "deterministic is 1, expected true or false");
    assert_string_equal(e.param, "deterministic");
    sf_api_request_fini(&r);
}

static void two_names_of_a_field_that_differ_are_refused(void **state) {
    (void)state;
    static const char *const bad[][2] = {
        {"{\"prompt\": \"p\", \"deterministic\": true, \"is_deterministic\": false}", "deterministic"},
        {"{\"prompt\": \"p\", \"is_deterministic\": true, \"deterministic\": false}", "deterministic"},
        {"{\"prompt\": \"p\", \"custom_id\": \"a\", \"id\": \"b\"}", "custom_id"}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        sf_api_request r;
        sf_api_error e;
        assert_int_equal(read_line(bad[i][0], &r, &e), SF_INVALID);
        assert_string_equal(e.param, bad[i][1]);
        assert_non_null(strstr(e.message, "two names of one field and differ"));
        sf_api_request_fini(&r);
    }
}

static void custom_id_is_another_name_of_id(void **state) {
    (void)state;
    sf_api_request r;
    sf_api_error e;
    assert_int_equal(read_line("{\"prompt\": \"p\", \"custom_id\": \"a\"}", &r, &e), SF_OK);
    assert_string_equal(json_string_value(r.id), "a");
    sf_api_request_fini(&r);
    const char *chat = "{\"messages\": [], \"custom_id\": \"a\"}"; /* a server's request has no id */
    assert_int_equal(fake_read(&fake_model, SF_API_CHAT, chat, &r, &e), SF_OK);
    assert_string_equal(r.ignored, "custom_id");
    sf_api_request_fini(&r);
}

static void a_batch_wrapper_is_refused_by_name(void **state) {
    (void)state;
    sf_api_request r;
    sf_api_error e;
    assert_int_equal(read_line("{\"custom_id\": \"a\", \"method\": \"POST\", \"url\": "
                               "\"/v1/completions\", \"body\": {\"prompt\": \"p\"}}",
                               &r, &e),
                     SF_INVALID);
    assert_string_equal(e.param, "body");
    assert_non_null(strstr(e.message, "body: batch wrapper lines"));
    sf_api_request_fini(&r);
}

static void a_slip_in_a_name_gets_a_suggestion(void **state) {
    (void)state;
    assert_string_equal(sf_api_field_near("temprature", SF_API_RUN), "temperature");
    assert_string_equal(sf_api_field_near("determinstic", SF_API_RUN), "deterministic");
    assert_string_equal(sf_api_field_near("message", SF_API_CHAT), "messages");
    assert_null(sf_api_field_near("message", SF_API_COMPLETION)); /* no field of those */
    assert_null(sf_api_field_near("colour", SF_API_RUN));
    sf_api_request r;
    sf_api_error e;
    assert_int_equal(read_line("{\"promt\": \"p\"}", &r, &e), SF_INVALID);
    assert_non_null(strstr(e.message, "is missing (promt is unknown, did you mean prompt?)"));
    sf_api_request_fini(&r);
    sf_api_model m = fake_model;
    m.strict = true;
    assert_int_equal(fake_read(&m, SF_API_RUN, "{\"prompt\": \"p\", \"topp\": 1}", &r, &e), SF_INVALID);
    assert_string_equal(e.message, "topp: unknown field, did you mean top_p?");
    sf_api_request_fini(&r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(deterministic_is_another_name_of_is_deterministic),
        cmocka_unit_test(two_names_of_a_field_that_differ_are_refused),
        cmocka_unit_test(custom_id_is_another_name_of_id),
        cmocka_unit_test(a_batch_wrapper_is_refused_by_name),
        cmocka_unit_test(a_slip_in_a_name_gets_a_suggestion),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
