#include "base/bf16.h"
#include "base/philox.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

/* Random123's known answers for philox4x32-10. */
static void philox_gives_the_known_answers(void **state) {
    (void)state;
    static const struct {
        uint32_t counter[4], key[2], out[4];
    } cases[] = {
        {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
        {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
         {0xffffffff, 0xffffffff},
         {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
        {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
         {0xa4093822, 0x299f31d0},
         {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint32_t out[4];
        sf_philox4x32(cases[i].counter, cases[i].key, out);
        assert_memory_equal(out, cases[i].out, sizeof out);
    }
}

static float from_bits(uint32_t u) {
    float f;
    memcpy(&f, &u, sizeof f);
    return f;
}

static void bf16_rounds_to_nearest_even(void **state) {
    (void)state;
    static const struct {
        uint32_t in;
        uint16_t out;
    } cases[] = {{0x3f800000, 0x3f80}, {0x3f808000, 0x3f80}, {0x3f808001, 0x3f81}, {0x3f818000, 0x3f82},
                 {0x3f817fff, 0x3f81}, {0xbf818000, 0xbf82}, {0x80000000, 0x8000}, {0x00000001, 0x0000},
                 {0x7f7fffff, 0x7f80}, {0x7f800000, 0x7f80}, {0xff800000, 0xff80}, {0x7f800001, 0x7fc0},
                 {0xffc00000, 0xffc0}, {0x7fffffff, 0x7fff}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_int_equal(sf_bf16_from_f32(from_bits(cases[i].in)), cases[i].out);
}

static void every_bf16_survives_the_round_trip(void **state) {
    (void)state;
    for (uint32_t b = 0; b <= 0xffff; b++) {
        uint16_t back = sf_bf16_from_f32(sf_bf16_to_f32((uint16_t)b));
        int nan = (b & 0x7fff) > 0x7f80;
        assert_int_equal(back, nan ? b | 0x40 : b);
    }
}

static void operands_under_2_to_the_minus_60_are_plus_zero(void **state) {
    (void)state;
    assert_int_equal(sf_bf16_operand(0x1p-60f), 0x2180);
    assert_int_equal(sf_bf16_operand(-0x1p-60f), 0xa180);
    assert_int_equal(sf_bf16_operand(from_bits(0x217fffff)), 0); /* even though it would round up to 2^-60 */
    assert_int_equal(sf_bf16_operand(from_bits(0xa17fffff)), 0);
    assert_int_equal(sf_bf16_operand(-0.0f), 0);
    assert_int_equal(sf_bf16_operand(1.5f), 0x3fc0);
    assert_int_equal(sf_bf16_operand(from_bits(0x7f800000)), 0x7f80);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(philox_gives_the_known_answers),
        cmocka_unit_test(bf16_rounds_to_nearest_even),
        cmocka_unit_test(every_bf16_survives_the_round_trip),
        cmocka_unit_test(operands_under_2_to_the_minus_60_are_plus_zero),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
