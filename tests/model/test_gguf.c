/* What a sound file gives. Refusals: test_gguf_refusals.c. */
#include "model/gguf_small.h"
#include "model/gguf_walk.h"

#include "base/progress.h"

#include <stdarg.h>
#include <setjmp.h>
#include <cmocka.h>

static void reads_a_file(void **state) {
    (void)state;
    gm m = small();
    char path[64];
    gm_save(&m, path);
    sf_gguf *g = NULL;
    sf_err err = {0};
    assert_int_equal(sf_gguf_open(path, &g, &err), SF_OK);
    assert_string_equal(sf_gguf_path(g), path);
    size_t len = 0, n = 0;
    assert_memory_equal(sf_gguf_bytes(g, &len), m.data, m.len);
    assert_int_equal(len, m.len);

    sf_str s, *strs = NULL;
    assert_int_equal(sf_gguf_get_str(g, "general.architecture", &s, &err), SF_OK);
    assert_int_equal(s.len, 5);
    assert_memory_equal(s.data, "llama", 5);
    assert_int_equal(sf_gguf_get_strs(g, "words", &strs, &n, &err), SF_OK);
    assert_int_equal(n, 2);
    assert_memory_equal(strs[0].data, "ab", 2);
    assert_int_equal(strs[1].len, 0);
    free(strs);
    int32_t *ids = NULL;
    assert_int_equal(sf_gguf_get_i32s(g, "ids", &ids, &n, &err), SF_OK);
    assert_int_equal(n, 2);
    assert_int_equal(ids[0], 7);
    assert_int_equal(ids[1], -1);
    free(ids);

    assert_int_equal(sf_gguf_n_tensors(g), 2);
    const sf_gguf_tensor *a = sf_gguf_find_tensor(g, "a");
    assert_ptr_equal(a, sf_gguf_tensor_at(g, 0));
    assert_string_equal(a->name, "a");
    assert_int_equal(a->dims[0], 4);
    assert_int_equal(a->dims[1], 3);
    assert_int_equal(a->dims[3], 1);
    assert_int_equal(a->bytes, 48);
    float row[4];
    assert_int_equal(sf_gguf_dequant(a, 2, 1, 3, row, &err), SF_OK);
    assert_true(row[0] == 16 + 9 && row[2] == 16 + 11);
    assert_null(sf_gguf_find_tensor(g, "c"));
    sf_gguf_close(g);
    unlink(path);
    gm_fini(&m);
}

static void getters_accept_any_integer_width_that_holds_the_value(void **state) {
    (void)state;
    static const struct {
        uint32_t type;
        int bytes;
        uint64_t bits;
        int64_t value;
    } cases[] = {
        {0, 1, 0xff, 255},
        {1, 1, 0xff, -1},
        {2, 2, 0xffff, 65535},
        {3, 2, 0xfffe, -2},
        {4, 4, 0xffffffffu, 4294967295},
        {5, 4, 0x80000000u, INT32_MIN},
        {10, 8, 0x7fffffffffffffffu, INT64_MAX},
        {11, 8, 0x8000000000000000u, INT64_MIN},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        gm m = one_key("k", cases[i].type);
        gm_uint(&m, cases[i].bits, cases[i].bytes);
        sf_gguf *g = NULL;
        int64_t v = 0;
        assert_int_equal(sf_gguf_open_bytes(NAME, m.data, m.len, &g, NULL), SF_OK);
        assert_int_equal(sf_gguf_get_i64(g, "k", &v, NULL), SF_OK);
        assert_true(v == cases[i].value);
        sf_gguf_close(g);
        gm_fini(&m);
    }
}

static void floats_come_back_exactly(void **state) {
    (void)state;
    gm m = {0};
    double want = 0.1, got = 0;
    uint64_t bits;
    memcpy(&bits, &want, sizeof bits);
    gm_head(&m, 2, 0, 2);
    gm_kv_f32(&m, "single", 1e-5f);
    gm_key(&m, "double", 12);
    gm_uint(&m, bits, 8);
    sf_gguf *g = NULL;
    assert_int_equal(sf_gguf_open_bytes(NAME, m.data, m.len, &g, NULL), SF_OK);
    assert_int_equal(sf_gguf_get_f64(g, "single", &got, NULL), SF_OK);
    assert_true((float)got == 1e-5f);
    assert_int_equal(sf_gguf_get_f64(g, "double", &got, NULL), SF_OK);
    assert_true(got == want);
    sf_gguf_close(g);
    gm_fini(&m);
}

