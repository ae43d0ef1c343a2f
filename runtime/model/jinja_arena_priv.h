/* A bump allocator with a byte limit: a template's tree, or everything one rendering makes. */
#ifndef SF_MODEL_JINJA_ARENA_PRIV_H
#define SF_MODEL_JINJA_ARENA_PRIV_H

#include "base/err.h"

#include <stdbool.h>

typedef struct sf_jarena {
    struct sf_jchunk *head;
    size_t used, limit; /* bytes taken from malloc, and the most that may be */
    bool refused;       /* malloc gave nothing */
} sf_jarena;

void sf_jarena_init(sf_jarena *a, size_t limit);
void sf_jarena_fini(sf_jarena *a);
/* Zeroed, 16-byte aligned, freed with the arena; NULL when out of memory or past the limit. */
void *sf_jarena_get(sf_jarena *a, size_t bytes);
/* Why the last one gave NULL: SF_NOMEM or, past the limit, SF_FULL. */
sf_code sf_jarena_code(const sf_jarena *a);

#endif
