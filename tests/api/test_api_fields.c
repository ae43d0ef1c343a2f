#include "api/fields.h"

#include "api/json.h"
#include "fake_text.h"

#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

typedef enum shape {
    S_TRUE,
    S_INT,
    S_REAL,
    S_STRING,
    S_EMPTY_LIST,
    S_TEXT_LIST,
    S_INT_LIST,
    S_OBJECT,
    S_COUNT
} shape;

static const char *const shape_text[S_COUNT] = {"true", "1", "0.5", "\"x\"", "[]", "[\"x\"]", "[1, 2]", "{}"};

static bool accepts(sf_api_type t, shape s) {
    bool list = s == S_EMPTY_LIST || s == S_TEXT_LIST || s == S_INT_LIST;
    switch (t) {
    case SF_API_BOOL:
        return s == S_TRUE;
    case SF_API_INT:
    case SF_API_INT64:
        return s == S_INT;
    case SF_API_FLOAT:
        return s == S_INT || s == S_REAL;
    case SF_API_STRING:
        return s == S_STRING;
    case SF_API_OBJECT:
    case SF_API_BIAS:
        return s == S_OBJECT;
    case SF_API_ARRAY:
        return list;
    case SF_API_ID:
        return s == S_INT || s == S_STRING;
    case SF_API_PROMPT:
        return list || s == S_STRING;
    case SF_API_LOGPROBS:
        return s == S_INT || s == S_TRUE;
    case SF_API_STOP:
        return s == S_STRING || s == S_EMPTY_LIST || s == S_TEXT_LIST;
    case SF_API_IDS:
        return s == S_EMPTY_LIST || s == S_INT_LIST;
    }
    return false;
}

/* A request of the right kind that sets one field. */
static void body_with(const sf_api_field *f, const char *value, char out[256]) {
    bool source =
        f->type == SF_API_PROMPT || strcmp(f->name, "prompt_ids") == 0 || strcmp(f->name, "messages") == 0;
    bool chat = !(f->where & SF_API_COMPLETION) && f->where & SF_API_CHAT;
    bool tops = strcmp(f->name, "top_logprobs") == 0;
    const char *rest = source ? "" : chat ? ", \"messages\": [{\"role\": \"user\"}]" : ", \"prompt\": \"p\"";
    snprintf(out, 256, "{\"%s\": %s%s%s}", f->name, value, rest, tops ? ", \"logprobs\": true" : "");
}

static sf_code try_value(const sf_api_field *f, const char *value, sf_api_error *e) {
    char body[256];
    body_with(f, value, body);
    sf_api_request r;
    *e = (sf_api_error){0};
    sf_code rc = fake_read(&fake_model, SF_API_RUN, body, &r, e);
    sf_api_request_fini(&r);
    return rc;
}

static void every_field_takes_its_types_and_no_other(void **state) {
    (void)state;
    for (int i = 0; i < sf_api_n_fields; i++) {
        const sf_api_field *f = &sf_api_fields[i];
        for (int s = 0; s < S_COUNT; s++) {
            sf_api_error e;
            sf_code rc = try_value(f, shape_text[s], &e);
            if ((rc == SF_OK) != accepts(f->type, (shape)s))
                print_error("%s = %s: %s\n", f->name, shape_text[s], rc == SF_OK ? "accepted" : e.message);
            assert_int_equal(rc == SF_OK, accepts(f->type, (shape)s));
            if (rc == SF_OK) continue;
            assert_string_equal(e.param, f->name);
            assert_non_null(strstr(e.message, f->name));
            assert_non_null(strstr(e.message, ", expected "));
        }
    }
}

static void null_is_as_if_absent(void **state) {
    (void)state;
    for (int i = 0; i < sf_api_n_fields; i++) {
        const sf_api_field *f = &sf_api_fields[i];
        if (f->type == SF_API_PROMPT || strcmp(f->name, "prompt_ids") == 0 ||
            strcmp(f->name, "messages") == 0)
            continue;
        sf_api_error e;
        assert_int_equal(try_value(f, "null", &e), SF_OK);
    }
}

