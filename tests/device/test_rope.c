/* Frequencies of rotary pairs, scaled as Llama 3.1 scales them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants the four above first */
#include <cmocka.h>

#include "device/cpu/rope.h"

#include <math.h>

static const sf_model_desc llama = {.head_dim = 128,
                                    .rope_theta = 500000,
                                    .rope_kind = "llama3",
                                    .rope_factor = 8,
                                    .rope_low_freq = 1,
                                    .rope_high_freq = 4,
                                    .rope_original_context = 8192};

/* Figures of this Python, which follows the reference's text:
 *   f = 1 / theta ** (2 * i / 128); wavelen = 2 * math.pi / f
 *   if wavelen < old / high: f
 *   elif wavelen > old / low: f / factor
 *   else: s = (old / wavelen - low) / (high - low); (1 - s) * f / factor + s * f */
static void llama3_frequencies_are_the_references(void **state) {
    (void)state;
    static const struct {
        int i;
        double frequency;
    } expected[] = {{0, 1.0},
                    {20, 0.016560440080994446},
                    {28, 0.0032114459947525913},
                    {29, 0.002166570763503359},
                    {30, 0.0013718935677611381},
                    {31, 0.0008567514129196321},
                    {32, 0.0005248461609929547},
                    {33, 0.00031269375038406517},
                    {34, 0.00017850781276799638},
                    {35, 9.556212353964683e-05},
                    {50, 4.411534674558404e-06},
                    {63, 3.068925988914511e-07}};
    for (size_t n = 0; n < sizeof expected / sizeof *expected; n++) {
        const double f = sf_rope_model_frequency(&llama, expected[n].i);
        if (fabs(f / expected[n].frequency - 1) > 1e-13)
            fail_msg("pair %d: %.17g, expected %.17g", expected[n].i, f, expected[n].frequency);
    }
}

/* Pairs 0..28 turn over four times in 8192 positions, 35.. less than once. */
static void short_waves_stay_and_long_ones_are_divided(void **state) {
    (void)state;
    for (int i = 0; i < 64; i++) {
        const double plain = sf_rope_frequency(500000, i, 128), f = sf_rope_model_frequency(&llama, i);
        if (i <= 28) assert_true(f == plain);
        if (i > 28 && i < 35) assert_true(f < plain && f > plain / 8);
        if (i >= 35) assert_true(f == plain / 8);
    }
}

static void other_kinds_are_not_scaled(void **state) {
    (void)state;
    sf_model_desc m = llama;
    m.rope_kind = "default";
    for (int i = 0; i < 64; i++)
        assert_true(sf_rope_model_frequency(&m, i) == sf_rope_frequency(500000, i, 128));
    m.rope_kind = NULL;
    assert_true(sf_rope_model_frequency(&m, 40) == sf_rope_frequency(500000, 40, 128));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(llama3_frequencies_are_the_references),
        cmocka_unit_test(short_waves_stay_and_long_ones_are_divided),
        cmocka_unit_test(other_kinds_are_not_scaled),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
