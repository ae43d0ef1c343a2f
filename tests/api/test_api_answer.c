#include "api/answer.h"

#include "api/digest.h"
#include "api/json.h"
#include "fake_text.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const int32_t prompt[] = {FAKE_BOS, 'h', 'i'};

/* "a", "a" spelt by another token, a euro sign over two tokens, the end token. */
static sf_token tokens[] = {
    {.id = 'a',
     .logprob = -0.5f,
     .rank = 1,
     .n_top = 2,
     .top_id = {'a', FAKE_TWIN},
     .top_logprob = {-0.5f, -1.0f}},
    {.id = FAKE_TWIN,
     .logprob = -3.0f,
     .rank = 3,
     .n_top = 2,
     .top_id = {'a', 'b'},
     .top_logprob = {-0.25f, -2.0f}},
    {.id = FAKE_EURO_1, .logprob = -INFINITY, .rank = 9},
    {.id = FAKE_EURO_2, .logprob = -0.1f, .rank = 1},
    {.id = 'z', .logprob = -0.2f, .rank = 1},
    {.id = FAKE_END, .logprob = -0.3f, .rank = 1},
};
static const sf_token prompt_tokens[] = {
    {0},
    {.id = 'h', .logprob = -4.0f, .rank = 7, .n_top = 1, .top_id = {'x'}, .top_logprob = {-0.125f}},
    {.id = 'i', .logprob = -0.75f, .rank = 1, .n_top = 1, .top_id = {'i'}, .top_logprob = {-0.75f}},
};
static const char text[] = "aa\xe2\x82\xacz";
static const sf_choice choices[] = {{tokens, 6, text, sizeof text - 1, SF_FINISH_STOP},
                                    {tokens, 1, "a", 1, SF_FINISH_LENGTH}};

static json_t *answer(const char *request, bool with_prompt_logprobs) {
    sf_api_request r;
    sf_api_error e;
    assert_int_equal(fake_read(&fake_model, SF_API_RUN, request, &r, &e), SF_OK);
    sf_api_answer a = {.params = &r.params,
                       .prompt = prompt,
                       .n_prompt = 3,
                       .prompt_logprobs = with_prompt_logprobs ? prompt_tokens : NULL,
                       .n_choices = r.params.n,
                       .choices = choices,
                       .stats = {.windows_verified = 3, .rollbacks = 1, .tokens_rolled_back = 2}};
    json_t *o;
    assert_int_equal(sf_api_answer_json(&fake_model, &r, &a, &o, &e), SF_OK);
    sf_api_request_fini(&r);
    return o;
}

/* The value at a path of keys ("logprobs.tokens") as JSON text. */
static void expect(const json_t *o, const char *path, const char *wanted) {
    char key[64];
    while (*path) {
        size_t len = strcspn(path, ".");
        assert_true(len < sizeof key);
        memcpy(key, path, len);
        key[len] = 0;
        o = json_object_get(o, key);
        path += len + (path[len] == '.');
    }
    char *got = o ? json_dumps(o, JSON_COMPACT | JSON_ENCODE_ANY | JSON_REAL_PRECISION(9)) : NULL;
    if (!wanted) {
        assert_null(got);
        return;
    }
    assert_non_null(got);
    assert_string_equal(got, wanted);
    free(got);
}

static void one_choice_stands_at_the_top(void **state) {
    (void)state;
    json_t *o = answer("{\"prompt\": \"x\", \"id\": \"a 1\"}", false);
    expect(o, "id", "\"a 1\"");
    expect(o, "text", "\"aa\xe2\x82\xacz\"");
    expect(o, "token_ids", "[97,258,259,260,122,257]");
    expect(o, "finish_reason", "\"stop\"");
    expect(o, "usage", "{\"prompt_tokens\":3,\"completion_tokens\":6,\"total_tokens\":9}");
    expect(o, "system_fingerprint", "\"sf-test\"");
    expect(o, "logprobs", NULL);
    expect(o, "prompt_logprobs", NULL);
    expect(o, "prompt_token_ids", NULL);
    expect(o, "choices", NULL);
    json_decref(o);
}

