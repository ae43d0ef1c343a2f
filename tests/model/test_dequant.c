#include "model/gguf.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#define GOLDEN SF_TEST_DIR "/golden/dequant/dequant.gguf"

static int open_golden(void **state) {
    sf_gguf *g = NULL;
    sf_err err = {0};
    if (sf_gguf_open(GOLDEN, &g, &err) != SF_OK) {
        print_error("%s\n", err.msg);
        return -1;
    }
    *state = g;
    return 0;
}

static int close_golden(void **state) {
    sf_gguf_close(*state);
    return 0;
}

static uint32_t bits(float f) {
    uint32_t u;
    memcpy(&u, &f, sizeof u);
    return u;
}

static bool is_nan(float f) {
    return (bits(f) & 0x7fffffffu) > 0x7f800000u;
}

/* Counts what the comparison met, so that a golden file without hard cases would be seen. */
typedef struct seen {
    int values, subnormal, negative_zero, infinite, nan;
} seen;

static void compare(const char *name, float got, float want, uint64_t row, uint64_t col, seen *s) {
    uint32_t u = bits(want);
    s->values++;
    s->subnormal += (u & 0x7f800000u) == 0 && (u & 0x7fffffu) != 0;
    s->negative_zero += u == 0x80000000u;
    s->infinite += (u & 0x7fffffffu) == 0x7f800000u;
    s->nan += is_nan(want);
    bool same = is_nan(want) ? is_nan(got) : bits(got) == u;
    if (!same) fail_msg("%s[%d, %d] is %a, expected %a", name, (int)row, (int)col, (double)got, (double)want);
}

static seen compare_type(const sf_gguf *g, const char *name, uint32_t type) {
    char expected[64];
    seen s = {0};
    snprintf(expected, sizeof expected, "%s.expected", name);
    const sf_gguf_tensor *t = sf_gguf_find_tensor(g, name), *e = sf_gguf_find_tensor(g, expected);
    assert_non_null(t);
    assert_non_null(e);
    assert_int_equal(t->type, type);
    uint64_t cols = t->dims[0];
    assert_true(cols == 64 || cols == 256);
    assert_int_equal(cols, e->dims[0]);
    assert_int_equal(t->dims[1], e->dims[1]);
    for (uint64_t r = 0; r < t->dims[1]; r++) {
        float got[256], want[256];
        assert_int_equal(sf_gguf_dequant(t, r, 0, cols, got, NULL), SF_OK);
        assert_int_equal(sf_gguf_dequant(e, r, 0, cols, want, NULL), SF_OK);
        for (uint64_t c = 0; c < cols; c++)
            compare(name, got[c], want[c], r, c, &s);
    }
    return s;
}

static void f16_equals_the_peer_bit_for_bit(void **state) {
    seen s = compare_type(*state, "f16", SF_GGML_F16);
    assert_true(s.values >= 300 && s.infinite == 2 && s.negative_zero == 1);
}

static void bf16_equals_the_peer_bit_for_bit(void **state) {
    seen s = compare_type(*state, "bf16", SF_GGML_BF16);
    assert_true(s.values >= 2500 && s.subnormal >= 8 && s.infinite == 2);
}

static void q8_0_equals_the_peer_bit_for_bit(void **state) {
    seen s = compare_type(*state, "q8_0", SF_GGML_Q8_0);
    assert_true(s.values >= 1200 && s.infinite > 0 && s.nan > 0 && s.negative_zero > 0);
}

static void q4_0_equals_the_peer_bit_for_bit(void **state) {
    seen s = compare_type(*state, "q4_0", SF_GGML_Q4_0);
    assert_true(s.values >= 1200 && s.infinite > 0 && s.nan > 0 && s.negative_zero > 0);
}

static void q4_1_equals_the_peer_bit_for_bit(void **state) {
    seen s = compare_type(*state, "q4_1", SF_GGML_Q4_1);
    assert_true(s.values >= 1700 && s.infinite > 0 && s.nan > 0);
}

static void q5_0_equals_the_peer_bit_for_bit(void **state) {
    seen s = compare_type(*state, "q5_0", SF_GGML_Q5_0);
    assert_true(s.values >= 1200 && s.infinite > 0 && s.nan > 0 && s.negative_zero > 0);
}

static void q5_1_equals_the_peer_bit_for_bit(void **state) {
    seen s = compare_type(*state, "q5_1", SF_GGML_Q5_1);
    assert_true(s.values >= 1700 && s.infinite > 0 && s.nan > 0);
}

static void q4_k_equals_the_peer_bit_for_bit(void **state) {
    seen s = compare_type(*state, "q4_k", SF_GGML_Q4_K);
    assert_true(s.values >= 10000 && s.infinite > 0 && s.nan > 0);
}

static void q5_k_equals_the_peer_bit_for_bit(void **state) {
    seen s = compare_type(*state, "q5_k", SF_GGML_Q5_K);
    assert_true(s.values >= 10000 && s.infinite > 0 && s.nan > 0);
}

static void q6_k_equals_the_peer_bit_for_bit(void **state) {
    seen s = compare_type(*state, "q6_k", SF_GGML_Q6_K);
    assert_true(s.values >= 6000 && s.infinite > 0 && s.nan > 0 && s.negative_zero > 0);
}

