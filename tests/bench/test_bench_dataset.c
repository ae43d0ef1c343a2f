#include "bench/dataset.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

static const int avoid[] = {0, 1, 2, 3};
static const sf_bench_dataset_config drawn = {.source = SF_BENCH_RANDOM,
                                              .n = 200,
                                              .input_len = 10,
                                              .output_len = 20,
                                              .vocab = 8,
                                              .avoid = avoid,
                                              .n_avoid = 4};

/* A file with this text; the caller unlinks it. */
static const char *file_of(const char *text) {
    static char path[32];
    snprintf(path, sizeof path, "/tmp/sf_bench_XXXXXX");
    const int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    assert_int_equal(close(fd), 0);
    return path;
}

static sf_bench_dataset make(const sf_bench_dataset_config *c) {
    sf_bench_dataset d = {0};
    sf_err err = {0};
    if (sf_bench_dataset_make(c, &d, &err) != SF_OK) fail_msg("%s", err.msg);
    assert_int_equal(d.n, c->n);
    return d;
}

static sf_bench_dataset read_text(const sf_bench_dataset_config *c, const char *text) {
    sf_bench_dataset_config with = *c;
    with.path = file_of(text);
    sf_bench_dataset d = make(&with);
    unlink(with.path);
    return d;
}

/* The file is refused at this line, with these words. */
static void assert_refused(const sf_bench_dataset_config *c, const char *text, int line, const char *words) {
    sf_bench_dataset_config with = *c;
    sf_bench_dataset d = {0};
    sf_err err = {0};
    with.path = file_of(text);
    assert_int_equal(sf_bench_dataset_make(&with, &d, &err), SF_FORMAT);
    assert_null(d.v);
    assert_string_equal(err.user.file, with.path);
    assert_int_equal(err.user.line, line);
    if (!strstr(err.msg, words)) fail_msg("\"%s\" lacks \"%s\"", err.msg, words);
    unlink(with.path);
}

static void random_ids_are_none_of_the_special_ones(void **state) {
    (void)state;
    sf_bench_dataset d = make(&drawn);
    bool seen[8] = {false};
    for (int i = 0; i < d.n; i++) {
        assert_int_equal(json_array_size(d.v[i].value), 10);
        assert_int_equal(d.v[i].input_tokens, 10);
        assert_int_equal(d.v[i].output_tokens, 20);
        for (size_t k = 0; k < 10; k++) {
            const json_int_t id = json_integer_value(json_array_get(d.v[i].value, k));
            assert_true(id >= 4 && id < 8);
            seen[id] = true;
        }
    }
    assert_true(seen[4] && seen[5] && seen[6] && seen[7]);
    sf_bench_dataset_fini(&d);
}

static void random_lengths_fill_their_range(void **state) {
    (void)state;
    sf_bench_dataset_config c = drawn;
    int least = 99, most = 0, least_out = 99, most_out = 0;
    c.n = 2000;
    c.range_ratio = 0.25;
    sf_bench_dataset d = make(&c);
    for (int i = 0; i < d.n; i++) {
        const int in = (int)json_array_size(d.v[i].value), out = d.v[i].output_tokens;
        assert_int_equal(in, d.v[i].input_tokens);
        least = in < least ? in : least;
        most = in > most ? in : most;
        least_out = out < least_out ? out : least_out;
        most_out = out > most_out ? out : most_out;
    }
    assert_int_equal(least, 7); /* floor(10 * 0.75) */
    assert_int_equal(most, 13); /* ceil(10 * 1.25) */
    assert_int_equal(least_out, 15);
    assert_int_equal(most_out, 25);
    sf_bench_dataset_fini(&d);
}

