/* Fuzz target: any bytes as a template, expanded with its defaults. Seeds: templates/cpu/, tests/cases/. */
#include "expand.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    sf_arena *a = sf_arena_create();
    sf_template *t = NULL;
    sf_err err;
    sf_buf out = {0};
    const char *text = size ? (const char *)data : "";
    if (a && sf_template_parse(a, "fuzz.c", "templates/cpu/fuzz.c", text, size, &t, &err) == SF_OK) {
        sf_value values[SF_PARAMS_MAX];
        for (int i = 0; i < t->n_params; i++)
            values[i] = t->params[i].def;
        sf_code rc = sf_expand_tile(t, values, &out, &err);
        if (rc == SF_OK) rc = sf_expand(t, values, "kernel", &out, &err);
        if (rc != SF_OK && rc != SF_FULL && rc != SF_NOMEM) __builtin_trap(); /* a parsed template is sound */
    }
    sf_buf_fini(&out);
    sf_arena_destroy(a);
    return 0;
}
