#include "kit.h"

#include "device/rope.h"
#include "odd.h"

static const odd_set *sets[SF_ISA_COUNT];
static int n_sets;

static int find_sets(void **state) {
    (void)state;
    n_sets = odd_sets(sets);
    return n_sets > 0 ? 0 : -1;
}

/* Distance in units of the last place of the exact value. */
static double ulps(float got, double exact) {
    const float near = (float)exact;
    const double unit = (double)nextafterf(fabsf(near), INFINITY) - (double)fabsf(near);
    return fabs((double)got - exact) / unit;
}

static void exp_is_within_two_ulp(void **state) {
    (void)state;
    double worst = 0;
    for (double at = -87.2; at < 88.6; at += 16 * 0.00137) {
        float x[16], y[16];
        for (int l = 0; l < 16; l++)
            x[l] = (float)(at + l * 0.00137);
        sets[0]->exp(x, y);
        for (int l = 0; l < 16; l++)
            worst = fmax(worst, ulps(y[l], exp((double)x[l])));
    }
    print_message("exp: %.3f ulp\n", worst);
    assert_true(worst < 2.0);
}

static void exp_at_the_edges(void **state) {
    (void)state;
    const float x[16] = {0.0f, -0.0f, -INFINITY, INFINITY, NAN, -88.0f, 89.0f, -1e30f, 1e30f};
    float y[16];
    sets[0]->exp(x, y);
    assert_true(y[0] == 1.0f && y[1] == 1.0f);
    assert_true(y[2] == 0.0f && isinf(y[3]) && isnan(y[4]));
    assert_true(y[5] == 0.0f && isinf(y[6]) && y[7] == 0.0f && isinf(y[8]));
}

static void log_is_within_two_ulp(void **state) {
    (void)state;
    double worst = 0;
    kit_random r = {1, 0};
    for (int i = 0; i < 40000; i++) {
        float x[16], y[16];
        for (int l = 0; l < 16; l++) {
            uint32_t u = i % 2 ? kit_word(&r) % 0x7f000000u + 0x00800000u  /* any positive normal number */
                               : 0x3f400000u + kit_word(&r) % 0x00800000u; /* near 1 */
            memcpy(&x[l], &u, sizeof u);
        }
        sets[0]->log(x, y);
        for (int l = 0; l < 16; l++)
            if (x[l] != 1.0f) worst = fmax(worst, ulps(y[l], log((double)x[l])));
    }
    print_message("log: %.3f ulp\n", worst);
    assert_true(worst < 2.0);
}

static void gumbel_keeps_its_precision_for_small_uniforms(void **state) {
    (void)state;
    kit_random r = {2, 0};
    double worst = 0;
    for (int i = 0; i < 20000; i++) {
        uint32_t w[16];
        float y[16];
        for (int l = 0; l < 16; l++)
            w[l] = kit_word(&r) >> (i % 32);
        sets[0]->gumbel(w, y);
        for (int l = 0; l < 16; l++) {
            const double v = fmin(((double)(float)w[l] + 0.5) * 0x1p-32, 1 - 0x1p-24);
            worst = fmax(worst, fabs((double)y[l] - -log(-log1p(-v))) / fmax(1.0, fabs((double)y[l])));
        }
    }
    print_message("gumbel: %.3g\n", worst);
    assert_true(worst < 1e-6);
}

static void gumbel_is_finite_at_both_ends(void **state) {
    (void)state;
    const uint32_t w[16] = {0, 1, 0xffffffffu, 0xfffffffeu, 0xffffff00u, 0x80000000u};
    float y[16];
    sets[0]->gumbel(w, y);
    for (int l = 0; l < 16; l++)
        assert_true(y[l] > -2.9f && y[l] < 22.9f);
}

