/* The committed pairs are what the generator gives today; tests/golden/refresh renews them. */
#include "gen_test.h"

#include "outdir.h"

#include <jansson.h>

static void no_drift(const char *model, const char *config, const char *dir) {
    sf_arena *a = new_arena();
    sf_err err = {0};
    sf_files *files = NULL;
    sf_buf report = {0};
    assert_ok(sf_emit(a, plan_of(a, model, config, "templates"), &files, &err), &err);
    assert_true(files->n > 3);
    sf_code rc = sf_outdir_check(a, dir, files, &report, &err);
    if (rc != SF_OK) print_error("%s", report.data ? report.data : "");
    sf_buf_fini(&report);
    if (rc != SF_OK) fail_msg("%s; run tests/golden/refresh and commit its result", message(&err));
    sf_arena_destroy(a);
}

static void smollm2_on_cpu_has_no_drift(void **state) {
    (void)state;
    no_drift("models/smollm2-135m.yaml", "build-configs/cpu.yaml", "tests/golden/smollm2-135m-cpu");
}

static void tiny_has_no_drift(void **state) {
    (void)state;
    no_drift(TINY_MODEL, TINY_CONFIG, "tests/golden/tiny-tiny-cpu");
}

/* Every route of plan.json names a kernel of its list, and each kernel's file is there. */
static void plan_json_is_whole(const char *dir) {
    char path[200];
    json_error_t e;
    snprintf(path, sizeof path, "%s/plan.json", dir);
    json_t *plan = json_load_file(path, JSON_REJECT_DUPLICATES, &e), *item = NULL, *route = NULL,
           *kernel = NULL;
    if (!plan) fail_msg("%s:%d: %s", path, e.line, e.text);
    size_t i = 0, j = 0, k = 0, routes = 0;
    json_t *kernels = json_object_get(plan, "kernels");
    json_array_foreach(json_object_get(plan, "ops"), i, item) {
        static const char *const classes[] = {"fast", "pinned"};
        for (int c = 0; c < 2; c++)
            json_array_foreach(json_object_get(item, classes[c]), j, route) {
                const char *name = json_string_value(json_object_get(route, "kernel"));
                int found = 0;
                json_array_foreach(kernels, k, kernel) found +=
                    strcmp(json_string_value(json_object_get(kernel, "name")), name) == 0;
                assert_int_equal(found, 1);
                routes++;
            }
    }
    assert_true(routes >= 24);
    json_array_foreach(kernels, k, kernel) {
        snprintf(path, sizeof path, "%s/%s", dir, json_string_value(json_object_get(kernel, "file")));
        assert_int_equal(access(path, R_OK), 0);
    }
    json_decref(plan);
}

static void plan_json_of_both_pairs_is_whole(void **state) {
    (void)state;
    plan_json_is_whole("tests/golden/smollm2-135m-cpu");
    plan_json_is_whole("tests/golden/tiny-tiny-cpu");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(smollm2_on_cpu_has_no_drift),
        cmocka_unit_test(tiny_has_no_drift),
        cmocka_unit_test(plan_json_of_both_pairs_is_whole),
    };
    return cmocka_run_group_tests(tests, go_to_root, NULL);
}
