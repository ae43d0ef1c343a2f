#include "bench/stats.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

static sf_bench_list list_of(int n, const double *v) {
    sf_bench_list l = {0};
    sf_err err;
    for (int i = 0; i < n; i++)
        assert_int_equal(sf_bench_list_push(&l, v[i], &err), SF_OK);
    return l;
}

static void assert_close(double got, double expected) {
    if (fabs(got - expected) > 1e-12 * fmax(1, fabs(expected)))
        fail_msg("got %.17g, expected %.17g", got, expected);
}

/* numpy 2: a = [3, 1, 4, 1, 5, 9, 2, 6.5]; np.mean, np.std, np.percentile(a, p) */
static void figures_are_numpy_s(void **state) {
    (void)state;
    static const double v[] = {3, 1, 4, 1, 5, 9, 2, 6.5};
    static const double at[][2] = {{0, 1},     {1, 1},      {10, 1},        {25, 1.75}, {50, 3.5},
                                   {90, 7.25}, {99, 8.825}, {99.9, 8.9825}, {100, 9}};
    sf_bench_list l = list_of(8, v);
    assert_close(sf_bench_mean(&l), 3.9375);
    assert_close(sf_bench_std(&l), 2.6272311946229627);
    sf_bench_sort(&l);
    for (size_t i = 0; i < sizeof at / sizeof *at; i++)
        assert_close(sf_bench_percentile(&l, at[i][0]), at[i][1]);
    sf_bench_list_fini(&l);
}

static void one_value_is_every_percentile(void **state) {
    (void)state;
    sf_bench_list l = list_of(1, (const double[]){7});
    sf_bench_sort(&l);
    assert_close(sf_bench_percentile(&l, 0), 7);
    assert_close(sf_bench_percentile(&l, 99.9), 7);
    assert_close(sf_bench_std(&l), 0);
    sf_bench_list_fini(&l);
}

static void an_empty_list_gives_zeros(void **state) {
    (void)state;
    sf_bench_list l = {0};
    sf_bench_sort(&l);
    assert_close(sf_bench_mean(&l) + sf_bench_std(&l) + sf_bench_percentile(&l, 50), 0);
    sf_bench_list_fini(&l);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(figures_are_numpy_s),
        cmocka_unit_test(one_value_is_every_percentile),
        cmocka_unit_test(an_empty_list_gives_zeros),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
