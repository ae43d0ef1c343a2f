#include "fake_text.h"

#include "api/audit.h"
#include "api/json.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define REQUEST "\"request\": {\"prompt\": \"ab\", \"n\": 2}"

static json_t *parsed(const char *json) {
    json_t *body = NULL;
    sf_api_error e;
    assert_int_equal(sf_json_parse(json, strlen(json), "body", &body, &e), SF_OK);
    return body;
}

/* The body is refused with these words, and the answer in it is still the body's alone. */
static void expect_refused(const char *json, const char *param, const char *says) {
    json_t *body = parsed(json), *said = json_object_get(body, "answer"), *answer = NULL;
    sf_api_request r = {0};
    sf_api_error e = {0};
    assert_int_equal(sf_api_audit_read(&fake_model, body, &r, &answer, &e), SF_INVALID);
    assert_string_equal(e.param, param);
    assert_non_null(strstr(e.message, says));
    assert_null(answer);
    if (said) assert_int_equal(said->refcount, 1);
    sf_api_request_fini(&r);
    json_decref(body);
}

static void a_refused_body_leaves_no_answer(void **state) {
    (void)state;
    expect_refused("{\"answer\": {}}", "request", "request is missing");
    expect_refused("{" REQUEST "}", "answer", "answer is missing");
    expect_refused("{" REQUEST ", \"answer\": 1}", "answer", "expected an object");
    expect_refused("{\"request\": {\"prompt\": 1}, \"answer\": {}}", "prompt", "prompt");
    expect_refused("{\"request\": {\"prompt\": \"ab\", \"n\": 0}, \"answer\": {}}", "n", "n is 0");
    expect_refused("{" REQUEST ", \"answer\": {\"token_ids\": [1]}}", "answer",
                   "1 choices, the request asks for 2");
    expect_refused("{" REQUEST ", \"answer\": {\"choices\": [{\"token_ids\": [1]}, {}]}}", "answer",
                   "choice 1 of answer has no token_ids");
}

static void the_answer_outlives_the_body(void **state) {
    (void)state;
    json_t *body =
        parsed("{" REQUEST ", \"answer\": {\"choices\": [{\"token_ids\": [1]}, {\"token_ids\": []}]}}");
    json_t *answer = NULL;
    sf_api_request r = {0};
    sf_api_error e = {0};
    assert_int_equal(sf_api_audit_read(&fake_model, body, &r, &answer, &e), SF_OK);
    json_decref(body);
    assert_int_equal(json_array_size(json_object_get(answer, "choices")), 2);
    assert_true(r.params.deterministic);
    json_decref(answer);
    sf_api_request_fini(&r);
}

static int64_t seed_of(const char *request, const char *determinism) {
    char text[256];
    snprintf(text, sizeof text, "{\"request\": {%s}, \"answer\": {\"token_ids\": [1]%s}}", request,
             determinism);
    json_t *body = parsed(text), *answer = NULL;
    sf_api_request r = {0};
    sf_api_error e = {0};
    assert_int_equal(sf_api_audit_read(&fake_model, body, &r, &answer, &e), SF_OK);
    const int64_t seed = r.params.seed;
    json_decref(answer);
    json_decref(body);
    sf_api_request_fini(&r);
    return seed;
}

static void the_seed_is_the_requests_or_the_reported_one(void **state) {
    (void)state;
    assert_int_equal(seed_of("\"prompt\": \"ab\"", ", \"determinism\": {\"seed\": -9}"), -9);
    assert_int_equal(seed_of("\"prompt\": \"ab\", \"seed\": 3", ", \"determinism\": {\"seed\": -9}"), 3);
    assert_int_equal(seed_of("\"prompt\": \"ab\"", ""), fake_model.seed);
    expect_refused("{\"request\": {\"prompt\": \"ab\"}, \"answer\": {\"token_ids\": [1], \"determinism\": "
                   "{\"seed\": 1.5}}}",
                   "answer", "determinism.seed is 1.5");
}

static void what_is_no_token_id_is_named(void **state) {
    (void)state;
    static const char *const bad[] = {"-1", "2147483648", "999999", "\"a\"", "1.0"};
    const int32_t prompt[] = {97};
    sf_params params;
    sf_params_default(&params);
    params.deterministic = true;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        sf_request *r = NULL;
        sf_err below;
        sf_api_error e = {0};
        assert_int_equal(sf_request_create(&params, prompt, 1, &r, &below), SF_OK);
        json_t *ids = json_array(), *answer = json_object();
        json_array_append_new(ids, json_integer(5));
        json_array_append_new(ids, json_loads(bad[i], JSON_DECODE_ANY, NULL));
        json_object_set_new(answer, "token_ids", ids);
        assert_int_equal(sf_api_audit_expect(&fake_model, answer, 0, r, &e), SF_INVALID);
        assert_non_null(strstr(e.message, "token_ids[1] is "));
        json_decref(answer);
        sf_request_destroy(r);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_refused_body_leaves_no_answer),
                                       cmocka_unit_test(the_answer_outlives_the_body),
                                       cmocka_unit_test(the_seed_is_the_requests_or_the_reported_one),
                                       cmocka_unit_test(what_is_no_token_id_is_named)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
