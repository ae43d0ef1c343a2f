/* Rotary frequencies and tables of every kind, against figures of an independent program
 * (tests/golden/rope/make.py). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants the four above first */
#include <cmocka.h>

#include "device/rope.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct expected {
    char name[32], kind[16];
    sf_model_desc m;
    double attention, freq[SF_ROPE_PAIRS_MAX];
} expected;

/* The next case; false: there is none. */
static bool next_case(FILE *f, expected *e) {
    double *const figures[] = {&e->m.rope_theta,
                               &e->m.rope_factor,
                               &e->m.rope_low_freq,
                               &e->m.rope_high_freq,
                               NULL,
                               &e->m.rope_beta_fast,
                               &e->m.rope_beta_slow,
                               &e->m.rope_attention_factor,
                               &e->m.rope_mscale,
                               &e->m.rope_mscale_all_dim,
                               NULL};
    double v = 0;
    *e = (expected){.m.rope_kind = e->kind};
    if (fscanf(f, "%31s %15s %d", e->name, e->kind, &e->m.head_dim) != 3) return false;
    for (size_t i = 0; i < sizeof figures / sizeof *figures; i++) {
        assert_int_equal(fscanf(f, "%lf", &v), 1);
        if (figures[i]) *figures[i] = v;
        if (i == 4) e->m.rope_original_context = (int)v;
        if (i == 10) e->m.rope_exact_range = v == 0;
    }
    assert_int_equal(fscanf(f, "%lf", &e->attention), 1);
    for (int i = 0; i < e->m.head_dim / 2; i++)
        assert_int_equal(fscanf(f, "%lf", &e->freq[i]), 1);
    return true;
}

static void every_kind_agrees_with_the_published_formulas(void **state) {
    (void)state;
    int cases = 0, yarns = 0;
    expected e;
    FILE *f = fopen(SF_TEST_DIR "/golden/rope/frequencies.txt", "r");
    assert_non_null(f);
    for (; next_case(f, &e); cases++) {
        sf_rope r;
        sf_rope_init(&e.m, &r);
        assert_int_equal(r.pairs, e.m.head_dim / 2);
        yarns += strcmp(e.kind, "yarn") == 0;
        if (fabs(r.attention / e.attention - 1) > 1e-15)
            fail_msg("%s: attention factor %.17g, expected %.17g", e.name, r.attention, e.attention);
        for (int i = 0; i < r.pairs; i++)
            if (fabs(r.freq[i] / e.freq[i] - 1) > 5e-15)
                fail_msg("%s, pair %d: %.17g, expected %.17g", e.name, i, r.freq[i], e.freq[i]);
    }
    fclose(f);
    assert_true(cases >= 16 && yarns >= 11);
}

static sf_rope rope_of(const sf_model_desc *m) {
    sf_rope r;
    sf_rope_init(m, &r);
    return r;
}

static const sf_model_desc llama = {.head_dim = 128,
                                    .rope_theta = 500000,
                                    .rope_kind = "llama3",
                                    .rope_factor = 8,
                                    .rope_low_freq = 1,
                                    .rope_high_freq = 4,
                                    .rope_original_context = 8192};

/* Pairs 0..28 turn over four times in 8192 positions, 35.. less than once. */
static void llama3_leaves_short_waves_and_divides_long_ones(void **state) {
    (void)state;
    const sf_rope r = rope_of(&llama);
    for (int i = 0; i < 64; i++) {
        const double plain = sf_rope_frequency(500000, i, 128), f = r.freq[i];
        if (i <= 28) assert_true(f == plain);
        if (i > 28 && i < 35) assert_true(f < plain && f > plain / 8);
        if (i >= 35) assert_true(f == plain / 8);
    }
}

static void yarn_leaves_the_first_pairs_and_divides_the_last(void **state) {
    (void)state;
    const sf_model_desc m = {.head_dim = 128,
                             .rope_theta = 1000000,
                             .rope_kind = "yarn",
                             .rope_factor = 4,
                             .rope_original_context = 32768,
                             .rope_beta_fast = SF_YARN_BETA_FAST,
                             .rope_beta_slow = SF_YARN_BETA_SLOW};
    const sf_rope r = rope_of(&m);
    for (int i = 0; i < 64; i++) {
        const double plain = sf_rope_frequency(1000000, i, 128);
        if (i <= 23) assert_true(r.freq[i] == plain);
        if (i > 23 && i < 40) assert_true(r.freq[i] < plain && r.freq[i] > plain / 4);
        if (i >= 40) assert_true(r.freq[i] == plain / 4);
    }
}

static void without_a_kind_nothing_is_scaled(void **state) {
    (void)state;
    sf_model_desc m = llama;
    m.rope_kind = NULL;
    const sf_rope r = rope_of(&m);
    assert_true(r.attention == 1);
    for (int i = 0; i < 64; i++)
        assert_true(r.freq[i] == sf_rope_frequency(500000, i, 128));
}

/* Figures rounded to float, whose bits must not depend on the attention factor where it is 1. */
static void a_row_holds_cosines_and_sines_times_the_attention_factor(void **state) {
    (void)state;
    sf_rope plain = rope_of(&llama), scaled = plain;
    float x[128], y[128];
    scaled.attention = 1.5;
    for (int pos = 0; pos < 100000; pos += 7919) {
        sf_rope_row(&plain, pos, x);
        sf_rope_row(&scaled, pos, y);
        for (int i = 0; i < 64; i++) {
            double s = 0, c = 0;
            sf_rope_sincos(pos * plain.freq[i], &s, &c);
            assert_true(x[2 * i] == (float)c && x[2 * i + 1] == (float)s);
            assert_true(y[2 * i] == (float)(c * 1.5) && y[2 * i + 1] == (float)(s * 1.5));
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kind_agrees_with_the_published_formulas),
        cmocka_unit_test(llama3_leaves_short_waves_and_divides_long_ones),
        cmocka_unit_test(yarn_leaves_the_first_pairs_and_divides_the_last),
        cmocka_unit_test(without_a_kind_nothing_is_scaled),
        cmocka_unit_test(a_row_holds_cosines_and_sines_times_the_attention_factor),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
