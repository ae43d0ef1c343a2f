#include "gen_scratch.h"

#include "cost.h"
#include "emit.h"

#include <sys/stat.h>

/* A copy of the test templates, in which one file may then be changed. */
static const char *templates_copy(const char *name) {
    char command[256];
    snprintf(command, sizeof command, "cp -r " TEST_TEMPLATES " '%s/%s'", scratch, name);
    assert_int_equal(system(command), 0);
    return at(name);
}

static sf_code plan_code(sf_arena *a, const char *model, const char *config, const char *templates,
                         sf_err *err) {
    sf_inputs *in = NULL;
    sf_planned *p = NULL;
    sf_code rc = sf_inputs_read(a, model, config, templates, &in, err);
    return rc == SF_OK ? sf_planned_build(a, in, &p, err) : rc;
}

static void routes_cover_every_row_count_once(void **state) {
    (void)state;
    sf_arena *a = new_arena();
    sf_planned *p = tiny_plan(a);
    for (int i = 0; i < p->plan.n_ops; i++)
        for (int c = 0; c < SF_CLASS_COUNT; c++) {
            const sf_op_desc *op = &p->plan.ops[i];
            int limit = op->scope == SF_SCOPE_HEAD ? 64 : 96, last = 0;
            assert_true(op->n_routes[c] > 0);
            for (int r = 0; r < op->n_routes[c]; r++) {
                assert_true(op->routes[c][r].rows_max > last);
                assert_in_range(op->routes[c][r].kernel, 0, p->plan.n_kernels - 1);
                last = op->routes[c][r].rows_max;
            }
            assert_int_equal(last, limit);
        }
    const sf_op_desc *qkv = op_named(p, "qkv");
    assert_int_equal(qkv->n_routes[SF_CLASS_FAST], 2);
    assert_int_equal(qkv->routes[SF_CLASS_FAST][0].rows_max, 4);
    assert_int_equal(qkv->n_routes[SF_CLASS_PINNED], 1);
    sf_arena_destroy(a);
}

static void pinned_routes_lead_to_pinned_kernels(void **state) {
    (void)state;
    sf_arena *a = new_arena();
    sf_planned *p = tiny_plan(a);
    int fast = 0;
    for (int i = 0; i < p->plan.n_ops; i++) {
        const sf_op_desc *op = &p->plan.ops[i];
        for (int r = 0; r < op->n_routes[SF_CLASS_PINNED]; r++)
            assert_int_equal(p->plan.kernels[op->routes[SF_CLASS_PINNED][r].kernel].cls, SF_CLASS_PINNED);
        for (int r = 0; r < op->n_routes[SF_CLASS_FAST]; r++)
            fast += p->plan.kernels[op->routes[SF_CLASS_FAST][r].kernel].cls == SF_CLASS_FAST;
    }
    assert_int_equal(fast, 10); /* two fast templates at five products; the rest serves both classes */
    sf_arena_destroy(a);
}

static void equal_kernels_are_planned_once(void **state) {
    (void)state;
    sf_arena *a = new_arena();
    sf_planned *p = tiny_plan(a);
    int attn = op_named(p, "attn_norm")->routes[SF_CLASS_PINNED][0].kernel;
    assert_int_equal(op_named(p, "mlp_norm")->routes[SF_CLASS_PINNED][0].kernel, attn);
    assert_int_equal(op_named(p, "attn_norm")->routes[SF_CLASS_FAST][0].kernel, attn);
    assert_int_not_equal(op_named(p, "final_norm")->routes[SF_CLASS_PINNED][0].kernel, attn); /* gathers */
    assert_int_equal(p->plan.n_kernels, 21);
    sf_arena_destroy(a);
}