static void operand_equals_the_scalar_one(void **state) {
    (void)state;
    kit_random r = {3, 0};
    for (int i = 0; i < 40000; i++) {
        float x[16], y[16];
        for (int l = 0; l < 16; l++) {
            const uint32_t u = i == 0 ? 0x7f7fffffu + (uint32_t)l : kit_word(&r);
            memcpy(&x[l], &u, sizeof u);
        }
        sets[0]->operand(x, y);
        for (int l = 0; l < 16; l++) {
            uint32_t u;
            memcpy(&u, &y[l], sizeof u);
            assert_int_equal(u, (uint32_t)sf_bf16_operand(x[l]) << 16);
        }
    }
}

/* Random123's known answers (kat_vectors, philox4x32 with 10 rounds). */
static void philox_gives_the_known_answers(void **state) {
    (void)state;
    static const uint32_t known[3][10] = {{0, 0, 0, 0, 0, 0, 0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8},
                                          {0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff,
                                           0xffffffff, 0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd},
                                          {0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344, 0xa4093822,
                                           0x299f31d0, 0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}};
    for (int s = 0; s < n_sets; s++) {
        for (int v = 0; v < 3; v++) {
            uint32_t w[4][16];
            for (int i = 0; i < 4; i++)
                for (int l = 0; l < 16; l++)
                    w[i][l] = known[v][i];
            sets[s]->philox(w, known[v][4], known[v][5]);
            for (int i = 0; i < 4; i++)
                for (int l = 0; l < 16; l++)
                    assert_int_equal(w[i][l], known[v][6 + i]);
        }
    }
}

static void every_instruction_set_gives_the_same_bits(void **state) {
    (void)state;
    kit_random r = {4, 0};
    for (int i = 0; i < 20000; i++) {
        float x[16], p[16], y[5][16];
        uint32_t w[16];
        for (int l = 0; l < 16; l++) {
            w[l] = kit_word(&r);
            memcpy(&x[l], &w[l], sizeof w[l]);
            p[l] = fabsf(x[l]) >= 0x1p-126f && isfinite(x[l]) ? fabsf(x[l]) : 1.0f;
        }
        for (int s = 0; s < n_sets; s++) {
            float z[5][16] = {{0}};
            sets[s]->exp(x, z[0]);
            sets[s]->log(p, z[1]);
            sets[s]->gumbel(w, z[2]);
            sets[s]->operand(x, z[3]);
            z[4][0] = sets[s]->sum(p);
            if (s == 0) memcpy(y, z, sizeof y);
            assert_memory_equal(y, z, sizeof y);
        }
    }
}

static void sines_and_frequencies_are_exact_to_double(void **state) {
    (void)state;
    double worst = 0, frequency = 0;
    for (int i = 0; i < 200000; i++) {
        const double x = i * 0.6553717;
        double s, c;
        sf_rope_sincos(x, &s, &c);
        worst = fmax(worst, fmax(fabs(s - sin(x)), fabs(c - cos(x))));
    }
    for (int i = 0; i < 64; i++)
        for (double theta = 1e4; theta < 2e6; theta *= 3.7)
            frequency = fmax(frequency, fabs(sf_rope_frequency(theta, i, 128) / pow(theta, -i / 64.0) - 1));
    print_message("sin, cos: %.3g; frequency: %.3g\n", worst, frequency);
    assert_true(worst < 1e-15 && frequency < 4e-15);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exp_is_within_two_ulp),
        cmocka_unit_test(exp_at_the_edges),
        cmocka_unit_test(log_is_within_two_ulp),
        cmocka_unit_test(gumbel_keeps_its_precision_for_small_uniforms),
        cmocka_unit_test(gumbel_is_finite_at_both_ends),
        cmocka_unit_test(operand_equals_the_scalar_one),
        cmocka_unit_test(philox_gives_the_known_answers),
        cmocka_unit_test(every_instruction_set_gives_the_same_bits),
        cmocka_unit_test(sines_and_frequencies_are_exact_to_double),
    };
    return cmocka_run_group_tests(tests, find_sets, NULL);
}
