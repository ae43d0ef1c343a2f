/* What the safetensors reader refuses, each by file and by tensor. */
#include "model/safetensors.h"

#include "model/st_make.h"
#include "model/st_walk.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#define NAME "m.safetensors"

static volatile uint64_t sink; /* keeps the walk's reads */

/* A copy of exactly that size, so that a sanitizer sees the first byte past it. */
static sf_code open_exact(const uint8_t *data, size_t len, sf_safetensors **out, uint8_t **copy,
                          sf_err *err) {
    *copy = malloc(len + (len == 0));
    assert_non_null(*copy);
    if (len) memcpy(*copy, data, len);
    return sf_safetensors_open_bytes(NAME, *copy, len, out, err);
}

static void expect(gm m, sf_code code, const char *text) {
    sf_safetensors *s = NULL;
    sf_err err = {0};
    uint8_t *copy = NULL;
    char msg[600], want[600];
    sf_code rc = open_exact(m.data, m.len, &s, &copy, &err);
    sf_err_format(&err, msg, sizeof msg);
    snprintf(want, sizeof want, NAME ": %s", text);
    if (rc != code || strcmp(msg, want) != 0)
        fail_msg("code %d '%s', expected %d '%s'", (int)rc, msg, (int)code, want);
    assert_null(s);
    free(copy);
    gm_fini(&m);
}

/* The file's only tensor, "t". */
static gm one(const char *entry, size_t data) {
    char json[512];
    snprintf(json, sizeof json, "{\"t\":%s}", entry);
    return st_file(json, data);
}

#define T(dtype, shape, offsets) "{\"dtype\":" dtype ",\"shape\":" shape ",\"data_offsets\":" offsets "}"
#define F32(shape, offsets)      T("\"F32\"", shape, offsets)