static void ranges_end_where_the_table_says(void **state) {
    (void)state;
    int tried = 0;
    for (int i = 0; i < sf_api_n_fields; i++) {
        const sf_api_field *f = &sf_api_fields[i];
        if (f->type != SF_API_INT && f->type != SF_API_FLOAT && f->type != SF_API_LOGPROBS) continue;
        double step = f->type == SF_API_FLOAT ? 0.25 : 1;
        const struct {
            double value;
            bool ok;
        } edges[] = {{f->min, !f->open_min}, {f->max, true}, {f->min - step, false}, {f->max + step, false}};
        for (int k = 0; k < 4; k++) {
            char value[40];
            snprintf(value, sizeof value, f->type == SF_API_FLOAT ? "%.2f" : "%.0f", edges[k].value);
            sf_api_error e;
            sf_code rc = try_value(f, value, &e);
            /* The two fields below depend on others, too. */
            if (strcmp(f->name, "min_tokens") == 0 && k == 1) continue;
            if (strncmp(f->name, "max_", 4) == 0 && k == 0) continue;
            if ((rc == SF_OK) != edges[k].ok) print_error("%s = %s\n", f->name, value);
            assert_int_equal(rc == SF_OK, edges[k].ok);
            tried++;
        }
    }
    assert_true(tried > 40);
}

static void a_count_out_of_range_has_another_code_than_a_wrong_type(void **state) {
    (void)state;
    static const char *const fields[] = {"logprobs", "prompt_logprobs", "n", "top_k"};
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        sf_api_error e;
        assert_int_equal(try_value(sf_api_field_find(fields[i]), "-2", &e), SF_INVALID);
        assert_string_equal(e.reason, "invalid_value");
        assert_int_equal(try_value(sf_api_field_find(fields[i]), "\"5\"", &e), SF_INVALID);
        assert_string_equal(e.reason, "invalid_type");
    }
}

static void an_id_is_a_short_string_or_an_integer(void **state) {
    (void)state;
    const sf_api_field *id = sf_api_field_find("id");
    char longest[300];
    sf_api_error e;
    for (int over = 0; over < 2; over++) {
        snprintf(longest, sizeof longest, "\"%0*d\"", SF_API_ID_MAX + over, 7);
        json_t *v = json_loads(longest, JSON_DECODE_ANY, NULL);
        assert_int_equal(sf_api_id_usable(v), over == 0);
        json_decref(v);
    }
    assert_false(sf_api_id_usable(NULL));
    assert_int_equal(try_value(id, "-9223372036854775808", &e), SF_OK);
    assert_int_equal(try_value(id, "{\"a\": [1]}", &e), SF_INVALID);
    assert_string_equal(e.message, "id is an object, expected a string of at most 256 bytes or an integer");
    assert_int_equal(try_value(id, "1.5", &e), SF_INVALID);
}

/* A logit divided by less would be infinite for a penalty that is a caller's slip. */
static void a_repetition_penalty_keeps_logits_finite(void **state) {
    (void)state;
    sf_api_error e;
    assert_int_equal(try_value(sf_api_field_find("repetition_penalty"), "1e-30", &e), SF_INVALID);
    assert_string_equal(e.message, "repetition_penalty is 1e-30, expected a number in [0.01, 100]");
    assert_string_equal(e.reason, "invalid_value");
}

static void numbers_beside_a_limit_show_their_digits(void **state) {
    (void)state;
    sf_api_error e;
    assert_int_equal(try_value(sf_api_field_find("top_p"), "1.0000001", &e), SF_INVALID);
    assert_string_equal(e.message, "top_p is 1.0000001, expected a number in (0, 1]");
}

static void limits_that_are_none_are_not_shown(void **state) {
    (void)state;
    char wanted[160];
    assert_string_equal(sf_api_field_expects(sf_api_field_find("max_tokens"), wanted, sizeof wanted),
                        "an integer of at least 0");
    assert_string_equal(sf_api_field_expects(sf_api_field_find("n"), wanted, sizeof wanted),
                        "an integer in 1..64");
}

static void seeds_are_exact(void **state) {
    (void)state;
    static const struct {
        const char *text;
        int64_t value;
    } good[] = {
        {"-9223372036854775808", INT64_MIN}, {"-1", -1}, {"0", 0}, {"9223372036854775807", INT64_MAX}};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        char body[80];
        snprintf(body, sizeof body, "{\"prompt\": \"p\", \"seed\": %s}", good[i].text);
        sf_api_request r;
        sf_api_error e;
        assert_int_equal(fake_read(&fake_model, SF_API_COMPLETION, body, &r, &e), SF_OK);
        assert_true(r.params.seed == good[i].value);
        sf_api_request_fini(&r);
    }
    const sf_api_field *seed = sf_api_field_find("seed");
    sf_api_error e;
    assert_int_equal(try_value(seed, "9223372036854775808", &e), SF_INVALID);
    assert_int_equal(try_value(seed, "-9223372036854775809", &e), SF_INVALID);
    assert_int_equal(try_value(seed, "\"7\"", &e), SF_INVALID);
    assert_string_equal(e.message, "seed is a string (\"7\"), expected a 64-bit integer");
    assert_int_equal(try_value(seed, "5.0", &e), SF_INVALID);
    assert_string_equal(e.message, "seed is 5.0, expected a 64-bit integer");
    assert_string_equal(e.reason, "invalid_type");
}

