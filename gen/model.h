/* A model's checked description (models/X.yaml). */
#ifndef SF_GEN_MODEL_H
#define SF_GEN_MODEL_H

#include "device/plan.h"
#include "yaml_node.h"

typedef struct sf_model {
    sf_model_desc desc; /* strings live in the arena */
    const char *file;   /* as given, for messages */
} sf_model;

/* Reads a parsed file. Every key is required unless said otherwise in models/README.md; an unknown one, a
 * value out of range, shapes that disagree, and every kind that is not computed are errors at their place. */
SF_CHECKED sf_code sf_model_read(const sf_yaml_node *root, const char *file, sf_model *out, sf_err *err);

#endif