static void a_part_of_a_k_quants_row_is_refused_inside_a_block(void **state) {
    static const char *const names[] = {"q4_k", "q5_k", "q6_k"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const sf_gguf_tensor *t = sf_gguf_find_tensor(*state, names[i]);
        float whole[256], part[256];
        assert_int_equal(sf_gguf_dequant(t, t->dims[1] - 1, 0, 256, whole, NULL), SF_OK);
        memset(part, 0x55, sizeof part);
        assert_int_equal(sf_gguf_dequant(t, t->dims[1] - 1, 0, 77, part, NULL), SF_OK);
        assert_memory_equal(part, whole, 77 * sizeof *part);
        assert_int_equal(bits(part[77]), 0x55555555u);
        assert_int_equal(sf_gguf_dequant(t, 0, 32, 32, part, NULL), SF_INVALID);
    }
}

static void a_part_of_a_row_equals_that_part_of_the_whole(void **state) {
    static const char *const names[] = {"f16", "bf16", "q8_0", "q4_0", "q4_1", "q5_0", "q5_1"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const sf_gguf_tensor *t = sf_gguf_find_tensor(*state, names[i]);
        float whole[64], part[64];
        uint64_t row = t->dims[1] - 1;
        assert_int_equal(sf_gguf_dequant(t, row, 0, 64, whole, NULL), SF_OK);
        for (uint64_t from = 0; from < 64; from += 32) {
            for (uint64_t count = 0; count <= 64 - from; count++) {
                memset(part, 0x55, sizeof part);
                assert_int_equal(sf_gguf_dequant(t, row, from, count, part, NULL), SF_OK);
                assert_memory_equal(part, whole + from, count * sizeof *part);
                if (count < 64) assert_int_equal(bits(part[count]), 0x55555555u);
            }
        }
    }
}

static void places_outside_the_tensor_are_refused(void **state) {
    const sf_gguf_tensor *t = sf_gguf_find_tensor(*state, "q8_0");
    sf_err err = {0};
    float out[64] = {7};
    assert_int_equal(sf_gguf_dequant(t, t->dims[1], 0, 64, out, &err), SF_INVALID);
    assert_non_null(strstr(err.msg, "tensor q8_0: row 20"));
    assert_int_equal(sf_gguf_dequant(t, 0, 32, 33, out, NULL), SF_INVALID);
    assert_int_equal(sf_gguf_dequant(t, 0, 16, 16, out, NULL), SF_INVALID); /* inside a block */
    assert_int_equal(sf_gguf_dequant(t, 0, UINT64_MAX - 31, 32, out, NULL), SF_INVALID);
    assert_int_equal(sf_gguf_dequant(t, 0, 0, UINT64_MAX, out, NULL), SF_INVALID);
    assert_true(out[0] == 7);
}

static void a_type_that_cannot_be_read_is_refused_by_name(void **state) {
    (void)state;
    static const uint8_t block[292];
    const sf_gguf_tensor t = {.name = "acts",
                              .type = 15,
                              .n_dims = 1,
                              .dims = {256, 1, 1, 1},
                              .data = block,
                              .bytes = sizeof block};
    sf_err err = {0};
    float out[256] = {7};
    assert_int_equal(sf_gguf_dequant(&t, 0, 0, 256, out, &err), SF_UNSUPPORTED);
    assert_string_equal(err.msg, "tensor acts is Q8_K (15), which cannot be read");
    assert_true(out[0] == 7);
}

static void types_have_names(void **state) {
    (void)state;
    assert_string_equal(sf_ggml_type_name(SF_GGML_Q4_1), "Q4_1");
    assert_string_equal(sf_ggml_type_name(12), "Q4_K");
    assert_string_equal(sf_ggml_type_name(4), "an unknown type");
    assert_string_equal(sf_ggml_type_name(UINT32_MAX), "an unknown type");
    assert_true(sf_ggml_type_readable(SF_GGML_F32) && sf_ggml_type_readable(SF_GGML_BF16));
    assert_string_equal(sf_ggml_type_name(15), "Q8_K");
    assert_true(sf_ggml_type_readable(SF_GGML_Q4_K) && sf_ggml_type_readable(SF_GGML_Q6_K));
    assert_false(sf_ggml_type_readable(15) || sf_ggml_type_readable(4) || sf_ggml_type_readable(UINT32_MAX));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(f16_equals_the_peer_bit_for_bit),
        cmocka_unit_test(bf16_equals_the_peer_bit_for_bit),
        cmocka_unit_test(q8_0_equals_the_peer_bit_for_bit),
        cmocka_unit_test(q4_0_equals_the_peer_bit_for_bit),
        cmocka_unit_test(q4_1_equals_the_peer_bit_for_bit),
        cmocka_unit_test(q5_0_equals_the_peer_bit_for_bit),
        cmocka_unit_test(q5_1_equals_the_peer_bit_for_bit),
        cmocka_unit_test(q4_k_equals_the_peer_bit_for_bit),
        cmocka_unit_test(q5_k_equals_the_peer_bit_for_bit),
        cmocka_unit_test(q6_k_equals_the_peer_bit_for_bit),
        cmocka_unit_test(a_part_of_a_k_quants_row_is_refused_inside_a_block),
        cmocka_unit_test(a_part_of_a_row_equals_that_part_of_the_whole),
        cmocka_unit_test(places_outside_the_tensor_are_refused),
        cmocka_unit_test(a_type_that_cannot_be_read_is_refused_by_name),
        cmocka_unit_test(types_have_names),
    };
    return cmocka_run_group_tests(tests, open_golden, close_golden);
}
