/* Fuzz target: any bytes as a model and as a build configuration. Seeds: models/, build-configs/,
 * tests/cases/. */
#include "machine.h"
#include "model.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    sf_arena *a = sf_arena_create();
    sf_yaml_node *root = NULL;
    sf_model model;
    sf_machine machine;
    sf_err err;
    if (a && sf_yaml_parse(a, "fuzz.yaml", size ? (const char *)data : "", size, &root, &err) == SF_OK) {
        /* Both are tried: neither may trust what the other would have refused. */
        sf_code as_model = sf_model_read(root, "fuzz.yaml", &model, &err);
        sf_code as_machine = sf_machine_read(root, "fuzz.yaml", &machine, &err);
        if (as_model == SF_OK && as_machine == SF_OK) __builtin_trap(); /* no file is both */
    }
    sf_arena_destroy(a);
    return 0;
}