static void claims_of_length_are_refused(void **state) {
    (void)state;
    static const struct {
        uint64_t claim;
        const char *text;
    } cases[] = {
        {(uint64_t)1 << 63, "the header claims 9223372036854775808 bytes, expected at most 100000000"},
        {UINT64_MAX, "the header claims 18446744073709551615 bytes, expected at most 100000000"},
        {UINT64_MAX - 7, "the header claims 18446744073709551608 bytes, expected at most 100000000"},
        {100000001, "the header claims 100000001 bytes, expected at most 100000000"},
        {100000000, "the header claims 100000000 bytes, the file ends after 4 of them"},
        {5, "the header claims 5 bytes, the file ends after 4 of them"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        gm m = {0};
        gm_uint(&m, cases[i].claim, 8);
        gm_bytes(&m, "{  }", 4);
        expect(m, SF_FORMAT, cases[i].text);
    }
    gm none = {0}, seven = {0};
    expect(none, SF_FORMAT, "the file has 0 bytes, a safetensors file begins with 8 of length");
    gm_uint(&seven, 0, 7);
    expect(seven, SF_FORMAT, "the file has 7 bytes, a safetensors file begins with 8 of length");
}

static void broken_json_is_refused_by_its_place(void **state) {
    (void)state;
    expect(st_file("", 0), SF_FORMAT, "broken JSON, line 1, column 0: '[' or '{' expected near end of file");
    expect(st_file("[]", 0), SF_FORMAT, "the JSON is an array, expected an object");
    expect(st_file("{\"a\" 1}", 0), SF_FORMAT, "broken JSON, line 1, column 6: ':' expected near '1'");
    expect(st_file("{} x", 0), SF_FORMAT, "broken JSON, line 1, column 4: end of file expected near 'x'");
    expect(st_file("{\"a\":" F32("[1]", "[0,4]") ",\"a\":" F32("[1]", "[4,8]") "}", 8), SF_FORMAT,
           "broken JSON, line 1, column 57: duplicate object key near '\"a\"'");
    expect(one("{\"dtype\":\"F32\",\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}", 4), SF_FORMAT,
           "broken JSON, line 1, column 27: duplicate object key near '\"dtype\"'");
    expect(one(F32("[9223372036854775808]", "[0,4]"), 4), SF_FORMAT,
           "broken JSON, line 1, column 48: too big integer near '9223372036854775808'");
    expect(st_file("{\"a\\u0000b\":1}", 0), SF_FORMAT,
           "broken JSON, line 1, column 11: NUL byte in object key not supported near '\"a\\u0000b\"'");
}

static void nesting_without_end_is_refused(void **state) {
    (void)state;
    gm json = {0};
    for (int i = 0; i < 100000; i++)
        gm_bytes(&json, "{\"a\":", 5);
    gm_uint(&json, 0, 1);
    gm m = st_file((const char *)json.data, 0);
    expect(m, SF_FORMAT, "broken JSON, line 1, column 10241: maximum parsing depth reached near '{'");
    gm_fini(&json);
}

static void names_and_metadata_are_checked(void **state) {
    (void)state;
    char json[512];
    expect(st_file("{\"\":" F32("[1]", "[0,4]") "}", 4), SF_FORMAT,
           "the name of a tensor has 0 bytes, expected 1..255");
    snprintf(json, sizeof json, "{\"%0256d\":" F32("[1]", "[0,4]") "}", 7);
    expect(st_file(json, 4), SF_FORMAT, "the name of a tensor has 256 bytes, expected 1..255");
    expect(st_file("{\"a\\nb\":" F32("[1]", "[0,4]") "}", 4), SF_FORMAT,
           "the name of a tensor has byte 0x0a after 'a', expected printable ASCII");
    expect(st_file("{\"__metadata__\":1}", 0), SF_FORMAT, "__metadata__ is no object");
    expect(st_file("{\"__metadata__\":{\"format\":1}}", 0), SF_FORMAT, "__metadata__: format is no string");
}

static void entries_are_refused_by_tensor(void **state) {
    (void)state;
    expect(one("7", 0), SF_FORMAT, "tensor t: its entry is no object");
    expect(one("{}", 0), SF_FORMAT, "tensor t: dtype is missing or no string");
    expect(one(T("1", "[1]", "[0,4]"), 4), SF_FORMAT, "tensor t: dtype is missing or no string");
    expect(one("{\"dtype\":\"F32\",\"data_offsets\":[0,4]}", 4), SF_FORMAT,
           "tensor t: shape is missing or no array");
    expect(one(F32("4", "[0,4]"), 4), SF_FORMAT, "tensor t: shape is missing or no array");
    expect(one(F32("[1,-1]", "[0,4]"), 4), SF_FORMAT, "tensor t: dimension 1 is no integer from 0");
    expect(one(F32("[1.0]", "[0,4]"), 4), SF_FORMAT, "tensor t: dimension 0 is no integer from 0");
    expect(one(F32("[1,1,1,1,1]", "[0,4]"), 4), SF_UNSUPPORTED,
           "tensor t has 5 dimensions, expected at most 4");
    expect(one(F32("[4294967296,4294967296]", "[0,4]"), 4), SF_FORMAT,
           "tensor t: its shape has 2^64 bytes or more");
    expect(one("{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4],\"x\":1}", 4), SF_FORMAT,
           "tensor t: has 4 keys, expected dtype, shape and data_offsets");
}

static void other_dtypes_are_refused_by_name(void **state) {
    (void)state;
    static const char *const others[] = {"F64",  "I64", "I32", "I16",     "I8",      "U8",
                                         "BOOL", "F4",  "f32", "F8_E4M3", "F8_E5M2", "U32"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        char entry[128], want[128];
        snprintf(entry, sizeof entry, "{\"dtype\":\"%s\",\"shape\":[1],\"data_offsets\":[0,8]}", others[i]);
        snprintf(want, sizeof want, "tensor t is %s, expected F32, F16 or BF16", others[i]);
        expect(one(entry, 8), SF_UNSUPPORTED, want);
    }
}

static void offsets_are_refused_by_tensor(void **state) {
    (void)state;
    static const char shape_of_offsets[] =
        "tensor t: data_offsets are no [begin, end] with 0 <= begin <= end";
    static const char *const bad[] = {F32("[1]", "[4,0]"),     F32("[1]", "[-4,0]"),
                                      F32("[1]", "[0]"),       F32("[1]", "[0,4,4]"),
                                      F32("[1]", "4"),         F32("[1]", "[0,4.0]"),
                                      F32("[1]", "[0,\"4\"]"), "{\"dtype\":\"F32\",\"shape\":[1]}"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        expect(one(bad[i], 4), SF_FORMAT, shape_of_offsets);
    expect(one(F32("[1]", "[0,5]"), 8), SF_FORMAT,
           "tensor t: data_offsets hold 5 bytes, its shape and dtype 4");
    expect(one(F32("[2,3]", "[0,4]"), 4), SF_FORMAT,
           "tensor t: data_offsets hold 4 bytes, its shape and dtype 24");
    expect(one(T("\"F16\"", "[1]", "[0,4]"), 4), SF_FORMAT,
           "tensor t: data_offsets hold 4 bytes, its shape and dtype 2");
    expect(one(F32("[1]", "[0,9223372036854775807]"), 4), SF_FORMAT,
           "tensor t: ends at byte 9223372036854775807 of the data, which the file has 4 of");
}

static void data_must_fill_the_file(void **state) {
    (void)state;
    expect(one(F32("[1]", "[0,4]"), 3), SF_FORMAT,
           "tensor t: ends at byte 4 of the data, which the file has 3 of"); /* a cut tail */
    expect(one(F32("[1]", "[0,4]"), 5), SF_FORMAT, "the file has 1 bytes of data after its last tensor, t");
    expect(one(F32("[1]", "[4,8]"), 8), SF_FORMAT,
           "tensor t: begins at byte 4 of the data, expected 0 (a hole)");
    expect(st_file("{}", 1), SF_FORMAT, "the file has 1 bytes of data after its last tensor");
    expect(st_file("{\"a\":" F32("[1]", "[0,4]") ",\"b\":" F32("[1]", "[8,12]") "}", 12), SF_FORMAT,
           "tensor b: begins at byte 8 of the data, expected 4 (a hole)");
    expect(st_file("{\"a\":" F32("[2]", "[0,8]") ",\"b\":" F32("[2]", "[4,12]") "}", 12), SF_FORMAT,
           "tensor b: begins at byte 4 of the data, inside tensor a");
    expect(st_file("{\"b\":" F32("[1]", "[0,4]") ",\"a\":" F32("[1]", "[0,4]") "}", 4), SF_FORMAT,
           "tensor b: begins at byte 0 of the data, inside tensor a"); /* shared by both */
    expect(st_file("{\"a\":" F32("[2]", "[0,8]") ",\"none\":" F32("[0]", "[4,4]") "}", 8), SF_FORMAT,
           "tensor none: begins at byte 4 of the data, inside tensor a");
}

static const char two[] = "{\"aa\":" F32("[2,2]", "[8,24]") ",\"b\":" T("\"F16\"", "[4]", "[0,8]") "}  ";

static void every_truncation_is_refused(void **state) {
    (void)state;
    gm m = st_file(two, 24);
    for (size_t len = 0; len < m.len; len++) {
        sf_safetensors *s = NULL;
        sf_err err = {0};
        uint8_t *copy = NULL;
        assert_int_equal(open_exact(m.data, len, &s, &copy, &err), SF_FORMAT);
        assert_true(strlen(err.msg) > 0);
        assert_null(s);
        free(copy);
    }
    gm_fini(&m);
}

static void no_changed_byte_reads_past_the_file(void **state) {
    (void)state;
    gm m = st_file(two, 24);
    int good = 0, bad = 0;
    for (size_t at = 0; at < m.len - 24; at++) {
        for (int value = 0; value < 256; value++) {
            uint8_t was = m.data[at], *copy = NULL;
            sf_safetensors *s = NULL;
            m.data[at] = (uint8_t)value;
            if (open_exact(m.data, m.len, &s, &copy, NULL) == SF_OK) {
                sink = st_walk(s);
                sf_safetensors_close(s);
                good++;
            } else {
                bad++;
            }
            free(copy);
            m.data[at] = was;
        }
    }
    assert_true(good > 100 && bad > 10000);
    gm_fini(&m);
}

static void paths_that_hold_no_checkpoint_are_refused(void **state) {
    (void)state;
    char dir[64], msg[600], want[600];
    sf_safetensors *s = NULL;
    sf_err err = {0};
    assert_int_equal(sf_safetensors_open("/nonexistent/m.safetensors", &s, &err), SF_IO);
    assert_string_equal(sf_err_format(&err, msg, sizeof msg),
                        "/nonexistent/m.safetensors: No such file or directory");
    st_directory(dir);
    assert_int_equal(sf_safetensors_open(dir, &s, &err), SF_NOT_FOUND);
    snprintf(want, sizeof want,
             "%s: the directory has neither model.safetensors nor model.safetensors.index.json", dir);
    assert_string_equal(sf_err_format(&err, msg, sizeof msg), want);
    st_write_text(dir, "model.safetensors", "");
    assert_int_equal(sf_safetensors_open(dir, &s, &err), SF_FORMAT);
    assert_string_equal(err.msg, "model.safetensors: it is empty");
    st_remove(dir);
    assert_null(s);
}

static void expect_index(const char *index, sf_code code, const char *text) {
    char dir[64];
    sf_safetensors *s = NULL;
    sf_err err = {0};
    st_directory(dir);
    st_save(dir, "one", st_file("{\"a\":" F32("[1]", "[0,4]") "}", 4));
    st_save(dir, "two", st_file("{\"b\":" F32("[1]", "[0,4]") "}", 4));
    st_save(dir, "again", st_file("{\"a\":" F32("[1]", "[0,4]") "}", 4));
    st_write_text(dir, "model.safetensors.index.json", index);
    sf_code rc = sf_safetensors_open(dir, &s, &err);
    if (rc != code || strcmp(err.msg, text) != 0)
        fail_msg("code %d '%s', expected %d '%s'", (int)rc, err.msg, (int)code, text);
    assert_string_equal(err.user.file, dir);
    assert_null(s);
    st_remove(dir);
}

#define INDEX "model.safetensors.index.json"

static void missing_shards_are_all_named(void **state) {
    (void)state;
    expect_index("{\"weight_map\":{\"a\":\"one\",\"c\":\"four\"}}", SF_NOT_FOUND,
                 "1 of 2 files of " INDEX " is missing: four");
    expect_index("{\"weight_map\":{\"x\":\"three\",\"a\":\"one\",\"c\":\"four\",\"d\":\"four\"}}",
                 SF_NOT_FOUND, "2 of 3 files of " INDEX " are missing: three, four");
}

static void a_long_list_of_missing_shards_is_counted(void **state) {
    (void)state;
    gm json = {0};
    gm_bytes(&json, "{\"weight_map\":{", 15);
    for (int i = 1; i <= 30; i++) {
        char entry[64];
        int n = snprintf(entry, sizeof entry, "%s\"t%d\":\"model-%05d-of-00030.safetensors\"",
                         i > 1 ? "," : "", i, i);
        gm_bytes(&json, entry, (size_t)n);
    }
    gm_bytes(&json, "}}", 3);
    expect_index((const char *)json.data, SF_NOT_FOUND,
                 "30 of 30 files of " INDEX " are missing: model-00001-of-00030.safetensors, "
                 "model-00002-of-00030.safetensors, model-00003-of-00030.safetensors, "
                 "model-00004-of-00030.safetensors, model-00005-of-00030.safetensors, "
                 "model-00006-of-00030.safetensors, model-00007-of-00030.safetensors, "
                 "model-00008-of-00030.safetensors and 22 more");
    gm_fini(&json);
}

static void an_index_and_its_shards_must_agree(void **state) {
    (void)state;
    expect_index("{", SF_FORMAT,
                 INDEX ": broken JSON, line 1, column 1: string or '}' expected near end of file");
    expect_index("{}", SF_FORMAT, INDEX ": weight_map is missing or no object");
    expect_index("{\"weight_map\":{\"a\":1}}", SF_FORMAT,
                 INDEX ": tensor a: its file is no name in this directory");
    expect_index("{\"weight_map\":{\"a\":\"../one\"}}", SF_FORMAT,
                 INDEX ": tensor a: its file is no name in this directory");
    expect_index("{\"weight_map\":{\"a\":\"..\"}}", SF_FORMAT,
                 INDEX ": tensor a: its file is no name in this directory");
    expect_index("{\"weight_map\":{\"a\":\"one\",\"a\":\"two\"}}", SF_FORMAT,
                 INDEX ": broken JSON, line 1, column 28: duplicate object key near '\"a\"'");
    expect_index("{\"weight_map\":{\"a\":\"one\",\"c\":\"two\"}}", SF_FORMAT,
                 "two: tensor b is not in " INDEX);
    expect_index("{\"weight_map\":{\"a\":\"one\",\"c\":\"one\"}}", SF_FORMAT,
                 "one: tensor c is missing, which " INDEX " lists");
    expect_index("{\"weight_map\":{\"a\":\"one\",\"b\":\"two\",\"c\":\"again\"}}", SF_FORMAT,
                 "again: tensor a is in one by " INDEX);
}

static void a_broken_shard_is_named(void **state) {
    (void)state;
    char dir[64];
    sf_safetensors *s = NULL;
    sf_err err = {0};
    st_directory(dir);
    st_save(dir, "one", st_file("{\"a\":" F32("[1]", "[0,4]") "}", 3));
    st_write_text(dir, INDEX, "{\"weight_map\":{\"a\":\"one\"}}");
    assert_int_equal(sf_safetensors_open(dir, &s, &err), SF_FORMAT);
    assert_string_equal(err.msg, "one: tensor a: ends at byte 4 of the data, which the file has 3 of");
    st_remove(dir);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(claims_of_length_are_refused),
        cmocka_unit_test(broken_json_is_refused_by_its_place),
        cmocka_unit_test(nesting_without_end_is_refused),
        cmocka_unit_test(names_and_metadata_are_checked),
        cmocka_unit_test(entries_are_refused_by_tensor),
        cmocka_unit_test(other_dtypes_are_refused_by_name),
        cmocka_unit_test(offsets_are_refused_by_tensor),
        cmocka_unit_test(data_must_fill_the_file),
        cmocka_unit_test(every_truncation_is_refused),
        cmocka_unit_test(no_changed_byte_reads_past_the_file),
        cmocka_unit_test(paths_that_hold_no_checkpoint_are_refused),
        cmocka_unit_test(missing_shards_are_all_named),
        cmocka_unit_test(a_long_list_of_missing_shards_is_counted),
        cmocka_unit_test(an_index_and_its_shards_must_agree),
        cmocka_unit_test(a_broken_shard_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
