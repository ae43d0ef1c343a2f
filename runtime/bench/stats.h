/* Mean, spread and percentiles of a list, as numpy has them. An empty list gives 0 throughout, as vLLM's
 * report does. */
#ifndef SF_BENCH_STATS_H
#define SF_BENCH_STATS_H

#include "base/err.h"

#include <stdbool.h>

typedef struct sf_bench_list { /* growable; zero-initialise, sf_bench_list_fini frees */
    double *v;
    size_t n, cap;
} sf_bench_list;

void sf_bench_list_fini(sf_bench_list *l);
SF_CHECKED sf_code sf_bench_list_push(sf_bench_list *l, double v, sf_err *err);

double sf_bench_mean(const sf_bench_list *l);
double sf_bench_std(const sf_bench_list *l); /* of the population: numpy's std */
void sf_bench_sort(sf_bench_list *l);        /* ascending; for the next one */
/* p in 0..100, between the two nearest ranks on a line ("linear", Hyndman and Fan's type 7). l is sorted. */
double sf_bench_percentile(const sf_bench_list *l, double p);

#endif
