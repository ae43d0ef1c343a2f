/* The n-th allocation fails, for every n: the answer is SF_NOMEM, nothing leaks (run under ASan), and what is
 * made in the end is right. */
#include "gen_test.h"

#include "outdir.h"

void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t size);

static long countdown = -1; /* -1: off; 0: this one fails */

static bool fail_now(void) {
    return countdown >= 0 && countdown-- == 0;
}

void *__wrap_malloc(size_t size) {
    return fail_now() ? NULL : __real_malloc(size);
}
void *__wrap_calloc(size_t n, size_t size) {
    return fail_now() ? NULL : __real_calloc(n, size);
}
void *__wrap_realloc(void *p, size_t size) {
    return fail_now() ? NULL : __real_realloc(p, size);
}

/* Everything that generate does, but for writing. */
static sf_code emit(sf_arena *a, const char *model, const char *config, sf_files **files, sf_err *err) {
    sf_inputs *in = NULL;
    sf_planned *p = NULL;
    sf_code rc = sf_inputs_read(a, model, config, TEST_TEMPLATES, &in, err);
    if (rc == SF_OK) rc = sf_planned_build(a, in, &p, err);
    return rc == SF_OK ? sf_emit(a, p, files, err) : rc;
}

static void fail_each(const char *model, const char *config) {
    sf_arena *good = new_arena();
    sf_files *expected = NULL, *files = NULL;
    sf_err err = {0};
    assert_ok(emit(good, model, config, &expected, &err), &err); /* also libcrypto's own start */
    long n = 0;
    for (;; n++) {
        sf_arena *a = new_arena();
        countdown = n;
        sf_code rc = emit(a, model, config, &files, &err);
        bool failed = countdown < 0;
        countdown = -1;
        if (!failed) {
            assert_ok(rc, &err);
            assert_int_equal(files->n, expected->n);
            for (int i = 0; i < files->n; i++)
                assert_string_equal(files->files[i].text, expected->files[i].text);
            sf_arena_destroy(a);
            break;
        }
        /* libcrypto works around some failures of its own; then the result must be whole. */
        if (rc == SF_OK)
            assert_string_equal(files->files[files->n - 1].text, expected->files[expected->n - 1].text);
        else if (rc != SF_NOMEM)
            fail_msg("allocation %ld: %s", n, message(&err));
        sf_arena_destroy(a);
    }
    print_message("%ld allocations\n", n);
    assert_true(n > 500);
    sf_arena_destroy(good);
}

static void every_allocation_may_fail(void **state) {
    (void)state;
    fail_each(TINY_MODEL, TINY_CONFIG);
}

static void every_allocation_of_a_cuda_plan_may_fail(void **state) {
    (void)state;
    fail_each(SMOLLM, TINY_GPU);
}

static void every_allocation_of_a_check_may_fail(void **state) {
    (void)state;
    static const sf_files files = {2, {{"kernels/a.c", "int a;\n", 7}, {"LOCK", "l\n", 2}}};
    char dir[] = "/tmp/sf_gen_alloc_XXXXXX", command[64];
    assert_non_null(mkdtemp(dir));
    long n = 0;
    for (;; n++) {
        sf_arena *a = new_arena();
        sf_buf report = {0};
        sf_err err = {0};
        int changed = 0;
        countdown = n;
        sf_code rc = sf_outdir_write(a, dir, &files, &changed, &err);
        if (rc == SF_OK) rc = sf_outdir_check(a, dir, &files, &report, &err);
        bool failed = countdown < 0;
        countdown = -1;
        if (rc != (failed ? SF_NOMEM : SF_OK)) fail_msg("allocation %ld: %s", n, message(&err));
        sf_buf_fini(&report);
        sf_arena_destroy(a);
        if (!failed) break;
    }
    assert_true(n > 5);
    snprintf(command, sizeof command, "rm -rf '%s'", dir);
    assert_int_equal(system(command), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_allocation_may_fail),
        cmocka_unit_test(every_allocation_of_a_cuda_plan_may_fail),
        cmocka_unit_test(every_allocation_of_a_check_may_fail),
    };
    return cmocka_run_group_tests(tests, go_to_root, NULL);
}
