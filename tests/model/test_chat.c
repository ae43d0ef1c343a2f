/* The contract of chat.h: marks, errors with their place, and limits. */
#include "model/chat.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

typedef struct result {
    sf_code rc;
    sf_err err;
    sf_buf text, plain;
} result;

static result render_vars(const char *source, const sf_chat_vars *vars) {
    result r = {0};
    sf_chat *c;
    r.rc = sf_chat_open("t", source, strlen(source), "<s>", "</s>", &c, &r.err);
    if (r.rc != SF_OK) return r;
    r.rc = sf_chat_render(c, vars, &r.text, &r.plain, &r.err);
    sf_chat_close(c);
    if (r.rc == SF_OK) assert_int_equal(r.text.len, r.plain.len);
    return r;
}

static result render(const char *source, const char *messages) {
    json_t *m = json_loads(messages, JSON_DECODE_ANY, NULL);
    assert_non_null(m);
    result r = render_vars(source, &(sf_chat_vars){.messages = m});
    json_decref(m);
    return r;
}

static void done(result *r) {
    sf_buf_fini(&r->text);
    sf_buf_fini(&r->plain);
}

/* marks: one character for each byte of text, '#' where it must be marked. */
static void marked(const char *source, const char *messages, const char *text, const char *marks) {
    result r = render(source, messages);
    if (r.rc != SF_OK) fail_msg("%s: %s", source, r.err.msg);
    assert_int_equal(r.text.len, strlen(text));
    if (r.text.len) assert_memory_equal(r.text.data, text, r.text.len);
    assert_int_equal(strlen(marks), strlen(text));
    for (size_t i = 0; i < r.text.len; i++)
        if ((r.plain.data[i] != 0) != (marks[i] == '#')) fail_msg("%s: byte %zu of %s", source, i, text);
    done(&r);
}

static const char HI[] = "[{\"role\": \"user\", \"content\": \" Hi \"}]";

static void bytes_of_messages_are_marked_and_the_template_s_are_not(void **state) {
    (void)state;
    marked("<|x|>{{ messages[0].content }}{{ '<|y|>' }}", HI, "<|x|> Hi <|y|>", ".....####.....");
    marked("{{ '<' + messages[0].role + '>' }}", HI, "<user>", ".####.");
    marked("{{ '<' ~ messages[0]['role'] ~ 1 }}", HI, "<user1", ".####.");
    marked("{{ bos_token }}{{ eos_token }}", HI, "<s></s>", ".......");
    marked("{{ messages[0].content | trim }}{{ messages[0].content.strip() }}", HI, "HiHi", "####");
    marked("{{ messages[0].content[1:2] }}{{ ('a' + messages[0].role)[::-1] }}", HI, "Hresua", "#####.");
    marked("{{ (messages[0].role + 'x') | upper }}{{ messages[0].role | title }}", HI, "USERXUser",
           "####.####");
    marked("{{ 'a-b' | replace('-', messages[0].role) }}", HI, "auserb", ".####.");
    marked("{{ messages[0].role | replace('s', '<>') }}", HI, "u<>er", "#..##");
    marked("{{ ['a', messages[0].role] | join(',') }}", HI, "a,user", "..####");
    marked("{{ messages[0].role.split('s') | join('|') }}", HI, "u|er", "#.##");
    marked("{% for c in messages[0].role %}{{ c }}.{% endfor %}", HI, "u.s.e.r.", "#.#.#.#.");
    marked("{% set x %}<{{ messages[0].role }}>{% endset %}{{ x }}", HI, "<user>", ".####.");
    marked("{% macro m(a) %}<{{ a }}>{% endmacro %}{{ m(messages[0].role) }}", HI, "<user>", ".####.");
    marked("{{ messages[0].role * 2 }}{{ messages[0].role | list | first }}", HI, "useruseru", "#########");
    marked("{{ [messages[0].role] }}", HI, "['user']", "..####..");
    marked("{{ 'yes' if messages[0].role == 'user' }}", HI, "yes", "...");
}

static void json_of_messages_is_marked_throughout(void **state) {
    (void)state;
    marked("{{ messages[0] | tojson }}", "[{\"a\\n\": [1, true, null, 1.5]}]",
           "{\"a\\n\": [1, true, null, 1.5]}", "#############################");
    marked("{{ {'k': messages[0]} | tojson }}", "[\"<|v|>\"]", "{\"k\": \"<|v|>\"}", "......#######.");
    marked("{{ messages[0].n }}{{ 1 }}", "[{\"n\": 42}]", "421", "##.");
    marked("{% for k, v in messages[0].items() %}{{ k }}={{ v }}{% endfor %}", "[{\"key\": 7}]", "key=7",
           "###.#");
}

