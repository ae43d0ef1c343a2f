/* A model description from a checkpoint. */
#ifndef SF_GEN_IMPORT_H
#define SF_GEN_IMPORT_H

#include "arena.h"

#include <stdbool.h>

/* Reads the figures of a checkpoint (a GGUF file, or a Hugging Face directory with config.json and
 * tokenizer.json) and writes them as the model description `out`, whose name without .yaml becomes the
 * model's. What is written has been read back by sf_model_read, so that every family, split and range is
 * known to be one that the generator computes. A file that is there already stays as it is: *written is false
 * where it says the same, SF_INVALID where it differs. Both paths are borrowed until the last use of err.
 * Errors name the checkpoint's file and key: SF_UNSUPPORTED for what isn't computed. */
SF_CHECKED sf_code sf_import(sf_arena *a, const char *from, const char *out, bool *written, sf_err *err);

#endif
