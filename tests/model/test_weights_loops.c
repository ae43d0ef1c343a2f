/* The inner loops of packing: each form the machine has against the definition, one value at a time. */
#include "model/weights_priv.h"

#include "base/bf16.h"
#include "base/philox.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <cmocka.h>

enum { MOST = 70 };

/* Calls check for each form, at least the plain one. */
static void each_form(void (*check)(const sf_wloops *)) {
    int n = 0;
    for (const sf_wloops *form = sf_wloops_at(0); form; form = sf_wloops_at(++n))
        check(form);
    assert_true(n >= 1);
    assert_ptr_equal(sf_wloops_best(), sf_wloops_at(n - 1));
}

/* Any bits, in turn among all finite numbers, among those near 2^-60, and near the largest. */
static float some_float(uint32_t i) {
    const uint32_t counter[4] = {i, 1, 2, 3}, key[2] = {4, 5};
    static const uint32_t bases[4] = {0, 0x217f0000u, 0x7f7e0000u, 0x3f800000u};
    uint32_t r[4], u;
    float f;
    sf_philox4x32(counter, key, r);
    u = i % 4 == 0 ? r[0] & 0xbfffffffu : (bases[i % 4] + (r[0] & 0x1ffffu)) | (r[1] & 0x80000000u);
    memcpy(&f, &u, sizeof f);
    return f;
}

static void check_bf16(const sf_wloops *form) {
    uint32_t at = 0;
    int finite_rows = 0, others = 0;
    for (int count = 0; count <= MOST; count++) {
        for (int turn = 0; turn < 20; turn++) {
            float in[MOST];
            uint16_t out[MOST + 1];
            bool finite = true;
            out[count] = 0x1234;
            for (int i = 0; i < count; i++) {
                in[i] = some_float(at++);
                if (turn % 2) in[i] *= 0x1p-2f; /* none rounds to an infinity */
                finite = finite && (sf_bf16_operand(in[i]) & 0x7f80) != 0x7f80;
            }
            assert_int_equal(form->to_bf16(in, count, out), finite);
            for (int i = 0; i < count; i++)
                assert_int_equal(out[i], sf_bf16_operand(in[i]));
            assert_int_equal(out[count], 0x1234); /* nothing behind */
            finite_rows += finite;
            others += !finite;
        }
    }
    assert_true(finite_rows > 100 && others > 100);
}

static void rounding_is_the_same_in_every_form(void **state) {
    (void)state;
    each_form(check_bf16);
}

static void check_not_finite(const sf_wloops *form) {
    static const uint32_t bits[] = {0x7f800000u, 0xff800000u, 0x7fc00000u, 0xffc00001u,
                                    0x7f800001u, 0x7fffffffu, 0x7f7fffffu};
    for (size_t b = 0; b < sizeof bits / sizeof *bits; b++) {
        for (int i = 0; i < MOST; i++) {
            float in[MOST] = {0};
            uint16_t out[MOST];
            assert_true(form->to_bf16(in, MOST, out));
            memcpy(&in[i], &bits[b], sizeof in[i]);
            assert_false(form->to_bf16(in, MOST, out));
        }
    }
}

static void a_value_that_is_not_finite_is_seen_at_every_place(void **state) {
    (void)state;
    each_form(check_not_finite);
}

static void check_draw(const sf_wloops *form) {
    static const uint32_t firsts[] = {0, 12345, UINT32_MAX - 5};
    const uint32_t key[2] = {0x89abcdefu, 0xfedcba98u};
    for (size_t f = 0; f < 3; f++) {
        for (int count = 1; count <= MOST; count++) {
            const uint32_t counter[4] = {firsts[f], 0xfffffff0u + (uint32_t)count, 3, 0x80000001u};
            float out[MOST + 1];
            out[count] = 77;
            form->draw(counter, key, 0.75f, 3e-5f, count, out);
            for (int i = 0; i < count; i++) {
                uint32_t c[4] = {firsts[f] + (uint32_t)i / 2, counter[1], counter[2], counter[3]}, r[4];
                sf_philox4x32(c, key, r);
                const uint32_t *two = r + i % 2 * 2;
                long sum = (long)(two[0] & 0xffff) + (two[0] >> 16) + (two[1] & 0xffff) + (two[1] >> 16);
                float want = (float)(2 * sum - 4 * 65535);
                want = 3e-5f * want;
                want = 0.75f + want;
                assert_memory_equal(&out[i], &want, sizeof want);
            }
            assert_true(out[count] == 77);
        }
    }
}

static void draws_are_the_same_in_every_form(void **state) {
    (void)state;
    each_form(check_draw);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rounding_is_the_same_in_every_form),
        cmocka_unit_test(a_value_that_is_not_finite_is_seen_at_every_place),
        cmocka_unit_test(draws_are_the_same_in_every_form),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
