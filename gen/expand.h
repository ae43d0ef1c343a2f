/* Expands a checked template with one kernel's values. */
#ifndef SF_GEN_EXPAND_H
#define SF_GEN_EXPAND_H

#include "base/buf.h"
#include "template.h"

#define SF_EXPAND_MAX_BYTES ((size_t)2 << 20)
#define SF_EXPAND_MAX_STEPS (1 << 20)

/* Appends the kernel's source: the prelude with values [t->n_params], the body with its directives carried
 * out, and `#line` wherever the text leaves the template's own lines. Errors: SF_FULL (over
 * SF_EXPAND_MAX_BYTES), SF_NOMEM. */
SF_CHECKED sf_code sf_expand(const sf_template *t, const sf_value *values, const char *kernel_name,
                             sf_buf *out, sf_err *err);

/* The tile part of the kernel's name: t->tile with ${} replaced, "" where the template has none. */
SF_CHECKED sf_code sf_expand_tile(const sf_template *t, const sf_value *values, sf_buf *out, sf_err *err);

#endif
