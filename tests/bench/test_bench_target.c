#include "bench/target.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static void urls_are_read(void **state) {
    (void)state;
    static const struct {
        const char *url, *host, *prefix;
        int port;
        bool tls;
    } good[] = {
        {"http://a", "a", "", 80, false},
        {"https://a.b/", "a.b", "", 443, true},
        {"http://127.0.0.1:8000/v1", "127.0.0.1", "", 8000, false},
        {"http://[::1]:9/x/v1/", "::1", "/x", 9, false},
        {"https://h:1/deep/path//", "h", "/deep/path", 1, true},
        {"http://h/xv1", "h", "/xv1", 80, false},
    };
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        sf_bench_target t = {0};
        sf_err err = {0};
        if (sf_bench_target_parse(&t, good[i].url, &err) != SF_OK) fail_msg("%s", err.msg);
        assert_string_equal(t.host, good[i].host);
        assert_string_equal(t.prefix, good[i].prefix);
        assert_int_equal(t.port, good[i].port);
        assert_int_equal(t.tls, good[i].tls);
    }
}

static void other_urls_are_refused(void **state) {
    (void)state;
    static const char *const bad[] = {
        "",           "x",           "localhost:8000", "ftp://a",         "http://",
        "http:///x",  "http://a?b",  "http://u:p@a",   "http://a#f",      "http://a:99999",
        "http://a b", "http://[::1", "http://a:x/",    "http://a\r\nB: c"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        sf_bench_target t = {0};
        sf_err err;
        if (sf_bench_target_parse(&t, bad[i], &err) == SF_OK) fail_msg("\"%s\" was taken", bad[i]);
        assert_int_equal(t.port, 0);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(urls_are_read),
        cmocka_unit_test(other_urls_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
