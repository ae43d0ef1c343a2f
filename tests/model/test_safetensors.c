/* Reading safetensors: one file, a directory, shards. */
#include "model/safetensors.h"

#include "model/st_make.h"
#include "model/st_walk.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

/* b lies before a; the names are not in order. */
static const char two[] = "{\"__metadata__\":{\"format\":\"pt\"},"
                          "\"b.weight\":{\"dtype\":\"BF16\",\"shape\":[2,3],\"data_offsets\":[0,12]},"
                          "\"a\":{\"dtype\":\"F32\",\"shape\":[4],\"data_offsets\":[12,28]}}";

static sf_safetensors *open_good(const char *path) {
    sf_safetensors *s = NULL;
    sf_err err = {0};
    if (sf_safetensors_open(path, &s, &err) != SF_OK) fail_msg("%s", err.msg);
    assert_string_equal(sf_safetensors_path(s), path);
    return s;
}

static void check_two(const sf_safetensors *s, const char *label) {
    const sf_st_tensor *a = sf_safetensors_find_tensor(s, "a");
    const sf_st_tensor *b = sf_safetensors_find_tensor(s, "b.weight");
    float row[4];
    assert_int_equal(sf_safetensors_n_tensors(s), 2);
    assert_non_null(a);
    assert_non_null(b);
    assert_null(sf_safetensors_find_tensor(s, "c"));
    assert_null(sf_safetensors_find_tensor(s, "__metadata__"));
    assert_ptr_equal(sf_safetensors_tensor_at(s, 0), b);
    assert_ptr_equal(sf_safetensors_tensor_at(s, 1), a);
    assert_string_equal(sf_safetensors_label(s, a), label);
    assert_true(a->t.type == SF_GGML_F32 && a->t.n_dims == 1 && a->t.dims[0] == 4 && a->t.dims[1] == 1);
    assert_true(b->t.type == SF_GGML_BF16 && b->t.n_dims == 2 && b->t.dims[0] == 3 && b->t.dims[1] == 2);
    assert_true(a->t.bytes == 16 && b->t.bytes == 12);
    const uint8_t last[4] = {24, 25, 26, 27}, second[4] = {0, 0, 6, 7};
    assert_int_equal(sf_gguf_dequant(&a->t, 0, 0, 4, row, NULL), SF_OK);
    assert_memory_equal(&row[3], last, 4);
    assert_int_equal(sf_gguf_dequant(&b->t, 1, 0, 3, row, NULL), SF_OK);
    assert_memory_equal(&row[0], second, 4);
}

static void a_file_gives_its_tensors_as_they_lie(void **state) {
    (void)state;
    char path[64];
    gm m = st_file(two, 28);
    gm_save(&m, path);
    sf_safetensors *s = open_good(path);
    check_two(s, "");
    sf_safetensors_close(s);
    unlink(path);
    gm_fini(&m);
}

static void a_directory_holds_one_file(void **state) {
    (void)state;
    char dir[64];
    st_directory(dir);
    st_save(dir, "model.safetensors", st_file(two, 28));
    sf_safetensors *s = open_good(dir);
    check_two(s, "model.safetensors: ");
    sf_safetensors_close(s);
    st_remove(dir);
}

static void a_header_of_any_length_and_with_spaces_is_read(void **state) {
    (void)state;
    char json[sizeof two + 8];
    for (int spaces = 0; spaces < 9; spaces++) {
        snprintf(json, sizeof json, "%s%*s", two, spaces, "");
        gm m = st_file(json, 28);
        sf_safetensors *s = NULL;
        assert_int_equal(sf_safetensors_open_bytes("x", m.data, m.len, &s, NULL), SF_OK);
        check_two(s, "");
        sf_safetensors_close(s);
        gm_fini(&m);
    }
}

