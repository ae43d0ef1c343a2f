#include "gen_test.h"

static void fails(const char *text, size_t len, sf_code code, const char *expected) {
    sf_arena *a = new_arena();
    sf_err err = {0};
    sf_yaml_node *root = NULL;
    sf_code rc = sf_yaml_parse(a, "t.yaml", text, len, &root, &err);
    assert_string_equal(message(&err), expected);
    assert_int_equal(rc, code);
    assert_null(root);
    sf_arena_destroy(a);
}

static void refused(const char *text, const char *expected) {
    fails(text, strlen(text), SF_FORMAT, expected);
}

static void nodes_carry_their_place(void **state) {
    (void)state;
    sf_arena *a = new_arena();
    const sf_yaml_node *root = parse(a, "a: 1\nlist:\n  - x\n  - {k: \"v\"}\n");
    const sf_yaml_node *list = sf_yaml_find(root, "list");
    assert_int_equal(list->key_loc.line, 2);
    assert_int_equal(list->key_loc.col, 1);
    assert_int_equal(list->n, 2);
    const sf_yaml_node *v = sf_yaml_find(list->last, "k");
    assert_int_equal(v->loc.line, 4);
    assert_int_equal(v->loc.col, 9);
    assert_true(v->quoted);
    assert_string_equal(v->text, "v");
    assert_string_equal(v->loc.file, "t.yaml");
    sf_arena_destroy(a);
}

static void only_the_subset_is_read(void **state) {
    (void)state;
    refused("a: 1\nb: 2\na: 3\n", "t.yaml:3:1: found the key 'a' again, expected it once (first at line 1)");
    refused("a: &x 1\n", "t.yaml:1:4: found the anchor '&x', expected a plain value");
    refused("a: 1\nb: *x\n", "t.yaml:2:4: found the alias '*x', expected a plain value");
    refused("*x : 1\n", "t.yaml:1:1: found an alias as a key, expected a word");
    refused("a: !!int 1\n", "t.yaml:1:4: found the tag 'tag:yaml.org,2002:int', expected a plain value");
    refused("a: !own {b: 1}\n", "t.yaml:1:4: found the tag '!own', expected a plain value");
    refused("a: &l [1]\n", "t.yaml:1:4: found the anchor '&l', expected a plain value");
    refused("[a]: 1\n", "t.yaml:1:1: found a list or a mapping as a key, expected a word");
    refused("a: 1\n---\nb: 2\n", "t.yaml:2:1: found a second document, expected one only");
    refused("", "t.yaml:1:1: found an empty file, expected a mapping");
    refused("- a\n", "t.yaml:1:1: found a list, expected a mapping");
    refused("word\n", "t.yaml:1:1: found a scalar, expected a mapping");
    refused("a: \"x\\0y\"\n", "t.yaml:1:4: found a NUL character, expected text");
}

static void syntax_errors_name_the_place(void **state) {
    (void)state;
    refused(
        "a: [1, 2\nb: 3\n",
        "t.yaml:2:2: did not find expected ',' or ']' while parsing a flow sequence, expected valid YAML");
    refused("a: 1\n  b: 2\n",
            "t.yaml:2:4: mapping values are not allowed in this context, expected valid YAML");
    refused("a: \"open\n",
            "t.yaml:2:1: found unexpected end of stream while scanning a quoted scalar, expected valid YAML");
    refused("a: 1\nb: x\xff\n", "t.yaml:2:5: invalid leading UTF-8 octet, expected UTF-8 text");
}

static void depth_nodes_and_bytes_are_bounded(void **state) {
    (void)state;
    char deep[64] = "a: ";
    memset(deep + 3, '[', 20);
    fails(deep, strlen(deep), SF_FULL, "t.yaml:1:15: nested over 12 deep, expected less");

    sf_buf b = {0};
    sf_err err = {0};
    for (int i = 0; i < SF_YAML_MAX_NODES; i++)
        assert_ok(sf_buf_printf(&b, &err, "k%d: 1\n", i), &err);
    fails(b.data, b.len, SF_FULL, "t.yaml:4096:8: over 4096 values, expected fewer");
    sf_buf_fini(&b);

    char *big = calloc(1, SF_YAML_MAX_BYTES + 1);
    assert_non_null(big);
    fails(big, SF_YAML_MAX_BYTES + 1, SF_FULL, "t.yaml: 262145 bytes, expected at most 262144");
    free(big);
}

