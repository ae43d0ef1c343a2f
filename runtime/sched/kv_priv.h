/* The KV page allocator. Each sequence reserves at admission the pages that it may need at worst, so that
 * taking one later can't fail. One thread: the scheduler's. */
#ifndef SF_SCHED_KV_PRIV_H
#define SF_SCHED_KV_PRIV_H

#include "base/err.h"
#include "device/plan.h"

#include <stdbool.h>

/* What a page holds. PINNED: all its positions were written by pinned passes over pinned KV of one sequence,
 * and are committed: the truth, fit for a prefix cache or for outliving a preemption. */
typedef struct sf_kv_page {
    sf_class cls;
    bool used;
} sf_kv_page;

typedef struct sf_kv {
    int n_pages, page_size, n_free;
    int reserved;       /* pages promised to sequences, taken ones included: <= n_pages */
    int32_t *free_list; /* [n_pages], the first n_free count; used as a stack */
    sf_kv_page *pages;  /* [n_pages] */
} sf_kv;

SF_CHECKED sf_code sf_kv_init(sf_kv *kv, int n_pages, int page_size, sf_err *err);
void sf_kv_fini(sf_kv *kv);
/* Pages that hold `positions` positions. */
int sf_kv_pages_for(const sf_kv *kv, int positions);
/* Promises n pages; false when too few are left unpromised. */
bool sf_kv_reserve(sf_kv *kv, int n);
/* Takes one promised page, class FAST; the caller lists it for zeroing in its next pass. */
int32_t sf_kv_take(sf_kv *kv);
void sf_kv_mark_pinned(sf_kv *kv, int32_t page);
/* Gives back n taken pages and a promise of `reserved` pages. */
void sf_kv_release(sf_kv *kv, const int32_t *pages, int n, int reserved);

#endif
