#include "bench/load.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static const sf_bench_load_config plain = {
    .n_prompts = 1000, .copies = 1, .rate = 50, .burstiness = 1, .deterministic_ratio = -1, .seed = 7};

static sf_bench_send *make(const sf_bench_load_config *c) {
    sf_bench_send *sends = NULL;
    sf_err err;
    assert_int_equal(sf_bench_load_make(c, &sends, &err), SF_OK);
    return sends;
}

/* Of the gaps: standard deviation over mean, 1 / sqrt(burstiness) for a gamma distribution. */
static double variation(const sf_bench_send *s, int n) {
    double sum = 0, squares = 0;
    for (int i = 0; i < n; i++) {
        const double gap = s[i].at_s - (i ? s[i - 1].at_s : 0);
        assert_true(gap >= 0);
        sum += gap;
        squares += gap * gap;
    }
    const double mean = sum / n;
    return sqrt(squares / n - mean * mean) / mean;
}

static void arrivals_take_n_over_rate_seconds_with_gamma_gaps(void **state) {
    (void)state;
    static const double shapes[] = {0.25, 0.5, 1, 2, 16};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        sf_bench_load_config c = plain;
        c.n_prompts = 20000;
        c.burstiness = shapes[i];
        sf_bench_send *s = make(&c);
        assert_true(fabs(s[c.n_prompts - 1].at_s - 400) < 1e-6); /* 20,000 at 50 a second */
        assert_true(fabs(variation(s, c.n_prompts) * sqrt(shapes[i]) - 1) < 0.06);
        free(s);
    }
}

static void infinite_burstiness_is_even_and_infinite_rate_at_once(void **state) {
    (void)state;
    sf_bench_load_config c = plain;
    c.burstiness = INFINITY;
    sf_bench_send *s = make(&c);
    for (int i = 0; i < c.n_prompts; i++)
        assert_true(fabs(s[i].at_s - (i + 1) / 50.0) < 1e-9);
    free(s);
    c.rate = INFINITY;
    s = make(&c);
    for (int i = 0; i < c.n_prompts; i++)
        assert_true(s[i].at_s == 0);
    free(s);
}

static void the_seed_decides(void **state) {
    (void)state;
    sf_bench_load_config c = plain;
    c.copies = 3;
    c.deterministic_ratio = 0.3;
    sf_bench_send *a = make(&c), *b = make(&c);
    const size_t size = (size_t)(c.n_prompts * c.copies) * sizeof *a;
    assert_memory_equal(a, b, size);
    free(b);
    c.seed = 8;
    b = make(&c);
    assert_memory_not_equal(a, b, size);
    free(a);
    free(b);
}

static void every_copy_of_every_prompt_is_sent_once_and_apart(void **state) {
    (void)state;
    sf_bench_load_config c = plain;
    c.n_prompts = 50;
    c.copies = 8;
    c.deterministic_ratio = 0.5;
    sf_bench_send *s = make(&c);
    char seen[50][8] = {{0}};
    sf_bench_kind kinds[50];
    int beside = 0;
    for (int i = 0; i < 400; i++) {
        assert_int_equal(seen[s[i].prompt][s[i].copy]++, 0);
        if (s[i].copy == 0) kinds[s[i].prompt] = s[i].kind;
        beside += i > 0 && s[i].prompt == s[i - 1].prompt;
    }
    for (int i = 0; i < 400; i++)
        assert_int_equal(s[i].kind, kinds[s[i].prompt]);
    assert_true(beside < 25); /* 7 of 399 are to be expected */
    free(s);
}

static void the_marked_share_is_exact_and_spread(void **state) {
    (void)state;
    static const double ratios[] = {0, 0.1, 1.0 / 3, 0.5, 0.75, 1};
    for (int64_t seed = 0; seed < 20; seed++)
        for (size_t i = 0; i < sizeof ratios / sizeof *ratios; i++) {
            sf_bench_load_config c = plain;
            int marked = 0;
            c.seed = seed;
            c.deterministic_ratio = ratios[i];
            sf_bench_send *s = make(&c);
            for (int k = 0; k < c.n_prompts; k++) {
                assert_int_not_equal(s[k].kind, SF_BENCH_UNMARKED);
                marked += s[k].kind == SF_BENCH_DETERMINISTIC;
                assert_true(fabs(marked - (k + 1) * ratios[i]) < 1 + 1e-9);
            }
            free(s);
        }
    sf_bench_send *s = make(&plain);
    assert_int_equal(s[0].kind, SF_BENCH_UNMARKED);
    free(s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(arrivals_take_n_over_rate_seconds_with_gamma_gaps),
        cmocka_unit_test(infinite_burstiness_is_even_and_infinite_rate_at_once),
        cmocka_unit_test(the_seed_decides),
        cmocka_unit_test(every_copy_of_every_prompt_is_sent_once_and_apart),
        cmocka_unit_test(the_marked_share_is_exact_and_spread),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
