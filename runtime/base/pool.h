/* A thread pool for data-parallel work. Which thread runs which part never changes a pinned bit: parts are
 * cut along outputs, never along a sum. */
#ifndef SF_BASE_POOL_H
#define SF_BASE_POOL_H

#include "base/err.h"

typedef struct sf_pool sf_pool;

/* part is 0..parts-1; parts is the pool's thread count. */
typedef void sf_pool_fn(void *ctx, int part, int parts);

/* threads 1..256, the caller's own thread counted (so 1 starts none). */
SF_CHECKED sf_code sf_pool_create(int threads, sf_pool **out, sf_err *err);
void sf_pool_destroy(sf_pool *p); /* joins; NULL is fine */
int sf_pool_threads(const sf_pool *p);
/* Runs fn once per part, the caller doing part 0; returns when all parts are done. One caller at a time.
 * Workers spin briefly between calls, then sleep. */
void sf_pool_run(sf_pool *p, sf_pool_fn *fn, void *ctx);
/* Inside a running fn: waits until every part has arrived. Each part must call it the same number of times.
 */
void sf_pool_barrier(sf_pool *p);

#endif
