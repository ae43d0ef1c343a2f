#include "fake_text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static sf_code prompts(const sf_api_model *m, const char *json, sf_api_request *r, sf_api_error *e) {
    sf_code rc = fake_read(m, SF_API_RUN, json, r, e);
    return rc == SF_OK ? sf_api_request_prompts(m, r, e) : rc;
}

/* The ids of one prompt as text: "256 97 98". */
static void expect_ids(const sf_api_model *m, const char *json, const char *wanted) {
    sf_api_request r;
    sf_api_error e;
    char got[200] = "";
    sf_code rc = prompts(m, json, &r, &e);
    if (rc != SF_OK) print_error("%s: %s\n", json, e.message);
    assert_int_equal(rc, SF_OK);
    assert_int_equal(r.n_prompts, 1);
    for (size_t i = 0; i < r.prompts[0].len; i++)
        snprintf(got + strlen(got), sizeof got - strlen(got), "%s%d", i ? " " : "", r.prompts[0].data[i]);
    assert_string_equal(got, wanted);
    sf_api_request_fini(&r);
}

static void expect_error(const sf_api_model *m, const char *json, const char *param, const char *says) {
    sf_api_request r;
    sf_api_error e = {0};
    assert_int_equal(prompts(m, json, &r, &e), SF_INVALID);
    if (strcmp(e.param, param) != 0 || !strstr(e.message, says))
        print_error("%s: %s (%s)\n", json, e.message, e.param);
    assert_string_equal(e.param, param);
    assert_non_null(strstr(e.message, says));
    sf_api_request_fini(&r);
}

static void text_gets_one_bos(void **state) {
    (void)state;
    expect_ids(&fake_model, "{\"prompt\": \"ab\"}", "256 97 98");
    expect_ids(&fake_model, "{\"prompt\": \"ab\", \"add_special_tokens\": false}", "97 98");
    sf_api_model m = fake_model;
    m.add_bos = false;
    expect_ids(&m, "{\"prompt\": \"ab\"}", "97 98");
}

static void special_spellings_in_text_stay_text(void **state) {
    (void)state;
    expect_ids(&fake_model, "{\"prompt\": \"<end>\"}", "256 60 101 110 100 62");
}

static void ids_are_taken_as_they_are(void **state) {
    (void)state;
    expect_ids(&fake_model, "{\"prompt_ids\": [97, 257]}", "97 257");
    expect_ids(&fake_model, "{\"prompt\": [97, 257]}", "97 257");
    expect_ids(&fake_model, "{\"prompt\": [[97, 257]]}", "97 257");
}

static void an_empty_text_is_bos_alone(void **state) {
    (void)state;
    sf_api_model m = fake_model;
    m.add_bos = false;
    expect_ids(&fake_model, "{\"prompt\": \"\"}", "256");
    expect_ids(&m, "{\"prompt\": \"\"}", "256");
    expect_ids(&m, "{\"prompt\": [\"\"]}", "256");
    m.bos = -1;
    expect_error(&m, "{\"prompt\": \"\"}", "prompt", "prompt is empty");
}

static void empty_lists_are_errors(void **state) {
    (void)state;
    expect_error(&fake_model, "{\"prompt\": []}", "prompt", "empty list");
    expect_error(&fake_model, "{\"prompt\": [[]]}", "prompt", "empty list");
    expect_error(&fake_model, "{\"prompt_ids\": []}", "prompt_ids", "empty list");
    expect_error(&fake_model, "{\"messages\": []}", "messages", "empty list");
}

static void several_prompts_are_kept_apart(void **state) {
    (void)state;
    sf_api_request r;
    sf_api_error e;
    assert_int_equal(prompts(&fake_model, "{\"prompt\": [\"a\", \"bc\"]}", &r, &e), SF_OK);
    assert_int_equal(r.n_prompts, 2);
    assert_int_equal(r.prompts[0].len, 2);
    assert_int_equal(r.prompts[1].len, 3);
    sf_api_request_fini(&r);
}

