/* The splits of published tokenizers: ids against those of the Hugging Face `tokenizers` library
 * (tests/golden/tokenizer/splits.json), and work that grows no faster than the text. */
#include "model/tokenizer_encode_priv.h"

#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "model/golden_strings.h"

static const struct {
    const char *name, *ggml;
} FAMILIES[] = {{"gpt2", "gpt-2"},
                {"llama3", "llama-bpe"},
                {"qwen2", "qwen2"},
                {"tekken", "tekken"},
                {"llama4", "llama4"}};
enum { N_FAMILIES = sizeof FAMILIES / sizeof *FAMILIES };

static json_t *golden;
static sf_tokenizer *kits[N_FAMILIES];

static int load(void **state) {
    (void)state;
    golden = json_load_file(SF_TEST_DIR "/golden/tokenizer/splits.json", JSON_ALLOW_NUL, NULL);
    if (!golden) return -1;
    sf_tokenizer_parts p = {.path = "splits.json", .bos = -1, .eos = -1};
    sf_str *tokens = golden_strings(golden, "tokens", &p.n_tokens),
           *merges = golden_strings(golden, "merges", &p.n_merges);
    int32_t *types = calloc(p.n_tokens, sizeof *types);
    assert_non_null(types);
    for (size_t i = 0; i < p.n_tokens; i++)
        types[i] = SF_TOKEN_NORMAL;
    p.tokens = tokens;
    p.merges = merges;
    p.types = types;
    p.n_types = p.n_tokens;
    int bad = 0;
    for (int f = 0; f < N_FAMILIES; f++) {
        p.split = (sf_str){FAMILIES[f].ggml, strlen(FAMILIES[f].ggml)};
        bad |= sf_tokenizer_build(&p, &kits[f], NULL) != SF_OK;
    }
    free(tokens);
    free(merges);
    free(types);
    return bad ? -1 : 0;
}

static int unload(void **state) {
    (void)state;
    for (int f = 0; f < N_FAMILIES; f++)
        sf_tokenizer_close(kits[f]);
    json_decref(golden);
    return 0;
}

static bool same_ids(const sf_ids *ids, const json_t *want) {
    bool same = ids->len == json_array_size(want);
    for (size_t k = 0; same && k < ids->len; k++)
        same = ids->data[k] == (int32_t)json_integer_value(json_array_get(want, k));
    return same;
}

static void check_family(int f) {
    size_t i, bad = 0, changed = 0;
    const json_t *row;
    sf_ids ids = {0};
    json_array_foreach(json_object_get(golden, "rows"), i, row) {
        const json_t *text = json_object_get(row, "text"), *nfc = json_object_get(row, "nfc");
        const char *s = json_string_value(text);
        size_t len = json_string_length(text);
        sf_buf back = {0};
        ids.len = 0;
        assert_int_equal(sf_tokenizer_encode(kits[f], s, len, NULL, &ids, NULL), SF_OK);
        if (!same_ids(&ids, json_object_get(row, FAMILIES[f].name))) {
            print_error("%s, row %zu: %s\n", FAMILIES[f].name, i, s);
            bad++;
        }
        assert_int_equal(sf_tokenizer_decode(kits[f], ids.data, ids.len, true, &back, NULL), SF_OK);
        if (nfc && kits[f]->nfc) {
            text = nfc;
            changed++;
        }
        assert_int_equal(back.len, json_string_length(text));
        if (len) assert_memory_equal(back.data, json_string_value(text), back.len);
        sf_buf_fini(&back);
    }
    sf_ids_fini(&ids);
    assert_true(i > 300);
    assert_true(kits[f]->nfc ? changed > 10 : !changed);
    assert_int_equal(bad, 0);
}

static void gpt2_ids_equal_the_library_s(void **state) {
    (void)state;
    check_family(0);
}
static void llama3_ids_equal_the_library_s(void **state) {
    (void)state;
    check_family(1);
}
static void qwen2_ids_equal_the_library_s(void **state) {
    (void)state;
    check_family(2);
}
static void tekken_ids_equal_the_library_s(void **state) {
    (void)state;
    check_family(3);
}

static void llama4_ids_equal_the_library_s(void **state) {
    (void)state;
    check_family(4);
}

/* The golden rows tell them apart, so that none can stand for another. */
static void the_splits_differ_on_the_golden_rows(void **state) {
    (void)state;
    for (int a = 0; a < N_FAMILIES; a++) {
        for (int b = 0; b < a; b++) {
            size_t i, differ = 0;
            const json_t *row;
            json_array_foreach(json_object_get(golden, "rows"), i, row) {
                differ += !json_equal(json_object_get(row, FAMILIES[a].name),
                                      json_object_get(row, FAMILIES[b].name));
            }
            assert_true(differ > 5);
        }
    }
}

static void every_spelling_in_gguf_files_is_known(void **state) {
    (void)state;
    static const char *const names[][2] = {
        {"smollm", "smollm"},   {"gpt-2", "gpt2"},       {"gpt2", "gpt2"},   {"llama3", "llama3"},
        {"llama-v3", "llama3"}, {"llama-bpe", "llama3"}, {"qwen2", "qwen2"}, {"tekken", "tekken"},
        {"llama4", "llama4"},   {"gpt-4o", "llama4"}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const sf_split *s = sf_split_find(names[i][0], strlen(names[i][0]));
        assert_non_null(s);
        assert_string_equal(s->name, names[i][1]);
    }
    static const char *const unknown[] = {"",        "llama", "llama-bp",    "llama-bpe2",
                                          "default", "Qwen2", "deepseek-llm"};
    for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++)
        assert_null(sf_split_find(unknown[i], strlen(unknown[i])));
}

