/* tokenizer.json and SentencePiece's kind: ids against those of the Hugging Face `tokenizers` library
 * (tests/golden/tokenizer/files.json), the files of a directory, and refusals by JSON path. */
#include "model/tokenizer_encode_priv.h"
#include "model/tokenizer_json_priv.h"

#include "model/golden_files.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

static json_t *file_of(const char *kind) {
    return json_object_get(json_object_get(golden, kind), "tokenizer");
}

static sf_tokenizer *opened(const char *kind) {
    sf_tokenizer *t = NULL;
    assert_int_equal(sf_tokenizer_json_build("d", file_of(kind), NULL, &t, NULL), SF_OK);
    return t;
}

static void encode(const sf_tokenizer *t, const char *s, size_t len, const uint8_t *plain, sf_ids *ids) {
    ids->len = 0;
    assert_int_equal(sf_tokenizer_encode(t, s, len, plain, ids, NULL), SF_OK);
}

static void check_kind(const char *kind) {
    sf_tokenizer *t = opened(kind);
    sf_ids ids = {0};
    size_t i, bad = 0;
    const json_t *row;
    json_array_foreach(json_object_get(json_object_get(golden, kind), "rows"), i, row) {
        const json_t *text = json_array_get(row, 0), *want = json_array_get(row, 1);
        size_t len = json_string_length(text);
        uint8_t *zeros = calloc(len + 1, 1);
        assert_non_null(zeros);
        encode(t, json_string_value(text), len, zeros, &ids);
        bool same = ids.len == json_array_size(want);
        for (size_t k = 0; same && k < ids.len; k++)
            same = ids.data[k] == (int32_t)json_integer_value(json_array_get(want, k));
        if (!same) print_error("%s, row %zu: %s\n", kind, i, json_string_value(text));
        bad += !same;
        assert_true(sf_tokenizer_at_least(t, json_string_value(text), len) <= ids.len);
        free(zeros);
    }
    assert_true(i > 200);
    assert_int_equal(bad, 0);
    sf_ids_fini(&ids);
    sf_tokenizer_close(t);
}

static void byte_level_ids_equal_the_library_s(void **state) {
    (void)state;
    check_kind("llama3");
    check_kind("qwen2");
}

static void patterns_that_are_not_built_in_cut_as_the_library_does(void **state) {
    (void)state;
    check_kind("marks");
    check_kind("gaps");
    sf_tokenizer *t = opened("gaps"), *other = opened("marks");
    assert_string_equal(t->split->name, "regex");
    assert_string_not_equal(sf_tokenizer_hash(t), sf_tokenizer_hash(other)); /* the same vocabulary */
    sf_tokenizer_close(t);
    sf_tokenizer_close(other);
}

/* A pattern comes with a file: what it may cost is bounded, whatever it is. */
static void a_pattern_that_takes_too_long_is_given_up(void **state) {
    (void)state;
    json_t *copy = json_deep_copy(file_of("marks"));
    json_t *split =
        json_array_get(json_object_get(json_object_get(copy, "pre_tokenizer"), "pretokenizers"), 0);
    assert_int_equal(
        json_object_set_new(json_object_get(split, "pattern"), "Regex", json_string("(a|a)+b|.")), 0);
    sf_tokenizer *t = NULL;
    sf_ids ids = {0};
    sf_err err;
    assert_int_equal(sf_tokenizer_json_build("d", copy, NULL, &t, NULL), SF_OK);
    encode(t, "aab", 3, NULL, &ids);
    size_t before = ids.len;
    static const char many[] = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
    assert_int_equal(sf_tokenizer_encode(t, many, sizeof many - 1, NULL, &ids, &err), SF_FULL);
    assert_non_null(strstr(err.msg, "too many steps"));
    assert_int_equal(ids.len, before); /* untouched */
    sf_ids_fini(&ids);
    sf_tokenizer_close(t);
    json_decref(copy);
}