static void ids_outside_the_vocabulary_are_named(void **state) {
    (void)state;
    expect_error(&fake_model, "{\"prompt_ids\": [1, 999999]}", "prompt_ids",
                 "prompt_ids[1] is 999999, expected a token id in 0..260");
    expect_error(&fake_model, "{\"prompt\": [-1]}", "prompt", "prompt[0] is -1");
    expect_error(&fake_model, "{\"prompt\": [261]}", "prompt", "0..260");
    expect_error(&fake_model, "{\"prompt\": [1, \"a\"]}", "prompt", "prompt[1] is a string");
    expect_error(&fake_model, "{\"prompt\": [\"a\", 1]}", "prompt",
                 "prompt[1] is 1, expected the kind of prompt[0]");
}

static void the_context_limit_names_both_counts(void **state) {
    (void)state;
    for (int n = 30; n <= 33; n++) {
        char json[300] = "{\"prompt_ids\": [1";
        for (int i = 1; i < n; i++)
            strncat(json, ",1", sizeof json - strlen(json) - 1);
        strncat(json, "]}", sizeof json - strlen(json) - 1);
        sf_api_request r;
        sf_api_error e = {0};
        sf_code rc = prompts(&fake_model, json, &r, &e);
        assert_int_equal(rc, n <= 31 ? SF_OK : SF_INVALID);
        if (n > 31) {
            assert_int_equal(e.n_prompt_tokens, n);
            assert_int_equal(e.n_ctx, 32);
            assert_string_equal(e.reason, "context_length_exceeded");
            char count[40];
            snprintf(count, sizeof count, "has %d tokens", n);
            assert_non_null(strstr(e.message, count));
            assert_non_null(strstr(e.message, "context of 32"));
        }
        sf_api_request_fini(&r);
    }
}

/* n times "x" as the text of a prompt or of a message, with more fields. */
static void refused_unread(const char *before, int n, const char *after, const char *param,
                           const char *says) {
    char json[600];
    snprintf(
        json, sizeof json, "%s%.*s%s", before, n,
        "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
        "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
        "x",
        after);
    size_t before_n = fake_encoded;
    expect_error(&fake_model, json, param, says);
    assert_int_equal(fake_encoded, before_n);
}

/* 5 bytes a token at most and room for 31 tokens: 155 bytes are read, 156 are not. */
static void what_is_far_too_long_is_refused_without_encoding_it(void **state) {
    (void)state;
    refused_unread("{\"prompt\": \"", 156, "\"}", "prompt",
                   "prompt has at least 32 tokens, and with one more");
    refused_unread("{\"prompt\": [\"", 156, "\"]}", "prompt", "at least 32 tokens");
    refused_unread("{\"messages\": [{\"role\": \"user\", \"content\": \"", 156, "\"}]}", "messages",
                   "messages has at least ");
    refused_unread("{\"max_tokens\": 0, \"echo\": true, \"prompt\": \"", 161, "\"}", "prompt",
                   "prompt has at least 33 tokens, which is over the context of 32");
    size_t before = fake_encoded;
    expect_error(
        &fake_model,
        "{\"prompt\": "
        "\"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
        "\"}",
        "prompt", "prompt has 97 tokens, and with one more");
    assert_int_equal(fake_encoded, before + 1);
}

/* Scoring adds no token, so that a prompt may fill the context. */
static void a_whole_context_can_be_scored(void **state) {
    (void)state;
    static const char *const fields[] = {"\"echo\": true", "\"prompt_logprobs\": 0"};
    for (size_t f = 0; f < 2; f++) {
        for (int n = 32; n <= 33; n++) {
            char json[300];
            snprintf(json, sizeof json, "{\"max_tokens\": 0, %s, \"prompt_ids\": [1", fields[f]);
            for (int i = 1; i < n; i++)
                strncat(json, ",1", sizeof json - strlen(json) - 1);
            strncat(json, "]}", sizeof json - strlen(json) - 1);
            sf_api_request r;
            sf_api_error e = {0};
            assert_int_equal(prompts(&fake_model, json, &r, &e), n == 32 ? SF_OK : SF_INVALID);
            if (n == 33)
                assert_string_equal(e.message, "prompt_ids has 33 tokens, which is over the context of 32");
            sf_api_request_fini(&r);
        }
    }
}

