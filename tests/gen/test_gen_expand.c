#include "gen_test.h"

#include "expand.h"

#define HEAD                                                                                                 \
    "//@ template t\n//@ op gemm\n//@ backend cpu\n//@ class pinned\n//@ rows 1..8\n//@ order: k "           \
    "ascending\n"
#define PARAM_N "//@ param N int = 4 in 1..16 from op.n\n"
#define PRELUDE "//@ prelude\nenum { N = 4 };\n//@ end\n"

static sf_code parse_template(sf_arena *a, const char *text, sf_template **t, sf_err *err) {
    return sf_template_parse(a, "t.c", "templates/cpu/t.c", text, strlen(text), t, err);
}

/* Expands text with the defaults, its first value replaced where value >= 0. */
static char *expanded(sf_arena *a, const char *text, int64_t value) {
    sf_template *t = NULL;
    sf_err err = {0};
    sf_value values[SF_PARAMS_MAX] = {{0}};
    sf_buf b = {0};
    assert_ok(parse_template(a, text, &t, &err), &err);
    for (int i = 0; i < t->n_params; i++)
        values[i] = t->params[i].def;
    if (value >= 0) values[0].i = value;
    assert_ok(sf_expand(t, values, "name_of_kernel", &b, &err), &err);
    char *copy = sf_arena_text(a, b.data, b.len);
    sf_buf_fini(&b);
    return copy;
}

static void refused(const char *text, const char *expected) {
    sf_arena *a = new_arena();
    sf_template *t = NULL;
    sf_err err = {0};
    sf_code rc = parse_template(a, text, &t, &err);
    assert_int_not_equal(rc, SF_OK);
    assert_string_equal(message(&err), expected);
    assert_null(t);
    sf_arena_destroy(a);
}

static void the_prelude_is_replaced_by_values(void **state) {
    (void)state;
    sf_arena *a = new_arena();
    assert_string_equal(expanded(a, HEAD PARAM_N PRELUDE "int x = N;\n", 7),
                        "#define KERNEL_NAME name_of_kernel\nenum { N = 7 };\n"
                        "#line 11 \"templates/cpu/t.c\"\nint x = N;\n");
    sf_arena_destroy(a);
}

static void every_kind_of_value_is_written(void **state) {
    (void)state;
    sf_arena *a = new_arena();
    const char *out =
        expanded(a,
                 HEAD "//@ param E enum a|b = b from op.epilogue\n"
                      "//@ param F float = 1e-5 in 0..1\n"
                      "//@ param G float = 2 in 0..4\n//@ prelude\n"
                      "enum { E_a, E_b, E = E_b };\nstatic const float F = 1e-5f, G = 2;\n//@ end\n"
                      "E F G\n//@| ${E} ${F} ${G}\n",
                 -1);
    assert_non_null(strstr(out, "enum { E_a, E_b, E = E_b };\n"));
    assert_non_null(strstr(out, "static const float F = 1e-05f;\n"));
    assert_non_null(strstr(out, "static const float G = 2.0f;\n"));
    assert_non_null(strstr(out, "\nE F G\nb 1e-05 2.0\n"));
    sf_arena_destroy(a);
}

static void lines_keep_their_numbers(void **state) {
    (void)state;
    sf_arena *a = new_arena();
    const char *out =
        expanded(a,
                 "/* one */\n" HEAD PARAM_N PRELUDE
                 "A N\n//@ if N == 4\nB\n//@ else\nC\n//@ end\nD\\\n//@ if N == 4\nE\n//@ end\nF\n",
                 -1);
    assert_string_equal(out, "#line 1 \"templates/cpu/t.c\"\n/* one */\n"
                             "#define KERNEL_NAME name_of_kernel\nenum { N = 4 };\n"
                             "#line 12 \"templates/cpu/t.c\"\nA N\n"
                             "#line 14 \"templates/cpu/t.c\"\nB\n"
                             "#line 18 \"templates/cpu/t.c\"\nD\\\nE\n" /* no directive inside a macro */
                             "#line 22 \"templates/cpu/t.c\"\nF\n");
    sf_arena_destroy(a);
}

static void branches_follow_the_value(void **state) {
    (void)state;
    sf_arena *a = new_arena();
    const char *text =
        HEAD PARAM_N PRELUDE "N\n//@ if N == 4\nfour\n//@ end\n//@ if N != 4\nother\n//@ else\nagain\n"
                             "//@ end\n";
    assert_non_null(strstr(expanded(a, text, 4), "four"));
    assert_null(strstr(expanded(a, text, 5), "four"));
    assert_non_null(strstr(expanded(a, text, 5), "other"));
    assert_non_null(strstr(expanded(a, text, 4), "again"));
    sf_arena_destroy(a);
}

static void loops_nest(void **state) {
    (void)state;
    sf_arena *a = new_arena();
    const char *out =
        expanded(a,
                 HEAD PARAM_N PRELUDE "//@ list X a b\n//@ list Y 1 2\n//@ for I in X\n//@ for J in Y\n"
                                      "//@ if I == b\n//@| ${I}${J}x${N}\n//@ end\n//@ end\n//@ end\n",
                 -1);
    assert_non_null(strstr(out, "\nb1x4\n"));
    assert_non_null(strstr(out, "\nb2x4\n"));
    assert_null(strstr(out, "a1"));
    sf_arena_destroy(a);
}

