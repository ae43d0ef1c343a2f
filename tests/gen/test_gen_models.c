/* Every model of models/ generates for every machine of build-configs/, with a plan that holds together. */
#include "gen_test.h"

#include <dirent.h>

enum { FILES_MAX = 64 };

/* Paths of dir's .yaml files. */
static int list(const char *dir, char paths[FILES_MAX][320]) {
    int n = 0;
    DIR *d = opendir(dir);
    assert_non_null(d);
    for (const struct dirent *e; (e = readdir(d));) {
        const char *dot = strrchr(e->d_name, '.');
        if (!dot || strcmp(dot, ".yaml") != 0) continue;
        assert_true(n < FILES_MAX);
        snprintf(paths[n++], 320, "%s/%s", dir, e->d_name);
    }
    closedir(d);
    return n;
}

static void check_plan(const sf_plan *p, const char *model, const char *config) {
    char name[320];
    snprintf(name, sizeof name, "models/%s.yaml", p->model.name);
    assert_string_equal(name, model);
    snprintf(name, sizeof name, "build-configs/%s.yaml", p->config);
    assert_string_equal(name, config);
    assert_true(p->n_kernels > 20 && p->n_ops >= 12);
    assert_true(p->max_context > 0 && p->max_context <= p->model.context);
    for (int i = 0; i < p->n_ops; i++)
        for (int c = 0; c < SF_CLASS_COUNT; c++) {
            const sf_op_desc *op = &p->ops[i];
            const int rows = op->scope == SF_SCOPE_HEAD ? p->max_logit_rows : p->max_rows;
            assert_int_equal(op->routes[c][op->n_routes[c] - 1].rows_max, rows);
        }
    for (int i = 0; i < p->n_weights; i++) {
        const sf_weight_desc *w = &p->weights[i];
        int rows = 0;
        for (int j = 0; j < w->n_parts; j++)
            rows += w->parts[j].rows;
        assert_int_equal(rows, w->format == SF_W_F32 ? w->k : w->n);
    }
}

static void every_model_generates_for_every_machine(void **state) {
    (void)state;
    static char models[FILES_MAX][320], configs[FILES_MAX][320];
    const int n_models = list("models", models), n_configs = list("build-configs", configs);
    assert_true(n_models >= 12 && n_configs >= 3);
    for (int i = 0; i < n_models; i++)
        for (int j = 0; j < n_configs; j++) {
            sf_arena *a = new_arena();
            check_plan(&plan_of(a, models[i], configs[j], "templates")->plan, models[i], configs[j]);
            sf_arena_destroy(a);
        }
    print_message("%d models for %d machines\n", n_models, n_configs);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_model_generates_for_every_machine)};
    return cmocka_run_group_tests(tests, go_to_root, NULL);
}