static void determinism_tells_class_and_counters(void **state) {
    (void)state;
    json_t *o = answer("{\"prompt\": \"x\", \"is_deterministic\": true}", false);
    expect(o, "determinism.class", "\"pinned\"");
    expect(o, "determinism.seed", "77");
    expect(o, "determinism.windows_verified", "3");
    expect(o, "determinism.rollbacks", "1");
    expect(o, "determinism.tokens_rolled_back", "2");
    assert_int_equal(json_string_length(json_object_get(json_object_get(o, "determinism"), "digest")), 64);
    json_decref(o);
    o = answer("{\"prompt\": \"x\"}", false);
    expect(o, "determinism.class", "\"fast\"");
    json_decref(o);
}

static void several_choices_have_an_index(void **state) {
    (void)state;
    json_t *o = answer("{\"prompt\": \"x\", \"n\": 2}", false);
    expect(o, "text", NULL);
    const json_t *list = json_object_get(o, "choices");
    assert_int_equal(json_array_size(list), 2);
    expect(json_array_get(list, 0), "index", "0");
    expect(json_array_get(list, 1), "index", "1");
    expect(json_array_get(list, 1), "text", "\"a\"");
    expect(json_array_get(list, 1), "finish_reason", "\"length\"");
    expect(o, "usage.completion_tokens", "7");
    json_decref(o);
}

static void logprobs_have_openais_form(void **state) {
    (void)state;
    json_t *o = answer("{\"prompt\": \"x\", \"logprobs\": 2}", false);
    expect(o, "logprobs.tokens", "[\"a\",\"a\",\"bytes:\\\\xe2\\\\x82\",\"bytes:\\\\xac\",\"z\",\"<end>\"]");
    expect(o, "logprobs.token_logprobs", "[-0.5,-3.0,-9999.0,-0.100000001,-0.200000003,-0.300000012]");
    expect(o, "logprobs.token_ids", "[97,258,259,260,122,257]");
    /* the second token of an euro sign begins where the sign does; special tokens take no room */
    expect(o, "logprobs.text_offset", "[0,1,2,2,3,4]");
    json_decref(o);
}

static void top_logprobs_lose_no_token(void **state) {
    (void)state;
    json_t *o = answer("{\"prompt\": \"x\", \"logprobs\": 2}", false);
    const json_t *tops = json_object_get(json_object_get(o, "logprobs"), "top_logprobs");
    expect(json_array_get(tops, 0), "", "{\"a\":-0.5,\"token_id:258\":-1.0}");
    expect(json_array_get(tops, 1), "", "{\"a\":-0.25,\"b\":-2.0,\"token_id:258\":-3.0}");
    json_decref(o);
    o = answer("{\"prompt\": \"x\", \"logprobs\": 0}", false);
    expect(json_array_get(json_object_get(json_object_get(o, "logprobs"), "top_logprobs"), 0), "",
           "{\"a\":-0.5}");
    json_decref(o);
}

static void prompt_logprobs_have_vllms_form(void **state) {
    (void)state;
    json_t *o = answer("{\"prompt\": \"x\", \"prompt_logprobs\": 1}", true);
    expect(o, "prompt_logprobs",
           "[null,"
           "{\"120\":{\"logprob\":-0.125,\"rank\":1,\"decoded_token\":\"x\"},"
           "\"104\":{\"logprob\":-4.0,\"rank\":7,\"decoded_token\":\"h\"}},"
           "{\"105\":{\"logprob\":-0.75,\"rank\":1,\"decoded_token\":\"i\"}}]");
    json_decref(o);
}

