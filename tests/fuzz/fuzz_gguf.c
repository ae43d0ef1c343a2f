/* Fuzz target: any bytes as a GGUF file. Seeds: any small GGUF, tests/golden/dequant/dequant.gguf for one. */
#include "model/gguf_walk.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static volatile uint64_t sink;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    sf_gguf *g = NULL;
    sf_err err;
    if (size == 0 || sf_gguf_open_bytes("fuzz.gguf", data, size, &g, &err) != SF_OK) return 0;
    sink = walk(g);
    sf_gguf_close(g);
    return 0;
}