static void bytes_without_a_token_become_the_unknown_one(void **state) {
    (void)state;
    check_kind("unknown");
    check_kind("fused");
    sf_tokenizer *one = opened("unknown"), *fused = opened("fused");
    int32_t unk = sf_tokenizer_find(one, "<|endoftext|>", 13);
    sf_ids ids = {0};
    encode(one, "!!", 2, NULL, &ids);
    assert_int_equal(ids.len, 2);
    assert_int_equal(ids.data[0], unk);
    encode(fused, "!!", 2, NULL, &ids);
    assert_int_equal(ids.len, 1);
    sf_ids_fini(&ids);
    sf_tokenizer_close(one);
    sf_tokenizer_close(fused);
}

static void sentencepiece_ids_equal_the_library_s(void **state) {
    (void)state;
    check_kind("prepend");
    check_kind("first");
    check_kind("always");
}

static void sentencepiece_text_comes_back_whole(void **state) {
    (void)state;
    static const char *const lines[] = {
        "a",    " a", "  a  b ", "\n x", "\xe4\xbd\xa0\xe5\xa5\xbd \xf0\x9f\x98\x80",
        "\x7f", " ",  "the one", "<s>",  "\xe0\xa4\xa8\xe0\xa4\xae"};
    sf_tokenizer *t = opened("prepend");
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        sf_ids ids = {0};
        sf_buf back = {0};
        encode(t, lines[i], strlen(lines[i]), NULL, &ids);
        for (size_t k = 0; k < ids.len; k++)
            assert_false(sf_tokenizer_is_special(t, ids.data[k]));
        assert_int_equal(sf_tokenizer_decode(t, ids.data, ids.len, false, &back, NULL), SF_OK);
        assert_string_equal(back.data, lines[i]);
        sf_buf_fini(&back);
        sf_ids_fini(&ids);
    }
    sf_tokenizer_close(t);
}

/* Texts of SentencePiece's kind are merged word by word, but not where that could miss a token. */
static void a_token_that_reaches_into_spaces_is_still_made(void **state) {
    (void)state;
    json_t *copy = json_deep_copy(file_of("prepend")), *model = json_object_get(copy, "model");
    json_t *vocab = json_object_get(model, "vocab");
    sf_tokenizer *t = NULL;
    sf_ids ids = {0};
    size_t n = json_object_size(vocab) + json_array_size(json_object_get(copy, "added_tokens")), found = 0;
    assert_int_equal(json_object_set_new(vocab, "a\xe2\x96\x81", json_integer((json_int_t)n)), 0);
    assert_int_equal(
        json_array_insert_new(json_object_get(model, "merges"), 0, json_pack("[s, s]", "a", "\xe2\x96\x81")),
        0);
    assert_int_equal(sf_tokenizer_json_build("d", copy, NULL, &t, NULL), SF_OK);
    encode(t, "xa  ba b", 8, NULL, &ids);
    for (size_t i = 0; i < ids.len; i++)
        found += ids.data[i] == (int32_t)n;
    assert_int_equal(found, 2);
    sf_ids_fini(&ids);
    sf_tokenizer_close(t);
    json_decref(copy);
}

/* A token is recognised only where none of its bytes is the user's, also once the text is normalised. */
static void marks_follow_the_text_through_normalisation(void **state) {
    (void)state;
    static const char *const kinds[] = {"qwen2", "prepend"}, *const texts[] = {"e\xcc\x81<n>", " <n>"};
    for (int k = 0; k < 2; k++) {
        sf_tokenizer *t = opened(kinds[k]);
        int32_t n = sf_tokenizer_find(t, "<n>", 3);
        size_t len = strlen(texts[k]);
        assert_true(n >= 0);
        for (size_t marked = 0; marked <= len; marked++) { /* len: no byte */
            uint8_t plain[16] = {0};
            sf_ids ids = {0};
            if (marked < len) plain[marked] = 1;
            encode(t, texts[k], len, plain, &ids);
            bool found = false;
            for (size_t i = 0; i < ids.len; i++)
                found = found || ids.data[i] == n;
            bool touched =
                marked < len && marked >= len - 3 - (k == 1); /* there its spelling has the space */
            assert_int_equal(found, !touched);
            sf_ids_fini(&ids);
        }
        sf_tokenizer_close(t);
    }
}