static void names_tell_kernels_apart(void **state) {
    (void)state;
    sf_arena *a = new_arena();
    sf_planned *p = tiny_plan(a);
    const sf_kernel *k = p->plan.kernels;
    assert_string_equal(k[op_named(p, "embed")->routes[0][0].kernel].name, "embed_bf16_cpu_pinned");
    assert_string_equal(k[op_named(p, "attention")->routes[0][0].kernel].name,
                        "attention_bf16_d12_cpu_pinned");
    assert_string_equal(k[op_named(p, "qkv")->routes[SF_CLASS_FAST][0].kernel].name,
                        "gemm_qkv_bf16_r2_cpu_fast");
    assert_string_equal(k[op_named(p, "final_norm")->routes[0][0].kernel].name,
                        "rmsnorm_final_norm_f32_cpu_pinned");
    for (int i = 0; i < p->plan.n_kernels; i++)
        for (int j = 0; j < i; j++)
            assert_string_not_equal(k[i].name, k[j].name);
    sf_arena_destroy(a);
}

static void values_come_from_model_config_and_op(void **state) {
    (void)state;
    sf_arena *a = new_arena();
    sf_planned *p = tiny_plan(a);
    const char *qkv = p->kernels[op_named(p, "qkv")->routes[SF_CLASS_PINNED][0].kernel].text;
    assert_non_null(strstr(qkv, "enum { N = 84 };"));
    assert_non_null(strstr(qkv, "enum { K = 44 };"));
    assert_non_null(strstr(qkv, "enum { BIAS = 1 };"));
    const char *down = p->kernels[op_named(p, "down")->routes[SF_CLASS_PINNED][0].kernel].text;
    assert_non_null(strstr(down, "EPILOGUE = EPILOGUE_add };"));
    assert_non_null(strstr(down, "enum { BIAS = 0 };"));
    const char *norm = p->kernels[op_named(p, "final_norm")->routes[0][0].kernel].text;
    assert_non_null(strstr(norm, "enum { GATHER = 1 };"));
    assert_non_null(strstr(norm, "EPS = 1e-05f;"));
    const char *attention = p->kernels[op_named(p, "attention")->routes[0][0].kernel].text;
    assert_non_null(strstr(attention, "enum { CONTEXT = 512 };"));
    sf_arena_destroy(a);
}

static void tuned_values_replace_defaults(void **state) {
    (void)state;
    sf_arena *a = new_arena();
    const char *config = at("tuned.yaml");
    copy_file(TINY_CONFIG, config, "tensor_parallel: 1", "tensor_parallel: 1\ntune: {gemm_pinned: {MR: 6}}");
    sf_planned *p = plan_of(a, TINY_MODEL, config, TEST_TEMPLATES);
    const sf_kernel *k = &p->plan.kernels[op_named(p, "qkv")->routes[SF_CLASS_PINNED][0].kernel];
    assert_string_equal(k->name, "gemm_qkv_bf16_r6_cpu_pinned");
    sf_arena_destroy(a);
}

static void the_context_is_the_smaller_one(void **state) {
    (void)state;
    sf_arena *a = new_arena();
    const char *config = at("context.yaml");
    copy_file(TINY_CONFIG, config, "context: 512", "context: 100000");
    assert_int_equal(plan_of(a, TINY_MODEL, config, TEST_TEMPLATES)->plan.max_context, 512);
    copy_file(TINY_CONFIG, config, "context: 512", "context: 64");
    assert_int_equal(plan_of(a, TINY_MODEL, config, TEST_TEMPLATES)->plan.max_context, 64);
    sf_arena_destroy(a);
}

static void a_template_for_fewer_rows_wins(void **state) {
    (void)state;
    sf_arena *a = new_arena();
    const char *dir = templates_copy("window");
    copy_file(TEST_TEMPLATES "/cpu/gemm_fast_few.c", at("w1.c"), "gemm_fast_few\n", "gemm_fast_window\n");
    copy_file(at("w1.c"), at("w2.c"), "rows 1..4", "rows 5..6 9..12");
    copy_file(at("w2.c"), at("window/cpu/gemm_fast_window.c"), "name r${MR}", "name w${MR}");
    sf_planned *p = plan_of(a, TINY_MODEL, TINY_CONFIG, dir);
    const sf_op_desc *o = op_named(p, "o");
    const int rows[] = {4, 6, 8, 12, 96};
    const char *const names[] = {"gemm_o_bf16_r2_cpu_fast", "gemm_o_bf16_w2_cpu_fast",
                                 "gemm_o_bf16_r8_cpu_fast", "gemm_o_bf16_w2_cpu_fast",
                                 "gemm_o_bf16_r8_cpu_fast"};
    assert_int_equal(o->n_routes[SF_CLASS_FAST], 5);
    for (int i = 0; i < 5; i++) {
        assert_int_equal(o->routes[SF_CLASS_FAST][i].rows_max, rows[i]);
        assert_string_equal(p->plan.kernels[o->routes[SF_CLASS_FAST][i].kernel].name, names[i]);
    }
    sf_arena_destroy(a);
}

