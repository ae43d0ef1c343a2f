/* The generator's inputs: files, each with the hash that LOCK records. */
#ifndef SF_GEN_INPUTS_H
#define SF_GEN_INPUTS_H

#include "base/buf.h"
#include "machine.h"
#include "model.h"
#include "template.h"

#define SF_TEMPLATES_MAX 128
#define SF_SNIPPETS_MAX  64
#define SF_INPUTS_MAX    (2 + SF_TEMPLATES_MAX + SF_SNIPPETS_MAX)

/* name: as output spells it, whatever folder the file was read from ("models/tiny.yaml"). */
typedef struct sf_input {
    const char *name;
    char sha256[65];
} sf_input;

typedef struct sf_snippet {
    const char *name; /* "snippets/vec.h" or "device/cuda/pass_block.h", as it is included */
    const char *path; /* for messages */
    const char *text;
    size_t len;
} sf_snippet;

typedef struct sf_inputs {
    sf_model model;
    sf_machine machine;
    int n_templates, n_snippets, n_files;
    sf_template *templates[SF_TEMPLATES_MAX]; /* of the backend, by file name */
    sf_snippet snippets[SF_SNIPPETS_MAX];     /* cpu: all, by file name; cuda: those that templates reach */
    sf_input files[SF_INPUTS_MAX];            /* model, config, templates, snippets */
} sf_inputs;

/* Reads model, build configuration, and every template of its backend and snippet under template_dir
 * (template_dir/cpu/<name>.c, template_dir/snippets/<name>.h; for cuda template_dir/cuda/<name>.cu and what
 * they include, include.h). template_dir must be there; a folder
 * of it that is absent counts as empty. Paths are borrowed. The result lives in
 * the arena. */
SF_CHECKED sf_code sf_inputs_read(sf_arena *a, const char *model_path, const char *config_path,
                                  const char *template_dir, sf_inputs **out, sf_err *err);

/* SF_IO names dir where it cannot be read. */
SF_CHECKED sf_code sf_inputs_check_folder(const char *dir, sf_err *err);

/* File names in dir that end with suffix and do not begin with a dot, sorted bytewise. Absent dir: none.
 * SF_FULL over max. */
SF_CHECKED sf_code sf_inputs_list(sf_arena *a, const char *dir, const char *suffix, int max, const char **out,
                                  int *n, sf_err *err);

#endif