static size_t steps(const sf_tokenizer *t, const char *unit, size_t bytes) {
    sf_buf text = {0};
    sf_ids ids = {0};
    sf_bpe b = {0};
    while (text.len < bytes)
        assert_int_equal(sf_buf_append(&text, unit, strlen(unit), NULL), SF_OK);
    uint8_t *zeros = calloc(text.len, 1);
    assert_non_null(zeros);
    assert_int_equal(sf_tokenizer_encode_with(t, &b, text.data, text.len, zeros, &ids, NULL), SF_OK);
    size_t n = b.steps;
    free(zeros);
    sf_bpe_fini(&b);
    sf_ids_fini(&ids);
    sf_buf_fini(&text);
    return n;
}

static void the_work_is_linear_in_the_text(void **state) {
    (void)state;
    static const char *const kinds[] = {"qwen2", "prepend", "first", "always"};
    static const char *const units[] = {" ",
                                        "a",
                                        "1",
                                        "\xf0\x9f\x98\x80",
                                        "\n",
                                        "e\xcc\x81",
                                        "\xe2\x96\x81",
                                        "<r> ",
                                        " <l>",
                                        "\xcd\x85\xcc\xa3\xcc\x81",
                                        "<s>",
                                        "the "};
    for (size_t k = 0; k < 4; k++) {
        sf_tokenizer *t = opened(kinds[k]);
        for (size_t u = 0; u < sizeof units / sizeof *units; u++) {
            size_t few = steps(t, units[u], 1 << 14), many = steps(t, units[u], 1 << 18);
            if (many > 17 * few + 1000)
                fail_msg("%s: '%s' takes %zu steps, then %zu", kinds[k], units[u], few, many);
        }
        sf_tokenizer_close(t);
    }
}

/* The merges that scores imply, of a vocabulary whose order of scores is that of the merges. */
static void scores_give_the_same_ids_as_their_merges(void **state) {
    (void)state;
    static char names[256][8];
    static const char *const more[] = {
        "<unk>", "<s>", "\xe2\x96\x81", "a", "b", "\xe2\x96\x81\x61", "ab", "\xe2\x96\x81\x61\x62", "aab"};
    enum { N = 256 + sizeof more / sizeof *more };
    static sf_str tokens[N];
    static int32_t types[N];
    static float scores[N];
    for (int i = 0; i < N; i++) {
        if (i < 256) snprintf(names[i], sizeof names[i], "<0x%02X>", (unsigned)i);
        const char *s = i < 256 ? names[i] : more[i - 256];
        tokens[i] = (sf_str){s, strlen(s)};
        types[i] = i < 256    ? SF_TOKEN_BYTE
                   : i == 256 ? SF_TOKEN_UNKNOWN
                   : i == 257 ? SF_TOKEN_CONTROL
                              : SF_TOKEN_NORMAL;
        scores[i] = (float)-i;
    }
    sf_tokenizer_parts p = {.path = "s",
                            .words = &sf_split_whole,
                            .tokens = tokens,
                            .n_tokens = N,
                            .scores = scores,
                            .types = types,
                            .n_types = N,
                            .bos = 257,
                            .eos = -1,
                            .spm = true,
                            .prefix = SF_PREFIX_PREPEND,
                            .strip = true};
    sf_tokenizer *t = NULL;
    sf_ids ids = {0};
    assert_int_equal(sf_tokenizer_build(&p, &t, NULL), SF_OK);
    encode(t, "ab a\xc3\xa9\x61\x61\x62", 9, NULL, &ids);
    /* "_a" twice, "ab" at the end, "_ab" of "_a", "aab" of "ab"; a character without a token is two bytes */
    static const int32_t want[] = {263, 261, 0xc3, 0xa9, 264};
    assert_int_equal(ids.len, 5);
    assert_memory_equal(ids.data, want, sizeof want);
    sf_tokenizer_close(t);
    sf_ids_fini(&ids);
    sf_err err;
    types[65] = SF_TOKEN_NORMAL;
    assert_int_equal(sf_tokenizer_build(&p, &t, &err), SF_FORMAT);
    assert_non_null(strstr(err.msg, "has no byte token <0x41>"));
    types[65] = SF_TOKEN_BYTE;
    scores[259] = (float)NAN;
    assert_int_equal(sf_tokenizer_build(&p, &t, &err), SF_FORMAT);
    assert_non_null(strstr(err.msg, "tokenizer.ggml.scores: item 259"));
}