static void integers_are_plain_decimals(void **state) {
    (void)state;
    static const char *const wrong[] = {
        "010", "1_000", "0x10", "1.0", "\"7\"", "+7", "1e3", "[1]", "{a: 1}", "99999999999999999999", ""};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        char text[80];
        sf_arena *a = new_arena();
        sf_err err = {0};
        int v = 77;
        snprintf(text, sizeof text, "n: %s\n", wrong[i]);
        sf_code rc = sf_yaml_get_int(parse(a, text), "n", 0, 1000000, &v, &err);
        if (rc != SF_INVALID) fail_msg("'%s' was taken", wrong[i]);
        assert_non_null(strstr(err.msg, "expected an integer in 0..1000000"));
        assert_int_equal(v, 77);
        sf_arena_destroy(a);
    }
    sf_arena *a = new_arena();
    sf_err err = {0};
    int v = 0;
    const sf_yaml_node *root = parse(a, "lo: -3\nhi: 4\nover: 5\n");
    assert_ok(sf_yaml_get_int(root, "lo", -3, 4, &v, &err), &err);
    assert_int_equal(v, -3);
    assert_ok(sf_yaml_get_int(root, "hi", -3, 4, &v, &err), &err);
    assert_int_equal(v, 4);
    assert_int_equal(sf_yaml_get_int(root, "over", -3, 4, &v, &err), SF_INVALID);
    assert_string_equal(message(&err), "t.yaml:3:7: over is 5, expected -3..4");
    assert_int_equal(sf_yaml_get_int(root, "none", -3, 4, &v, &err), SF_INVALID);
    assert_string_equal(message(&err), "t.yaml:1:1: the key 'none' is missing, expected it in this file");
    sf_arena_destroy(a);
}

static void numbers_are_finite_decimals(void **state) {
    (void)state;
    static const char *const wrong[] = {"nan", "inf", ".inf", "0x1p3", "1e999", "\"1\"", "1.5f", "e", "--1"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        char text[80];
        sf_arena *a = new_arena();
        sf_err err = {0};
        double v = 0;
        snprintf(text, sizeof text, "n: %s\n", wrong[i]);
        if (sf_yaml_get_num(parse(a, text), "n", -1e300, 1e300, &v, &err) != SF_INVALID)
            fail_msg("'%s' was taken", wrong[i]);
        sf_arena_destroy(a);
    }
    sf_arena *a = new_arena();
    sf_err err = {0};
    double v = 0;
    assert_ok(sf_yaml_get_num(parse(a, "n: 1.5e-5\n"), "n", 0, 1, &v, &err), &err);
    assert_true(v == 1.5e-5);
    sf_arena_destroy(a);
}

static void booleans_and_names_are_strict(void **state) {
    (void)state;
    sf_arena *a = new_arena();
    sf_err err = {0};
    bool b = false;
    const char *name = NULL;
    assert_ok(sf_yaml_get_bool(parse(a, "b: true\n"), "b", &b, &err), &err);
    assert_true(b);
    assert_int_equal(sf_yaml_get_bool(parse(a, "b: yes\n"), "b", &b, &err), SF_INVALID);
    assert_string_equal(message(&err), "t.yaml:1:4: b is yes, expected true or false");
    assert_int_equal(sf_yaml_get_bool(parse(a, "b: 'true'\n"), "b", &b, &err), SF_INVALID);
    assert_int_equal(sf_yaml_get_name(parse(a, "n: ../x\n"), "n", &name, &err), SF_INVALID);
    assert_int_equal(sf_yaml_get_name(parse(a, "n: a/b\n"), "n", &name, &err), SF_INVALID);
    assert_ok(sf_yaml_get_name(parse(a, "n: llama-3.1_8b\n"), "n", &name, &err), &err);
    assert_string_equal(name, "llama-3.1_8b");
    sf_arena_destroy(a);
}

static void unknown_keys_get_a_suggestion(void **state) {
    (void)state;
    static const char *const keys[] = {"hidden", "heads", NULL};
    sf_arena *a = new_arena();
    sf_err err = {0};
    assert_int_equal(sf_yaml_check_keys(parse(a, "heads: 1\nhiden: 2\n"), "a model", keys, &err), SF_INVALID);
    assert_string_equal(message(&err), "t.yaml:2:1: unknown key 'hiden' in a model, did you mean 'hidden'?");
    assert_int_equal(sf_yaml_check_keys(parse(a, "colour: 2\n"), "a model", keys, &err), SF_INVALID);
    assert_string_equal(message(&err),
                        "t.yaml:1:1: unknown key 'colour' in a model, expected hidden or heads");
    assert_ok(sf_yaml_check_keys(parse(a, "heads: 1\n"), "a model", keys, &err), &err);
    sf_arena_destroy(a);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nodes_carry_their_place),       cmocka_unit_test(only_the_subset_is_read),
        cmocka_unit_test(syntax_errors_name_the_place),  cmocka_unit_test(depth_nodes_and_bytes_are_bounded),
        cmocka_unit_test(integers_are_plain_decimals),   cmocka_unit_test(numbers_are_finite_decimals),
        cmocka_unit_test(booleans_and_names_are_strict), cmocka_unit_test(unknown_keys_get_a_suggestion),
    };
    return cmocka_run_group_tests(tests, go_to_root, NULL);
}