static void echo_puts_the_prompt_first(void **state) {
    (void)state;
    json_t *o =
        answer("{\"prompt\": \"x\", \"echo\": true, \"logprobs\": 0, \"return_token_ids\": true}", true);
    expect(o, "text", "\"hiaa\xe2\x82\xacz\"");
    expect(o, "logprobs.token_ids", "[256,104,105,97,258,259,260,122,257]");
    expect(o, "logprobs.text_offset", "[0,0,1,2,3,4,4,5,6]");
    const json_t *lp = json_object_get(json_object_get(o, "logprobs"), "token_logprobs");
    assert_true(json_is_null(json_array_get(lp, 0)));
    assert_true(json_real_value(json_array_get(lp, 1)) == -4.0);
    expect(o, "token_ids", "[97,258,259,260,122,257]");
    expect(o, "prompt_token_ids", "[256,104,105]");
    expect(o, "prompt_logprobs", NULL); /* used, but not asked for */
    json_decref(o);
}

static void without_a_tokenizer_tokens_are_numbers(void **state) {
    (void)state;
    sf_api_model m = fake_model;
    m.tokenizer = NULL;
    sf_api_request r;
    sf_api_error e;
    assert_int_equal(fake_read(&m, SF_API_RUN, "{\"prompt_ids\": [1], \"logprobs\": 1}", &r, &e), SF_OK);
    sf_api_answer a = {
        .params = &r.params, .prompt = prompt, .n_prompt = 3, .n_choices = 1, .choices = &choices[1]};
    json_t *o;
    assert_int_equal(sf_api_answer_json(&m, &r, &a, &o, &e), SF_OK);
    expect(o, "logprobs.tokens", "[\"token_id:97\"]");
    json_decref(o);
    sf_api_request_fini(&r);
}

/* ---- digest ---- */

typedef struct subject {
    sf_params params;
    int32_t prompt[3];
    sf_token tokens[2], prompt_tokens[3];
    sf_choice choice;
    sf_api_answer answer;
    const char *stop[1];
    sf_bias bias[1];
    int32_t stop_ids[1];
    const char *fingerprint;
} subject;

static void subject_init(subject *s) {
    *s = (subject){.fingerprint = "sf-test", .stop = {"."}, .bias = {{7, 1.5f}}, .stop_ids = {9}};
    sf_params_default(&s->params);
    s->params.seed = -5;
    s->params.max_tokens = 16;
    s->params.n_stop = s->params.n_stop_ids = s->params.n_bias = 1;
    memcpy(s->prompt, prompt, sizeof prompt);
    memcpy(s->tokens, tokens, sizeof s->tokens);
    memcpy(s->prompt_tokens, prompt_tokens, sizeof s->prompt_tokens);
}

static void digest_of(subject *s, char out[65]) {
    s->params.stop = s->stop;
    s->params.stop_ids = s->stop_ids;
    s->params.bias = s->bias;
    s->choice = (sf_choice){s->tokens, 2, "aa", 2, SF_FINISH_STOP};
    s->answer = (sf_api_answer){.params = &s->params,
                                .prompt = s->prompt,
                                .n_prompt = 3,
                                .prompt_logprobs = s->prompt_tokens,
                                .n_choices = 1,
                                .choices = &s->choice};
    assert_true(sf_api_digest(s->fingerprint, &s->answer, out));
}

static void the_digest_is_the_documented_one(void **state) {
    (void)state;
    subject s;
    char got[65];
    subject_init(&s);
    digest_of(&s, got);
    /* from tests/api/digest.py, which follows the layout in api/digest.h */
    assert_string_equal(got, "eb3098690c52d76d6b93611b2c1c18fa916a17fd62949e96c360f6f0b3f64a4c");
}

/* Changes of plain fields: where, and what to. */
typedef struct int_change {
    size_t at;
    int32_t value;
} int_change;

static const int_change int_changes[] = {
    {offsetof(subject, prompt[1]), 'H'},
    {offsetof(subject, params.top_k), 3},
    {offsetof(subject, params.max_tokens), 17},
    {offsetof(subject, params.min_tokens), 1},
    {offsetof(subject, params.n), 2},
    {offsetof(subject, stop_ids[0]), 8},
    {offsetof(subject, bias[0].token), 8},
    {offsetof(subject, tokens[1].id), 'b'},
    {offsetof(subject, tokens[0].top_id[1]), 'c'},
};