static void tensors_without_elements_and_of_no_dimensions_are_read(void **state) {
    (void)state;
    gm m = st_file("{\"none\":{\"dtype\":\"F16\",\"shape\":[3,0],\"data_offsets\":[2,2]},"
                   "\"scalar\":{\"dtype\":\"F16\",\"shape\":[],\"data_offsets\":[0,2]},"
                   "\"empty\":{\"dtype\":\"F16\",\"shape\":[0],\"data_offsets\":[0,0]}}",
                   2);
    sf_safetensors *s = NULL;
    sf_err err = {0};
    if (sf_safetensors_open_bytes("x", m.data, m.len, &s, &err) != SF_OK) fail_msg("%s", err.msg);
    assert_int_equal(sf_safetensors_n_tensors(s), 3);
    const sf_gguf_tensor *t = &sf_safetensors_find_tensor(s, "scalar")->t;
    assert_true(t->n_dims == 0 && t->bytes == 2 && t->dims[0] == 1);
    assert_true(sf_safetensors_find_tensor(s, "none")->t.bytes == 0);
    sf_safetensors_close(s);
    gm_fini(&m);
}

static void a_file_without_tensors_is_read(void **state) {
    (void)state;
    gm m = st_file("{}", 0);
    sf_safetensors *s = NULL;
    assert_int_equal(sf_safetensors_open_bytes("x", m.data, m.len, &s, NULL), SF_OK);
    assert_int_equal(sf_safetensors_n_tensors(s), 0);
    assert_null(sf_safetensors_find_tensor(s, "a"));
    sf_safetensors_close(s);
    gm_fini(&m);
}

static void shards_are_one_checkpoint(void **state) {
    (void)state;
    char dir[64];
    st_directory(dir);
    st_write_text(dir, "model.safetensors.index.json",
                  "{\"metadata\":{\"total_size\":28},\"weight_map\":"
                  "{\"b.weight\":\"m-1-of-2.safetensors\",\"a\":\"m-2-of-2.safetensors\"}}");
    st_save(dir, "m-1-of-2.safetensors",
            st_file("{\"b.weight\":{\"dtype\":\"BF16\",\"shape\":[2,3],\"data_offsets\":[0,12]}}", 12));
    gm second = {0};
    gm_str(&second, "{\"a\":{\"dtype\":\"F32\",\"shape\":[4],\"data_offsets\":[0,16]}}");
    for (uint64_t i = 12; i < 28; i++)
        gm_uint(&second, i, 1);
    st_save(dir, "m-2-of-2.safetensors", second);
    sf_safetensors *s = open_good(dir);
    check_two(s, "m-2-of-2.safetensors: ");
    assert_string_equal(sf_safetensors_label(s, sf_safetensors_find_tensor(s, "b.weight")),
                        "m-1-of-2.safetensors: ");
    sf_safetensors_close(s);
    st_remove(dir);
}

static void many_names_are_found(void **state) {
    (void)state;
    gm json = {0};
    for (unsigned i = 0; i < 500; i++) {
        char entry[128];
        int n = snprintf(entry, sizeof entry,
                         "%s\"t%u\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[%u,%u]}",
                         i ? "," : "{", i * 7919 % 500, 4 * i, 4 * i + 4);
        gm_bytes(&json, entry, (size_t)n);
    }
    gm_bytes(&json, "}", 2); /* with its NUL */
    gm m = st_file((const char *)json.data, 2000);
    sf_safetensors *s = NULL;
    assert_int_equal(sf_safetensors_open_bytes("x", m.data, m.len, &s, NULL), SF_OK);
    for (unsigned i = 0; i < 500; i++) {
        char name[16];
        snprintf(name, sizeof name, "t%u", i * 7919 % 500);
        assert_ptr_equal(sf_safetensors_find_tensor(s, name), sf_safetensors_tensor_at(s, (int)i));
    }
    sf_safetensors_close(s);
    gm_fini(&m);
    gm_fini(&json);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_gives_its_tensors_as_they_lie),
        cmocka_unit_test(a_directory_holds_one_file),
        cmocka_unit_test(a_header_of_any_length_and_with_spaces_is_read),
        cmocka_unit_test(tensors_without_elements_and_of_no_dimensions_are_read),
        cmocka_unit_test(a_file_without_tensors_is_read),
        cmocka_unit_test(shards_are_one_checkpoint),
        cmocka_unit_test(many_names_are_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
