/* Products that a machine's libraries are offered. */
#include "gen_scratch.h"

#include "explain.h"

static const char *h200_with(const char *name, const char *libraries) {
    const char *to = at(name);
    copy_file("build-configs/h200.yaml", to, "libraries: {cublaslt: [qkv, o, gate_up, down]}", libraries);
    return to;
}

static void a_library_is_offered_what_the_configuration_says(void **state) {
    (void)state;
    sf_arena *a = new_arena();
    sf_planned *with =
        plan_of(a, SMOLLM, h200_with("with.yaml", "libraries: {cublaslt: [down, qkv]}"), "templates");
    sf_planned *without = plan_of(a, SMOLLM, h200_with("without.yaml", "# none"), "templates");
    const sf_library_route *qkv = op_named(with, "qkv")->library, *down = op_named(with, "down")->library;
    assert_non_null(qkv);
    assert_non_null(down);
    assert_null(op_named(with, "o")->library);
    assert_string_equal(qkv->library, "cublaslt");
    assert_true(!qkv->adds && down->adds && qkv->rows_min == 257 && qkv->finish < 0 && down->finish < 0);
    assert_string_equal(with->plan.kernels[qkv->kernel].template, "gemm_cublaslt");
    assert_int_equal(with->plan.kernels[qkv->kernel].cls, SF_CLASS_FAST);
    assert_int_equal(with->kernels[down->kernel].values[1].i, 1536); /* K of its weight */
    assert_int_equal(with->plan.n_kernels, without->plan.n_kernels + 2);
    for (int i = 0; i < without->plan.n_ops; i++) {
        const sf_op_desc *x = &with->plan.ops[i], *y = &without->plan.ops[i];
        assert_null(y->library);
        for (int c = 0; c < SF_CLASS_COUNT; c++) { /* routes are what they were */
            assert_int_equal(x->n_routes[c], y->n_routes[c]);
            assert_memory_equal(x->routes[c], y->routes[c], sizeof(sf_route) * (size_t)x->n_routes[c]);
        }
    }
    assert_string_equal(with->plan.pinned_hash, without->plan.pinned_hash);
    sf_arena_destroy(a);
}

static void swiglu_of_a_library_s_product_is_a_kernel(void **state) {
    (void)state;
    sf_arena *a = new_arena();
    sf_planned *p =
        plan_of(a, SMOLLM, h200_with("gated.yaml", "libraries: {cublaslt: [gate_up]}"), "templates");
    const sf_library_route *r = op_named(p, "gate_up")->library;
    assert_non_null(r);
    assert_false(r->adds);
    assert_string_equal(p->plan.kernels[r->kernel].template, "gemm_cublaslt");
    assert_string_equal(p->plan.kernels[r->finish].template, "swiglu_cublaslt");
    assert_int_equal(p->plan.kernels[r->finish].cls, SF_CLASS_FAST);
    sf_arena_destroy(a);
}

static void a_library_s_part_is_written(void **state) {
    (void)state;
    sf_arena *a = new_arena();
    sf_err err = {0};
    sf_files *files = NULL;
    sf_planned *p = plan_of(a, "models/llama-3.1-8b.yaml", "build-configs/h200.yaml", "templates");
    sf_writer text = {.err = &err};
    assert_ok(sf_emit(a, p, &files, &err), &err);
    char route[80];
    snprintf(route, sizeof route, "o_library = {\"cublaslt\", 257, %d, -1, true};\n",
             op_named(p, "o")->library->kernel);
    assert_non_null(strstr(file_named(files, "plan.c"), route));
    assert_non_null(strstr(file_named(files, "plan.c"), "{o_fast, o_pinned}, &o_library},\n"));
    assert_non_null(strstr(file_named(files, "plan.c"), "{lm_head_fast, lm_head_pinned}, NULL},\n"));
    assert_non_null(strstr(file_named(files, "plan.json"),
                           "\"kernel\": \"gemm_down_bf16_rowmajor_cuda_fast\", \"adds\": true}"));
    sf_explain(&text, p);
    assert_non_null(strstr(text.buf.data,
                           "fast   rows 257..  cublaslt, where it is there and faster; its copy of the "
                           "weight: 1610.6 MB\n"));
    sf_buf_fini(&text.buf);
    sf_arena_destroy(a);
}

static void what_no_library_serves_is_refused_where_it_stands(void **state) {
    (void)state;
    static const char *const cases[][2] = {
        {"[qvk]", "op 'qvk' is unknown, did you mean 'qkv'?"},
        {"[zzzzzz]", "op 'zzzzzz' is unknown, expected one that multiplies"},
        {"[lm_head]", "op lm_head by cublaslt, expected a product of a layer"},
        {"[attn_norm]", "op attn_norm by cublaslt, expected a product of a layer"},
        {"[o, o]", "op o stands twice, expected once"},
    };
    sf_arena *a = new_arena();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        sf_err err = {0};
        sf_inputs *in = NULL;
        sf_planned *p = NULL;
        char libraries[80];
        snprintf(libraries, sizeof libraries, "libraries: {cublaslt: %s}", cases[i][0]);
        const char *config = h200_with("bad.yaml", libraries);
        assert_ok(sf_inputs_read(a, SMOLLM, config, "templates", &in, &err), &err);
        assert_int_equal(sf_planned_build(a, in, &p, &err), SF_INVALID);
        assert_non_null(strstr(message(&err), cases[i][1]));
        assert_non_null(strstr(message(&err), "bad.yaml:30:"));
    }
    sf_arena_destroy(a);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_library_is_offered_what_the_configuration_says),
        cmocka_unit_test(swiglu_of_a_library_s_product_is_a_kernel),
        cmocka_unit_test(a_library_s_part_is_written),
        cmocka_unit_test(what_no_library_serves_is_refused_where_it_stands),
    };
    return cmocka_run_group_tests(tests, make_scratch, remove_scratch);
}
