/* What the reader refuses, each by file and by key or tensor. */
#include "model/gguf_small.h"
#include "model/gguf_walk.h"

#include <stdarg.h>
#include <setjmp.h>
#include <cmocka.h>

static volatile uint64_t sink; /* keeps the walk's reads */

/* A copy of exactly that size, so that a sanitizer sees the first byte past it. */
static uint8_t *exact(const uint8_t *data, size_t len) {
    uint8_t *p = malloc(len);
    assert_non_null(p);
    memcpy(p, data, len);
    return p;
}

/* Opens; expects failure with that code and text in the message; frees m. */
static void expect_error(gm *m, sf_code code, const char *text) {
    sf_gguf *g = NULL;
    sf_err err = {0};
    char msg[600];
    uint8_t *copy = exact(m->data, m->len);
    sf_code rc = sf_gguf_open_bytes(NAME, copy, m->len, &g, &err);
    sf_err_format(&err, msg, sizeof msg);
    if (rc != code || !strstr(msg, text) || strncmp(msg, NAME ": ", strlen(NAME) + 2) != 0) {
        fail_msg("code %d '%s', expected %d '%s'", (int)rc, msg, (int)code, text);
    }
    assert_null(g);
    free(copy);
    gm_fini(m);
}

static void paths_that_are_no_files_are_refused(void **state) {
    (void)state;
    sf_gguf *g = NULL;
    sf_err err = {0};
    char msg[600], path[64];
    assert_int_equal(sf_gguf_open("/nonexistent/x.gguf", &g, &err), SF_IO);
    assert_string_equal(sf_err_format(&err, msg, sizeof msg),
                        "/nonexistent/x.gguf: No such file or directory");
    assert_int_equal(sf_gguf_open("/tmp", &g, &err), SF_IO);
    assert_string_equal(sf_err_format(&err, msg, sizeof msg), "/tmp: not a regular file");
    gm empty = {0};
    gm_save(&empty, path);
    assert_int_equal(sf_gguf_open(path, &g, &err), SF_FORMAT);
    assert_non_null(strstr(err.msg, "empty"));
    assert_null(g);
    unlink(path);
}

static void other_formats_and_versions_are_refused_by_name(void **state) {
    (void)state;
    gm m = {0};
    gm_bytes(&m, "PK\3\4 and more bytes, as in a zip", 32);
    expect_error(&m, SF_FORMAT, "not a GGUF file: it begins with bytes 50 4b 03 04");
    gm_head(&m, 1, 0, 0);
    expect_error(&m, SF_UNSUPPORTED, "GGUF version 1, expected 2 or 3");
    gm_head(&m, 4, 0, 0);
    expect_error(&m, SF_UNSUPPORTED, "GGUF version 4, expected 2 or 3");
    gm_head(&m, 0, 0, 0);
    expect_error(&m, SF_UNSUPPORTED, "GGUF version 0, expected 2 or 3");
    gm_head(&m, 0x03000000, 0, 0);
    expect_error(&m, SF_UNSUPPORTED, "big-endian GGUF, expected little-endian");
}

static void huge_counts_are_refused_before_allocation(void **state) {
    (void)state;
    gm m = {0};
    static const uint64_t counts[] = {
        1, 1000, UINT32_MAX, (uint64_t)1 << 63, UINT64_MAX, UINT64_MAX / 33 + 1};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        gm_head(&m, 3, counts[i], 0);
        expect_error(&m, SF_FORMAT, "tensors, more than the file's 24 bytes can hold");
        gm_head(&m, 3, 0, counts[i]);
        expect_error(&m, SF_FORMAT, "metadata keys, more than the file's 24 bytes can hold");
        m = one_key("k", 8);
        gm_uint(&m, counts[i], 8);
        expect_error(&m, SF_FORMAT, "key k: needs ");
        m = (gm){0};
        gm_head(&m, 3, 0, 1);
        gm_array(&m, "k", 8, counts[i]);
        expect_error(&m, SF_FORMAT, "key k: claims ");
        gm_head(&m, 3, 0, 1);
        gm_array(&m, "k", 10, counts[i]);
        expect_error(&m, SF_FORMAT, "key k: claims ");
    }
}

