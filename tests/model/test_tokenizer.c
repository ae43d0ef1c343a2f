/* Ids against those of the Hugging Face `tokenizers` library (tests/golden/tokenizer), with a small
 * vocabulary that the golden file carries and, where the checkpoint is in the cache, with the whole one. */
#include "model/gguf_make.h"
#include "model/gguf_priv.h"
#include "model/tokenizer_priv.h"

#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <time.h>
#include <cmocka.h>

#include "model/golden_strings.h"

#define FILE_NAME "SmolLM2-135M-Instruct.Q4_1.gguf"

static json_t *golden;
static sf_str *tokens, *merges;
static int32_t *types;
static sf_tokenizer_parts parts;
static sf_tokenizer *small;

static int load(void **state) {
    (void)state;
    golden = json_load_file(SF_TEST_DIR "/golden/tokenizer/golden.json", JSON_ALLOW_NUL, NULL);
    if (!golden) return -1;
    tokens = golden_strings(golden, "tokens", &parts.n_tokens);
    merges = golden_strings(golden, "merges", &parts.n_merges);
    const json_t *list = json_object_get(golden, "types");
    parts.n_types = json_array_size(list);
    types = calloc(parts.n_types, sizeof *types);
    assert_non_null(types);
    for (size_t i = 0; i < parts.n_types; i++)
        types[i] = (int32_t)json_integer_value(json_array_get(list, i));
    parts.path = "small.gguf";
    parts.split = (sf_str){"smollm", 6};
    parts.tokens = tokens;
    parts.merges = merges;
    parts.types = types;
    parts.bos = 1;
    parts.eos = 2;
    return sf_tokenizer_build(&parts, &small, NULL) == SF_OK ? 0 : -1;
}

static int unload(void **state) {
    (void)state;
    sf_tokenizer_close(small);
    free(tokens);
    free(merges);
    free(types);
    json_decref(golden);
    return 0;
}

static void encode(const sf_tokenizer *t, const char *text, size_t len, const uint8_t *plain, sf_ids *out) {
    sf_err err;
    out->len = 0;
    assert_int_equal(sf_tokenizer_encode(t, text, len, plain, out, &err), SF_OK);
}

/* Whether a byte of the text has no token, so that it cannot come back. */
static bool loses(const sf_tokenizer *t, const char *s, size_t len) {
    for (size_t i = 0; i < len; i++)
        if (t->byte_id[(uint8_t)s[i]] < 0) return true;
    return false;
}

static void check_rows(const sf_tokenizer *t, const char *key) {
    size_t i, bad = 0, returned = 0;
    const json_t *row;
    sf_ids ids = {0};
    json_array_foreach(json_object_get(golden, "rows"), i, row) {
        const json_t *text = json_object_get(row, "text"), *want = json_object_get(row, key);
        const char *s = json_string_value(text);
        size_t len = json_string_length(text), n = json_array_size(want);
        uint8_t *zeros = calloc(len + 1, 1);
        assert_non_null(zeros);
        encode(t, s, len, json_is_true(json_object_get(row, "special")) ? zeros : NULL, &ids);
        free(zeros);
        bool same = ids.len == n;
        for (size_t k = 0; same && k < n; k++)
            same = ids.data[k] == (int32_t)json_integer_value(json_array_get(want, k));
        if (!same) print_error("row %zu: %s\n", i, s);
        bad += !same;
        sf_buf back = {0};
        assert_int_equal(sf_tokenizer_decode(t, ids.data, ids.len, true, &back, NULL), SF_OK);
        if (loses(t, s, len)) {
            assert_true(back.len != len || memcmp(back.data, s, len) != 0);
        } else {
            assert_int_equal(back.len, len);
            if (len) assert_memory_equal(back.data, s, len);
            returned++;
        }
        sf_buf_fini(&back);
    }
    sf_ids_fini(&ids);
    assert_true(i > 300 && returned > 150);
    assert_int_equal(bad, 0);
}

static void ids_and_text_equal_the_library_s_small_vocabulary(void **state) {
    (void)state;
    check_rows(small, "small");
}

