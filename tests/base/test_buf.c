#include "base/buf.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

static void appended_bytes_stay_terminated(void **state) {
    (void)state;
    sf_buf b = {0};
    assert_int_equal(sf_buf_append(&b, "ab", 2, NULL), SF_OK);
    assert_int_equal(sf_buf_append(&b, "\0c", 2, NULL), SF_OK);
    assert_int_equal(b.len, 4);
    assert_memory_equal(b.data, "ab\0c", 5);
    sf_buf_fini(&b);
    assert_null(b.data);
    assert_int_equal(b.len, 0);
}

static void nothing_appended_is_still_a_string(void **state) {
    (void)state;
    sf_buf b = {0};
    assert_int_equal(sf_buf_append(&b, NULL, 0, NULL), SF_OK);
    assert_string_equal(b.data, "");
    sf_buf_fini(&b);
}

static void growth_keeps_the_contents(void **state) {
    (void)state;
    sf_buf b = {0};
    for (int i = 0; i < 10000; i++) {
        char c = (char)('a' + i % 26);
        assert_int_equal(sf_buf_append(&b, &c, 1, NULL), SF_OK);
    }
    assert_int_equal(b.len, 10000);
    for (int i = 0; i < 10000; i++)
        assert_int_equal(b.data[i], 'a' + i % 26);
    assert_int_equal(b.data[10000], 0);
    sf_buf_fini(&b);
}

static void printf_appends(void **state) {
    (void)state;
    sf_buf b = {0};
    assert_int_equal(sf_buf_printf(&b, NULL, "%d-", 42), SF_OK);
    assert_int_equal(sf_buf_printf(&b, NULL, "%s", "x"), SF_OK);
    assert_string_equal(b.data, "42-x");
    assert_int_equal(b.len, 4);
    sf_buf_fini(&b);
}

static void a_size_that_wraps_is_refused(void **state) {
    (void)state;
    sf_buf b = {0};
    sf_err err = {0};
    assert_int_equal(sf_buf_append(&b, "abc", 3, NULL), SF_OK);
    assert_int_equal(sf_buf_reserve(&b, SIZE_MAX, &err), SF_NOMEM);
    assert_int_equal(sf_buf_reserve(&b, SIZE_MAX - 3, &err), SF_NOMEM);
    assert_string_equal(b.data, "abc");
    sf_buf_fini(&b);
}

static void make_file(char path[64], size_t size) {
    snprintf(path, 64, "/tmp/sf_buf_XXXXXX");
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    for (size_t i = 0; i < size; i++) {
        unsigned char c = (unsigned char)(i * 7);
        assert_int_equal(write(fd, &c, 1), 1);
    }
    assert_int_equal(close(fd), 0);
}

static void a_file_is_read_whole_and_appended(void **state) {
    (void)state;
    char path[64];
    sf_buf b = {0};
    make_file(path, 70000); /* more than one read */
    assert_int_equal(sf_buf_append(&b, ">", 1, NULL), SF_OK);
    assert_int_equal(sf_buf_read_file(&b, path, 70000, NULL), SF_OK);
    assert_int_equal(b.len, 70001);
    for (size_t i = 0; i < 70000; i++)
        assert_int_equal((unsigned char)b.data[1 + i], (unsigned char)(i * 7));
    sf_buf_fini(&b);
    unlink(path);
}

static void a_file_over_the_limit_is_refused_and_leaves_the_buffer(void **state) {
    (void)state;
    char path[64];
    sf_buf b = {0};
    sf_err err = {0};
    make_file(path, 101);
    assert_int_equal(sf_buf_append(&b, "keep", 4, NULL), SF_OK);
    assert_int_equal(sf_buf_read_file(&b, path, 100, &err), SF_FULL);
    assert_string_equal(err.user.file, path);
    assert_string_equal(err.msg, "more than 100 bytes");
    assert_string_equal(b.data, "keep");
    assert_int_equal(b.len, 4);
    sf_buf_fini(&b);
    unlink(path);
}

static void a_missing_file_is_named(void **state) {
    (void)state;
    sf_buf b = {0};
    sf_err err = {0};
    char text[200];
    assert_int_equal(sf_buf_read_file(&b, "/nonexistent/f", 10, &err), SF_IO);
    assert_string_equal(sf_err_format(&err, text, sizeof text), "/nonexistent/f: No such file or directory");
    assert_int_equal(sf_buf_read_file(&b, "/tmp", 10, &err), SF_IO);
    assert_string_equal(err.msg, "Is a directory");
    sf_buf_fini(&b);
}

static void only_regular_files_are_read_where_asked(void **state) {
    (void)state;
    char path[64];
    sf_buf b = {0};
    sf_err err = {0};
    make_file(path, 10);
    assert_int_equal(sf_buf_read_regular(&b, path, 10, NULL), SF_OK);
    assert_int_equal(b.len, 10);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkfifo(path, 0600), 0);
    alarm(10); /* waiting for a writer is the failure */
    assert_int_equal(sf_buf_read_regular(&b, path, 10, &err), SF_IO);
    alarm(0);
    assert_string_equal(err.msg, "not a regular file");
    assert_string_equal(err.user.file, path);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(sf_buf_read_regular(&b, path, 10, &err), SF_IO);
    assert_string_equal(err.msg, "No such file or directory");
    assert_int_equal(sf_buf_read_regular(&b, "/tmp", 10, &err), SF_IO);
    assert_string_equal(err.msg, "Is a directory");
    assert_int_equal(b.len, 10);
    sf_buf_fini(&b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(appended_bytes_stay_terminated),
        cmocka_unit_test(nothing_appended_is_still_a_string),
        cmocka_unit_test(growth_keeps_the_contents),
        cmocka_unit_test(printf_appends),
        cmocka_unit_test(a_size_that_wraps_is_refused),
        cmocka_unit_test(a_file_is_read_whole_and_appended),
        cmocka_unit_test(a_file_over_the_limit_is_refused_and_leaves_the_buffer),
        cmocka_unit_test(a_missing_file_is_named),
        cmocka_unit_test(only_regular_files_are_read_where_asked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