static void bad_metadata_is_refused_by_key(void **state) {
    (void)state;
    gm m = one_key("k", 13);
    gm_uint(&m, 0, 8);
    expect_error(&m, SF_FORMAT, "key k: unknown value type 13");
    m = one_key("k", 7);
    gm_uint(&m, 2, 1);
    expect_error(&m, SF_FORMAT, "key k: bool 2, expected 0 or 1");
    gm_head(&m, 3, 0, 1);
    gm_array(&m, "k", 7, 3);
    gm_uint(&m, 0x070100, 3);
    expect_error(&m, SF_FORMAT, "key k: bool 7, expected 0 or 1");
    gm_head(&m, 3, 0, 1);
    gm_array(&m, "k", 9, 1);
    gm_uint(&m, 0, 8);
    gm_uint(&m, 0, 4);
    expect_error(&m, SF_UNSUPPORTED, "key k: an array of arrays is not supported");
    gm_head(&m, 3, 0, 1);
    gm_array(&m, "k", 99, 0);
    expect_error(&m, SF_FORMAT, "key k: unknown value type 99");
    gm_head(&m, 3, 0, 3);
    gm_kv_u32(&m, "twice", 1);
    gm_kv_u32(&m, "once", 1);
    gm_kv_str(&m, "twice", "x");
    expect_error(&m, SF_FORMAT, "key twice stands twice");
    m = one_key("", 4);
    gm_uint(&m, 0, 8);
    expect_error(&m, SF_FORMAT, "name of metadata key 0 has 0 bytes");
    m = one_key("a\nb", 4);
    gm_uint(&m, 0, 4);
    expect_error(&m, SF_FORMAT, "name of metadata key 0 has byte 0x0a");
}

static void bad_dimensions_are_refused_by_tensor(void **state) {
    (void)state;
    const uint64_t big = (uint64_t)1 << 32, zero[2] = {4, 0}, huge[3] = {big, big, 2},
                   wide[1] = {INT64_MAX / 2}, ragged[2] = {33, 2}, five[5] = {1, 1, 1, 1, 1};
    gm m = one_tensor(0, five, SF_GGML_F32, 0, 64);
    expect_error(&m, SF_FORMAT, "tensor t: 0 dimensions, expected 1..4");
    m = one_tensor(5, five, SF_GGML_F32, 0, 64);
    expect_error(&m, SF_FORMAT, "tensor t: 5 dimensions, expected 1..4");
    m = one_tensor(2, zero, SF_GGML_F32, 0, 64);
    expect_error(&m, SF_FORMAT, "tensor t: dimension 1 is 0");
    m = one_tensor(3, huge, SF_GGML_F32, 0, 64);
    expect_error(&m, SF_FORMAT, "tensor t: the product of its dimensions overflows");
    m = one_tensor(1, wide, SF_GGML_F32, 0, 64);
    expect_error(&m, SF_FORMAT, "tensor t: its size in bytes overflows");
    m = one_tensor(2, ragged, SF_GGML_Q8_0, 0, 128);
    expect_error(&m, SF_FORMAT, "tensor t: rows of 33 elements, expected a multiple of 32 for Q8_0");
}

static void bad_offsets_are_refused_by_tensor(void **state) {
    (void)state;
    gm m = one_tensor(2, dims_4x3, SF_GGML_F32, 4, 64);
    expect_error(&m, SF_FORMAT, "tensor t: offset 4 is no multiple of the alignment 32");
    m = one_tensor(2, dims_4x3, SF_GGML_F32, 32, 64);
    expect_error(&m, SF_FORMAT, "tensor t: 48 bytes at offset 32 of the data, the file has 64 bytes of data");
    m = one_tensor(2, dims_4x3, SF_GGML_F32, UINT64_MAX - 31, 64);
    expect_error(&m, SF_FORMAT, "tensor t: 48 bytes at offset 18446744073709551584");
    m = one_tensor(2, dims_4x3, SF_GGML_F32, 0, 47);
    expect_error(&m, SF_FORMAT, "the file has 47 bytes of data");
    gm_head(&m, 3, 2, 0);
    gm_tensor(&m, "first", 2, dims_4x3, SF_GGML_F32, 0);
    gm_tensor(&m, "second", 2, dims_4x3, SF_GGML_F32, 32);
    gm_pad(&m, 32);
    for (int i = 0; i < 32; i++)
        gm_f32(&m, 0);
    expect_error(&m, SF_FORMAT, "tensors first and second overlap");
    gm_head(&m, 3, 2, 0);
    gm_tensor(&m, "same", 1, dims_4x3, SF_GGML_F32, 0);
    gm_tensor(&m, "same", 1, dims_4x3, SF_GGML_F32, 32);
    gm_pad(&m, 32);
    for (int i = 0; i < 32; i++)
        gm_f32(&m, 0);
    expect_error(&m, SF_FORMAT, "tensor same stands twice");
}

