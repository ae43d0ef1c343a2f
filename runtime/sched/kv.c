#include "sched/kv_priv.h"

#include <assert.h>
#include <stdlib.h>

sf_code sf_kv_init(sf_kv *kv, int n_pages, int page_size, sf_err *err) {
    if (n_pages < 1 || page_size < 1)
        return SF_FAIL(err, SF_INVALID, "a KV pool of %d pages of %d positions, expected at least 1 of each",
                       n_pages, page_size);
    int32_t *free_list = malloc((size_t)n_pages * sizeof *free_list);
    sf_kv_page *pages = calloc((size_t)n_pages, sizeof *pages);
    if (!free_list || !pages) {
        free(free_list);
        free(pages);
        return SF_FAIL(err, SF_NOMEM, "tables for %d KV pages", n_pages);
    }
    for (int i = 0; i < n_pages; i++)
        free_list[i] = n_pages - 1 - i; /* page 0 is taken first */
    *kv = (sf_kv){.n_pages = n_pages,
                  .page_size = page_size,
                  .n_free = n_pages,
                  .free_list = free_list,
                  .pages = pages};
    return SF_OK;
}

void sf_kv_fini(sf_kv *kv) {
    free(kv->free_list);
    free(kv->pages);
    *kv = (sf_kv){0};
}

int sf_kv_pages_for(const sf_kv *kv, int positions) {
    return positions / kv->page_size + (positions % kv->page_size != 0);
}

bool sf_kv_reserve(sf_kv *kv, int n) {
    if (n > kv->n_pages - kv->reserved) return false;
    kv->reserved += n;
    return true;
}

int32_t sf_kv_take(sf_kv *kv) {
    assert(kv->n_free > 0); /* else a sequence took more than it reserved */
    int32_t page = kv->free_list[--kv->n_free];
    kv->pages[page] = (sf_kv_page){.cls = SF_CLASS_FAST, .used = true};
    return page;
}

void sf_kv_mark_pinned(sf_kv *kv, int32_t page) {
    assert(kv->pages[page].used);
    kv->pages[page].cls = SF_CLASS_PINNED;
}

void sf_kv_release(sf_kv *kv, const int32_t *pages, int n, int reserved) {
    for (int i = 0; i < n; i++) {
        assert(kv->pages[pages[i]].used);
        kv->pages[pages[i]].used = false;
        kv->free_list[kv->n_free++] = pages[i];
    }
    kv->reserved -= reserved;
}
