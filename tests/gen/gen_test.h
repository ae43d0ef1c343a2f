/* Shared by the generator's tests. They run in the repository's root, so that messages name relative paths.
 */
#ifndef SF_TESTS_GEN_TEST_H
#define SF_TESTS_GEN_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants the four above first */
#include <cmocka.h>

#include "emit.h"
#include "plan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TINY_MODEL     "tests/golden/models/tiny.yaml"
#define TINY_CONFIG    "tests/golden/configs/tiny-cpu.yaml"
#define TINY_GPU       "tests/golden/configs/tiny-gpu.yaml"
#define SMOLLM         "models/smollm2-135m.yaml"
#define TEST_TEMPLATES "tests/gen/templates"

static inline int go_to_root(void **state) {
    (void)state;
    return chdir(SF_ROOT_DIR);
}

/* The message as main prints it. */
static inline const char *message(const sf_err *err) {
    static char text[800];
    return sf_err_format(err, text, sizeof text);
}

static inline void assert_ok(sf_code rc, const sf_err *err) {
    if (rc != SF_OK) fail_msg("%s", message(err));
}

static inline sf_arena *new_arena(void) {
    sf_arena *a = sf_arena_create();
    assert_non_null(a);
    return a;
}

/* Parses a literal; the root node, or a failed test. */
static inline sf_yaml_node *parse(sf_arena *a, const char *text) {
    sf_err err = {0};
    sf_yaml_node *root = NULL;
    assert_ok(sf_yaml_parse(a, "t.yaml", text, strlen(text), &root, &err), &err);
    return root;
}

static inline sf_planned *plan_of(sf_arena *a, const char *model, const char *config, const char *templates) {
    sf_err err = {0};
    sf_inputs *in = NULL;
    sf_planned *p = NULL;
    assert_ok(sf_inputs_read(a, model, config, templates, &in, &err), &err);
    assert_ok(sf_planned_build(a, in, &p, &err), &err);
    return p;
}

static inline sf_planned *tiny_plan(sf_arena *a) {
    return plan_of(a, TINY_MODEL, TINY_CONFIG, TEST_TEMPLATES);
}

static inline const sf_op_desc *op_named(const sf_planned *p, const char *name) {
    for (int i = 0; i < p->plan.n_ops; i++)
        if (strcmp(p->plan.ops[i].name, name) == 0) return &p->plan.ops[i];
    fail_msg("no op %s", name);
    return NULL;
}

static inline const char *file_named(const sf_files *files, const char *path) {
    for (int i = 0; i < files->n; i++)
        if (strcmp(files->files[i].path, path) == 0) return files->files[i].text;
    fail_msg("no file %s", path);
    return NULL;
}

/* The file at path with the first `find` replaced (NULL: unchanged), written to `to`. */
static inline void copy_file(const char *path, const char *to, const char *find, const char *replacement) {
    sf_buf b = {0};
    sf_err err = {0};
    assert_ok(sf_buf_read_file(&b, path, (size_t)1 << 22, &err), &err);
    const char *at = find ? strstr(b.data, find) : b.data + b.len;
    if (!at) fail_msg("%s lacks what is to be replaced", path);
    FILE *f = fopen(to, "wb");
    assert_non_null(f);
    fwrite(b.data, 1, (size_t)(at - b.data), f);
    if (find) fprintf(f, "%s%s", replacement, at + strlen(find));
    assert_int_equal(fclose(f), 0);
    sf_buf_fini(&b);
}

#endif