/* Both spellings of merges make one tokenizer. */
static void merges_may_be_texts_or_pairs(void **state) {
    (void)state;
    json_t *copy = json_deep_copy(file_of("llama3")), *m;
    json_t *merges = json_object_get(json_object_get(copy, "model"), "merges");
    size_t i;
    assert_true(json_is_array(json_array_get(merges, 0)));
    json_array_foreach(merges, i, m) {
        json_t *text = json_sprintf("%s %s", json_string_value(json_array_get(m, 0)),
                                    json_string_value(json_array_get(m, 1)));
        assert_int_equal(json_array_set_new(merges, i, text), 0);
    }
    sf_tokenizer *pairs = opened("llama3"), *texts = NULL;
    assert_int_equal(sf_tokenizer_json_build("d", copy, NULL, &texts, NULL), SF_OK);
    assert_string_equal(sf_tokenizer_hash(pairs), sf_tokenizer_hash(texts));
    sf_tokenizer_close(pairs);
    sf_tokenizer_close(texts);
    json_decref(copy);
}

/* Sets what stands at a path such as "model.merges.7" in a copy, and expects a refusal that says `detail`. */
static void spoilt(const char *kind, const char *path, const char *value, sf_code code, const char *detail) {
    json_t *copy = json_deep_copy(file_of(kind)), *at = copy, *v = json_loads(value, JSON_DECODE_ANY, NULL);
    char step[60];
    sf_tokenizer *t = NULL;
    sf_err err = {0};
    assert_non_null(v);
    for (;;) {
        size_t n = strcspn(path, ".");
        assert_true(n < sizeof step);
        memcpy(step, path, n);
        step[n] = 0;
        size_t index = strtoul(step, NULL, 10);
        if (!path[n]) {
            assert_int_equal(
                json_is_array(at) ? json_array_set_new(at, index, v) : json_object_set_new(at, step, v), 0);
            break;
        }
        at = json_is_array(at) ? json_array_get(at, index) : json_object_get(at, step);
        assert_non_null(at);
        path += n + 1;
    }
    sf_code rc = sf_tokenizer_json_build("dir", copy, NULL, &t, &err);
    if (rc != code || t || !strstr(err.msg, detail) || strncmp(err.msg, "tokenizer.json: ", 16) != 0)
        fail_msg("%s: %d '%s', expected '%s'", step, (int)rc, err.msg, detail);
    assert_string_equal(err.user.file, "dir");
    json_decref(copy);
}

