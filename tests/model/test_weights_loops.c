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

/* Every bf16 value there is, at every address modulo 2 and with every remainder of 16. */
static void check_operands(const sf_wloops *form) {
    static uint8_t bytes[2 * 65536 + 1];
    static uint16_t out[65537];
    for (int shift = 0; shift < 2; shift++) {
        for (int rest = 0; rest < 16; rest++) {
            const int count = 0x7f80 - rest; /* the finite ones of one sign */
            for (int sign = 0; sign < 2; sign++) {
                for (int i = 0; i < count; i++) {
                    const uint16_t b = (uint16_t)(i | sign << 15);
                    memcpy(bytes + shift + 2 * i, &b, sizeof b);
                }
                out[count] = 0x1234;
                assert_true(form->operands(bytes + shift, count, out));
                assert_int_equal(out[count], 0x1234);
                for (int i = 0; i < count; i++) {
                    const float value = sf_bf16_to_f32((uint16_t)(i | sign << 15));
                    if (out[i] != sf_bf16_operand(value)) fail_msg("%d of sign %d is %x", i, sign, out[i]);
                }
            }
        }
    }
}

static void bf16_of_a_file_becomes_operands_in_every_form(void **state) {
    (void)state;
    each_form(check_operands);
}

static void check_transpose(const sf_wloops *form) {
    enum { PAIRS = 37 };
    static uint8_t bytes[SF_LANES][4 * PAIRS + 1];
    const uint8_t *rows[SF_LANES];
    uint16_t out[PAIRS + 1][SF_LANES][2];
    for (int lane = 0; lane < SF_LANES; lane++) {
        rows[lane] = bytes[lane] + lane % 2; /* odd addresses too */
        for (int k = 0; k < 2 * PAIRS; k++) {
            const uint16_t b = sf_bf16_from_f32(some_float((uint32_t)(lane * 1000 + k)) * 0x1p-2f);
            memcpy(bytes[lane] + lane % 2 + 2 * k, &b, sizeof b);
        }
    }
    for (int pairs = 0; pairs <= PAIRS; pairs++) {
        memset(out, 0x5a, sizeof out);
        assert_true(form->transpose(rows, pairs, (uint8_t *)out));
        for (int lane = 0; lane < SF_LANES; lane++) {
            for (int k = 0; k < 2 * pairs; k++) {
                uint16_t b;
                memcpy(&b, rows[lane] + 2 * k, sizeof b);
                assert_int_equal(out[k / 2][lane][k % 2], sf_bf16_operand(sf_bf16_to_f32(b)));
            }
            assert_int_equal(out[pairs][lane][0], 0x5a5a); /* nothing behind */
        }
    }
    for (int at = 0; at < SF_LANES * 2 * PAIRS; at++) { /* an infinity or NaN at every place */
        uint8_t *p = bytes[at % SF_LANES] + at % SF_LANES % 2 + 2 * (at / SF_LANES), was[2];
        const uint16_t bad = at % 3 ? 0xff80 : 0x7fc1;
        memcpy(was, p, 2);
        memcpy(p, &bad, 2);
        assert_false(form->transpose(rows, PAIRS, (uint8_t *)out));
        assert_false(form->operands(rows[at % SF_LANES], 2 * PAIRS, (uint16_t *)out));
        memcpy(p, was, 2);
    }
}

static void rows_of_bf16_become_columns_in_every_form(void **state) {
    (void)state;
    each_form(check_transpose);
}

/* Against PyPI's xxhash. */
static void check_digest(const sf_wloops *form) {
    static const uint8_t none[16] = {0x99, 0xaa, 0x06, 0xd3, 0x01, 0x47, 0x98, 0xd8,
                                     0x60, 0x01, 0xc3, 0x24, 0x46, 0x8d, 0x49, 0x7f};
    static const uint8_t some[16] = {0xe8, 0x14, 0x57, 0x3b, 0x3d, 0xb7, 0x86, 0xc4,
                                     0xed, 0x01, 0x46, 0x26, 0x6d, 0x13, 0x8b, 0xd8};
    uint8_t bytes[5000], out[16];
    for (int i = 0; i < 5000; i++)
        bytes[i] = (uint8_t)(i * 7 + (i >> 8));
    form->digest(bytes, 0, out);
    assert_memory_equal(out, none, 16);
    form->digest(bytes, sizeof bytes, out);
    assert_memory_equal(out, some, 16);
}

static void digests_are_xxh3s_in_every_form(void **state) {
    (void)state;
    each_form(check_digest);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rounding_is_the_same_in_every_form),
        cmocka_unit_test(a_value_that_is_not_finite_is_seen_at_every_place),
        cmocka_unit_test(draws_are_the_same_in_every_form),
        cmocka_unit_test(bf16_of_a_file_becomes_operands_in_every_form),
        cmocka_unit_test(rows_of_bf16_become_columns_in_every_form),
        cmocka_unit_test(digests_are_xxh3s_in_every_form),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
