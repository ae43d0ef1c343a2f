/* Memory of one generator run: every node, name and table lives until the arena is destroyed. Each block is
 * an allocation of its own, so that a sanitizer sees an overrun. One thread. */
#ifndef SF_GEN_ARENA_H
#define SF_GEN_ARENA_H

#include "base/err.h"

typedef struct sf_arena sf_arena;

sf_arena *sf_arena_create(void); /* NULL when out of memory */
void sf_arena_destroy(sf_arena *a);
/* count * size zeroed bytes; NULL when out of memory (then return sf_arena_full). */
void *sf_arena_alloc(sf_arena *a, size_t count, size_t size);
/* NUL-terminated copy of len bytes; NULL when out of memory. */
char *sf_arena_text(sf_arena *a, const char *s, size_t len);
char *sf_arena_printf(sf_arena *a, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* The error of a failed allocation. */
sf_code sf_arena_full(sf_err *err);

#endif