/* Words alone: characters looked at, for `bytes` of one unit over and over between a head and a tail. */
static size_t looks(const sf_split *split, const char *head, const char *unit, const char *tail,
                    size_t bytes) {
    sf_buf text = {0};
    assert_int_equal(sf_buf_append(&text, head, strlen(head), NULL), SF_OK);
    while (text.len < bytes)
        assert_int_equal(sf_buf_append(&text, unit, strlen(unit), NULL), SF_OK);
    assert_int_equal(sf_buf_append(&text, tail, strlen(tail), NULL), SF_OK);
    sf_words w = {.text = text.data, .len = text.len, .digits = split->digits};
    for (size_t i = 0, n; i < w.len; i += n) {
        n = split->word(&w, i);
        assert_true(n > 0 && n <= w.len - i);
    }
    sf_buf_fini(&text);
    return w.looks;
}

static const char *const UNITS[] = {" ",
                                    "a",
                                    "A",
                                    "1",
                                    "\xf0\x9f\x98\x80",
                                    "\n",
                                    "\r\n",
                                    " \n",
                                    "=",
                                    "'",
                                    "'s",
                                    "aB",
                                    "Ab",
                                    "\xe4\xb8\xad\x41",
                                    "A\xcc\x81",
                                    "\xcc\x81",
                                    "\xe4\xbd\xa0",
                                    "the ",
                                    "\t",
                                    " \xcc\x81",
                                    "/\n",
                                    "\xc2\xa0",
                                    "\xc7\x85",
                                    "\xd9\xa1",
                                    "\xe2\x80\x8d",
                                    " 1",
                                    "!\n"};

/* From a megabyte of anything no split looks at a character more than a few times. */
static void a_split_s_work_is_linear_in_the_text(void **state) {
    (void)state;
    static const char *const ends[] = {"", " ", "x", "X", "\n", "1", "!", "\xe4\xb8\xad", "\xcc\x81"};
    static const char *const names[] = {"smollm", "gpt2", "llama3", "qwen2", "tekken", "llama4"};
    enum { ENDS = sizeof ends / sizeof *ends, SHORT = 1 << 9, LONG = 1 << 20 };
    for (size_t s = 0; s < sizeof names / sizeof *names; s++) {
        const sf_split *split = sf_split_find(names[s], strlen(names[s]));
        assert_non_null(split);
        for (size_t u = 0; u < sizeof UNITS / sizeof *UNITS; u++) {
            for (size_t e = 0; e < ENDS * ENDS; e++) {
                size_t n = looks(split, ends[e % ENDS], UNITS[u], ends[e / ENDS], SHORT);
                if (n > 6 * (SHORT + 16))
                    fail_msg("%s: %zu looks at 512 bytes of '%s'", names[s], n, UNITS[u]);
            }
            if (u >= 8) continue; /* the short ones have shown the rest */
            size_t n = looks(split, "", UNITS[u], "", LONG);
            if (n > 6 * ((size_t)LONG + 16))
                fail_msg("%s: %zu looks at 1 MiB of '%s'", names[s], n, UNITS[u]);
        }
    }
}

static size_t steps(const sf_tokenizer *t, const char *unit, size_t bytes) {
    sf_buf text = {0};
    sf_ids ids = {0};
    sf_bpe b = {0};
    while (text.len < bytes)
        assert_int_equal(sf_buf_append(&text, unit, strlen(unit), NULL), SF_OK);
    assert_int_equal(sf_tokenizer_encode_with(t, &b, text.data, text.len, NULL, &ids, NULL), SF_OK);
    size_t n = b.steps;
    assert_true(n >= ids.len);
    sf_bpe_fini(&b);
    sf_ids_fini(&ids);
    sf_buf_fini(&text);
    return n;
}

/* Whole encodings: sixteen times the text, at most about sixteen times the steps. */
static void encoding_s_work_is_linear_in_the_text(void **state) {
    (void)state;
    for (int f = 0; f < N_FAMILIES; f++) {
        for (size_t u = 0; u < sizeof UNITS / sizeof *UNITS; u++) {
            size_t few = steps(kits[f], UNITS[u], 1 << 14), many = steps(kits[f], UNITS[u], 1 << 18);
            if (many > 17 * few || many > 12u << 18)
                fail_msg("%s: '%s' takes %zu steps for 16 KiB, %zu for 256 KiB", FAMILIES[f].name, UNITS[u],
                         few, many);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gpt2_ids_equal_the_library_s),
        cmocka_unit_test(llama3_ids_equal_the_library_s),
        cmocka_unit_test(qwen2_ids_equal_the_library_s),
        cmocka_unit_test(tekken_ids_equal_the_library_s),
        cmocka_unit_test(llama4_ids_equal_the_library_s),
        cmocka_unit_test(the_splits_differ_on_the_golden_rows),
        cmocka_unit_test(every_spelling_in_gguf_files_is_known),
        cmocka_unit_test(a_split_s_work_is_linear_in_the_text),
        cmocka_unit_test(encoding_s_work_is_linear_in_the_text),
    };
    return cmocka_run_group_tests(tests, load, unload);
}
