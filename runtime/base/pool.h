/* A thread pool for data-parallel work. Which thread runs which part never changes a pinned bit: parts are
 * cut along outputs, never along a sum. */
#ifndef SF_BASE_POOL_H
#define SF_BASE_POOL_H

#include "base/err.h"

#include <stdbool.h>

typedef struct sf_pool sf_pool;

/* part is 0..parts-1; parts is the pool's thread count. */
typedef void sf_pool_fn(void *ctx, int part, int parts);

/* threads 1..256, the caller's own thread counted (so 1 starts none). */
SF_CHECKED sf_code sf_pool_create(int threads, sf_pool **out, sf_err *err);
void sf_pool_destroy(sf_pool *p); /* joins; NULL is fine */
int sf_pool_threads(const sf_pool *p);
/* Whether threads that wait (in a barrier, or for the next run) spin before they sleep: not where the pool
 * has more threads than sf_pool_cores() said when it was made, for spinning takes a late thread's core. */
bool sf_pool_spins(const sf_pool *p);
/* Cores that this thread may use now, at least 1; in a container fewer than the machine's. */
int sf_pool_cores(void);
/* Runs fn once per part, the caller doing part 0; returns when all parts are done. One caller at a time. */
void sf_pool_run(sf_pool *p, sf_pool_fn *fn, void *ctx);
/* Inside a running fn: waits until every part has arrived. Each part must call it the same number of times.
 */
void sf_pool_barrier(sf_pool *p);

#endif