static void max_tokens_edges(void **state) {
    (void)state;
    const sf_api_field *f = sf_api_field_find("max_tokens");
    sf_api_error e;
    assert_int_equal(try_value(f, "1", &e), SF_OK);
    assert_int_equal(try_value(f, "0", &e), SF_INVALID);
    assert_int_equal(try_value(f, "0, \"echo\": true", &e), SF_OK);
    assert_int_equal(try_value(f, "0, \"prompt_logprobs\": 0", &e), SF_OK);
    assert_int_equal(try_value(f, "-1", &e), SF_INVALID);
    assert_int_equal(try_value(f, "2147483648", &e), SF_INVALID);
    assert_int_equal(try_value(f, "4, \"min_tokens\": 5", &e), SF_INVALID);
    assert_string_equal(e.param, "min_tokens");
}

static void the_newer_name_of_max_tokens_wins_in_any_order(void **state) {
    (void)state;
    static const struct {
        const char *fields;
        int want;
    } cases[] = {
        {"\"max_tokens\": 5, \"max_completion_tokens\": 7", 7},
        {"\"max_completion_tokens\": 7, \"max_tokens\": 5", 7},
        {"\"max_completion_tokens\": 5, \"max_tokens\": 7", 5},
        {"\"max_completion_tokens\": null, \"max_tokens\": 5", 5},
        {"\"max_tokens\": null, \"max_completion_tokens\": 7", 7},
        {"\"max_tokens\": 0, \"max_completion_tokens\": 7", 7},
        {"\"min_tokens\": 6, \"max_tokens\": 5, \"max_completion_tokens\": 7", 7},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char body[160];
        snprintf(body, sizeof body, "{\"messages\": [], %s}", cases[i].fields);
        sf_api_request r;
        sf_api_error e;
        assert_int_equal(fake_read(&fake_model, SF_API_CHAT, body, &r, &e), SF_OK);
        assert_int_equal(r.params.max_tokens, cases[i].want);
        sf_api_request_fini(&r);
    }
}

static void errors_of_length_name_the_field_that_counted(void **state) {
    (void)state;
    const sf_api_field *newer = sf_api_field_find("max_completion_tokens");
    sf_api_error e;
    assert_int_equal(try_value(newer, "0, \"max_tokens\": 5", &e), SF_INVALID);
    assert_string_equal(e.param, "max_completion_tokens");
    assert_int_equal(try_value(newer, "4, \"max_tokens\": 9, \"min_tokens\": 5", &e), SF_INVALID);
    assert_string_equal(e.message, "min_tokens is 5, expected at most max_completion_tokens (4)");
    assert_int_equal(try_value(newer, "4, \"max_tokens\": \"x\"", &e), SF_INVALID); /* checked all the same */
    assert_string_equal(e.param, "max_tokens");
}

static void a_tiny_top_p_stays_positive(void **state) {
    (void)state;
    sf_api_request r;
    sf_api_error e;
    assert_int_equal(fake_read(&fake_model, SF_API_COMPLETION,
                               "{\"prompt\": \"p\", \"top_p\": 1e-60, \"temperature\": 1e-12}", &r, &e),
                     SF_OK);
    assert_true(r.params.top_p > 0);
    assert_true(r.params.temperature > 0);
    sf_api_request_fini(&r);
}

static const char *unknown_of(const char *body, char *buf, size_t size) {
    sf_api_request r;
    sf_api_error e;
    assert_int_equal(fake_read(&fake_model, SF_API_COMPLETION, body, &r, &e), SF_OK);
    assert_non_null(r.ignored);
    sf_api_request_unknown(&r, buf, size);
    sf_api_request_fini(&r);
    return buf;
}

static void all_unknown_fields_are_named(void **state) {
    (void)state;
    static const char body[] = "{\"best_of\": 1, \"prompt\": \"p\", \"user\": 2, \"messages\": []}";
    char buf[64], tight[20];
    assert_string_equal(unknown_of(body, buf, sizeof buf), "best_of, user, messages");
    assert_string_equal(unknown_of(body, tight, sizeof tight), "best_of, user, ...");
}

