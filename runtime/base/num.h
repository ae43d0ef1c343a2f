/* Numbers. */
#ifndef SF_BASE_NUM_H
#define SF_BASE_NUM_H

static inline int sf_min_int(int a, int b) {
    return a < b ? a : b;
}

#endif
