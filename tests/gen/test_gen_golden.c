/* The committed pairs are what the generator gives today; tests/golden/refresh renews them. */
#include "gen_test.h"

#include "outdir.h"

#include <jansson.h>

/* The files whose names are in `kept` alone: a golden CUDA pair keeps its kernels' hashes (LOCK), not their
 * text. */
static void keep(sf_files *files, const char *const *kept) {
    int n = 0;
    for (int i = 0; i < files->n; i++)
        for (int j = 0; kept[j]; j++)
            if (strcmp(files->files[i].path, kept[j]) == 0) files->files[n++] = files->files[i];
    files->n = n;
}

static void no_drift(const char *model, const char *config, const char *dir, const char *const *kept) {
    sf_arena *a = new_arena();
    sf_err err = {0};
    sf_files *files = NULL;
    sf_buf report = {0};
    assert_ok(sf_emit(a, plan_of(a, model, config, "templates"), &files, &err), &err);
    assert_true(files->n > 3);
    if (kept) keep(files, kept);
    assert_true(files->n >= 3);
    sf_code rc = sf_outdir_check(a, dir, files, &report, &err);
    if (rc != SF_OK) print_error("%s", report.data ? report.data : "");
    sf_buf_fini(&report);
    if (rc != SF_OK) fail_msg("%s; run tests/golden/refresh and commit its result", message(&err));
    sf_arena_destroy(a);
}

static void smollm2_on_cpu_has_no_drift(void **state) {
    (void)state;
    no_drift("models/smollm2-135m.yaml", "build-configs/cpu.yaml", "tests/golden/smollm2-135m-cpu", NULL);
}

static void smollm2_on_h200_has_no_drift(void **state) {
    (void)state;
    static const char *const kept[] = {"plan.c", "plan.json", "LOCK", NULL};
    no_drift("models/smollm2-135m.yaml", "build-configs/h200.yaml", "tests/golden/smollm2-135m-h200", kept);
}

static void tiny_has_no_drift(void **state) {
    (void)state;
    no_drift(TINY_MODEL, TINY_CONFIG, "tests/golden/tiny-tiny-cpu", NULL);
}

/* Every route of plan.json names a kernel of its list, or none, and each kernel's file is there. */
static void plan_json_is_whole(const char *dir, int none, bool files) {
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
                int found = strcmp(name, "none") == 0;
                none -= found;
                json_array_foreach(kernels, k, kernel) found +=
                    strcmp(json_string_value(json_object_get(kernel, "name")), name) == 0;
                assert_int_equal(found, 1);
                routes++;
            }
    }
    assert_true(routes >= 24);
    assert_int_equal(none, 0);
    json_array_foreach(kernels, k, kernel) {
        snprintf(path, sizeof path, "%s/%s", dir, json_string_value(json_object_get(kernel, "file")));
        if (files) assert_int_equal(access(path, R_OK), 0);
    }
    json_decref(plan);
}

static void plan_json_of_the_pairs_is_whole(void **state) {
    (void)state;
    plan_json_is_whole("tests/golden/smollm2-135m-cpu", 0, true);
    plan_json_is_whole("tests/golden/tiny-tiny-cpu", 0, true);
    plan_json_is_whole("tests/golden/smollm2-135m-h200", 2, false); /* attention_long at few rows, twice */
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(smollm2_on_cpu_has_no_drift),
        cmocka_unit_test(smollm2_on_h200_has_no_drift),
        cmocka_unit_test(tiny_has_no_drift),
        cmocka_unit_test(plan_json_of_the_pairs_is_whole),
    };
    return cmocka_run_group_tests(tests, go_to_root, NULL);
}
