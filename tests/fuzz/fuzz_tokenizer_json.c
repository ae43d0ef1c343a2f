/* Fuzz target: any bytes as a tokenizer.json. What opens encodes the file's own text, with every special
 * token recognised, and decodes that. */
#include "model/tokenizer_json_priv.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const char *text = size ? (const char *)data : "";
    json_t *root = json_loadb(text, size, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, NULL);
    sf_tokenizer *t = NULL;
    sf_ids ids = {0};
    sf_buf back = {0};
    sf_err err;
    uint8_t zeros[8192] = {0};
    if (root && sf_tokenizer_json_build("fuzz", root, NULL, &t, &err) == SF_OK && size <= sizeof zeros &&
        sf_tokenizer_encode(t, text, size, zeros, &ids, &err) == SF_OK &&
        sf_tokenizer_decode(t, ids.data, ids.len, true, &back, &err) != SF_OK)
        __builtin_trap();
    sf_ids_fini(&ids);
    sf_buf_fini(&back);
    sf_tokenizer_close(t);
    json_decref(root);
    return 0;
}