static void plain_lines_are_never_replaced(void **state) {
    (void)state;
    sf_arena *a = new_arena();
    assert_non_null(strstr(expanded(a, HEAD PARAM_N PRELUDE "N; \"${N}\";\n", -1), "\nN; \"${N}\";\n"));
    sf_arena_destroy(a);
}

static void loops_over_nothing_end(void **state) {
    (void)state;
    sf_arena *a = new_arena();
    sf_buf b = {0}, out = {0};
    sf_err err = {0};
    sf_template *t = NULL;
    sf_value values[1] = {{.i = 4}};
    assert_ok(sf_buf_printf(&b, &err, HEAD PARAM_N PRELUDE "N\n//@ list X"), &err);
    for (int i = 0; i < SF_LIST_ITEMS_MAX; i++)
        assert_ok(sf_buf_printf(&b, &err, " %d", i), &err);
    for (int i = 0; i < SF_TEMPLATE_DEPTH; i++)
        assert_ok(sf_buf_printf(&b, &err, "\n//@ for I%d in X", i), &err);
    for (int i = 0; i < SF_TEMPLATE_DEPTH; i++)
        assert_ok(sf_buf_printf(&b, &err, "\n//@ end"), &err);
    assert_ok(parse_template(a, b.data, &t, &err), &err);
    assert_int_equal(sf_expand(t, values, "k", &out, &err), SF_FULL);
    assert_non_null(strstr(err.msg, "over 1048576 lines and rounds"));
    sf_buf_fini(&b);
    sf_buf_fini(&out);
    sf_arena_destroy(a);
}

static void a_caret_stands_under_the_fault(void **state) {
    (void)state;
    refused(HEAD "//@ param N int = 40 in 1..16\n" PRELUDE "N\n",
            "t.c:7:19: the default of N is 40, expected 1..16\n"
            "  //@ param N int = 40 in 1..16\n"
            "                    ^");
    refused(HEAD PARAM_N PRELUDE "\tN\n//@|\t${M}\n",
            "t.c:12:8: 'M' is not declared, expected a parameter or a loop's name\n"
            "  //@|\t${M}\n"
            "      \t  ^");
}

static void names_in_comments_and_literals_are_no_use(void **state) {
    (void)state;
    refused(HEAD PARAM_N PRELUDE "/* N */ // N\nchar *s = \"N \\\" N\"; /* and\nN */ int NN = 'N';\n",
            "t.c:7:11: parameter N is not used, expected it in the body\n"
            "  //@ param N int = 4 in 1..16 from op.n\n"
            "            ^");
}

static void the_prelude_says_the_defaults(void **state) {
    (void)state;
    refused(HEAD PARAM_N "//@ prelude\nenum { N = 5 };\n//@ end\nN\n",
            "t.c:7:19: the prelude sets N to '5 };', expected the default 4\n"
            "  //@ param N int = 4 in 1..16 from op.n\n"
            "                    ^");
    refused(HEAD PARAM_N "//@ prelude\nenum { MN = 4 };\n//@ end\nN\n",
            "t.c:7:11: parameter N is not set in the prelude, expected its default there\n"
            "  //@ param N int = 4 in 1..16 from op.n\n"
            "            ^");
}

static void ranges_and_classes_are_read(void **state) {
    (void)state;
    sf_arena *a = new_arena();
    sf_template *t = NULL;
    sf_err err = {0};
    assert_ok(
        parse_template(a,
                       "//@ template u\n//@ op sample\n//@ backend cpu\n//@ class both\n//@ rows 1..4 9..\n"
                       "//@ name a${N}\n//@ order: one,\n//@ order: two\n" PARAM_N PRELUDE "N\n",
                       &t, &err),
        &err);
    assert_int_equal(t->op, SF_OP_SAMPLE);
    assert_true(t->serves[SF_CLASS_FAST] && t->serves[SF_CLASS_PINNED]);
    assert_int_equal(sf_template_class(t), SF_CLASS_PINNED);
    assert_int_equal(t->n_rows, 2);
    assert_int_equal(t->rows[0].lo, 1);
    assert_int_equal(t->rows[0].hi, 4);
    assert_int_equal(t->rows[1].lo, 9);
    assert_true(t->rows[1].hi > 1 << 30);
    assert_string_equal(t->order, "one, two");
    assert_int_equal(strlen(t->sha256), 64);
    sf_arena_destroy(a);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_prelude_is_replaced_by_values),
        cmocka_unit_test(every_kind_of_value_is_written),
        cmocka_unit_test(lines_keep_their_numbers),
        cmocka_unit_test(branches_follow_the_value),
        cmocka_unit_test(loops_nest),
        cmocka_unit_test(plain_lines_are_never_replaced),
        cmocka_unit_test(loops_over_nothing_end),
        cmocka_unit_test(a_caret_stands_under_the_fault),
        cmocka_unit_test(names_in_comments_and_literals_are_no_use),
        cmocka_unit_test(the_prelude_says_the_defaults),
        cmocka_unit_test(ranges_and_classes_are_read),
    };
    return cmocka_run_group_tests(tests, go_to_root, NULL);
}
