/* Cutting work into shares. */
#ifndef SF_SNIPPETS_PART_H
#define SF_SNIPPETS_PART_H

#include "device/cpu/kernel.h"

/* First item of share `part`; the share ends where the next begins. */
static inline int share_begin(int items, int part, int parts) {
    return (int)((int64_t)items * part / parts);
}

static inline void *part_scratch(const sf_cpu_args *a, int part) {
    return a->scratch + (size_t)part * a->scratch_stride;
}

#endif