static void ids_and_text_equal_the_library_s_whole_vocabulary(void **state) {
    (void)state;
    const char *home = getenv("HOME"), *cache = getenv("XDG_CACHE_HOME");
    char path[512];
    if (cache && *cache)
        snprintf(path, sizeof path, "%s/steadfast/" FILE_NAME, cache);
    else
        snprintf(path, sizeof path, "%s/.cache/steadfast/" FILE_NAME, home ? home : "");
    if (access(path, R_OK) != 0) {
        print_message("skipped: no %s\n", path);
        skip();
    }
    sf_gguf *g;
    sf_tokenizer *t;
    assert_int_equal(sf_gguf_open(path, &g, NULL), SF_OK);
    assert_int_equal(sf_tokenizer_open(g, &t, NULL), SF_OK);
    sf_gguf_close(g); /* nothing may still point into it */
    assert_int_equal(sf_tokenizer_vocab(t), 49152);
    assert_int_equal(sf_tokenizer_bos(t), 1);
    assert_int_equal(sf_tokenizer_eos(t), 2);
    assert_false(sf_tokenizer_add_bos(t));
    check_rows(t, "ids");
    sf_tokenizer_close(t);
}

static void a_special_token_needs_all_its_bytes_unmarked(void **state) {
    (void)state;
    static const char text[] = "<|im_end|>";
    enum { LEN = sizeof text - 1 };
    sf_ids ids = {0}, plain = {0};
    uint8_t marks[LEN] = {0};
    encode(small, text, LEN, NULL, &plain);
    assert_true(plain.len > 1);
    encode(small, text, LEN, marks, &ids);
    assert_int_equal(ids.len, 1);
    assert_int_equal(ids.data[0], 2);
    for (size_t i = 0; i < LEN; i++) {
        marks[i] = 1;
        encode(small, text, LEN, marks, &ids);
        assert_int_equal(ids.len, plain.len);
        assert_memory_equal(ids.data, plain.data, plain.len * sizeof *plain.data);
        marks[i] = 0;
    }
    sf_ids_fini(&ids);
    sf_ids_fini(&plain);
}

static void the_longest_special_token_wins(void **state) {
    (void)state;
    static const sf_str names[] = {{"a", 1}, {"<x", 2}, {"<xy>", 4}, {"<", 1},
                                   {"x", 1}, {"y", 1},  {">", 1},    {"z", 1}};
    static const int32_t kinds[] = {1, 4, 3, 1, 1, 1, 1, 1};
    sf_tokenizer_parts p = {.path = "t",
                            .split = {"smollm", 6},
                            .tokens = names,
                            .n_tokens = 8,
                            .types = kinds,
                            .n_types = 8,
                            .bos = -1,
                            .eos = -1};
    static const int32_t want[] = {1, 5, 2, 1, 5, 7, 3};
    sf_tokenizer *t;
    sf_ids ids = {0};
    sf_buf text = {0};
    assert_int_equal(sf_tokenizer_build(&p, &t, NULL), SF_OK);
    encode(t, "<xy<xy><xyz<", 12, (const uint8_t[12]){0}, &ids);
    assert_int_equal(ids.len, 7);
    assert_memory_equal(ids.data, want, sizeof want);
    assert_true(sf_tokenizer_is_special(t, 2));
    assert_false(sf_tokenizer_is_special(t, 1)); /* defined by a user: text, as for Hugging Face */
    assert_int_equal(sf_tokenizer_decode(t, ids.data, ids.len, false, &text, NULL), SF_OK);
    assert_string_equal(text.data, "<xy<xyz<");
    sf_buf_fini(&text);
    sf_ids_fini(&ids);
    sf_tokenizer_close(t);
}

static void tokens_are_found_by_spelling(void **state) {
    (void)state;
    size_t len;
    for (int32_t id = 0; id < sf_tokenizer_vocab(small); id++)
        assert_int_equal(sf_tokenizer_find(small, tokens[id].data, tokens[id].len), id);
    assert_int_equal(sf_tokenizer_find(small, "<|no_such|>", 11), -1);
    assert_int_equal(sf_tokenizer_find(small, "", 0), -1);
    int32_t the = sf_tokenizer_find(small, "\xc4\xa0the", 5);
    assert_true(the > 0);
    assert_memory_equal(sf_tokenizer_piece(small, the, &len), " the", 4);
    assert_int_equal(len, 4);
    assert_memory_equal(sf_tokenizer_piece(small, 2, &len), "<|im_end|>", 10);
    assert_null(sf_tokenizer_piece(small, -1, &len));
    assert_null(sf_tokenizer_piece(small, sf_tokenizer_vocab(small), &len));
    assert_int_equal(len, 0);
}

