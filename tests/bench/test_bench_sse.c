#include "bench/sse.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <stdio.h>

typedef struct taken {
    char text[512]; /* the events' data, each in brackets */
    int most;       /* events that are wanted */
} taken;

static bool take(void *ctx, const char *data, size_t len) {
    taken *t = ctx;
    assert_int_equal(strlen(data), len);
    const size_t used = strlen(t->text), room = sizeof t->text - used;
    assert_in_range(snprintf(t->text + used, room, "[%s]", data), 2, room - 1);
    return --t->most != 0;
}

/* Fed in pieces of `piece` bytes, from memory of that size: reading past it would be seen. */
static sf_code feed(const char *text, size_t piece, taken *t) {
    sf_bench_sse s = {0};
    sf_err err;
    sf_code rc = SF_OK;
    const size_t len = strlen(text);
    for (size_t at = 0; rc == SF_OK && at < len; at += piece) {
        const size_t n = len - at < piece ? len - at : piece;
        char *bytes = malloc(n);
        assert_non_null(bytes);
        memcpy(bytes, text + at, n);
        rc = sf_bench_sse_feed(&s, bytes, n, take, t, &err);
        free(bytes);
    }
    if (rc == SF_OK) rc = sf_bench_sse_end(&s, take, t, &err);
    sf_bench_sse_fini(&s);
    return rc;
}

static void assert_events(const char *text, const char *expected) {
    for (size_t piece = 1; piece <= strlen(text) + 1; piece++) {
        taken t = {.most = -1};
        assert_int_equal(feed(text, piece, &t), SF_OK);
        assert_string_equal(t.text, expected);
    }
}

static void events_are_the_same_however_they_are_cut(void **state) {
    (void)state;
    assert_events("data: a\n\ndata: b\n\n", "[a][b]");
    assert_events("data: a\r\n\r\ndata: b\r\n\r\n", "[a][b]");
    assert_events("data: a\r\rdata: b\r\r", "[a][b]");
    assert_events("data: \xf0\x9f\x98\x80\n\n", "[\xf0\x9f\x98\x80]");
}

static void what_is_no_data_is_passed_over(void **state) {
    (void)state;
    assert_events(": ping\n\n\n\ndata: a\n\n: x\n\n", "[a]");
    assert_events("event: e\nid: 7\nretry: 10\ndata: a\n\n", "[a]");
    assert_events("event: e\n\n", "");
    assert_events("dat: x\n\ndatax: y\n\n", "");
    assert_events("\xef\xbb\xbf"
                  "data: a\n\n",
                  "[a]");
    assert_events("", "");
}

static void data_of_several_lines_is_one_event(void **state) {
    (void)state;
    assert_events("data: a\ndata: b\n: c\ndata:c\n\n", "[a\nb\nc]");
    assert_events("data\n\n", "[]");
    assert_events("data:  two blanks\n\n", "[ two blanks]");
}

static void the_last_event_needs_no_blank_line(void **state) {
    (void)state;
    assert_events("data: a\n\ndata: b", "[a][b]");
    assert_events("data: a\n", "[a]");
}

static void it_ends_when_no_more_is_wanted(void **state) {
    (void)state;
    taken t = {.most = 1};
    assert_int_equal(feed("data: a\n\ndata: b\n\n", 64, &t), SF_CANCELLED);
    assert_string_equal(t.text, "[a]");
}

static void an_endless_event_is_an_error(void **state) {
    (void)state;
    static const char *const heads[] = {"data: ", "data: x\ndata: "};
    const size_t n = (size_t)1 << 20;
    char *bytes = malloc(n);
    assert_non_null(bytes);
    for (int h = 0; h < 2; h++) {
        sf_bench_sse s = {0};
        taken t = {.most = -1};
        sf_err err;
        sf_code rc = sf_bench_sse_feed(&s, heads[h], strlen(heads[h]), take, &t, &err);
        memset(bytes, 'x', n);
        for (size_t i = 0; h && i < n; i += 1024)
            memcpy(bytes + i, "\ndata:", 6);
        for (int i = 0; rc == SF_OK && i < 1000; i++)
            rc = sf_bench_sse_feed(&s, bytes, n, take, &t, &err);
        assert_int_equal(rc, SF_FULL);
        assert_string_equal(t.text, "");
        sf_bench_sse_fini(&s);
    }
    free(bytes);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(events_are_the_same_however_they_are_cut),
        cmocka_unit_test(what_is_no_data_is_passed_over),
        cmocka_unit_test(data_of_several_lines_is_one_event),
        cmocka_unit_test(the_last_event_needs_no_blank_line),
        cmocka_unit_test(it_ends_when_no_more_is_wanted),
        cmocka_unit_test(an_endless_event_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