static void two_templates_for_the_same_rows_are_refused(void **state) {
    (void)state;
    sf_arena *a = new_arena();
    sf_err err = {0};
    char from[192], to[192];
    const char *dir = templates_copy("twice");
    snprintf(from, sizeof from, "%s/cpu/embed.c", dir);
    snprintf(to, sizeof to, "%s/cpu/embed2.c", dir);
    copy_file(from, to, "template embed", "template embed2");
    assert_int_equal(plan_code(a, TINY_MODEL, TINY_CONFIG, dir, &err), SF_INVALID);
    assert_non_null(
        strstr(message(&err), "offers the same rows in class fast, expected one choice\n  //@ rows 1..\n"));
    copy_file(from, to, NULL, NULL);
    assert_int_equal(plan_code(a, TINY_MODEL, TINY_CONFIG, dir, &err), SF_INVALID);
    assert_non_null(strstr(message(&err), "template embed is in "));
    sf_arena_destroy(a);
}

static void rows_without_a_template_are_named(void **state) {
    (void)state;
    sf_arena *a = new_arena();
    sf_err err = {0};
    char from[192];
    const char *dir = templates_copy("gap");
    snprintf(from, sizeof from, "%s/cpu/gemm_fast_many.c", dir);
    copy_file(TEST_TEMPLATES "/cpu/gemm_fast_many.c", from, "rows 5..", "rows 6..");
    assert_int_equal(plan_code(a, TINY_MODEL, TINY_CONFIG, dir, &err), SF_UNSUPPORTED);
    assert_string_equal(message(&err),
                        TINY_CONFIG ":3:10: backend cpu: no template of class fast covers 5 rows of op "
                                    "gemm (qkv)");
    assert_int_equal(unlink(from), 0);
    snprintf(from, sizeof from, "%s/cpu/sample.c", dir);
    assert_int_equal(unlink(from), 0);
    copy_file(TEST_TEMPLATES "/cpu/gemm_fast_many.c", at("gap/cpu/gemm_fast_many.c"), NULL, NULL);
    assert_int_equal(plan_code(a, TINY_MODEL, TINY_CONFIG, dir, &err), SF_UNSUPPORTED);
    assert_string_equal(message(&err),
                        TINY_CONFIG ":3:10: backend cpu: no template for op sample (class fast)");
    sf_arena_destroy(a);
}

static void kernels_of_one_name_are_refused(void **state) {
    (void)state;
    sf_arena *a = new_arena();
    sf_err err = {0};
    char from[192];
    const char *dir = templates_copy("names");
    snprintf(from, sizeof from, "%s/cpu/gemm_fast_few.c", dir);
    copy_file(TEST_TEMPLATES "/cpu/gemm_fast_few.c", from, "name r${MR}", "name r8");
    assert_int_equal(plan_code(a, TINY_MODEL, TINY_CONFIG, dir, &err), SF_INVALID);
    assert_non_null(strstr(message(&err), "gives a kernel named gemm_qkv_bf16_r8_cpu_fast, as "));
    copy_file(TEST_TEMPLATES "/cpu/gemm_fast_few.c", from, "name r${MR}", "name r-1");
    assert_int_equal(plan_code(a, TINY_MODEL, TINY_CONFIG, dir, &err), SF_INVALID);
    assert_non_null(strstr(message(&err), "expected letters, digits and '_'\n  //@ name r-1\n           ^"));
    sf_arena_destroy(a);
}