static void malformed_text_is_refused_with_its_place(void **state) {
    (void)state;
    static const struct {
        const char *text;
        size_t at;
    } cases[] = {{"ab\x80", 2},           {"\xc3", 0},        {"\xc0\xaf", 0},         {"a\xed\xa0\x80", 1},
                 {"\xf4\x90\x80\x80", 0}, {"\xe2\x82", 0},    {"\xf0\x8f\xbf\xbf", 0}, {"\xff", 0},
                 {"12345678\xf5", 8},     {"\xe0\x80\x80", 0}};
    sf_ids ids = {0};
    char want[60];
    assert_int_equal(sf_ids_push(&ids, 77, NULL), SF_OK);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        sf_err err;
        assert_int_equal(sf_tokenizer_encode(small, cases[i].text, strlen(cases[i].text), NULL, &ids, &err),
                         SF_FORMAT);
        snprintf(want, sizeof want, "at byte %zu", cases[i].at);
        assert_non_null(strstr(err.msg, want));
        assert_int_equal(ids.len, 1); /* untouched */
        assert_int_equal(ids.data[0], 77);
    }
    sf_ids_fini(&ids);
}

static int32_t byte_token(uint8_t byte) {
    return small->byte_id[byte];
}

static void broken_characters_decode_to_replacements(void **state) {
    (void)state;
    sf_buf text = {0};
    const int32_t ids[] = {byte_token(0xe2), byte_token(0x82), byte_token('a'),  byte_token(0x80),
                           byte_token(0xf0), byte_token(0x9f), byte_token(0x98), byte_token(0xe2),
                           byte_token(0x82), byte_token(0xac)};
    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++)
        assert_true(ids[i] >= 0);
    assert_int_equal(sf_tokenizer_decode(small, ids, sizeof ids / sizeof *ids, true, &text, NULL), SF_OK);
    assert_string_equal(text.data, "\xef\xbf\xbd"
                                   "a"
                                   "\xef\xbf\xbd\xef\xbf\xbd"
                                   "\xe2\x82\xac");
    sf_buf_fini(&text);
}

/* The embedding may have rows for more ids than there are tokens. */
static void ids_past_the_last_token_have_no_text(void **state) {
    (void)state;
    sf_err err;
    sf_buf text = {0};
    const int32_t past = sf_tokenizer_vocab(small), ids[] = {byte_token('a'), past, 2000000, byte_token('b')},
                  negative[] = {byte_token('a'), -1};
    size_t len = 1;
    assert_null(sf_tokenizer_piece(small, past, &len));
    assert_int_equal(len, 0);
    assert_int_equal(sf_tokenizer_decode(small, ids, 4, true, &text, NULL), SF_OK);
    assert_string_equal(text.data, "ab");
    assert_int_equal(sf_tokenizer_decode(small, negative, 2, true, &text, &err), SF_INVALID);
    assert_int_equal(text.len, 2);
    assert_string_equal(err.msg, "token id -1, expected 0 at least");
    sf_buf_fini(&text);
}

static void decoding_leaves_special_tokens_out_unless_asked(void **state) {
    (void)state;
    sf_buf text = {0};
    const int32_t ids[] = {1, byte_token('h'), byte_token('i'), 2};
    assert_int_equal(sf_tokenizer_decode(small, ids, 4, false, &text, NULL), SF_OK);
    assert_string_equal(text.data, "hi");
    assert_int_equal(sf_tokenizer_decode(small, ids, 4, true, &text, NULL), SF_OK);
    assert_string_equal(text.data, "hi<|im_start|>hi<|im_end|>");
    sf_buf_fini(&text);
}

