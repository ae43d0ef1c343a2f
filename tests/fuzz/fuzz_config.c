/* Fuzz target: any bytes as a Hugging Face config.json, read and compared with a plan. */
#include "model/hf_config_priv.h"
#include "model/tiny_plan.h"
#include "model/weights_priv.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static volatile int sink;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    sf_hf_config *c = NULL;
    sf_err err;
    if (sf_hf_config_open_text("fuzz", (const char *)data, size, &c, &err) != SF_OK) return 0;
    sink = sf_weights_check_config(&tiny_plan, c, &err) == SF_OK;
    sink = sf_hf_config_model(c)->head_dim;
    sf_hf_config_close(c);
    return 0;
}