static int64_t seed_of(const sf_api_model *m, const char *body) {
    sf_api_request r;
    sf_api_error e;
    assert_int_equal(fake_read(m, SF_API_COMPLETION, body, &r, &e), SF_OK);
    const int64_t seed = r.params.seed;
    sf_api_request_fini(&r);
    return seed;
}

/* An ordinary answer that is drawn should be another one each time; the others are the request's alone. */
static void a_missing_seed_is_new_where_it_may_be(void **state) {
    (void)state;
    static const char drawn[] = "{\"prompt\": \"p\", \"seed\": null}";
    int64_t seen[8];
    for (int i = 0; i < 8; i++) {
        seen[i] = seed_of(&fake_model, drawn);
        assert_true(seen[i] >= 0 && seen[i] < (int64_t)1 << 53);
        for (int k = 0; k < i; k++)
            assert_true(seen[k] != seen[i]);
    }
    assert_int_equal(seed_of(&fake_model, "{\"prompt\": \"p\", \"is_deterministic\": true}"), 77);
    assert_int_equal(seed_of(&fake_model, "{\"prompt\": \"p\", \"temperature\": 0}"), 77);
    assert_int_equal(seed_of(&fake_model, "{\"prompt\": \"p\", \"seed\": 5}"), 5);
    sf_api_model m = fake_model;
    m.seed_given = true;
    assert_int_equal(seed_of(&m, drawn), 77);
    m.seed_given = false;
    m.deterministic_default = true;
    assert_int_equal(seed_of(&m, drawn), 77);
}

static void defaults_are_the_tables(void **state) {
    (void)state;
    sf_api_request r;
    sf_api_error e;
    assert_int_equal(fake_read(&fake_model, SF_API_COMPLETION, "{\"prompt\": \"p\"}", &r, &e), SF_OK);
    assert_int_equal(r.params.max_tokens, 16);
    assert_true(r.params.temperature == 1.0f);
    assert_true(r.params.top_p == 1.0f);
    assert_int_equal(r.params.n, 1);
    assert_int_equal(r.params.logprobs, -1);
    assert_false(r.params.deterministic);
    assert_true(r.add_special_tokens);
    sf_api_request_fini(&r);
    sf_api_model m = fake_model;
    m.deterministic_default = true;
    assert_int_equal(fake_read(&m, SF_API_CHAT, "{\"messages\": []}", &r, &e), SF_OK);
    assert_int_equal(r.params.max_tokens, -1);
    assert_true(r.params.deterministic);
    assert_true(r.add_generation_prompt);
    sf_api_request_fini(&r);
}

static void lists_are_read(void **state) {
    (void)state;
    sf_api_request r;
    sf_api_error e;
    assert_int_equal(fake_read(&fake_model, SF_API_COMPLETION,
                               "{\"prompt\": \"p\", \"stop\": [\"ab\", \"c\"], \"stop_token_ids\": [3, 256],"
                               " \"logit_bias\": {\"7\": -1.5, \"260\": 100}}",
                               &r, &e),
                     SF_OK);
    assert_int_equal(r.params.n_stop, 2);
    assert_string_equal(r.params.stop[1], "c");
    assert_int_equal(r.params.n_stop_ids, 2);
    assert_int_equal(r.params.stop_ids[1], 256);
    assert_int_equal(r.params.n_bias, 2);
    assert_int_equal(r.params.bias[0].token, 7);
    assert_true(r.params.bias[0].bias == -1.5f);
    sf_api_request_fini(&r);
}

