#include "model/weights.h"

#include "base/bf16.h"
#include "model/tiny.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

enum { BIG_N = 300, BIG_K = 515 };

/* One wide matrix beside the tiny model's slots, for statistics. */
static const sf_weight_desc big_weights[] = {
    {"embed", SF_W_BF16, false, false, BIG_N, BIG_K, 1, {{"e", BIG_N, SF_ROLE_PLAIN, NULL}}, 0},
    {"matrix", SF_W_BF16, true, false, BIG_N, BIG_K, 1, {{"m", BIG_N, SF_ROLE_PLAIN, NULL}}, 0},
    {"norm", SF_W_F32, true, false, 1, 4096, 1, {{"n", 4096, SF_ROLE_PLAIN, NULL}}, 0},
    {"bias", SF_W_F32, true, false, 1, 4096, 1, {{"b", 4096, SF_ROLE_PLAIN, NULL}}, 0},
};

static const sf_op_desc big_ops[] = {
    {.name = "embed", .op = SF_OP_EMBED, .weight = 0, .bias = -1},
    {.name = "norm", .op = SF_OP_RMSNORM, .weight = 2, .bias = -1},
    {.name = "matrix", .op = SF_OP_GEMM, .weight = 1, .bias = 3},
};

static const sf_plan big_plan = {.engine = "big-cpu",
                                 .model = {.layers = 2, .head_dim = 4},
                                 .n_weights = 4,
                                 .weights = big_weights,
                                 .n_ops = 3,
                                 .ops = big_ops};

static sf_weights *draw(const sf_plan *plan, uint64_t seed, int threads) {
    sf_weights *w = NULL;
    sf_pool *pool = NULL;
    sf_err err = {0};
    assert_int_equal(sf_pool_create(threads, &pool, &err), SF_OK);
    if (sf_weights_random(plan, seed, pool, false, NULL, &w, &err) != SF_OK) fail_msg("%s", err.msg);
    sf_pool_destroy(pool);
    return w;
}

typedef struct moments {
    double mean, variance, largest;
} moments;

static moments of(const float *v, size_t n) {
    double sum = 0, squares = 0, largest = 0;
    for (size_t i = 0; i < n; i++) {
        double x = (double)v[i];
        sum += x;
        squares += x * x;
        if (fabs(x) > largest) largest = fabs(x);
    }
    double mean = sum / (double)n;
    return (moments){mean, squares / (double)n - mean * mean, largest};
}

static moments of_matrix(const sf_weights *w, int slot, int layer) {
    static float v[BIG_N * BIG_K];
    const uint16_t *p = sf_weights_get(w, slot, layer);
    for (int n = 0; n < BIG_N; n++) {
        for (int k = 0; k < BIG_K; k++)
            v[n * BIG_K + k] =
                sf_bf16_to_f32(p[((n / 16) * (BIG_K + 1) / 2 + k / 2) * 32 + n % 16 * 2 + k % 2]);
    }
    return of(v, sizeof v / sizeof *v);
}

static void matrices_have_variance_one_over_k(void **state) {
    (void)state;
    sf_weights *w = draw(&big_plan, 1, 2);
    for (int layer = 0; layer < 2; layer++) {
        moments m = of_matrix(w, 1, layer);
        assert_true(fabs(m.mean) < 0.001);
        assert_true(fabs(m.variance * BIG_K - 1) < 0.02);
        assert_true(m.largest * sqrt(BIG_K) > 3 && m.largest * sqrt(BIG_K) < 3.5);
    }
    sf_weights_destroy(w);
}

static void an_embedding_has_variance_one(void **state) {
    (void)state;
    sf_weights *w = draw(&big_plan, 1, 2);
    moments m = of_matrix(w, 0, 0);
    assert_true(fabs(m.mean) < 0.02 && fabs(m.variance - 1) < 0.02);
    sf_weights_destroy(w);
}

static void norms_stand_around_one_and_biases_around_zero(void **state) {
    (void)state;
    sf_weights *w = draw(&big_plan, 1, 1);
    moments norm = of(sf_weights_get(w, 2, 1), 4096), bias = of(sf_weights_get(w, 3, 1), 4096);
    assert_true(fabs(norm.mean - 1) < 0.01 && fabs(norm.variance - 0.01) < 0.001);
    assert_true(fabs(bias.mean) < 0.005 && fabs(bias.variance - 0.00390625) < 0.0004);
    sf_weights_destroy(w);
}

static void the_same_seed_gives_the_same_bits_for_every_thread_count(void **state) {
    (void)state;
    sf_weights *one = draw(&big_plan, 7, 1), *three = draw(&big_plan, 7, 3);
    assert_memory_equal(sf_weights_get(one, 0, 0), sf_weights_get(three, 0, 0), sf_weights_bytes(one));
    assert_string_equal(sf_weights_hash(one), sf_weights_hash(three));
    sf_weights_destroy(one);
    sf_weights_destroy(three);
}

/* The digest was made once; another machine, compiler or optimisation must not change it. */
static void bits_are_the_same_on_every_machine(void **state) {
    (void)state;
    sf_weights *w = draw(&tiny_plan, 0x123456789abcdef0u, 2);
    assert_string_equal(sf_weights_hash(w),
                        "2e7249d15aa7cc56bfee9e6be1bb355d8fa8649cfce3844e76444712c29c7158");
    sf_weights_destroy(w);
}

static void seeds_slots_and_layers_differ(void **state) {
    (void)state;
    sf_weights *a = draw(&big_plan, 7, 2), *b = draw(&big_plan, 7 + ((uint64_t)1 << 32), 2);
    assert_string_not_equal(sf_weights_hash(a), sf_weights_hash(b));
    assert_memory_not_equal(sf_weights_get(a, 1, 0), sf_weights_get(b, 1, 0), 64);
    assert_memory_not_equal(sf_weights_get(a, 1, 0), sf_weights_get(a, 1, 1), 64);
    const float *norm = sf_weights_get(a, 2, 0), *bias = sf_weights_get(a, 3, 0);
    assert_true(fabs((double)(norm[0] - 1) * 0.625 - (double)bias[0]) > 1e-4); /* not one stream, scaled */
    sf_weights_destroy(a);
    sf_weights_destroy(b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(matrices_have_variance_one_over_k),
        cmocka_unit_test(an_embedding_has_variance_one),
        cmocka_unit_test(norms_stand_around_one_and_biases_around_zero),
        cmocka_unit_test(the_same_seed_gives_the_same_bits_for_every_thread_count),
        cmocka_unit_test(bits_are_the_same_on_every_machine),
        cmocka_unit_test(seeds_slots_and_layers_differ),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
