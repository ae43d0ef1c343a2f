/* Fuzz target: any bytes as a safetensors file. */
#include "model/st_walk.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static volatile uint64_t sink;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    sf_safetensors *s = NULL;
    sf_err err;
    if (size == 0 || sf_safetensors_open_bytes("fuzz.safetensors", data, size, &s, &err) != SF_OK) return 0;
    sink = st_walk(s);
    sf_safetensors_close(s);
    return 0;
}