static void getters_name_file_and_key(void **state) {
    (void)state;
    gm m = small();
    sf_gguf *g = NULL;
    sf_err err = {0};
    char msg[600];
    int64_t v = 5;
    bool b = false;
    sf_str s = {0};
    assert_int_equal(sf_gguf_open_bytes(NAME, m.data, m.len, &g, &err), SF_OK);
    assert_int_equal(sf_gguf_get_i64(g, "none", &v, &err), SF_NOT_FOUND);
    assert_string_equal(sf_err_format(&err, msg, sizeof msg), NAME ": key none is missing");
    assert_int_equal(sf_gguf_get_i64(g, "words", &v, &err), SF_FORMAT);
    assert_string_equal(sf_err_format(&err, msg, sizeof msg),
                        NAME ": key words has type array of string, expected an integer");
    assert_int_equal(v, 5);
    assert_int_equal(sf_gguf_get_str(g, "yes", &s, &err), SF_FORMAT);
    assert_int_equal(sf_gguf_get_bool(g, "ids", &b, &err), SF_FORMAT);
    assert_int_equal(sf_gguf_get_bool(g, "yes", &b, &err), SF_OK);
    assert_true(b);
    assert_true(sf_gguf_has(g, "yes"));
    assert_false(sf_gguf_has(g, "ye"));
    assert_false(sf_gguf_has(g, "yes!"));
    sf_gguf_close(g);
    gm_fini(&m);
}

static void integers_out_of_range_are_refused(void **state) {
    (void)state;
    gm m = {0};
    gm_head(&m, 3, 0, 2);
    gm_key(&m, "big", 10);
    gm_uint(&m, 0x8000000000000000u, 8);
    gm_array(&m, "ids", 4, 1);
    gm_uint(&m, 0x80000000u, 4);
    sf_gguf *g = NULL;
    sf_err err = {0};
    int64_t v = 0;
    int32_t *ids = NULL;
    size_t n = 0;
    assert_int_equal(sf_gguf_open_bytes(NAME, m.data, m.len, &g, NULL), SF_OK);
    assert_int_equal(sf_gguf_get_i64(g, "big", &v, &err), SF_FORMAT);
    assert_non_null(strstr(err.msg, "key big is 9223372036854775808"));
    assert_int_equal(sf_gguf_get_i32s(g, "ids", &ids, &n, &err), SF_FORMAT);
    assert_non_null(strstr(err.msg, "key ids: item 0"));
    assert_null(ids);
    sf_gguf_close(g);
    gm_fini(&m);
}

static void a_tensor_of_unknown_type_is_an_error_only_when_read(void **state) {
    (void)state;
    gm m = one_tensor(2, dims_4x3, 1234, 0, 64);
    sf_gguf *g = NULL;
    sf_err err = {0};
    float row[4];
    assert_int_equal(sf_gguf_open_bytes(NAME, m.data, m.len, &g, &err), SF_OK);
    const sf_gguf_tensor *t = sf_gguf_tensor_at(g, 0);
    assert_null(t->data);
    assert_int_equal(t->bytes, 0);
    assert_int_equal(sf_gguf_dequant(t, 0, 0, 4, row, &err), SF_UNSUPPORTED);
    assert_string_equal(err.msg, "tensor t is an unknown type (1234), which cannot be read");
    sf_gguf_close(g);
    gm_fini(&m);
}

static void many_keys_and_tensors_are_found_fast(void **state) {
    (void)state;
    enum { N = 100000 };
    gm m = {0};
    char name[64];
    uint64_t one = 1;
    gm_head(&m, 3, N, N);
    for (uint32_t i = 0; i < N; i++) {
        snprintf(name, sizeof name, "key.%u", i * 7919u);
        gm_kv_u32(&m, name, i);
    }
    for (uint32_t i = 0; i < N; i++) {
        snprintf(name, sizeof name, "tensor.%u", i * 7919u);
        gm_tensor(&m, name, 1, &one, SF_GGML_F32, (uint64_t)(N - 1 - i) * 32);
    }
    gm_pad(&m, 32);
    for (size_t i = 0; i < (size_t)N * 8; i++)
        gm_f32(&m, (float)i);
    sf_gguf *g = NULL;
    double start = sf_now_s();
    assert_int_equal(sf_gguf_open_bytes(NAME, m.data, m.len, &g, NULL), SF_OK);
    for (uint32_t i = 0; i < N; i++) {
        int64_t v = -1;
        float f = -1;
        snprintf(name, sizeof name, "key.%u", i * 7919u);
        assert_int_equal(sf_gguf_get_i64(g, name, &v, NULL), SF_OK);
        snprintf(name, sizeof name, "tensor.%u", i * 7919u);
        const sf_gguf_tensor *t = sf_gguf_find_tensor(g, name);
        assert_true(t == sf_gguf_tensor_at(g, (int)i) && v == i);
        assert_int_equal(sf_gguf_dequant(t, 0, 0, 1, &f, NULL), SF_OK);
        assert_true(f == (float)((N - 1 - i) * 8));
    }
    assert_true(sf_now_s() - start < 10.0); /* a look-up that walks the list takes minutes */
    sf_gguf_close(g);
    gm_fini(&m);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_a_file),
        cmocka_unit_test(getters_accept_any_integer_width_that_holds_the_value),
        cmocka_unit_test(floats_come_back_exactly),
        cmocka_unit_test(getters_name_file_and_key),
        cmocka_unit_test(integers_out_of_range_are_refused),
        cmocka_unit_test(a_tensor_of_unknown_type_is_an_error_only_when_read),
        cmocka_unit_test(many_keys_and_tensors_are_found_fast),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
