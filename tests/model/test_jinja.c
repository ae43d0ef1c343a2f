/* Every template and snippet of tests/golden/jinja renders as jinja2 rendered it, and fails where it failed.
 */
#include "model/chat.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static json_t *golden;

static int load(void **state) {
    (void)state;
    json_error_t e;
    golden = json_load_file(SF_TEST_DIR "/golden/jinja/golden.json", JSON_ALLOW_NUL, &e);
    if (!golden) print_error("%s: line %d: %s\n", e.source, e.line, e.text);
    return golden ? 0 : -1;
}

static int unload(void **state) {
    (void)state;
    json_decref(golden);
    return 0;
}

static sf_code render(const char *source, size_t len, const sf_chat_vars *vars, sf_buf *text, sf_err *err) {
    sf_chat *chat;
    sf_buf plain = {0};
    sf_code rc = sf_chat_open("case", source, len, "<s>", "</s>", &chat, err);
    if (rc != SF_OK) return rc;
    rc = sf_chat_render(chat, vars, text, &plain, err);
    if (rc == SF_OK) assert_int_equal(text->len, plain.len);
    sf_buf_fini(&plain);
    sf_chat_close(chat);
    return rc;
}

/* Compares one rendering with the golden one; returns whether it differs, and says how. */
static bool differs(const json_t *row, const char *what, const char *source, size_t len,
                    const sf_chat_vars *vars) {
    sf_buf text = {0};
    sf_err err = {0};
    char buf[500];
    const json_t *out = json_object_get(row, "out");
    bool refused = json_object_get(row, "refused") != NULL, bad = false;
    sf_code rc = render(source, len, vars, &text, &err);
    if (out) {
        bad = rc != SF_OK || text.len != json_string_length(out) ||
              (text.len && memcmp(text.data, json_string_value(out), text.len) != 0);
        if (bad && rc != SF_OK) print_error("%s\n  fails: %s\n", what, sf_err_format(&err, buf, sizeof buf));
        if (bad && rc == SF_OK)
            print_error("%s\n  gives    %s\n  expected %s\n", what, text.len ? text.data : "",
                        json_string_value(out));
    } else {
        bad = rc == SF_OK || (refused && rc != SF_UNSUPPORTED) || err.user.line < 1 || err.user.col < 1 ||
              (!refused && rc != SF_INVALID && rc != SF_FORMAT && rc != SF_UNSUPPORTED && rc != SF_FULL);
        if (bad)
            print_error("%s\n  should fail, but code %d, %s\n", what, (int)rc,
                        rc == SF_OK ? (text.len ? text.data : "") : sf_err_format(&err, buf, sizeof buf));
    }
    sf_buf_fini(&text);
    return bad;
}

static void snippets_render_as_jinja2_does(void **state) {
    (void)state;
    size_t i, bad = 0, failing = 0;
    json_t *row, *messages = json_pack("[O]", json_object_get(golden, "value"));
    sf_chat_vars vars = {.messages = messages, .add_generation_prompt = true};
    vars.date = json_string_value(json_object_get(golden, "date"));
    json_array_foreach(json_object_get(golden, "snippets"), i, row) {
        const json_t *s = json_object_get(row, "source");
        bad += differs(row, json_string_value(s), json_string_value(s), json_string_length(s), &vars);
        failing += json_object_get(row, "out") == NULL;
    }
    json_decref(messages);
    assert_true(i > 250 && failing > 80);
    assert_int_equal(bad, 0);
}

static void published_templates_render_as_jinja2_does(void **state) {
    (void)state;
    size_t i, bad = 0;
    json_t *row;
    json_array_foreach(json_object_get(golden, "templates"), i, row) {
        char path[300], what[300];
        const char *file = json_string_value(json_object_get(row, "file"));
        const char *chat = json_string_value(json_object_get(row, "chat"));
        const char *tools = json_string_value(json_object_get(row, "tools"));
        const json_t *tool_list = json_object_get(json_object_get(golden, "tools"), tools);
        sf_buf source = {0};
        sf_chat_vars vars = {.messages = json_object_get(json_object_get(golden, "chats"), chat),
                             .tools = json_is_null(tool_list) ? NULL : tool_list,
                             .add_generation_prompt = json_is_true(json_object_get(row, "prompt"))};
        vars.date = json_string_value(json_object_get(golden, "date"));
        snprintf(path, sizeof path, "%s/golden/jinja/templates/%s", SF_TEST_DIR, file);
        snprintf(what, sizeof what, "%s, chat %s, tools %s", file, chat, tools);
        assert_int_equal(sf_buf_read_file(&source, path, 1 << 20, NULL), SF_OK);
        bad += differs(row, what, source.data, source.len, &vars);
        sf_buf_fini(&source);
    }
    assert_true(i > 300);
    assert_int_equal(bad, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(snippets_render_as_jinja2_does),
        cmocka_unit_test(published_templates_render_as_jinja2_does),
    };
    return cmocka_run_group_tests(tests, load, unload);
}