static void random_prompts_share_their_prefix_alone(void **state) {
    (void)state;
    sf_bench_dataset_config c = drawn;
    c.prefix_len = 5;
    c.vocab = 50000;
    sf_bench_dataset d = make(&c);
    for (int i = 1; i < d.n; i++) {
        assert_int_equal(json_array_size(d.v[i].value), 15);
        for (size_t k = 0; k < 15; k++) {
            const bool same = json_equal(json_array_get(d.v[0].value, k), json_array_get(d.v[i].value, k));
            if (k < 5) assert_true(same);
        }
        assert_false(json_equal(d.v[0].value, d.v[i].value));
    }
    sf_bench_dataset_fini(&d);
}

static void the_seed_decides_what_is_drawn(void **state) {
    (void)state;
    sf_bench_dataset_config c = drawn;
    c.vocab = 50000;
    sf_bench_dataset a = make(&c), b = make(&c);
    c.seed = 1;
    sf_bench_dataset other = make(&c);
    for (int i = 0; i < a.n; i++)
        assert_true(json_equal(a.v[i].value, b.v[i].value));
    assert_false(json_equal(a.v[0].value, other.v[0].value));
    sf_bench_dataset_fini(&a);
    sf_bench_dataset_fini(&b);
    sf_bench_dataset_fini(&other);
}

static void random_text_needs_a_tokenizer(void **state) {
    (void)state;
    sf_bench_dataset_config c = drawn;
    sf_bench_dataset d;
    sf_err err;
    c.chat = true;
    assert_int_equal(sf_bench_dataset_make(&c, &d, &err), SF_INVALID);
    assert_non_null(strstr(err.msg, "--weights"));
}

static const sf_bench_dataset_config lines = {.source = SF_BENCH_CUSTOM, .n = 3};

static void lines_are_read_in_order_and_again(void **state) {
    (void)state;
    sf_bench_dataset_config c = lines;
    c.n = 5;
    sf_bench_dataset d =
        read_text(&c, "{\"prompt\": \"a\", \"output_tokens\": 4}\r\n \n{\"prompt\": [5, 6], \"x\": 1}");
    for (int i = 0; i < 5; i++) {
        const bool text = i % 2 == 0;
        assert_int_equal(json_is_string(d.v[i].value), text);
        assert_int_equal(d.v[i].output_tokens, text ? 4 : 256);
        assert_int_equal(d.v[i].input_tokens, text ? 0 : 2);
    }
    sf_bench_dataset_fini(&d);
    c.output_len = 9;
    d = read_text(&c, "{\"prompt\": \"a\", \"output_tokens\": 4}");
    assert_int_equal(d.v[0].output_tokens, 9);
    sf_bench_dataset_fini(&d);
}

static void a_chat_takes_messages_and_text(void **state) {
    (void)state;
    sf_bench_dataset_config c = lines;
    c.n = 2;
    c.chat = true;
    sf_bench_dataset d =
        read_text(&c, "{\"messages\": [{\"role\": \"user\", \"content\": \"a\"}]}\n{\"prompt\": \"a\"}\n");
    assert_true(json_equal(d.v[0].value, d.v[1].value));
    sf_bench_dataset_fini(&d);
    assert_refused(&c, "{\"prompt\": [1]}", 1, "not token ids");
}