/* A quadratic encoder would take hours here. */
static void one_megabyte_of_one_thing_is_fast(void **state) {
    (void)state;
    static const char *const units[] = {" ", "a",  "1",         "\xf0\x9f\x98\x80", "\n",
                                        "=", "ab", "<|im_end|", "\xe4\xbd\xa0",     "the "};
    enum { BYTES = 1 << 20 };
    char *text = malloc(BYTES);
    uint8_t *zeros = calloc(BYTES, 1);
    assert_non_null(text);
    assert_non_null(zeros);
    for (size_t u = 0; u < sizeof units / sizeof *units; u++) {
        size_t unit = strlen(units[u]), len = 0;
        for (; len + unit <= BYTES; len += unit)
            memcpy(text + len, units[u], unit);
        sf_ids ids = {0};
        clock_t start = clock();
        encode(small, text, len, zeros, &ids);
        double s = (double)(clock() - start) / CLOCKS_PER_SEC;
        if (s > 20) fail_msg("1 MB of '%s' took %.1f s", units[u], s);
        size_t least = sf_tokenizer_at_least(small, text, len);
        assert_true(least <= ids.len);
        assert_true(least > BYTES / 1000); /* no token of this vocabulary is as long */
        sf_ids_fini(&ids);
    }
    free(text);
    free(zeros);
}

static void bytes_bound_the_tokens_from_below(void **state) {
    (void)state;
    static const char *const texts[] = {
        "", "a", "<|im_end|>", "<|im_start|><|im_end|><|im_start|>", " the the the", "\xe4\xbd\xa0"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        uint8_t zeros[64] = {0};
        sf_ids ids = {0};
        size_t len = strlen(texts[i]), least = sf_tokenizer_at_least(small, texts[i], len);
        encode(small, texts[i], len, zeros, &ids);
        if (least > ids.len || (len > 0) != (least > 0))
            fail_msg("'%s' has %zu tokens, at least %zu", texts[i], ids.len, least);
        sf_ids_fini(&ids);
    }
}

static void the_hash_covers_vocabulary_merges_and_special_ids(void **state) {
    (void)state;
    sf_tokenizer *t;
    sf_tokenizer_parts p = parts;
    assert_int_equal(strlen(sf_tokenizer_hash(small)), 64);
    assert_int_equal(sf_tokenizer_build(&p, &t, NULL), SF_OK);
    assert_string_equal(sf_tokenizer_hash(t), sf_tokenizer_hash(small));
    sf_tokenizer_close(t);
    for (int k = 0; k < 4; k++) {
        p = parts;
        sf_str saved = tokens[0];
        if (k == 0) p.n_merges--;
        if (k == 1) p.eos = 0;
        if (k == 2) tokens[0] = (sf_str){"<|other|>", 9};
        if (k == 3) types[0] = SF_TOKEN_USER;
        assert_int_equal(sf_tokenizer_build(&p, &t, NULL), SF_OK);
        assert_string_not_equal(sf_tokenizer_hash(t), sf_tokenizer_hash(small));
        sf_tokenizer_close(t);
        tokens[0] = saved;
        types[0] = SF_TOKEN_CONTROL;
    }
}

static void refused(const sf_tokenizer_parts *p, sf_code code, const char *key, const char *detail) {
    sf_err err;
    sf_tokenizer *t = NULL;
    assert_int_equal(sf_tokenizer_build(p, &t, &err), code);
    assert_null(t);
    assert_string_equal(err.user.file, "small.gguf");
    if (!strstr(err.msg, key) || !strstr(err.msg, detail))
        fail_msg("message '%s' lacks '%s' or '%s'", err.msg, key, detail);
}

