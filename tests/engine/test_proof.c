#include "engine/proof.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char dir[] = "/tmp/sf_proof_XXXXXX";

static int make_dir(void **state) {
    (void)state;
    memcpy(dir + sizeof dir - 7, "XXXXXX", 6);
    return mkdtemp(dir) ? 0 : -1;
}

/* Calls fn for each file in the directory; returns how many there are. */
static int each_file(void (*fn)(const char *path)) {
    char path[512];
    int n = 0;
    DIR *d = opendir(dir);
    assert_non_null(d);
    for (struct dirent *e; (e = readdir(d));) {
        if (e->d_name[0] == '.') continue;
        snprintf(path, sizeof path, "%s/%s", dir, e->d_name);
        fn(path);
        n++;
    }
    closedir(d);
    return n;
}

static void remove_file(const char *path) {
    assert_int_equal(unlink(path), 0);
}

static int remove_dir(void **state) {
    (void)state;
    (void)each_file(remove_file);
    return rmdir(dir);
}

static void truncate_file(const char *path) {
    assert_int_equal(truncate(path, 20), 0);
}

static void what_was_kept_is_known_and_nothing_else(void **state) {
    (void)state;
    assert_false(sf_proof_known(dir, "sf-1", "gpu a"));
    assert_true(sf_proof_keep(dir, "sf-1", "gpu a"));
    assert_true(sf_proof_known(dir, "sf-1", "gpu a"));
    assert_false(sf_proof_known(dir, "sf-2", "gpu a"));
    assert_false(sf_proof_known(dir, "sf-1", "gpu b"));
    assert_true(sf_proof_keep(dir, "sf-1", "gpu a")); /* again, over the old one */
    assert_int_equal(each_file(remove_file), 1);
    assert_false(sf_proof_known(dir, "sf-1", "gpu a"));
}

static void a_damaged_note_proves_nothing(void **state) {
    (void)state;
    assert_true(sf_proof_keep(dir, "sf-1", "gpu a"));
    assert_int_equal(each_file(truncate_file), 1);
    assert_false(sf_proof_known(dir, "sf-1", "gpu a"));
}

static void a_folder_that_cannot_be_made_keeps_nothing(void **state) {
    (void)state;
    assert_false(sf_proof_keep("/dev/null/x", "sf-1", "gpu a"));
    assert_false(sf_proof_known("/dev/null/x", "sf-1", "gpu a"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_was_kept_is_known_and_nothing_else, make_dir, remove_dir),
        cmocka_unit_test_setup_teardown(a_damaged_note_proves_nothing, make_dir, remove_dir),
        cmocka_unit_test(a_folder_that_cannot_be_made_keeps_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