static void tools_and_documents_are_marked_too(void **state) {
    (void)state;
    json_t *tools = json_pack("[{s:s}]", "name", "f"), *docs = json_pack("[s]", "d"), *none = json_array();
    result r = render_vars(
        "{{ tools[0].name }}-{{ documents[0] }}{{ add_generation_prompt }}",
        &(sf_chat_vars){.messages = none, .tools = tools, .documents = docs, .add_generation_prompt = true});
    assert_int_equal(r.rc, SF_OK);
    assert_string_equal(r.text.data, "f-dTrue");
    assert_memory_equal(r.plain.data, "\1\0\1\0\0\0\0", 7);
    done(&r);
    r = render_vars("{{ tools }}{{ documents is none }}", &(sf_chat_vars){.messages = none});
    assert_int_equal(r.rc, SF_OK);
    assert_string_equal(r.text.data, "NoneTrue");
    done(&r);
    json_decref(tools);
    json_decref(docs);
    json_decref(none);
}

static void results_are_appended(void **state) {
    (void)state;
    sf_chat *c;
    sf_buf text = {0}, plain = {0};
    json_t *m = json_array();
    assert_int_equal(sf_chat_open("t", "ab", 2, NULL, NULL, &c, NULL), SF_OK);
    for (int i = 0; i < 2; i++)
        assert_int_equal(sf_chat_render(c, &(sf_chat_vars){.messages = m}, &text, &plain, NULL), SF_OK);
    assert_string_equal(text.data, "abab");
    assert_int_equal(plain.len, 4);
    sf_chat_close(c);
    sf_buf_fini(&text);
    sf_buf_fini(&plain);
    json_decref(m);
}

static void fails(const char *source, sf_code code, int line, int col, const char *part) {
    result r = render(source, HI);
    if (r.rc != code || r.err.user.line != line || r.err.user.col != col || !strstr(r.err.msg, part))
        fail_msg("%s: code %d at %d:%d: %s", source, (int)r.rc, r.err.user.line, r.err.user.col, r.err.msg);
    assert_string_equal(r.err.user.file, "t");
    assert_int_equal(r.text.len, 0);
    done(&r);
}

static void errors_name_their_place(void **state) {
    (void)state;
    fails("a\nb {{ 1 + }}", SF_FORMAT, 2, 10, "unexpected '}}'");
    fails("a\n{% foo %}", SF_FORMAT, 2, 4, "'foo'");
    fails("{{ x | nosuch }}", SF_UNSUPPORTED, 1, 8, "'nosuch'");
    fails("{{ x is nosuch }}", SF_UNSUPPORTED, 1, 9, "'nosuch'");
    fails("\n\n  {% include 'x' %}", SF_UNSUPPORTED, 3, 6, "'include'");
    fails("{% if true %}\n", SF_FORMAT, 1, 14, "endif");
    fails("x {{ 'abc", SF_FORMAT, 1, 6, "unterminated");
    fails("\r\n{# x", SF_FORMAT, 2, 3, "comment");
    fails("{{ messages[0].nope.x }}", SF_INVALID, 1, 20, "'nope' is undefined");
    fails("\n{{ 1 / 0 }}", SF_INVALID, 2, 6, "zero");
    fails("{{ 'a' + 1 }}", SF_INVALID, 1, 8, "'str' and 'int'");
    fails("{{ raise_exception('stop: ' + messages[0].role) }}", SF_INVALID, 1, 19, "stop: user");
    fails("\xff", SF_FORMAT, 1, 1, "UTF-8");
}

static void a_date_must_be_given(void **state) {
    (void)state;
    json_t *m = json_array();
    fails("{{ strftime_now('%Y') }}", SF_INVALID, 1, 16, "date");
    result r = render_vars("{{ strftime_now('%d %b %Y, %A') }}",
                           &(sf_chat_vars){.messages = m, .date = "2024-02-29"});
    assert_int_equal(r.rc, SF_OK);
    assert_string_equal(r.text.data, "29 Feb 2024, Thursday");
    done(&r);
    static const char *const bad[] = {"2023-02-29", "2024-13-01", "2024-1-1",
                                      "today",      "2024-00-10", "2024-01-32"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        r = render_vars("{{ strftime_now('%Y') }}", &(sf_chat_vars){.messages = m, .date = bad[i]});
        assert_int_equal(r.rc, SF_INVALID);
        done(&r);
    }
    json_decref(m);
}