static void a_chat_is_rendered(void **state) {
    (void)state;
    /* u s e r : h i <end> A : */
    expect_ids(&fake_model, "{\"messages\": [{\"role\": \"user\", \"content\": \"hi\"}]}",
               "256 117 115 101 114 58 104 105 257 65 58");
    expect_ids(
        &fake_model,
        "{\"messages\": [{\"role\": \"user\", \"content\": \"hi\"}], \"add_generation_prompt\": false}",
        "256 117 115 101 114 58 104 105 257");
}

static void a_chat_has_one_bos_whether_template_or_model_asks_for_it(void **state) {
    (void)state;
    static const char chat[] = "{\"messages\": [{\"role\": \"user\", \"content\": \"<s>\"}], "
                               "\"add_generation_prompt\": false}";
    sf_api_model m = fake_model;
    for (int k = 0; k < 4; k++) {
        fake_chat_bos = k & 1;
        m.add_bos = k & 2;
        expect_ids(&m, chat,
                   (k ? "256 117 115 101 114 58 60 115 62 257" : "117 115 101 114 58 60 115 62 257"));
    }
    fake_chat_bos = false;
}

/* What a template takes for today is the request's date, else the engine's. */
static void a_chat_template_gets_the_request_s_date(void **state) {
    (void)state;
    sf_api_model m = fake_model;
    m.date = "1111111111";
    expect_ids(&m,
               "{\"messages\": [{\"role\": \"user\", \"content\": \"\"}], \"add_generation_prompt\": false}",
               "256 49 49 49 49 49 49 49 49 49 49 117 115 101 114 58 257");
    expect_ids(&m,
               "{\"messages\": [{\"role\": \"user\", \"content\": \"\"}], \"add_generation_prompt\": false, "
               "\"date\": \"2222222222\"}",
               "256 50 50 50 50 50 50 50 50 50 50 117 115 101 114 58 257");
    expect_error(&m, "{\"messages\": [{\"role\": \"user\", \"content\": \"\"}], \"date\": \"today\"}", "date",
                 "date is \"today\", expected YYYY-MM-DD");
}

static void a_special_token_inside_a_message_stays_text(void **state) {
    (void)state;
    expect_ids(&fake_model, "{\"messages\": [{\"role\": \"user\", \"content\": \"<end>\"}]}",
               "256 117 115 101 114 58 60 101 110 100 62 257 65 58");
}

static void text_parts_are_joined(void **state) {
    (void)state;
    expect_ids(&fake_model,
               "{\"messages\": [{\"role\": \"user\", \"content\": [{\"type\": \"text\", \"text\": \"h\"},"
               "{\"type\": \"text\", \"text\": \"i\"}]}]}",
               "256 117 115 101 114 58 104 105 257 65 58");
    expect_error(&fake_model,
                 "{\"messages\": [{\"role\": \"user\", \"content\": [{\"type\": \"image_url\"}]}]}",
                 "messages", "messages[0].content[0] is of type \"image_url\"");
}

static void a_message_without_content_is_named(void **state) {
    (void)state;
    expect_error(&fake_model,
                 "{\"messages\": [{\"role\": \"user\", \"content\": \"hi\"}, {\"role\": \"user\"}]}",
                 "messages", "messages[1].content is missing, expected a string or a list of text parts");
    expect_error(&fake_model, "{\"messages\": [{\"role\": \"user\", \"content\": null}]}", "messages",
                 "messages[0].content is null");
    /* a call of tools needs none */
    expect_ids(&fake_model,
               "{\"messages\": [{\"role\": \"user\", \"tool_calls\": []}, {\"role\": \"user\", \"content\": "
               "\"hi\"}], "
               "\"continue_final_message\": true}",
               "256 117 115 101 114 58 257 117 115 101 114 58 104 105");
}

static void the_last_message_can_stay_open(void **state) {
    (void)state;
    expect_ids(
        &fake_model,
        "{\"messages\": [{\"role\": \"user\", \"content\": \"hi\"}], \"continue_final_message\": true}",
        "256 117 115 101 114 58 104 105");
    expect_error(&fake_model,
                 "{\"messages\": [{\"role\": \"user\"}], \"continue_final_message\": true, "
                 "\"add_generation_prompt\": true}",
                 "continue_final_message", "both true");
}