static void bad_entries_of_lists_are_named(void **state) {
    (void)state;
    static const struct {
        const char *field, *value, *says;
    } cases[] = {{"stop", "\"\"", "stop is a string (\"\")"},
                 {"stop", "[\"a\", 5]", "stop is 5"},
                 {"stop_token_ids", "[0, 261]", "stop_token_ids[1] is 261, expected a token id in 0..260"},
                 {"stop_token_ids", "[-1]", "stop_token_ids[0]"},
                 {"stop_token_ids", "[\"a\"]", "stop_token_ids[0]"},
                 {"logit_bias", "{\"261\": 1}", "the key \"261\""},
                 {"logit_bias", "{\"-1\": 1}", "the key \"-1\""},
                 {"logit_bias", "{\"07\": 1}", "the key \"07\""},
                 {"logit_bias", "{\"x\": 1}", "the key \"x\""},
                 {"logit_bias", "{\"7\": 101}", "logit_bias[\"7\"]"},
                 {"logit_bias", "{\"7\": \"1\"}", "logit_bias[\"7\"]"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        sf_api_error e;
        assert_int_equal(try_value(sf_api_field_find(cases[i].field), cases[i].value, &e), SF_INVALID);
        if (!strstr(e.message, cases[i].says)) print_error("%s\n", e.message);
        assert_non_null(strstr(e.message, cases[i].says));
        assert_string_equal(e.param, cases[i].field);
    }
}

static void too_many_stops_are_refused(void **state) {
    (void)state;
    char list[256] = "[";
    for (int i = 0; i <= SF_STOP_STRINGS_MAX; i++)
        snprintf(list + strlen(list), sizeof list - strlen(list), "%s\"s%d\"", i ? "," : "", i);
    snprintf(list + strlen(list), sizeof list - strlen(list), "]");
    sf_api_error e;
    assert_int_equal(try_value(sf_api_field_find("stop"), list, &e), SF_INVALID);
    assert_non_null(strstr(e.message, "an array of 17"));
}

static void unknown_fields_are_ignored_or_refused(void **state) {
    (void)state;
    sf_api_request r;
    sf_api_error e;
    const char *body = "{\"prompt\": \"p\", \"colour\": 1}";
    assert_int_equal(fake_read(&fake_model, SF_API_COMPLETION, body, &r, &e), SF_OK);
    assert_string_equal(r.ignored, "colour");
    sf_api_request_fini(&r);
    sf_api_model m = fake_model;
    m.strict = true;
    assert_int_equal(fake_read(&m, SF_API_COMPLETION, body, &r, &e), SF_INVALID);
    assert_string_equal(e.param, "colour");
    sf_api_request_fini(&r);
    assert_int_equal(fake_read(&m, SF_API_CHAT, "{\"messages\": [], \"echo\": true}", &r, &e), SF_INVALID);
    assert_string_equal(e.param, "echo"); /* known, but not to a chat */
    sf_api_request_fini(&r);
}

static void one_source_of_a_prompt_is_needed(void **state) {
    (void)state;
    static const char *const bad[] = {"{}", "{\"prompt\": \"p\", \"prompt_ids\": [1]}",
                                      "{\"messages\": [], \"prompt\": \"p\"}", "{\"prompt\": null}"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        sf_api_request r;
        sf_api_error e;
        assert_int_equal(fake_read(&fake_model, SF_API_RUN, bad[i], &r, &e), SF_INVALID);
        assert_non_null(strstr(e.message, "prompt"));
        sf_api_request_fini(&r);
    }
}

static void chat_logprobs_are_a_flag_and_a_count(void **state) {
    (void)state;
    sf_api_request r;
    sf_api_error e;
    assert_int_equal(fake_read(&fake_model, SF_API_CHAT,
                               "{\"messages\": [], \"logprobs\": true, \"top_logprobs\": 4}", &r, &e),
                     SF_OK);
    assert_int_equal(r.params.logprobs, 4);
    sf_api_request_fini(&r);
    assert_int_equal(fake_read(&fake_model, SF_API_CHAT, "{\"messages\": [], \"top_logprobs\": 4}", &r, &e),
                     SF_INVALID);
    assert_string_equal(e.param, "top_logprobs");
    sf_api_request_fini(&r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_field_takes_its_types_and_no_other),
        cmocka_unit_test(null_is_as_if_absent),
        cmocka_unit_test(ranges_end_where_the_table_says),
        cmocka_unit_test(a_count_out_of_range_has_another_code_than_a_wrong_type),
        cmocka_unit_test(an_id_is_a_short_string_or_an_integer),
        cmocka_unit_test(a_repetition_penalty_keeps_logits_finite),
        cmocka_unit_test(numbers_beside_a_limit_show_their_digits),
        cmocka_unit_test(limits_that_are_none_are_not_shown),
        cmocka_unit_test(seeds_are_exact),
        cmocka_unit_test(all_unknown_fields_are_named),
        cmocka_unit_test(a_missing_seed_is_new_where_it_may_be),
        cmocka_unit_test(max_tokens_edges),
        cmocka_unit_test(the_newer_name_of_max_tokens_wins_in_any_order),
        cmocka_unit_test(errors_of_length_name_the_field_that_counted),
        cmocka_unit_test(a_tiny_top_p_stays_positive),
        cmocka_unit_test(defaults_are_the_tables),
        cmocka_unit_test(lists_are_read),
        cmocka_unit_test(bad_entries_of_lists_are_named),
        cmocka_unit_test(too_many_stops_are_refused),
        cmocka_unit_test(unknown_fields_are_ignored_or_refused),
        cmocka_unit_test(one_source_of_a_prompt_is_needed),
        cmocka_unit_test(chat_logprobs_are_a_flag_and_a_count),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
