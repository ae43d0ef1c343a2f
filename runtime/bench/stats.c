#include "bench/stats.h"

#include <math.h>
#include <stdlib.h>

void sf_bench_list_fini(sf_bench_list *l) {
    free(l->v);
    *l = (sf_bench_list){0};
}

sf_code sf_bench_list_push(sf_bench_list *l, double v, sf_err *err) {
    if (l->n == l->cap) {
        const size_t cap = l->cap ? l->cap * 2 : 16;
        double *more = realloc(l->v, cap * sizeof *more);
        if (!more) return SF_FAIL(err, SF_NOMEM, "out of memory for the measurements");
        l->v = more;
        l->cap = cap;
    }
    l->v[l->n++] = v;
    return SF_OK;
}

double sf_bench_mean(const sf_bench_list *l) {
    double sum = 0;
    for (size_t i = 0; i < l->n; i++)
        sum += l->v[i];
    return l->n ? sum / (double)l->n : 0;
}

double sf_bench_std(const sf_bench_list *l) {
    const double mean = sf_bench_mean(l);
    double sum = 0;
    for (size_t i = 0; i < l->n; i++)
        sum += (l->v[i] - mean) * (l->v[i] - mean);
    return l->n ? sqrt(sum / (double)l->n) : 0;
}

static int ascending(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

void sf_bench_sort(sf_bench_list *l) {
    if (l->n > 1) qsort(l->v, l->n, sizeof *l->v, ascending);
}

double sf_bench_percentile(const sf_bench_list *l, double p) {
    if (l->n == 0) return 0;
    const double at = p / 100 * (double)(l->n - 1);
    const size_t low = (size_t)at, high = low + 1 < l->n ? low + 1 : low;
    return l->v[low] + (l->v[high] - l->v[low]) * (at - (double)low);
}
