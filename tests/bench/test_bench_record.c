#include "bench/record.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

/* The record after one event whose determinism object has a digest of n bytes. */
static sf_bench_record with_digest(int n) {
    char digest[400], data[512];
    sf_bench_record r = {0};
    sf_err err;
    memset(digest, 'd', sizeof digest);
    snprintf(data, sizeof data, "{\"determinism\": {\"class\": \"pinned\", \"digest\": \"%.*s\"}}", n,
             digest);
    assert_int_equal(sf_bench_record_event(&r, data, strlen(data), 1, &err), SF_OK);
    assert_true(r.has_determinism && r.pinned);
    return r;
}

static void a_digest_is_taken_whole_or_not_at_all(void **state) {
    (void)state;
    assert_int_equal(strlen(with_digest(SF_BENCH_DIGEST_MAX - 1).digest), SF_BENCH_DIGEST_MAX - 1);
    assert_string_equal(with_digest(SF_BENCH_DIGEST_MAX).digest, "");
}

static void an_error_is_one_line_without_controls(void **state) {
    (void)state;
    sf_bench_record r = {0};
    sf_bench_record_fail(&r, "a\x1b[2J\nb\x7f\xc2\x9b"
                             "c\xc3\xa4");
    assert_string_equal(r.error, "a [2J b   c\xc3\xa4");
}

static void the_text_of_a_refusal_is_its_message_or_its_beginning(void **state) {
    (void)state;
    static const char json[] = "{\"error\": {\"message\": \"no\\u001b[2J\"}}";
    char body[300], text[400];
    assert_string_equal(sf_bench_error_text(json, sizeof json - 1, text, sizeof text), "no [2J");
    memset(body, 'x', sizeof body);
    body[1] = '\n';
    sf_bench_error_text(body, sizeof body, text, sizeof text);
    assert_int_equal(strlen(text), 200);
    assert_memory_equal(text, "x x", 3);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_digest_is_taken_whole_or_not_at_all),
        cmocka_unit_test(an_error_is_one_line_without_controls),
        cmocka_unit_test(the_text_of_a_refusal_is_its_message_or_its_beginning),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