static void no_template_runs_for_ever(void **state) {
    (void)state;
    static const char *const sources[] = {
        "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}",
        "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
        "{% set ns = namespace(s='x') %}{% for i in range(99) %}{% set ns.s = ns.s + ns.s %}{% endfor %}",
        "{{ 'x' * 999999999999 }}",
        "{{ [1] * 999999999999 }}",
        "{{ range(100001) }}",
        "{% for i in range(10**9) %}{% endfor %}",
        "{{ range(1000000000) | list | length }}",
        "{% set ns = namespace(l=[1]) %}{% for i in range(99) %}{% set ns.l = ns.l + ns.l %}{% endfor %}",
        "{% macro a(n) %}{{ b(n) }}{% endmacro %}{% macro b(n) %}{{ a(n) }}{% endmacro %}{{ a(1) }}",
        "{% set ns = namespace(s='ab') %}{% for i in range(99) %}{% set ns.s = ns.s | replace('a', ns.s) "
        "%}{% "
        "endfor %}",
        "{% set ns = namespace(s='ab') %}{% for i in range(99) %}{% set ns.s = ns.s | join(ns.s) %}{% endfor "
        "%}",
        "{% for i in range(99999) %}{{ 'x' * 9999 }}{% endfor %}",
        "{% set ns = namespace(l=[]) %}{% for i in range(999) %}{% set ns.l = [ns.l, ns.l] %}{% endfor %}{{ "
        "ns.l }}",
        "{% set ns = namespace(a=[], b=[]) %}{% for i in range(99) %}{% set ns.a = [ns.a, ns.a] %}"
        "{% set ns.b = [ns.b, ns.b] %}{% endfor %}{{ ns.a == ns.b }}",
        "{% set ns = namespace() %}{% set ns.x = [ns] %}{{ ns }}",
        "{{ 'a' | indent(999999999999, true) }}",
    };
    for (size_t i = 0; i < sizeof sources / sizeof *sources; i++) {
        result r = render(sources[i], HI);
        if (r.rc != SF_FULL) fail_msg("%s: code %d %s", sources[i], (int)r.rc, r.err.msg);
        done(&r);
    }
}

static void deep_nesting_is_refused_not_a_crash(void **state) {
    (void)state;
    static const char *const units[] = {"(", "[", "not ", "-", "{% if 1 %}", "{'a': ", "a.b[", "x if "};
    for (size_t u = 0; u < sizeof units / sizeof *units; u++) {
        sf_buf s = {0};
        bool tag = units[u][1] == '%';
        if (!tag) assert_int_equal(sf_buf_append(&s, "{{ ", 3, NULL), SF_OK);
        for (int i = 0; i < 100000; i++)
            assert_int_equal(sf_buf_append(&s, units[u], strlen(units[u]), NULL), SF_OK);
        sf_chat *c = NULL;
        sf_code rc = sf_chat_open("t", s.data, s.len, NULL, NULL, &c, NULL);
        if (rc != SF_FULL && rc != SF_FORMAT) fail_msg("'%s' many times: code %d", units[u], (int)rc);
        assert_null(c);
        sf_buf_fini(&s);
    }
    json_t *deep = json_array();
    for (int i = 0; i < 5000; i++)
        deep = json_pack("[o]", deep);
    result r = render_vars("{{ messages }}", &(sf_chat_vars){.messages = deep});
    assert_int_equal(r.rc, SF_FULL);
    done(&r);
    json_decref(deep);
}

/* A chain of a thousand operators is one level for the parser, and deep for the evaluator. */
static void long_chains_evaluate_or_are_refused(void **state) {
    (void)state;
    for (int n = 100; n <= 10000; n *= 10) {
        sf_buf s = {0};
        json_t *m = json_array();
        assert_int_equal(sf_buf_append(&s, "{{ 1", 4, NULL), SF_OK);
        for (int i = 0; i < n; i++)
            assert_int_equal(sf_buf_append(&s, " + 1", 4, NULL), SF_OK);
        assert_int_equal(sf_buf_append(&s, " }}", 3, NULL), SF_OK);
        result r = render_vars(s.data, &(sf_chat_vars){.messages = m});
        assert_int_equal(r.rc, n < 500 ? SF_OK : SF_FULL);
        if (r.rc == SF_OK) assert_string_equal(r.text.data, "101");
        done(&r);
        sf_buf_fini(&s);
        json_decref(m);
    }
}

static void a_date_is_a_day_of_the_calendar(void **state) {
    (void)state;
    static const char *const good[] = {"2024-02-29", "1000-01-01", "9999-12-31", "2000-02-29"};
    static const char *const bad[] = {"",           "2024-02-30", "2023-02-29",  "1900-02-29",
                                      "2024-13-01", "2024-00-10", "2024-01-00",  "0999-01-01",
                                      "2024-1-01",  "2024/01/01", " 024-01-01",  "today",
                                      "+024-01-01", "2024-01-32", "2024-01-011", "2024-04-31"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        assert_true(sf_chat_date_valid(good[i]));
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (sf_chat_date_valid(bad[i])) fail_msg("'%s' was taken", bad[i]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_date_is_a_day_of_the_calendar),
        cmocka_unit_test(bytes_of_messages_are_marked_and_the_template_s_are_not),
        cmocka_unit_test(json_of_messages_is_marked_throughout),
        cmocka_unit_test(tools_and_documents_are_marked_too),
        cmocka_unit_test(results_are_appended),
        cmocka_unit_test(errors_name_their_place),
        cmocka_unit_test(a_date_must_be_given),
        cmocka_unit_test(no_template_runs_for_ever),
        cmocka_unit_test(deep_nesting_is_refused_not_a_crash),
        cmocka_unit_test(long_chains_evaluate_or_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