static void what_is_not_computed_is_refused_by_its_path(void **state) {
    (void)state;
    static const struct {
        const char *kind, *path, *value, *detail;
    } cases[] = {
        {"llama3", "model.type", "\"WordPiece\"", "model.type is 'WordPiece'"},
        {"llama3", "model.dropout", "0.1", "model.dropout"},
        {"llama3", "model.end_of_word_suffix", "\"</w>\"", "model.end_of_word_suffix"},
        {"llama3", "model.continuing_subword_prefix", "\"##\"", "model.continuing_subword_prefix"},
        {"llama3", "model.novelty", "1", "model.novelty"},
        {"llama3", "novelty", "1", "novelty"},
        {"llama3", "added_tokens.0.novelty", "1", "added_tokens[0].novelty"},
        {"llama3", "normalizer", "{\"type\":\"NFKC\"}", "normalizer: [NFKC]"},
        {"prepend", "normalizer.normalizers.0.prepend", "\"x\"", "normalizer: [Prepend, Replace]"},
        {"prepend", "normalizer.normalizers.1.content", "\"x\"", "normalizer: [Prepend, Replace]"},
        {"llama3", "pre_tokenizer", "null", "pre_tokenizer: []"},
        {"llama3", "pre_tokenizer", "{\"type\":\"Whitespace\"}", "pre_tokenizer: [Whitespace]"},
        {"llama3", "pre_tokenizer.pretokenizers.0.pattern", "{\"String\":\"a\"}",
         "pre_tokenizer: [Split, ByteLevel]"},
        {"llama3", "pre_tokenizer.pretokenizers.0.pattern", "{\"Regex\":\"a(b\"}",
         "pre_tokenizer: missing closing parenthesis, at byte 3"},
        {"llama3", "pre_tokenizer.pretokenizers.0.pattern", "{\"Regex\":\"a*\"}",
         "pre_tokenizer: the pattern matches the empty text"},
        {"llama3", "pre_tokenizer.pretokenizers.0.pattern", "{\"Regex\":\"\\\\C\"}",
         "pre_tokenizer: using \\C is disabled"},
        {"llama3", "pre_tokenizer.pretokenizers.0.behavior", "\"Removed\"",
         "pre_tokenizer: [Split, ByteLevel]"},
        {"llama3", "pre_tokenizer.pretokenizers.0.invert", "true", "pre_tokenizer: [Split, ByteLevel]"},
        {"llama3", "pre_tokenizer.pretokenizers.1.add_prefix_space", "true",
         "pre_tokenizer: [Split, ByteLevel]"},
        {"llama3", "pre_tokenizer.pretokenizers.1.use_regex", "true", "pre_tokenizer: [Split, ByteLevel]"},
        {"first", "pre_tokenizer.replacement", "\"_\"", "pre_tokenizer: [Metaspace]"},
        {"first", "pre_tokenizer.prepend_scheme", "\"last\"", "pre_tokenizer: [Metaspace]"},
        {"first", "pre_tokenizer", "null", "pre_tokenizer: []"},
        {"llama3", "decoder", "{\"type\":\"WordPiece\"}", "decoder: [WordPiece]"},
        {"first", "decoder", "{\"type\":\"ByteLevel\"}", "decoder: [ByteLevel]"},
        {"first", "decoder.decoders.3.start", "2", "decoder: [Replace, ByteFallback, Fuse, Strip]"},
        {"llama3", "post_processor", "{\"type\":\"BertProcessing\"}", "post_processor: [BertProcessing]"},
        {"llama3", "post_processor",
         "{\"type\":\"TemplateProcessing\",\"single\":[{\"Sequence\":{}},{\"SpecialToken\":{\"id\":\"x\"}}]}",
         "post_processor: [TemplateProcessing]"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        spoilt(cases[i].kind, cases[i].path, cases[i].value, SF_UNSUPPORTED, cases[i].detail);
}

static void what_is_broken_is_refused_by_its_path(void **state) {
    (void)state;
    static const struct {
        const char *path, *value, *detail;
    } cases[] = {{"model.vocab", "[]", "model.vocab"},
                 {"model.vocab", "{\"a\":-1}", "model.vocab: the id of 'a'"},
                 {"model.vocab", "{\"a\":\"b\"}", "model.vocab: the id of 'a'"},
                 {"model.vocab", "{\"a\":99999999}", "model.vocab: the id of 'a'"},
                 {"model.vocab", "{\"a\":5,\"b\":5}", "have one id"},
                 {"model.merges", "{}", "model.merges is no list"},
                 {"model.merges.3", "\"ab\"", "model.merges[3]"},
                 {"model.merges.3", "\"a b c\"", "model.merges[3]"},
                 {"model.merges.3", "[\"a\"]", "model.merges[3]"},
                 {"model.merges.3", "[\"a\",1]", "model.merges[3]"},
                 {"model.merges.3", "[\"q\",\"\\u0120\"]", "model.merges: item 3"},
                 {"added_tokens", "{}", "added_tokens is no list"},
                 {"added_tokens.1", "7", "added_tokens[1]"},
                 {"added_tokens.1.id", "\"x\"", "added_tokens[1].id"},
                 {"added_tokens.1.content", "\"\"", "added_tokens[1].content"},
                 {"added_tokens.1.content", "null", "added_tokens[1].content"},
                 {"added_tokens.1.id", "3", "added_tokens[1]: id 3 is"},
                 {"added_tokens.1.lstrip", "1", "added_tokens[1].lstrip"},
                 {"model.unk_token", "\"<q>\"", "model.unk_token is '<q>'"},
                 {"pre_tokenizer", "7", "pre_tokenizer is no object"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        spoilt("llama3", cases[i].path, cases[i].value, SF_FORMAT, cases[i].detail);
}

static void put_file(const char *dir, const char *name, const char *text) {
    char path[200];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(fclose(f), 0);
}

static void remove_all(const char *dir) {
    static const char *const names[] = {"tokenizer.json", "tokenizer_config.json", "chat_template.jinja"};
    char path[200];
    for (size_t i = 0; i < 3; i++) {
        snprintf(path, sizeof path, "%s/%s", dir, names[i]);
        (void)unlink(path);
    }
    assert_int_equal(rmdir(dir), 0);
}

static void a_directory_gives_tokenizer_special_ids_and_chat_template(void **state) {
    (void)state;
    char dir[] = "/tmp/sf-tokenizer-XXXXXX";
    assert_non_null(mkdtemp(dir));
    sf_tokenizer *t = NULL;
    sf_buf chat = {0};
    sf_err err;
    assert_int_equal(sf_tokenizer_open_dir(dir, &t, &chat, &err), SF_IO);
    assert_non_null(strstr(err.msg, "tokenizer.json"));
    char *text = json_dumps(file_of("first"), 0);
    put_file(dir, "tokenizer.json", text);
    free(text);
    assert_int_equal(sf_tokenizer_open_dir(dir, &t, &chat, &err), SF_OK);
    assert_int_equal(sf_tokenizer_bos(t), -1);
    assert_false(sf_tokenizer_add_bos(t));
    assert_int_equal(chat.len, 0);
    sf_tokenizer_close(t);
    put_file(dir, "tokenizer_config.json",
             "{\"bos_token\":{\"content\":\"<s>\"},\"eos_token\":\"</"
             "s>\",\"add_bos_token\":true,\"chat_template\":"
             "[{\"name\":\"tool\",\"template\":\"t\"},{\"name\":\"default\",\"template\":\"{{x}}\"}]}");
    assert_int_equal(sf_tokenizer_open_dir(dir, &t, &chat, &err), SF_OK);
    assert_int_equal(sf_tokenizer_bos(t), 1);
    assert_int_equal(sf_tokenizer_eos(t), 2);
    assert_true(sf_tokenizer_add_bos(t));
    assert_string_equal(chat.data, "{{x}}");
    sf_tokenizer_close(t);
    chat.len = 0;
    put_file(dir, "chat_template.jinja", "{{y}}");
    assert_int_equal(sf_tokenizer_open_dir(dir, &t, &chat, &err), SF_OK);
    assert_string_equal(chat.data, "{{y}}");
    sf_tokenizer_close(t);
    t = NULL;
    char link[200];
    snprintf(link, sizeof link, "%s/chat_template.jinja", dir);
    assert_int_equal(unlink(link), 0);
    assert_int_equal(symlink("nowhere", link), 0); /* half a download */
    assert_int_equal(sf_tokenizer_open_dir(dir, &t, &chat, &err), SF_IO);
    assert_string_equal(err.msg, "chat_template.jinja: No such file or directory");
    assert_int_equal(unlink(link), 0);
    static const char *const bad[][2] = {{"{\"bos_token\":\"<q>\"}", "bos_token is '<q>'"},
                                         {"{\"bos_token\":5}", "bos_token is no text"},
                                         {"{\"eos_token\":{\"content\":[]}}", "eos_token is no text"},
                                         {"{\"chat_template\":5}", "chat_template is neither"},
                                         {"{\"chat_template\":{}}", "chat_template is neither"},
                                         {"{\"add_bos_token\":true}", "no bos_token"},
                                         {"{\"add_bos_token\":1}", "add_bos_token is no boolean"},
                                         {"{\"add_eos_token\":true}", "add_eos_token is true"},
                                         {"[]", "no object"},
                                         {"{\"a\":1,\"a\":2}", "tokenizer_config.json:1:"},
                                         {"{", "tokenizer_config.json:1:"}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        put_file(dir, "tokenizer_config.json", bad[i][0]);
        assert_int_not_equal(sf_tokenizer_open_dir(dir, &t, &chat, &err), SF_OK);
        assert_null(t);
        assert_string_equal(err.user.file, dir);
        if (!strstr(err.msg, "tokenizer_config.json") || !strstr(err.msg, bad[i][1]))
            fail_msg("message '%s'", err.msg);
    }
    assert_string_equal(chat.data, "{{y}}"); /* untouched */
    sf_buf_fini(&chat);
    remove_all(dir);
}

static void a_template_with_a_first_token_asks_for_a_bos(void **state) {
    (void)state;
    json_t *copy = json_deep_copy(file_of("first"));
    json_t *post = json_loads(
        "{\"type\":\"Sequence\",\"processors\":[{\"type\":\"ByteLevel\"},{\"type\":\"TemplateProcessing\","
        "\"single\":[{\"SpecialToken\":{\"id\":\"<s>\"}},{\"Sequence\":{\"id\":\"A\"}}]}]}",
        0, NULL);
    json_t *config = json_pack("{s:s}", "bos_token", "</s>"), *off = json_pack("{s:b}", "add_bos_token", 0);
    sf_tokenizer *t = NULL;
    sf_err err;
    assert_int_equal(json_object_set_new(copy, "post_processor", post), 0);
    assert_int_equal(sf_tokenizer_json_build("d", copy, NULL, &t, NULL), SF_OK);
    assert_true(sf_tokenizer_add_bos(t));
    assert_int_equal(sf_tokenizer_bos(t), 1);
    sf_tokenizer_close(t);
    assert_int_equal(sf_tokenizer_json_build("d", copy, off, &t, NULL), SF_OK);
    assert_false(sf_tokenizer_add_bos(t));
    sf_tokenizer_close(t);
    assert_int_equal(sf_tokenizer_json_build("d", copy, config, &t, &err), SF_UNSUPPORTED);
    assert_non_null(strstr(err.msg, "post_processor puts '<s>' first, and bos_token is '</s>'"));
    json_decref(copy);
    json_decref(config);
    json_decref(off);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(byte_level_ids_equal_the_library_s),
        cmocka_unit_test(patterns_that_are_not_built_in_cut_as_the_library_does),
        cmocka_unit_test(a_pattern_that_takes_too_long_is_given_up),
        cmocka_unit_test(bytes_without_a_token_become_the_unknown_one),
        cmocka_unit_test(sentencepiece_ids_equal_the_library_s),
        cmocka_unit_test(sentencepiece_text_comes_back_whole),
        cmocka_unit_test(a_token_that_reaches_into_spaces_is_still_made),
        cmocka_unit_test(marks_follow_the_text_through_normalisation),
        cmocka_unit_test(the_work_is_linear_in_the_text),
        cmocka_unit_test(scores_give_the_same_ids_as_their_merges),
        cmocka_unit_test(merges_may_be_texts_or_pairs),
        cmocka_unit_test(what_is_not_computed_is_refused_by_its_path),
        cmocka_unit_test(what_is_broken_is_refused_by_its_path),
        cmocka_unit_test(a_directory_gives_tokenizer_special_ids_and_chat_template),
        cmocka_unit_test(a_template_with_a_first_token_asks_for_a_bos),
    };
    return cmocka_run_group_tests(tests, load, unload);
}
