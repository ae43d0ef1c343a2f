#include "sched/fake.h"

#include <stdarg.h>
#include <setjmp.h>
#include <cmocka.h>
#include <math.h>
#include <string.h>

static sf_params base(void) {
    sf_params p;
    sf_params_default(&p);
    return p;
}

static void refused(sf_params p, const char *message) {
    static const int32_t prompt[] = {2, 3};
    sf_request *r = NULL;
    sf_err err;
    assert_int_equal(sf_request_create(&p, prompt, 2, &r, &err), SF_INVALID);
    if (!strstr(err.msg, message)) fail_msg("'%s' does not say '%s'", err.msg, message);
    assert_null(r);
}

#define REFUSED(field, value, message)                                                                       \
    do {                                                                                                     \
        sf_params p_ = base();                                                                               \
        p_.field = (value);                                                                                  \
        refused(p_, message);                                                                                \
    } while (0)

static void a_wrong_parameter_is_refused_by_name(void **state) {
    (void)state;
    REFUSED(temperature, -0.5f, "temperature is -0.5");
    REFUSED(temperature, NAN, "temperature is nan");
    REFUSED(temperature, INFINITY, "temperature is inf");
    REFUSED(top_k, -1, "top_k is -1");
    REFUSED(top_p, 2.0f, "top_p is 2, expected (0, 1]");
    REFUSED(top_p, 0.0f, "top_p is 0");
    REFUSED(min_p, 1.5f, "min_p is 1.5");
    REFUSED(repetition_penalty, 0.0f, "repetition_penalty is 0");
    REFUSED(frequency_penalty, 2.5f, "frequency_penalty is 2.5");
    REFUSED(presence_penalty, NAN, "presence_penalty is nan");
    REFUSED(n, 0, "n is 0");
    REFUSED(n, SF_N_MAX + 1, "n is 65");
    REFUSED(max_tokens, -2, "max_tokens is -2");
    REFUSED(min_tokens, -1, "min_tokens is -1");
    REFUSED(logprobs, SF_TOP_MAX + 1, "logprobs is 21");
    REFUSED(prompt_logprobs, -2, "prompt_logprobs is -2");
    REFUSED(n_stop, SF_STOP_STRINGS_MAX + 1, "stop has 17");
    REFUSED(n_stop_ids, SF_STOP_MAX, "stop_token_ids has 64");
}

static void min_tokens_over_max_tokens_is_refused(void **state) {
    (void)state;
    sf_params p = base();
    p.max_tokens = 3;
    p.min_tokens = 4;
    refused(p, "min_tokens is 4, expected at most max_tokens (3)");
}

static void a_bias_that_is_not_a_number_is_refused(void **state) {
    (void)state;
    sf_params p = base();
    p.n_bias = 1;
    p.bias = (sf_bias[]){{7, INFINITY}};
    refused(p, "token 7 is inf");
}

static void everything_is_copied(void **state) {
    (void)state;
    int32_t prompt[] = {2, 3, 4}, ids[] = {9};
    char stop[] = "ab";
    const char *stops[] = {stop};
    sf_bias bias[] = {{5, 1.0f}};
    sf_params p = base();
    p.n_stop = p.n_stop_ids = p.n_bias = 1;
    p.stop = stops;
    p.stop_ids = ids;
    p.bias = bias;
    sf_request *r = fake_request(&p, prompt, 3);
    memset(prompt, 0, sizeof prompt);
    memset(ids, 0, sizeof ids);
    memset(stop, 'x', 2);
    memset(bias, 0, sizeof bias);
    stops[0] = NULL;
    int n;
    assert_memory_equal(sf_request_prompt(r, &n), ((int32_t[]){2, 3, 4}), sizeof prompt);
    assert_int_equal(n, 3);
    const sf_params *got = sf_request_params(r);
    assert_string_equal(got->stop[0], "ab");
    assert_int_equal(got->stop_ids[0], 9);
    assert_int_equal(got->bias[0].token, 5);
    sf_request_destroy(r);
}

static void a_new_request_has_no_answer_yet(void **state) {
    (void)state;
    static const int32_t prompt[] = {2};
    sf_params p = base();
    p.n = 2;
    p.prompt_logprobs = 1;
    sf_request *r = fake_request(&p, prompt, 1);
    for (int i = 0; i < 2; i++) {
        sf_choice c;
        sf_request_choice(r, i, &c);
        assert_int_equal(c.n_tokens, 0);
        assert_string_equal(c.text, "");
        assert_int_equal(c.finish, SF_FINISH_NONE);
    }
    assert_false(sf_request_done(r));
    assert_null(sf_request_error(r));
    assert_null(sf_request_prompt_logprobs(r));
    sf_request_set_user(r, &p);
    assert_ptr_equal(sf_request_user(r), &p);
    sf_request_destroy(r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_wrong_parameter_is_refused_by_name),
        cmocka_unit_test(min_tokens_over_max_tokens_is_refused),
        cmocka_unit_test(a_bias_that_is_not_a_number_is_refused),
        cmocka_unit_test(everything_is_copied),
        cmocka_unit_test(a_new_request_has_no_answer_yet),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