static void a_bad_line_is_named(void **state) {
    (void)state;
    static const struct {
        const char *line, *words;
    } bad[] = {
        {"{\"prompt\": ", "not valid JSON"},
        {"[1]", "expected a JSON object"},
        {"{\"a\": 1}", "expected one of prompt and messages"},
        {"{\"prompt\": \"a\", \"messages\": []}", "expected one of prompt and messages"},
        {"{\"prompt\": \"\"}", "neither text nor"},
        {"{\"prompt\": []}", "neither text nor"},
        {"{\"prompt\": [1, -1]}", "neither text nor"},
        {"{\"prompt\": 5}", "neither text nor"},
        {"{\"prompt\": \"\xff\"}", "not valid JSON"},
        {"{\"prompt\": \"a\", \"output_tokens\": 0}", "output_tokens is not"},
        {"{\"prompt\": \"a\", \"output_tokens\": \"5\"}", "output_tokens is not"},
        {"{\"messages\": [{}]}", "need --endpoint"},
        {"{\"messages\": 3}", "no list of messages"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char text[200];
        snprintf(text, sizeof text, "{\"prompt\": \"fine\"}\n\n%s\n", bad[i].line);
        assert_refused(&lines, text, 3, bad[i].words);
    }
    assert_refused(&lines, "", 0, "no prompt");
    assert_refused(&lines, "\n \n", 0, "no prompt");
}

static const sf_bench_dataset_config talks = {.source = SF_BENCH_SHAREGPT, .n = 4};
#define TALK(a, b) "{\"conversations\": [{\"value\": \"" a "\"}, {\"value\": \"" b "\"}]}"
#define LONG       "0123456789abcdef"

static void conversations_are_shuffled_and_unfit_ones_left_out(void **state) {
    (void)state;
    static const char text[] =
        "[" TALK(LONG "1", LONG LONG) ", {\"conversations\": []}, 7, {\"conversations\": [{\"value\": 1}, "
                                      "{}]}, " TALK("short", LONG) ", " TALK(LONG, "short") ", " TALK(
                                          LONG "2", LONG) "]";
    sf_bench_dataset_config c = talks;
    int first = 0;
    for (c.seed = 0; c.seed < 20; c.seed++) {
        sf_bench_dataset d = read_text(&c, text);
        int count[3] = {0};
        for (int i = 0; i < d.n; i++) {
            const int which = json_string_value(d.v[i].value)[16] - '0';
            assert_true(which == 1 || which == 2);
            assert_int_equal(d.v[i].output_tokens, which == 1 ? 8 : 4); /* a quarter of the bytes */
            count[which]++;
        }
        assert_true(count[1] == 2 && count[2] == 2);
        first += json_string_value(d.v[0].value)[16] == '1';
        sf_bench_dataset_fini(&d);
    }
    assert_true(first > 2 && first < 18);
    c.output_len = 3; /* then the answer's length does not matter */
    sf_bench_dataset d = read_text(&c, "[" TALK(LONG, "short") "]");
    assert_int_equal(d.v[3].output_tokens, 3);
    sf_bench_dataset_fini(&d);
}

static void a_bad_file_of_conversations_is_named(void **state) {
    (void)state;
    assert_refused(&talks, "[1,\n2,\n", 3, "not valid JSON");
    assert_refused(&talks, "{}", 1, "expected a list");
    assert_refused(&talks, "", 1, "not valid JSON");
    assert_refused(&talks, "[]", 0, "no prompt");
    assert_refused(&talks, "[" TALK("a", "b") "]", 0, "no prompt");
    sf_bench_dataset_config c = talks;
    sf_bench_dataset d;
    sf_err err;
    c.path = "/no/such/file";
    assert_int_equal(sf_bench_dataset_make(&c, &d, &err), SF_IO);
    c.path = "/tmp"; /* a directory */
    assert_int_equal(sf_bench_dataset_make(&c, &d, &err), SF_IO);
    c.source = SF_BENCH_CUSTOM;
    assert_int_equal(sf_bench_dataset_make(&c, &d, &err), SF_IO);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_ids_are_none_of_the_special_ones),
        cmocka_unit_test(random_lengths_fill_their_range),
        cmocka_unit_test(random_prompts_share_their_prefix_alone),
        cmocka_unit_test(the_seed_decides_what_is_drawn),
        cmocka_unit_test(random_text_needs_a_tokenizer),
        cmocka_unit_test(lines_are_read_in_order_and_again),
        cmocka_unit_test(a_chat_takes_messages_and_text),
        cmocka_unit_test(a_bad_line_is_named),
        cmocka_unit_test(conversations_are_shuffled_and_unfit_ones_left_out),
        cmocka_unit_test(a_bad_file_of_conversations_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
