/* tests/golden/tokenizer/files.json, for a group of tests. */
#ifndef SF_TESTS_MODEL_GOLDEN_FILES_H
#define SF_TESTS_MODEL_GOLDEN_FILES_H

#include <jansson.h>

static json_t *golden;

static inline int load(void **state) {
    (void)state;
    golden = json_load_file(SF_TEST_DIR "/golden/tokenizer/files.json", JSON_ALLOW_NUL, NULL);
    return golden ? 0 : -1;
}

static inline int unload(void **state) {
    (void)state;
    json_decref(golden);
    return 0;
}

#endif