static void a_snippet_that_is_not_there_is_named(void **state) {
    (void)state;
    sf_arena *a = new_arena();
    sf_err err = {0};
    const char *dir = templates_copy("snippetless");
    char path[192];
    snprintf(path, sizeof path, "%s/snippets/scale.h", dir);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(plan_code(a, TINY_MODEL, TINY_CONFIG, dir, &err), SF_NOT_FOUND);
    assert_non_null(strstr(message(&err), "includes snippets/scale.h, expected it in templates/"));
    sf_arena_destroy(a);
}

/* Changes one file of a copy of the templates and says whether gen_hash and pinned_hash changed. */
static void changed_hashes(const char *copy, const char *file, const char *find, const char *replacement,
                           bool *gen, bool *pinned) {
    sf_arena *a = new_arena();
    const char *dir = templates_copy(copy);
    char from[192], to[192];
    snprintf(from, sizeof from, TEST_TEMPLATES "/%s", file);
    snprintf(to, sizeof to, "%s/%s", dir, file);
    copy_file(from, to, find, replacement);
    sf_planned *before = tiny_plan(a), *after = plan_of(a, TINY_MODEL, TINY_CONFIG, dir);
    *gen = strcmp(before->plan.gen_hash, after->plan.gen_hash) != 0;
    *pinned = strcmp(before->plan.pinned_hash, after->plan.pinned_hash) != 0;
    sf_arena_destroy(a);
}

static void the_pinned_hash_follows_the_pinned_sources_only(void **state) {
    (void)state;
    bool gen = false, pinned = false;
    changed_hashes("h0", "cpu/gemm_pinned.c", "int n = 0", "int n = 0u", &gen, &pinned);
    assert_true(gen && pinned);
    changed_hashes("h1", "cpu/gemm_fast_many.c", "int n = 0", "int n = 0u", &gen, &pinned);
    assert_true(gen && !pinned);
    changed_hashes("h2", "snippets/scale.h", "x * by", "by * x", &gen, &pinned); /* through outer.h too */
    assert_true(gen && pinned);
    changed_hashes("h3", "snippets/loose.h", "return x", "return +x", &gen, &pinned);
    assert_true(gen && !pinned);
    changed_hashes("h4", "cpu/gemm_pinned.c", "k ascending", "k descending", &gen, &pinned);
    assert_true(gen && pinned);
    changed_hashes("h5", "cpu/gemm_pinned.c", "k ascending", "k ascending", &gen, &pinned);
    assert_true(!gen && !pinned);
}

static void the_pinned_hash_ignores_what_changes_no_bit(void **state) {
    (void)state;
    sf_arena *a = new_arena();
    const char *config = at("other.yaml");
    copy_file(TINY_CONFIG, config, "bandwidth_gbs: 20", "bandwidth_gbs: 21");
    sf_planned *before = tiny_plan(a), *after = plan_of(a, TINY_MODEL, config, TEST_TEMPLATES);
    assert_string_equal(before->plan.pinned_hash, after->plan.pinned_hash);
    assert_string_not_equal(before->plan.gen_hash, after->plan.gen_hash);
    const char *model = at("tiny.yaml");
    copy_file(TINY_MODEL, model, "theta: 10000", "theta: 10001"); /* the runtime's tables come from it */
    after = plan_of(a, model, TINY_CONFIG, TEST_TEMPLATES);
    assert_string_not_equal(before->plan.pinned_hash, after->plan.pinned_hash);
    sf_arena_destroy(a);
}

static void the_pinned_hash_follows_the_ids_of_beginning_and_end(void **state) {
    (void)state;
    static const char *const changes[][2] = {
        {"bos: 1,", "bos: 3,"}, {"add_bos: true", "add_bos: false"}, {"eos: [2, 5]", "eos: [2]"}};
    sf_arena *a = new_arena();
    const char *model = at("ids.yaml");
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        copy_file(TINY_MODEL, model, changes[i][0], changes[i][1]);
        sf_planned *before = tiny_plan(a), *after = plan_of(a, model, TINY_CONFIG, TEST_TEMPLATES);
        assert_string_not_equal(before->plan.pinned_hash, after->plan.pinned_hash);
    }
    sf_arena_destroy(a);
}

