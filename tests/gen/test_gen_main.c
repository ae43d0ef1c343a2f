/* The program itself: exit codes, messages, and what goes to which stream. */
#include "gen_test.h"

#include <jansson.h>
#include <sys/wait.h>

#define TINY "--model " TINY_MODEL " --config " TINY_CONFIG " --templates " TEST_TEMPLATES

static char scratch[64];
static sf_buf out;

static int make_scratch(void **state) {
    (void)state;
    snprintf(scratch, sizeof scratch, "/tmp/sf_gen_main_XXXXXX");
    return go_to_root(state) || !mkdtemp(scratch);
}

static int remove_scratch(void **state) {
    (void)state;
    char command[128];
    sf_buf_fini(&out);
    snprintf(command, sizeof command, "rm -rf '%s'", scratch);
    return system(command);
}

/* Runs steadfast-gen; `redirect` is the shell's ("2>&1", "2>/dev/null"). Returns the exit code, fills out. */
static int run(const char *args, const char *redirect) {
    char command[700];
    sf_err err = {0};
    snprintf(command, sizeof command, "'" SF_GEN_PATH "' %s %s", args, redirect);
    FILE *p = popen(command, "r");
    assert_non_null(p);
    out.len = 0;
    assert_ok(sf_buf_append(&out, "", 0, &err), &err);
    for (char chunk[4096];;) {
        size_t n = fread(chunk, 1, sizeof chunk, p);
        if (!n) break;
        assert_ok(sf_buf_append(&out, chunk, n, &err), &err);
    }
    int status = pclose(p);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void wrong_usage_exits_with_2(void **state) {
    (void)state;
    static const char *const wrong[] = {"",
                                        "paint",
                                        "generate",
                                        "generate " TINY,
                                        "explain --model " TINY_MODEL,
                                        "generate " TINY " --out x --json",
                                        "generate " TINY " --out ''",
                                        "explain " TINY " --check",
                                        "explain " TINY " --from x",
                                        "import --from x",
                                        "import --out x.yaml",
                                        "import --from x --out ''",
                                        "list extra",
                                        "list --colour",
                                        "explain --model"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        if (run(wrong[i], "2>&1 >/dev/null") != 2) fail_msg("'%s' was taken", wrong[i]);
        assert_non_null(strstr(out.data, "usage: steadfast-gen"));
    }
    assert_int_equal(run("--help", "2>/dev/null"), 0);
    assert_non_null(strstr(out.data, "usage: steadfast-gen"));
    assert_int_equal(run("--version", "2>/dev/null"), 0);
    assert_string_equal(out.data, "steadfast-gen " SF_GEN_VERSION "\n");
}

static void an_error_goes_to_stderr_and_exits_with_1(void **state) {
    (void)state;
    char args[300];
    snprintf(args, sizeof args,
             "generate --model tests/cases/gen-model-negative-hidden/input.yaml --config " TINY_CONFIG
             " --out %s/x",
             scratch);
    assert_int_equal(run(args, "2>&1 >/dev/null"), 1);
    assert_string_equal(
        out.data, "tests/cases/gen-model-negative-hidden/input.yaml:4:9: hidden is -5, expected 16..65536\n");
    assert_int_equal(run("explain --model none.yaml --config " TINY_CONFIG, "2>&1 >/dev/null"), 1);
    assert_string_equal(out.data, "none.yaml: No such file or directory\n");
    assert_int_equal(run("explain " TINY, "2>&1 >/dev/full"), 1);
    assert_string_equal(out.data, "steadfast-gen: standard output could not be written\n");
}

static void a_missing_folder_of_templates_is_named(void **state) {
    (void)state;
    static const char none[] = "tests/none: No such file or directory\n";
    const char *both = "--model " TINY_MODEL " --config " TINY_CONFIG " --templates tests/none";
    char args[300];
    snprintf(args, sizeof args, "explain %s", both);
    assert_int_equal(run(args, "2>&1 >/dev/null"), 1);
    assert_string_equal(out.data, none);
    assert_int_equal(run("list --templates tests/none", "2>&1 >/dev/null"), 1);
    assert_string_equal(out.data, none);
}

static void a_file_that_may_not_grow_is_an_error_and_leaves_nothing(void **state) {
    (void)state;
    char command[1000];
    snprintf(command, sizeof command,
             "(ulimit -f 1; exec '" SF_GEN_PATH "' generate " TINY
             " --out %s/short) 2>%s/why; test $? = 1 && "
             "grep -q 'File too large$' %s/why && test -d %s/short/kernels && test -z \"$(find %s/short "
             "-name '*.tmp')\"",
             scratch, scratch, scratch, scratch, scratch);
    assert_int_equal(system(command), 0);
}

static void closed_descriptors_do_not_end_up_in_the_files(void **state) {
    (void)state;
    char args[300];
    snprintf(args, sizeof args, "generate " TINY " --out %s/closed", scratch);
    assert_int_equal(run(args, "0<&- 1>&- 2>&-"), 1); /* its last line is lost, which is an error */
    strncat(args, " --check", sizeof args - strlen(args) - 1);
    assert_int_equal(run(args, "2>&1"), 0);
}

static void generate_then_check_then_drift(void **state) {
    (void)state;
    char args[300], path[128];
    snprintf(args, sizeof args, "generate " TINY " --out %s/tiny", scratch);
    assert_int_equal(run(args, "2>&1"), 0);
    assert_non_null(strstr(out.data, "tiny-tiny-cpu: 21 kernels, 24 of 24 files changed in "));
    assert_int_equal(run(args, "2>&1"), 0);
    assert_non_null(strstr(out.data, " 0 of 24 files changed in "));
    strncat(args, " --check", sizeof args - strlen(args) - 1);
    assert_int_equal(run(args, "2>&1"), 0);
    assert_string_equal(out.data, "");
    snprintf(path, sizeof path, "%s/tiny/plan.c", scratch);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(run(args, "2>&1"), 1);
    assert_non_null(strstr(out.data, "/tiny/plan.c is missing, see "));
    assert_non_null(strstr(out.data, "/tiny: 1 of 24 files differ from their inputs\n"));
}

static void the_lock_names_every_file_with_its_hash(void **state) {
    (void)state;
    char command[300];
    snprintf(command, sizeof command, "generate " TINY " --out %s/lock", scratch);
    assert_int_equal(run(command, "2>&1"), 0);
    snprintf(command, sizeof command,
             "cd %s/lock && sed -n 's/^output \\([0-9a-f]*\\) /\\1  /p' LOCK | sha256sum --check --strict "
             "--quiet && "
             "test $(grep -c ^output LOCK) = $(find . -type f ! -name LOCK | wc -l)",
             scratch);
    assert_int_equal(system(command), 0);
}

static void explain_shows_classes_routes_and_roofline(void **state) {
    (void)state;
    assert_int_equal(run("explain " TINY, "2>/dev/null"), 0);
    static const char *const parts[] = {"tiny-tiny-cpu: tiny (models/tiny.yaml) on tiny-cpu",
                                        "gemm_qkv_bf16_r2_cpu_fast",
                                        "    fast   rows 5..96  gemm_qkv_bf16_r8_cpu_fast\n",
                                        "order: index ascending, one accumulator\n",
                                        "pinned: expected microseconds",
                                        "fast: share of the FLOP rate",
                                        "  rows/s "};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (!strstr(out.data, parts[i])) fail_msg("no '%s'", parts[i]);
}

static void explain_json_is_plan_json(void **state) {
    (void)state;
    assert_int_equal(run("explain --json " TINY, "2>/dev/null"), 0);
    json_error_t e;
    json_t *plan = json_loads(out.data, JSON_REJECT_DUPLICATES, &e);
    if (!plan) fail_msg("line %d: %s", e.line, e.text);
    assert_string_equal(json_string_value(json_object_get(plan, "engine")), "tiny-tiny-cpu");
    assert_int_equal(json_array_size(json_object_get(plan, "ops")), 12);
    assert_int_equal(json_array_size(json_object_get(plan, "buckets")), 5);
    json_decref(plan);
}

static void list_names_what_the_folder_holds(void **state) {
    (void)state;
    assert_int_equal(run("list --templates " TEST_TEMPLATES, "2>/dev/null"), 0);
    assert_non_null(strstr(out.data, "models (models)\n"));
    assert_non_null(strstr(out.data, "  smollm2-135m\n"));
    assert_non_null(strstr(out.data, "  cpu\n"));
    assert_non_null(strstr(out.data, "  gemm_fast_few\n"));
}

static void import_writes_a_description_or_says_why_not(void **state) {
    (void)state;
    char args[256], want[256];
    snprintf(args, sizeof args, "import --from %s/none.gguf --out %s/none.yaml", scratch, scratch);
    assert_int_equal(run(args, "2>&1"), 1);
    snprintf(want, sizeof want, "%s/none.gguf: No such file or directory\n", scratch);
    assert_string_equal(out.data, want);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wrong_usage_exits_with_2),
        cmocka_unit_test(import_writes_a_description_or_says_why_not),
        cmocka_unit_test(an_error_goes_to_stderr_and_exits_with_1),
        cmocka_unit_test(a_missing_folder_of_templates_is_named),
        cmocka_unit_test(a_file_that_may_not_grow_is_an_error_and_leaves_nothing),
        cmocka_unit_test(closed_descriptors_do_not_end_up_in_the_files),
        cmocka_unit_test(generate_then_check_then_drift),
        cmocka_unit_test(the_lock_names_every_file_with_its_hash),
        cmocka_unit_test(explain_shows_classes_routes_and_roofline),
        cmocka_unit_test(explain_json_is_plan_json),
        cmocka_unit_test(list_names_what_the_folder_holds),
    };
    return cmocka_run_group_tests(tests, make_scratch, remove_scratch);
}
