#include "base/cache_dir.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void expect(const char *xdg, const char *home, const char *want) {
    char dir[64] = "";
    assert_int_equal(xdg ? setenv("XDG_CACHE_HOME", xdg, 1) : unsetenv("XDG_CACHE_HOME"), 0);
    assert_int_equal(home ? setenv("HOME", home, 1) : unsetenv("HOME"), 0);
    assert_int_equal(sf_cache_dir("x", dir, sizeof dir), want != NULL);
    if (want) assert_string_equal(dir, want);
}

static void the_xdg_variable_comes_before_home(void **state) {
    (void)state;
    expect("/c", "/h", "/c/steadfast/x");
    expect(NULL, "/h", "/h/.cache/steadfast/x");
    expect("", "/h", "/h/.cache/steadfast/x");
}

static void a_relative_xdg_variable_is_ignored(void **state) {
    (void)state;
    expect("c", "/h", "/h/.cache/steadfast/x");
    expect("c", NULL, NULL);
}

static void a_path_too_long_is_no_path(void **state) {
    (void)state;
    expect("/0123456789012345678901234567890123456789012345678901234567890123456789", "/h", NULL);
    expect(NULL, "", NULL);
}

static void directories_are_made_for_the_user_alone(void **state) {
    (void)state;
    char root[] = "/tmp/sf_cache_XXXXXX", path[64];
    struct stat st;
    assert_non_null(mkdtemp(root));
    snprintf(path, sizeof path, "%s/a/b", root);
    assert_true(sf_make_dirs(path));
    assert_true(sf_make_dirs(path)); /* again */
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0700);
    assert_int_equal(rmdir(path), 0);
    snprintf(path, sizeof path, "%s/a", root);
    assert_int_equal(rmdir(path), 0);
    snprintf(path, sizeof path, "/dev/null/a");
    assert_false(sf_make_dirs(path));
    assert_string_equal(path, "/dev/null/a");
    assert_int_equal(rmdir(root), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_xdg_variable_comes_before_home),
        cmocka_unit_test(a_relative_xdg_variable_is_ignored),
        cmocka_unit_test(a_path_too_long_is_no_path),
        cmocka_unit_test(directories_are_made_for_the_user_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