static void output_depends_on_content_not_on_folders(void **state) {
    (void)state;
    sf_arena *a = new_arena();
    sf_err err = {0};
    sf_files *one = NULL, *two = NULL;
    const char *dir = templates_copy("elsewhere");
    assert_int_equal(mkdir(at("m"), 0777), 0);
    copy_file(TINY_MODEL, at("m/tiny.yaml"), NULL, NULL);
    copy_file(TINY_CONFIG, at("m/tiny-cpu.yaml"), NULL, NULL);
    assert_ok(sf_emit(a, tiny_plan(a), &one, &err), &err);
    assert_ok(sf_emit(a, plan_of(a, at("m/tiny.yaml"), at("m/tiny-cpu.yaml"), dir), &two, &err), &err);
    assert_int_equal(one->n, two->n);
    for (int i = 0; i < one->n; i++) {
        assert_string_equal(one->files[i].path, two->files[i].path);
        assert_string_equal(one->files[i].text, two->files[i].text);
        assert_null(strstr(one->files[i].text, scratch));
        assert_null(strstr(one->files[i].text, SF_ROOT_DIR));
    }
    sf_arena_destroy(a);
}

static void a_chat_template_of_the_model_survives_quoting(void **state) {
    (void)state;
    sf_arena *a = new_arena();
    const char *model = at("chat.yaml");
    copy_file(TINY_MODEL, model, "chat_template: checkpoint",
              "chat_template: {text: \"a\\\"b\\\\c\\nd\\te\\x01\\u00e9\"}");
    sf_err err = {0};
    sf_files *files = NULL;
    assert_ok(sf_emit(a, plan_of(a, model, TINY_CONFIG, TEST_TEMPLATES), &files, &err), &err);
    const char *plan_c = files->files[files->n - 3].text;
    assert_non_null(strstr(plan_c, ".chat_template = \"a\\\"b\\\\c\\nd\\011e\\001\xc3\xa9\","));
    sf_arena_destroy(a);
}

static void buckets_add_up_the_ops(void **state) {
    (void)state;
    sf_arena *a = new_arena();
    sf_planned *p = tiny_plan(a);
    assert_int_equal(p->plan.n_buckets, 5);
    for (int b = 0; b < 5; b++) {
        double us = 0;
        for (int i = 0; i < p->plan.n_ops; i++) {
            const sf_op_desc *op = &p->plan.ops[i];
            int rows = sf_cost_rows(&p->in->machine, op, p->plan.buckets[b].rows_max);
            us += sf_cost_op(&p->in->machine, op, SF_CLASS_PINNED, rows).us *
                  (op->scope == SF_SCOPE_LAYER ? 2 : 1);
        }
        assert_true(us > 0 && us == p->plan.buckets[b].us[SF_CLASS_PINNED]);
    }
    sf_arena_destroy(a);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(routes_cover_every_row_count_once),
        cmocka_unit_test(pinned_routes_lead_to_pinned_kernels),
        cmocka_unit_test(equal_kernels_are_planned_once),
        cmocka_unit_test(names_tell_kernels_apart),
        cmocka_unit_test(values_come_from_model_config_and_op),
        cmocka_unit_test(tuned_values_replace_defaults),
        cmocka_unit_test(the_context_is_the_smaller_one),
        cmocka_unit_test(a_template_for_fewer_rows_wins),
        cmocka_unit_test(two_templates_for_the_same_rows_are_refused),
        cmocka_unit_test(rows_without_a_template_are_named),
        cmocka_unit_test(kernels_of_one_name_are_refused),
        cmocka_unit_test(a_snippet_that_is_not_there_is_named),
        cmocka_unit_test(the_pinned_hash_follows_the_pinned_sources_only),
        cmocka_unit_test(the_pinned_hash_ignores_what_changes_no_bit),
        cmocka_unit_test(the_pinned_hash_follows_the_ids_of_beginning_and_end),
        cmocka_unit_test(output_depends_on_content_not_on_folders),
        cmocka_unit_test(a_chat_template_of_the_model_survives_quoting),
        cmocka_unit_test(buckets_add_up_the_ops),
    };
    return cmocka_run_group_tests(tests, make_scratch, remove_scratch);
}
