#include "gen_test.h"

#include "outdir.h"

#include <sys/stat.h>

static char scratch[64];

static int make_scratch(void **state) {
    (void)state;
    snprintf(scratch, sizeof scratch, "/tmp/sf_gen_out_XXXXXX");
    return go_to_root(state) || !mkdtemp(scratch);
}

static int remove_scratch(void **state) {
    (void)state;
    char command[128];
    snprintf(command, sizeof command, "rm -rf '%s'", scratch);
    return system(command);
}

static const char *at(const char *dir, const char *name) {
    static char paths[16][160];
    static int next;
    char *p = paths[next++ % 16];
    snprintf(p, sizeof paths[0], "%s/%s%s%s", scratch, dir, *name ? "/" : "", name);
    return p;
}

static const sf_files two_kernels = {
    3, {{"kernels/a.c", "int a;\n", 7}, {"kernels/b.c", "int b;\n", 7}, {"LOCK", "l\n", 2}}};

static int write_files(const char *dir, const sf_files *files) {
    sf_arena *a = new_arena();
    sf_err err = {0};
    int changed = -1;
    assert_ok(sf_outdir_write(a, at(dir, ""), files, &changed, &err), &err);
    sf_arena_destroy(a);
    return changed;
}

/* The report's text; the code is checked. */
static char *check_files(const char *dir, const sf_files *files, sf_code expected) {
    static char text[1024];
    sf_arena *a = new_arena();
    sf_buf report = {0};
    sf_err err = {0};
    sf_code rc = sf_outdir_check(a, at(dir, ""), files, &report, &err);
    snprintf(text, sizeof text, "%s", report.data ? report.data : "");
    sf_buf_fini(&report);
    sf_arena_destroy(a);
    if (rc != expected) fail_msg("%s: %s", sf_code_text(rc), message(&err));
    return text;
}

static bool exists(const char *path) {
    return access(path, F_OK) == 0;
}

static void put(const char *path, const char *text) {
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    fputs(text, f);
    assert_int_equal(fclose(f), 0);
}

static void folders_are_made(void **state) {
    (void)state;
    assert_int_equal(write_files("x/y/z", &two_kernels), 3);
    assert_true(exists(at("x/y/z", "kernels/b.c")));
    assert_false(exists(at("x/y/z", "kernels/b.c.tmp")));
    check_files("x/y/z", &two_kernels, SF_OK);
}

static void unchanged_files_are_left_alone(void **state) {
    (void)state;
    struct stat before, after;
    assert_int_equal(write_files("same", &two_kernels), 3);
    assert_int_equal(stat(at("same", "kernels/a.c"), &before), 0);
    put(at("same", "kernels/b.c"), "int c;\n"); /* as long, and different */
    assert_int_equal(write_files("same", &two_kernels), 1);
    assert_int_equal(stat(at("same", "kernels/a.c"), &after), 0);
    assert_int_equal(before.st_ino, after.st_ino);
    assert_int_equal(before.st_mtim.tv_nsec, after.st_mtim.tv_nsec);
    check_files("same", &two_kernels, SF_OK);
}

#define SHA "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static void stale_kernels_are_removed(void **state) {
    (void)state;
    write_files("stale", &two_kernels);
    put(at("stale", "kernels/old.c"), "int old;\n");
    put(at("stale", "kernels/notes.txt"), "mine\n");
    put(at("stale", "LOCK"), "steadfast-gen 1\noutput " SHA " kernels/a.c\noutput " SHA " kernels/old.c\n");
    assert_int_equal(write_files("stale", &two_kernels), 2); /* LOCK is another now */
    assert_false(exists(at("stale", "kernels/old.c")));
    assert_true(exists(at("stale", "kernels/notes.txt")));
    assert_true(exists(at("stale", "kernels/a.c")));
}

/* Sources that no LOCK lists are somebody's: also where its lines only look like them. */
static void a_strange_source_is_refused_and_nothing_is_written(void **state) {
    (void)state;
    static const char *const locks[] = {NULL,
                                        "",
                                        "output " SHA " kernels/mine.cu\n",
                                        "input  " SHA " kernels/mine.c\n",
                                        "output " SHA " kernels/mine.c.old\n",
                                        "output kernels/mine.c\n"};
    for (size_t i = 0; i < sizeof locks / sizeof *locks; i++) {
        char dir[32];
        snprintf(dir, sizeof dir, "mine%zu", i);
        assert_int_equal(mkdir(at(dir, ""), 0777), 0);
        assert_int_equal(mkdir(at(dir, "kernels"), 0777), 0);
        put(at(dir, "kernels/mine.c"), "int mine;\n");
        if (locks[i]) put(at(dir, "LOCK"), locks[i]);
        sf_arena *a = new_arena();
        sf_err err = {0};
        int changed = -1;
        assert_int_equal(sf_outdir_write(a, at(dir, ""), &two_kernels, &changed, &err), SF_INVALID);
        assert_non_null(strstr(message(&err), "kernels/mine.c: is in the way"));
        assert_int_equal(changed, -1);
        assert_true(exists(at(dir, "kernels/mine.c")));
        assert_false(exists(at(dir, "kernels/a.c")));
        sf_arena_destroy(a);
    }
}