static void bad_tokens_name_key_and_item(void **state) {
    (void)state;
    static const struct {
        sf_str text;
        const char *detail;
    } cases[] = {{{"a b", 3}, "item 30 is not in the byte-level alphabet"},
                 {{"\xc2\xad", 2}, "item 30"},
                 {{"\xc4", 1}, "item 30"},
                 {{"\xe4\xbd\xa0", 3}, "item 30"},
                 {{"", 0}, "item 30 has 0 bytes"},
                 {{"!", 1}, "items 17 and 30 are the same"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        sf_str saved = tokens[30];
        tokens[30] = cases[i].text;
        refused(&parts, SF_FORMAT, "tokenizer.ggml.tokens", cases[i].detail);
        tokens[30] = saved;
    }
    sf_tokenizer_parts p = parts;
    p.n_tokens = p.n_types = 0;
    refused(&p, SF_FORMAT, "tokenizer.ggml.tokens", "0 items");
}

static void bad_merges_name_key_and_item(void **state) {
    (void)state;
    static const struct {
        sf_str text;
        const char *detail;
    } cases[] = {{{"ab", 2}, "item 7 is not two tokens"},
                 {{" ab", 3}, "item 7"},
                 {{"a ", 2}, "item 7"},
                 {{"a b c", 5}, "item 7"},
                 {{"", 0}, "item 7"},
                 {{"q \xe4\xbd\xa0", 5}, "item 7"},
                 {{"q q", 3}, "item 7 makes a token that is not"},
                 {{"i n", 3}, "items 2 and 7 are the same"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        sf_str saved = merges[7];
        merges[7] = cases[i].text;
        refused(&parts, SF_FORMAT, "tokenizer.ggml.merges", cases[i].detail);
        merges[7] = saved;
    }
}

static void a_split_unlike_the_engine_s_is_refused_by_name(void **state) {
    (void)state;
    sf_err err = {0};
    assert_int_equal(sf_tokenizer_check_split(small, "x.gguf", "smollm", &err), SF_OK);
    static const char *const others[] = {"llama3", "", "smoll", "smollm2", "SmolLM"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        assert_int_equal(sf_tokenizer_check_split(small, "x.gguf", others[i], &err), SF_INVALID);
        char want[120];
        snprintf(want, sizeof want,
                 "key tokenizer.ggml.pre is 'smollm', this engine's tokenizer splits as '%s'", others[i]);
        assert_string_equal(err.msg, want);
        assert_string_equal(err.user.file, "x.gguf");
    }
}

static void bad_types_split_and_ids_are_named(void **state) {
    (void)state;
    sf_tokenizer_parts p = parts;
    p.n_types--;
    refused(&p, SF_FORMAT, "tokenizer.ggml.token_type", "expected");
    types[5] = 9;
    refused(&parts, SF_FORMAT, "tokenizer.ggml.token_type", "item 5 is 9");
    types[5] = SF_TOKEN_CONTROL;
    p = parts;
    p.split = (sf_str){"falcon", 6};
    refused(&p, SF_UNSUPPORTED, "tokenizer.ggml.pre", "'falcon'");
    p = parts;
    p.bos = (int64_t)parts.n_tokens;
    refused(&p, SF_FORMAT, "tokenizer.ggml.bos_token_id", "expected 0..");
    p = parts;
    p.eos = -2;
    refused(&p, SF_FORMAT, "tokenizer.ggml.eos_token_id", "is -2");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ids_and_text_equal_the_library_s_small_vocabulary),
        cmocka_unit_test(ids_and_text_equal_the_library_s_whole_vocabulary),
        cmocka_unit_test(a_special_token_needs_all_its_bytes_unmarked),
        cmocka_unit_test(the_longest_special_token_wins),
        cmocka_unit_test(bytes_bound_the_tokens_from_below),
        cmocka_unit_test(tokens_are_found_by_spelling),
        cmocka_unit_test(malformed_text_is_refused_with_its_place),
        cmocka_unit_test(broken_characters_decode_to_replacements),
        cmocka_unit_test(ids_past_the_last_token_have_no_text),
        cmocka_unit_test(decoding_leaves_special_tokens_out_unless_asked),
        cmocka_unit_test(one_megabyte_of_one_thing_is_fast),
        cmocka_unit_test(the_hash_covers_vocabulary_merges_and_special_ids),
        cmocka_unit_test(bad_tokens_name_key_and_item),
        cmocka_unit_test(bad_merges_name_key_and_item),
        cmocka_unit_test(bad_types_split_and_ids_are_named),
        cmocka_unit_test(a_split_unlike_the_engine_s_is_refused_by_name),
    };
    return cmocka_run_group_tests(tests, load, unload);
}