static void tensor_names_are_checked(void **state) {
    (void)state;
    char name[66];
    memset(name, 'x', 65);
    name[65] = 0;
    gm m = {0};
    gm_head(&m, 3, 1, 0);
    gm_tensor(&m, name, 2, dims_4x3, SF_GGML_F32, 0);
    expect_error(&m, SF_FORMAT, "name of tensor 0 has 65 bytes, expected 1..64");
    gm_head(&m, 3, 1, 0);
    gm_uint(&m, UINT64_MAX - 7, 8);
    gm_bytes(&m, name, 65);
    expect_error(&m, SF_FORMAT, "a tensor's name: needs 18446744073709551608 bytes");
    gm_head(&m, 3, 1, 0);
    gm_uint(&m, 3, 8);
    gm_bytes(&m, "a\0b", 3);
    gm_bytes(&m, name, 64);
    expect_error(&m, SF_FORMAT, "name of tensor 0 has byte 0x00");
}

static void alignment_is_a_power_of_two(void **state) {
    (void)state;
    static const uint32_t bad[] = {0, 1, 4, 3, 24, 0xffffffffu};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        gm m = {0};
        gm_head(&m, 3, 1, 1);
        gm_kv_u32(&m, "general.alignment", bad[i]);
        gm_tensor(&m, "t", 1, dims_4x3, SF_GGML_F32, 0);
        expect_error(&m, SF_FORMAT, "expected a power of two of at least 8");
    }
    gm m = {0};
    gm_head(&m, 3, 1, 1);
    gm_kv_str(&m, "general.alignment", "32");
    gm_tensor(&m, "t", 1, dims_4x3, SF_GGML_F32, 0);
    expect_error(&m, SF_FORMAT, "key general.alignment has type string, expected an integer");
    gm_head(&m, 3, 1, 1);
    gm_kv_u32(&m, "general.alignment", 0x80000000u);
    gm_tensor(&m, "t", 1, dims_4x3, SF_GGML_F32, 0);
    expect_error(&m, SF_FORMAT, "tensor t: 16 bytes at offset 0 of the data, the file has 0 bytes of data");
    gm_head(&m, 3, 1, 1);
    gm_kv_u32(&m, "general.alignment", 256);
    gm_tensor(&m, "t", 1, dims_4x3, SF_GGML_F32, 256);
    gm_pad(&m, 256);
    for (int i = 0; i < 68; i++)
        gm_f32(&m, (float)i);
    sf_gguf *g = NULL;
    float row[4];
    assert_int_equal(sf_gguf_open_bytes(NAME, m.data, m.len, &g, NULL), SF_OK);
    assert_int_equal(sf_gguf_dequant(sf_gguf_tensor_at(g, 0), 0, 0, 4, row, NULL), SF_OK);
    assert_true(row[0] == 64 && row[3] == 67);
    sf_gguf_close(g);
    gm_fini(&m);
}

static void every_truncation_is_an_error(void **state) {
    (void)state;
    gm m = small();
    for (size_t len = 1; len < m.len; len++) {
        sf_gguf *g = NULL;
        sf_err err = {0};
        uint8_t *copy = exact(m.data, len);
        sf_code rc = sf_gguf_open_bytes(NAME, copy, len, &g, &err);
        if (rc != SF_FORMAT) fail_msg("%zu of %zu bytes: code %d", len, m.len, (int)rc);
        assert_string_equal(err.user.file, NAME);
        assert_true(strlen(err.msg) > 10);
        free(copy);
    }
    gm_fini(&m);
}

static void every_changed_byte_is_an_error_or_loads(void **state) {
    (void)state;
    gm m = small();
    int loaded = 0, refused = 0;
    for (size_t at = 0; at < m.len * 9; at++) {
        sf_gguf *g = NULL;
        sf_err err = {0};
        uint8_t *copy = exact(m.data, m.len);
        copy[at / 9] ^= (uint8_t)(at % 9 == 8 ? 0xff : 1 << at % 9);
        if (sf_gguf_open_bytes(NAME, copy, m.len, &g, &err) == SF_OK) {
            sink = walk(g);
            sf_gguf_close(g);
            loaded++;
        } else {
            assert_string_equal(err.user.file, NAME);
            refused++;
        }
        free(copy);
    }
    assert_true(loaded > 1000 && refused > 300);
    gm_fini(&m);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(paths_that_are_no_files_are_refused),
        cmocka_unit_test(other_formats_and_versions_are_refused_by_name),
        cmocka_unit_test(huge_counts_are_refused_before_allocation),
        cmocka_unit_test(bad_metadata_is_refused_by_key),
        cmocka_unit_test(bad_dimensions_are_refused_by_tensor),
        cmocka_unit_test(bad_offsets_are_refused_by_tensor),
        cmocka_unit_test(tensor_names_are_checked),
        cmocka_unit_test(alignment_is_a_power_of_two),
        cmocka_unit_test(every_truncation_is_an_error),
        cmocka_unit_test(every_changed_byte_is_an_error_or_loads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
