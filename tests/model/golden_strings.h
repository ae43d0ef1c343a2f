/* Lists of strings in the golden files. After <cmocka.h>. */
#ifndef SF_TESTS_MODEL_GOLDEN_STRINGS_H
#define SF_TESTS_MODEL_GOLDEN_STRINGS_H

#include "model/gguf.h"

#include <jansson.h>
#include <stdlib.h>

/* The list under key, borrowing from golden; the array is the caller's to free. */
static inline sf_str *golden_strings(const json_t *golden, const char *key, size_t *n) {
    const json_t *list = json_object_get(golden, key);
    *n = json_array_size(list);
    sf_str *out = calloc(*n + 1, sizeof *out);
    assert_non_null(out);
    for (size_t i = 0; i < *n; i++) {
        const json_t *s = json_array_get(list, i);
        out[i] = (sf_str){json_string_value(s), json_string_length(s)};
    }
    return out;
}

#endif