static void a_last_message_without_text_cannot_stay_open(void **state) {
    (void)state;
    static const char *const last[] = {"{\"role\": \"user\", \"tool_calls\": []}",
                                       "{\"role\": \"user\", \"content\": \" \\n\"}",
                                       "{\"role\": \"user\", \"content\": []}"};
    for (size_t i = 0; i < sizeof last / sizeof *last; i++) {
        char json[200];
        snprintf(json, sizeof json,
                 "{\"messages\": [{\"role\": \"user\", \"content\": \"hi\"}, %s], "
                 "\"continue_final_message\": true}",
                 last[i]);
        expect_error(&fake_model, json, "continue_final_message", "no text to continue");
    }
}

static void malformed_messages_are_named(void **state) {
    (void)state;
    expect_error(&fake_model, "{\"messages\": [7]}", "messages", "messages[0] is 7");
    expect_error(&fake_model, "{\"messages\": [{\"content\": \"x\"}]}", "messages", "messages[0]");
    expect_error(&fake_model, "{\"messages\": [{\"role\": \"user\", \"content\": 5}]}", "messages",
                 "messages[0].content");
    expect_error(&fake_model, "{\"messages\": [{\"role\": \"tool\", \"content\": \"x\"}]}", "messages",
                 "roles must alternate");
}

static void a_role_that_is_none_is_named(void **state) {
    (void)state;
    expect_error(
        &fake_model,
        "{\"messages\": [{\"role\": \"user\", \"content\": \"x\"}, {\"role\": \"usr\", \"content\": \"x\"}]}",
        "messages", "messages[1].role is \"usr\", expected system, user, assistant, tool or developer");
    static const char *const good[] = {"system", "user", "assistant", "developer"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        char json[120];
        snprintf(json, sizeof json, "{\"messages\": [{\"role\": \"%s\", \"content\": \"x\"}]}", good[i]);
        sf_api_request r;
        sf_api_error e;
        assert_int_equal(fake_read(&fake_model, SF_API_RUN, json, &r, &e), SF_OK);
        assert_int_equal(sf_api_request_prompts(&fake_model, &r, &e), SF_OK);
        sf_api_request_fini(&r);
    }
}

static void without_a_template_the_reason_is_told(void **state) {
    (void)state;
    sf_api_model m = fake_model;
    m.chat = NULL;
    m.chat_missing = "the checkpoint has none";
    expect_error(&m, "{\"messages\": [{\"role\": \"user\"}]}", "messages", "the checkpoint has none");
}

static void without_a_tokenizer_ids_still_work(void **state) {
    (void)state;
    sf_api_model m = fake_model;
    m.tokenizer = NULL;
    expect_ids(&m, "{\"prompt_ids\": [5]}", "5");
    expect_error(&m, "{\"prompt\": \"a\"}", "prompt", "no tokenizer");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_gets_one_bos),
        cmocka_unit_test(special_spellings_in_text_stay_text),
        cmocka_unit_test(ids_are_taken_as_they_are),
        cmocka_unit_test(an_empty_text_is_bos_alone),
        cmocka_unit_test(empty_lists_are_errors),
        cmocka_unit_test(several_prompts_are_kept_apart),
        cmocka_unit_test(ids_outside_the_vocabulary_are_named),
        cmocka_unit_test(the_context_limit_names_both_counts),
        cmocka_unit_test(what_is_far_too_long_is_refused_without_encoding_it),
        cmocka_unit_test(a_whole_context_can_be_scored),
        cmocka_unit_test(a_chat_is_rendered),
        cmocka_unit_test(a_chat_has_one_bos_whether_template_or_model_asks_for_it),
        cmocka_unit_test(a_chat_template_gets_the_request_s_date),
        cmocka_unit_test(a_special_token_inside_a_message_stays_text),
        cmocka_unit_test(text_parts_are_joined),
        cmocka_unit_test(a_message_without_content_is_named),
        cmocka_unit_test(the_last_message_can_stay_open),
        cmocka_unit_test(a_last_message_without_text_cannot_stay_open),
        cmocka_unit_test(malformed_messages_are_named),
        cmocka_unit_test(a_role_that_is_none_is_named),
        cmocka_unit_test(without_a_template_the_reason_is_told),
        cmocka_unit_test(without_a_tokenizer_ids_still_work),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
