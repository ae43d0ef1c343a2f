#include "cli/lines.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define PATH "/tmp/sf_lines_XXXXXX"

void *__real_memchr(const void *s, int c, size_t n);
void *__wrap_memchr(const void *s, int c, size_t n);

static size_t looked_through; /* bytes that memchr has seen */

void *__wrap_memchr(const void *s, int c, size_t n) {
    const char *at = __real_memchr(s, c, n);
    looked_through += at ? (size_t)(at - (const char *)s) + 1 : n;
    return (void *)(uintptr_t)at;
}

/* Opens a file of these bytes, which is gone when it is closed. */
static void open_bytes(sf_lines *l, const void *bytes, size_t len) {
    static char path[sizeof PATH]; /* l->name points here */
    sf_err err;
    memcpy(path, PATH, sizeof PATH);
    const int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, bytes, len), len);
    assert_int_equal(close(fd), 0);
    assert_int_equal(sf_lines_open(l, path, &err), SF_OK);
    assert_int_equal(unlink(path), 0);
}

static sf_lines_state next(sf_lines *l, const char **text, size_t *len) {
    sf_lines_state state = SF_LINES_AGAIN;
    sf_err err;
    assert_int_equal(sf_lines_next(l, true, &state, text, len, &err), SF_OK);
    return state;
}

static void expect_line(sf_lines *l, int64_t number, const char *want) {
    const char *text;
    size_t len;
    assert_int_equal(next(l, &text, &len), SF_LINES_LINE);
    assert_int_equal(len, strlen(want));
    assert_memory_equal(text, want, len);
    assert_int_equal(l->line, number);
}

static void expect_end(sf_lines *l) {
    const char *text;
    size_t len;
    assert_int_equal(next(l, &text, &len), SF_LINES_END);
    sf_lines_close(l);
}

static void blank_lines_count_but_do_not_come(void **state) {
    (void)state;
    static const char text[] = "\na\n \t\r\n\nb b\r\n\nlast";
    sf_lines l;
    open_bytes(&l, text, sizeof text - 1);
    expect_line(&l, 2, "a");
    expect_line(&l, 5, "b b\r");
    expect_line(&l, 7, "last");
    expect_end(&l);
}

static void an_empty_input_ends_at_once(void **state) {
    (void)state;
    sf_lines l;
    open_bytes(&l, "", 0);
    expect_end(&l);
}

/* Lines whose ends fall before, on and after the ends of the reads. */
static void lines_cross_the_reads_whole(void **state) {
    (void)state;
    static const size_t lens[] = {65535, 65536, 1, 65537, 200000, 65534, 3, 131071};
    sf_buf all = {0};
    for (size_t i = 0; i < sizeof lens / sizeof *lens; i++) {
        for (size_t k = 0; k < lens[i]; k++)
            assert_int_equal(sf_buf_append(&all, &"abcdefg"[(i + k) % 7], 1, NULL), SF_OK);
        assert_int_equal(sf_buf_append(&all, "\n", 1, NULL), SF_OK);
    }
    sf_lines l;
    open_bytes(&l, all.data, all.len);
    const char *text;
    size_t len, at = 0;
    for (size_t i = 0; i < sizeof lens / sizeof *lens; i++) {
        assert_int_equal(next(&l, &text, &len), SF_LINES_LINE);
        assert_int_equal(len, lens[i]);
        assert_memory_equal(text, all.data + at, len);
        at += len + 1;
    }
    expect_end(&l);
    sf_buf_fini(&all);
}

