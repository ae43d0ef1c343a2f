/* What kernel sources include: `#include "NAME"` at the beginning of a line. */
#ifndef SF_GEN_INCLUDE_H
#define SF_GEN_INCLUDE_H

#include "inputs.h"

/* The first name included from s on, and its length; NULL where there is none. */
const char *sf_include_find(const char *s, size_t *len);

/* Reads what the templates include, and what these include, as snippets: snippets/X from template_dir, and
 * device/X from the runtime folder beside it. sources [in->n_templates]: the templates' texts. Errors:
 * SF_NOT_FOUND at the place of the include; SF_FULL. */
SF_CHECKED sf_code sf_include_read(sf_arena *a, const char *template_dir, const char *const *sources,
                                   sf_inputs *in, sf_err *err);

/* Marks the snippets that a text includes, and those that they include. SF_NOT_FOUND: snippets/X that was not
 * read; path names the text. */
SF_CHECKED sf_code sf_include_mark(const sf_inputs *in, const char *path, const char *text, bool *used,
                                   sf_err *err);

/* Reads a file into the arena and records it as the input folder/<its base name>. (inputs.c) */
SF_CHECKED sf_code sf_inputs_read_file(sf_arena *a, sf_inputs *in, const char *path, const char *folder,
                                       size_t max, const char **text, size_t *len, sf_err *err);

#endif
