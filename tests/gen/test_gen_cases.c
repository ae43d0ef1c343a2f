/* Bad inputs: every folder tests/cases/gen-<kind>-<name> holds an input and the one error it must give. */
#include "gen_test.h"

#include "plan_priv.h"

#include <dirent.h>

/* A model or a configuration is planned with the tiny pair's other half, so that errors of the plan count
 * too. */
static sf_code plan_case(sf_arena *a, const char *path, bool is_model, sf_err *err) {
    sf_inputs *in = NULL;
    sf_planned *p = NULL;
    sf_code rc = sf_inputs_read(a, is_model ? path : TINY_MODEL, is_model ? TINY_CONFIG : path,
                                TEST_TEMPLATES, &in, err);
    return rc == SF_OK ? sf_planned_build(a, in, &p, err) : rc;
}

/* A template is parsed, then resolved for the qkv product of the tiny model. */
static sf_code template_case(sf_arena *a, const char *path, sf_err *err) {
    sf_inputs *in = NULL;
    sf_ops ops = {0};
    sf_template *t = NULL;
    sf_value values[SF_PARAMS_MAX];
    sf_buf b = {0};
    assert_ok(sf_inputs_read(a, TINY_MODEL, TINY_CONFIG, TEST_TEMPLATES, &in, err), err);
    assert_ok(sf_ops_build(a, &in->model, &in->machine, &ops, err), err);
    assert_ok(sf_buf_read_file(&b, path, SF_TEMPLATE_MAX_BYTES, err), err);
    sf_code rc = sf_template_parse(a, path, path, b.data ? b.data : "", b.len, &t, err);
    if (rc == SF_OK) rc = sf_params_resolve(in, &ops.ops[2], 1, t, values, err);
    sf_buf_fini(&b);
    return rc;
}

static bool run_case(const char *name) {
    sf_arena *a = new_arena();
    char path[300], error_path[300];
    sf_err err = {0}, read_err = {0};
    bool template = strncmp(name, "gen-template-", 13) == 0, model = strncmp(name, "gen-model-", 10) == 0;
    snprintf(path, sizeof path, "tests/cases/%s/input.%s", name, template ? "tmpl" : "yaml");
    snprintf(error_path, sizeof error_path, "tests/cases/%s/error", name);
    sf_code rc = template ? template_case(a, path, &err) : plan_case(a, path, model, &err);
    sf_buf expected = {0};
    assert_ok(sf_buf_read_file(&expected, error_path, 2000, &read_err), &read_err);
    char found[900];
    snprintf(found, sizeof found, "%s\n", rc == SF_OK ? "no error" : message(&err));
    bool same = expected.data && strcmp(found, expected.data) == 0;
    if (!same)
        print_error("%s\n  found    %s  expected %s", name, found, expected.data ? expected.data : "\n");
    sf_buf_fini(&expected);
    sf_arena_destroy(a);
    return same;
}

static void every_bad_input_gives_its_error(void **state) {
    (void)state;
    int ran[3] = {0}, failed = 0;
    DIR *d = opendir("tests/cases");
    assert_non_null(d);
    for (const struct dirent *e; (e = readdir(d));) {
        static const char *const kinds[] = {"gen-model-", "gen-config-", "gen-template-"};
        for (int k = 0; k < 3; k++)
            if (strncmp(e->d_name, kinds[k], strlen(kinds[k])) == 0) {
                ran[k]++;
                failed += !run_case(e->d_name);
            }
    }
    closedir(d);
    print_message("%d model, %d configuration and %d template cases\n", ran[0], ran[1], ran[2]);
    assert_int_equal(failed, 0);
    for (int k = 0; k < 3; k++)
        assert_true(ran[k] >= 10);
}

static void the_good_inputs_give_none(void **state) {
    (void)state;
    sf_arena *a = new_arena();
    sf_err err = {0};
    assert_ok(plan_case(a, TINY_MODEL, true, &err), &err);
    assert_ok(plan_case(a, TINY_CONFIG, false, &err), &err);
    assert_ok(template_case(a, TEST_TEMPLATES "/cpu/gemm_pinned.c", &err), &err);
    sf_arena_destroy(a);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_good_inputs_give_none),
        cmocka_unit_test(every_bad_input_gives_its_error),
    };
    return cmocka_run_group_tests(tests, go_to_root, NULL);
}