static void no_byte_is_looked_through_twice(void **state) {
    (void)state;
    const size_t len = (size_t)8 << 20; /* 128 reads */
    char *bytes = malloc(2 * len + 2);
    assert_non_null(bytes);
    memset(bytes, 'x', 2 * len + 1);
    bytes[len] = '\n';
    bytes[2 * len + 1] = '\n';
    sf_lines l;
    open_bytes(&l, bytes, 2 * len + 2);
    free(bytes);
    looked_through = 0;
    for (int i = 0; i < 2; i++) {
        const char *text;
        size_t got;
        assert_int_equal(next(&l, &text, &got), SF_LINES_LINE);
        assert_int_equal(got, len);
    }
    assert_int_equal(looked_through, 2 * len + 2);
    expect_end(&l);
}

static void a_line_over_the_limit_is_told_and_the_next_one_comes(void **state) {
    (void)state;
    const size_t len = SF_LINE_MAX + 1;
    char *bytes = malloc(len + 4);
    assert_non_null(bytes);
    memset(bytes, 'x', len);
    memcpy(bytes + len, "\nab\n", 4);
    sf_lines l;
    open_bytes(&l, bytes, len + 4);
    free(bytes);
    const char *text;
    size_t got;
    assert_int_equal(next(&l, &text, &got), SF_LINES_LONG);
    assert_int_equal(l.line, 1);
    expect_line(&l, 2, "ab");
    expect_end(&l);
}

static void what_a_pipe_has_not_sent_is_waited_for_or_not(void **state) {
    (void)state;
    int end[2];
    sf_err err;
    const char *text;
    size_t len;
    sf_lines_state got;
    assert_int_equal(pipe(end), 0);
    sf_lines l = {.fd = end[0], .name = "pipe"};
    assert_int_equal(write(end[1], "one\ntw", 6), 6);
    expect_line(&l, 1, "one");
    assert_int_equal(sf_lines_next(&l, false, &got, &text, &len, &err), SF_OK);
    assert_int_equal(got, SF_LINES_AGAIN);
    assert_int_equal(write(end[1], "o\n", 2), 2);
    expect_line(&l, 2, "two");
    assert_int_equal(write(end[1], "rest", 4), 4);
    assert_int_equal(close(end[1]), 0);
    expect_line(&l, 3, "rest");
    expect_end(&l);
}

static void a_read_error_names_the_file(void **state) {
    (void)state;
    sf_lines l;
    sf_err err = {0};
    sf_lines_state got;
    const char *text;
    size_t len;
    assert_int_equal(sf_lines_open(&l, "/", &err), SF_OK); /* a directory opens, and cannot be read */
    assert_int_equal(sf_lines_next(&l, true, &got, &text, &len, &err), SF_IO);
    assert_string_equal(err.user.file, "/");
    assert_non_null(strstr(err.msg, "cannot read"));
    sf_lines_close(&l);
}

static void lines_are_counted_as_they_come(void **state) {
    (void)state;
    static const struct {
        const char *text;
        uint64_t lines;
    } cases[] = {{"", 0}, {"\n \n", 0}, {"a", 1}, {"a\n", 1}, {"\na\r\n\n b\n\tc", 3}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char path[] = PATH;
        const int fd = mkstemp(path);
        assert_true(fd >= 0);
        const size_t len = strlen(cases[i].text);
        assert_int_equal(write(fd, cases[i].text, len), len);
        assert_int_equal(close(fd), 0);
        assert_int_equal(sf_lines_count(path), cases[i].lines);
        assert_int_equal(unlink(path), 0);
    }
    assert_int_equal(sf_lines_count("-"), 0);
    assert_int_equal(sf_lines_count("/nonexistent"), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blank_lines_count_but_do_not_come),
        cmocka_unit_test(an_empty_input_ends_at_once),
        cmocka_unit_test(lines_cross_the_reads_whole),
        cmocka_unit_test(no_byte_is_looked_through_twice),
        cmocka_unit_test(a_line_over_the_limit_is_told_and_the_next_one_comes),
        cmocka_unit_test(what_a_pipe_has_not_sent_is_waited_for_or_not),
        cmocka_unit_test(a_read_error_names_the_file),
        cmocka_unit_test(lines_are_counted_as_they_come),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
