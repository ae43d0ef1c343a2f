/* Word lists in messages. */
#ifndef SF_GEN_SUGGEST_H
#define SF_GEN_SUGGEST_H

#include "base/suggest.h"

#include <stddef.h>

/* Writes "a, b or c", cut short with "..." where it does not fit; returns buf. size >= 8. */
const char *sf_join(const char *const *words, char *buf, size_t size);

#endif