static void check_leaves_the_right_text_beside_a_changed_file(void **state) {
    (void)state;
    char expected[400];
    write_files("drift", &two_kernels);
    put(at("drift", "kernels/a.c"), "int changed;\n");
    snprintf(expected, sizeof expected, "%s/drift/kernels/a.c differs, see %s/drift/kernels/a.c.new\n",
             scratch, scratch);
    assert_string_equal(check_files("drift", &two_kernels, SF_DRIFT), expected);
    sf_buf b = {0};
    sf_err err = {0};
    assert_ok(sf_buf_read_file(&b, at("drift", "kernels/a.c.new"), 100, &err), &err);
    assert_string_equal(b.data, "int a;\n");
    sf_buf_fini(&b);
    assert_ok(sf_buf_read_file(&b, at("drift", "kernels/a.c"), 100, &err), &err);
    assert_string_equal(b.data, "int changed;\n"); /* the file itself is not touched */
    sf_buf_fini(&b);
    write_files("drift", &two_kernels);
    check_files("drift", &two_kernels, SF_OK);
    assert_false(exists(at("drift", "kernels/a.c.new")));
}

static void check_notices_missing_and_extra_files(void **state) {
    (void)state;
    write_files("holes", &two_kernels);
    assert_int_equal(unlink(at("holes", "LOCK")), 0);
    put(at("holes", "kernels/extra.cu"), "int extra;\n");
    const char *report = check_files("holes", &two_kernels, SF_DRIFT);
    assert_non_null(strstr(report, "holes/LOCK is missing, see "));
    assert_non_null(strstr(report, "holes/kernels/extra.cu is not in the plan\n"));
    assert_true(exists(at("holes", "LOCK.new")));
    assert_true(exists(at("holes", "kernels/extra.cu")));
    assert_non_null(strstr(check_files("nowhere", &two_kernels, SF_DRIFT), "nowhere/kernels/a.c is missing"));
}

static void a_folder_that_cannot_be_made_is_named(void **state) {
    (void)state;
    sf_arena *a = new_arena();
    sf_err err = {0};
    int changed = -1;
    put(at("file", ""), "not a folder\n");
    assert_int_equal(sf_outdir_write(a, at("file", "out"), &two_kernels, &changed, &err), SF_IO);
    assert_non_null(strstr(message(&err), "file/out"));
    assert_int_equal(changed, -1);
    sf_arena_destroy(a);
}

static void a_full_disk_is_an_error_and_leaves_the_old_file(void **state) {
    (void)state;
    sf_arena *a = new_arena();
    sf_err err = {0};
    int changed = -1;
    write_files("full", &two_kernels);
    put(at("full", "LOCK"), "old\n");
    assert_int_equal(symlink("/dev/full", at("full", "LOCK.tmp")), 0);
    assert_int_equal(sf_outdir_write(a, at("full", ""), &two_kernels, &changed, &err), SF_IO);
    assert_non_null(strstr(message(&err), "LOCK.tmp: No space left on device"));
    sf_buf b = {0};
    assert_ok(sf_buf_read_file(&b, at("full", "LOCK"), 100, &err), &err);
    assert_string_equal(b.data, "old\n");
    sf_buf_fini(&b);
    sf_arena_destroy(a);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(folders_are_made),
        cmocka_unit_test(unchanged_files_are_left_alone),
        cmocka_unit_test(stale_kernels_are_removed),
        cmocka_unit_test(a_strange_source_is_refused_and_nothing_is_written),
        cmocka_unit_test(check_leaves_the_right_text_beside_a_changed_file),
        cmocka_unit_test(check_notices_missing_and_extra_files),
        cmocka_unit_test(a_folder_that_cannot_be_made_is_named),
        cmocka_unit_test(a_full_disk_is_an_error_and_leaves_the_old_file),
    };
    return cmocka_run_group_tests(tests, make_scratch, remove_scratch);
}
