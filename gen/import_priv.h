/* Inside of the import: where the figures come from. */
#ifndef SF_GEN_IMPORT_PRIV_H
#define SF_GEN_IMPORT_PRIV_H

#include "arena.h"
#include "device/plan.h"

/* Fill out but for its name; strings are literals or live in the arena. */
SF_CHECKED sf_code sf_import_gguf(sf_arena *a, const char *path, sf_model_desc *out, sf_err *err);
SF_CHECKED sf_code sf_import_dir(sf_arena *a, const char *dir, sf_model_desc *out, sf_err *err);

struct sf_tokenizer;
/* The name of the split that the tokenizer works by; NULL: one without a name. */
const char *sf_import_split(const struct sf_tokenizer *t);

/* Adds an id to the list of those that end, once. SF_UNSUPPORTED when it is full. */
SF_CHECKED sf_code sf_import_add_eos(sf_model_desc *m, const char *path, int id, sf_err *err);

#endif