typedef struct float_change {
    size_t at;
    float value;
} float_change;

static const float_change float_changes[] = {
    {offsetof(subject, params.temperature), 0.5f},
    {offsetof(subject, params.top_p), 0.5f},
    {offsetof(subject, params.min_p), 0.5f},
    {offsetof(subject, params.repetition_penalty), 1.5f},
    {offsetof(subject, params.frequency_penalty), 1.5f},
    {offsetof(subject, params.presence_penalty), 1.5f},
    {offsetof(subject, bias[0].bias), 1.0f},
    {offsetof(subject, tokens[0].top_logprob[1]), -1.5f},
    {offsetof(subject, prompt_tokens[2].logprob), -0.5f},
};

static void other_fingerprint(subject *s) {
    s->fingerprint = "sf-other";
}
static void other_seed(subject *s) {
    s->params.seed = -6;
}
static void ignored_eos(subject *s) {
    s->params.ignore_eos = true;
}
static void other_stop(subject *s) {
    s->stop[0] = ",";
}
static void last_bit_of_a_logprob(subject *s) {
    uint32_t bits;
    memcpy(&bits, &s->tokens[0].logprob, sizeof bits);
    bits ^= 1;
    memcpy(&s->tokens[0].logprob, &bits, sizeof bits);
}

static void (*const other_changes[])(subject *) = {other_fingerprint, other_seed, ignored_eos, other_stop,
                                                   last_bit_of_a_logprob};

enum {
    INTS = sizeof int_changes / sizeof *int_changes,
    FLOATS = sizeof float_changes / sizeof *float_changes,
    OTHERS = sizeof other_changes / sizeof *other_changes,
    CHANGES = INTS + FLOATS + OTHERS
};

static void change(subject *s, int i) {
    if (i < INTS)
        memcpy((char *)s + int_changes[i].at, &int_changes[i].value, sizeof(int32_t));
    else if (i < INTS + FLOATS)
        memcpy((char *)s + float_changes[i - INTS].at, &float_changes[i - INTS].value, sizeof(float));
    else if (i < CHANGES)
        other_changes[i - INTS - FLOATS](s);
}

static void everything_that_matters_changes_the_digest(void **state) {
    (void)state;
    char seen[CHANGES + 1][65]; /* the last one is unchanged */
    for (int i = 0; i <= CHANGES; i++) {
        subject s;
        subject_init(&s);
        change(&s, i);
        digest_of(&s, seen[i]);
        for (int k = 0; k < i; k++)
            if (strcmp(seen[i], seen[k]) == 0) fail_msg("changes %d and %d give one digest", k, i);
    }
}

static void the_way_it_was_computed_does_not(void **state) {
    (void)state;
    subject a, b;
    char x[65], y[65];
    subject_init(&a);
    subject_init(&b);
    b.params.deterministic = true;
    b.answer.stats.rollbacks = 5;
    digest_of(&a, x);
    digest_of(&b, y);
    assert_string_equal(x, y);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_choice_stands_at_the_top),
        cmocka_unit_test(determinism_tells_class_and_counters),
        cmocka_unit_test(several_choices_have_an_index),
        cmocka_unit_test(logprobs_have_openais_form),
        cmocka_unit_test(top_logprobs_lose_no_token),
        cmocka_unit_test(prompt_logprobs_have_vllms_form),
        cmocka_unit_test(echo_puts_the_prompt_first),
        cmocka_unit_test(without_a_tokenizer_tokens_are_numbers),
        cmocka_unit_test(the_digest_is_the_documented_one),
        cmocka_unit_test(everything_that_matters_changes_the_digest),
        cmocka_unit_test(the_way_it_was_computed_does_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
