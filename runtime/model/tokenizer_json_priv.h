/* Reading tokenizer.json (the Hugging Face `tokenizers` library's format). Whatever the tokenizer does not
 * compute is SF_UNSUPPORTED with its JSON path, never ignored. */
#ifndef SF_MODEL_TOKENIZER_JSON_PRIV_H
#define SF_MODEL_TOKENIZER_JSON_PRIV_H

#include "model/tokenizer_priv.h"

#include <jansson.h>

typedef struct sf_tokenizer_json {
    sf_loc at; /* the directory; messages begin with the file's name */
    sf_err *err;
    sf_tokenizer_parts parts; /* what has been read so far */
    const char *bos_name;     /* what the post_processor puts before a text, or NULL */
} sf_tokenizer_json;

#define SF_TOKENIZER_JSON_FAIL(r, code, fmt, ...)                                                            \
    SF_FAIL_AT((r)->err, (code), (r)->at, "tokenizer.json: " fmt, __VA_ARGS__)

/* normalizer, pre_tokenizer, decoder and post_processor. */
SF_CHECKED sf_code sf_tokenizer_json_pipeline(sf_tokenizer_json *r, const json_t *root);
/* The whole file. root lives until the parts have been used. */
SF_CHECKED sf_code sf_tokenizer_json_build(const char *dir, const json_t *root, const json_t *config,
                                           sf_tokenizer **out, sf_err *err);

#endif
