#include "sched/text_priv.h"

#include "base/utf8.h"

#include <stdarg.h>
#include <setjmp.h>
#include <cmocka.h>
#include <string.h>

typedef struct feed {
    sf_stops stops;
    sf_text_state st;
    char out[256];
    bool stopped;
} feed;

static void begin(feed *f, int n, const char *const *stop) {
    sf_err err;
    memset(f, 0, sizeof *f);
    assert_int_equal(sf_stops_init(&f->stops, n, stop, &err), SF_OK);
}

static void push(feed *f, const char *piece) {
    size_t before = f->st.len;
    assert_false(f->stopped);
    f->stopped = sf_text_push(&f->stops, true, piece, strlen(piece), &f->st, f->out);
    assert_true(f->st.len <= before + sf_text_room(strlen(piece)));
}

static void expect_shown(const feed *f, const char *want) {
    assert_int_equal(f->st.shown, strlen(want));
    assert_memory_equal(f->out, want, strlen(want));
}

static void end(feed *f, const char *want) {
    sf_text_end(&f->st, f->out);
    expect_shown(f, want);
    sf_stops_fini(&f->stops);
}

static void a_stop_split_over_tokens_never_leaks(void **state) {
    (void)state;
    feed f;
    begin(&f, 1, (const char *const[]){"STOP"});
    push(&f, "go S");
    expect_shown(&f, "go ");
    push(&f, "TO");
    expect_shown(&f, "go ");
    push(&f, "P");
    assert_true(f.stopped);
    end(&f, "go ");
}

static void a_beginning_that_is_no_stop_is_released(void **state) {
    (void)state;
    feed f;
    begin(&f, 1, (const char *const[]){"STOP"});
    push(&f, "STO");
    expect_shown(&f, "");
    push(&f, "RE");
    assert_false(f.stopped);
    expect_shown(&f, "STORE");
    end(&f, "STORE");
}

static void a_stop_inside_a_token_cuts_before_it(void **state) {
    (void)state;
    feed f;
    begin(&f, 1, (const char *const[]){"\n\n"});
    push(&f, "one\n\ntwo");
    assert_true(f.stopped);
    end(&f, "one");
}

static void held_text_comes_out_at_the_end(void **state) {
    (void)state;
    feed f;
    begin(&f, 1, (const char *const[]){"STOP"});
    push(&f, "a STO");
    expect_shown(&f, "a ");
    end(&f, "a STO");
}

static void a_stop_may_begin_inside_a_failed_match(void **state) {
    (void)state;
    feed f;
    begin(&f, 1, (const char *const[]){"aab"});
    push(&f, "aa");
    push(&f, "a");
    expect_shown(&f, "a");
    push(&f, "b");
    assert_true(f.stopped);
    end(&f, "a");
}

static void the_first_stop_to_end_counts(void **state) {
    (void)state;
    feed f;
    begin(&f, 2, (const char *const[]){"abcd", "c"});
    push(&f, "xabcd");
    assert_true(f.stopped);
    end(&f, "xab");
}

static void of_stops_that_end_together_the_longest_counts(void **state) {
    (void)state;
    for (int order = 0; order < 2; order++) {
        feed f;
        begin(&f, 2, order ? (const char *const[]){"c", "abc"} : (const char *const[]){"abc", "c"});
        push(&f, "xab");
        expect_shown(&f, "x");
        push(&f, "c");
        assert_true(f.stopped);
        end(&f, "x");
    }
}

static void an_unwanted_match_is_passed_over_and_the_next_counts(void **state) {
    (void)state;
    feed f;
    begin(&f, 1, (const char *const[]){"aba"});
    assert_false(sf_text_push(&f.stops, false, "aba", 3, &f.st, f.out));
    expect_shown(&f, "ab"); /* the last a may begin another */
    push(&f, "b");
    push(&f, "a");
    assert_true(f.stopped);
    end(&f, "ab");
}

static void a_character_is_shown_whole(void **state) {
    (void)state;
    feed f;
    begin(&f, 0, NULL);
    push(&f, "a\xf0\x9f");
    expect_shown(&f, "a");
    push(&f, "\x98");
    expect_shown(&f, "a");
    push(&f, "\x80!");
    expect_shown(&f, "a\xf0\x9f\x98\x80!");
    end(&f, "a\xf0\x9f\x98\x80!");
}

static void a_stop_whose_characters_span_tokens_matches(void **state) {
    (void)state;
    feed f;
    begin(&f, 1, (const char *const[]){"\342\202\2545"});
    push(&f, "x\xe2");
    push(&f, "\x82");
    expect_shown(&f, "x");
    push(&f, "\xac");
    expect_shown(&f, "x");
    push(&f, "5 more");
    assert_true(f.stopped);
    end(&f, "x");
}

static void an_unfinished_character_becomes_one_replacement_at_the_end(void **state) {
    (void)state;
    feed f;
    begin(&f, 0, NULL);
    push(&f, "a\xf0\x9f\x98");
    expect_shown(&f, "a");
    end(&f, "a\xef\xbf\xbd");
}

static void ill_formed_bytes_become_one_replacement_per_maximal_subpart(void **state) {
    (void)state;
    static const struct {
        const char *in, *want;
    } cases[] = {
        {"\xff\xfe", "\xef\xbf\xbd\xef\xbf\xbd"},
        {"\xc0\x80", "\xef\xbf\xbd\xef\xbf\xbd"},                                 /* overlong */
        {"\xed\xa0\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"},                 /* surrogate */
        {"\xf4\x90\x80\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"}, /* past U+10FFFF */
        {"\xf0\x9f\x98 x", "\xef\xbf\xbd x"},
        {"\xe2\x82\xe2\x82\xac", "\xef\xbf\xbd\xe2\x82\xac"},
        {"\x80z", "\xef\xbf\xbdz"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_false(sf_utf8_valid(cases[i].in, strlen(cases[i].in)));
        feed whole, bytes;
        begin(&whole, 0, NULL);
        begin(&bytes, 0, NULL);
        push(&whole, cases[i].in);
        for (const char *p = cases[i].in; *p; p++)
            push(&bytes, (const char[]){*p, 0});
        end(&whole, cases[i].want);
        end(&bytes, cases[i].want);
    }
}

static void validity_follows_the_unicode_table(void **state) {
    (void)state;
    static const char *const good[] = {
        "", "a", "\xc2\x80", "\xe0\xa0\x80", "\xed\x9f\xbf", "\xf0\x90\x80\x80", "\xf4\x8f\xbf\xbf"};
    static const char *const wrong[] = {"\x80",     "\xc1\xbf",         "\xe0\x9f\xbf",
                                        "\xe2\x82", "\xf0\x8f\xbf\xbf", "\xf5\x80\x80\x80"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        assert_true(sf_utf8_valid(good[i], strlen(good[i])));
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_false(sf_utf8_valid(wrong[i], strlen(wrong[i])));
}

static void a_copied_state_replays_the_same(void **state) {
    (void)state;
    feed f;
    begin(&f, 2, (const char *const[]){"\303\251ab", "bb"});
    push(&f, "b\xc3");
    sf_text_state saved = f.st;
    for (int again = 0; again < 2; again++) {
        f.st = saved; /* a rollback */
        f.stopped = false;
        push(&f, "\xa9");
        expect_shown(&f, "b");
        push(&f, again ? "ab" : "xb");
        assert_int_equal(f.stopped, again);
    }
    end(&f, "b");
}

static void without_an_output_the_state_is_the_same(void **state) {
    (void)state;
    static const char *const script[] = {"a\xe2", "\x82\xac", "b", "\xff", "aab"};
    feed f;
    begin(&f, 1, (const char *const[]){"aabb"});
    sf_text_state draft = f.st;
    for (size_t i = 0; i < sizeof script / sizeof *script; i++) {
        push(&f, script[i]);
        assert_false(sf_text_push(&f.stops, true, script[i], strlen(script[i]), &draft, NULL));
        assert_memory_equal(&draft, &f.st, sizeof draft);
    }
    sf_stops_fini(&f.stops);
}

static void a_stop_string_must_be_characters(void **state) {
    (void)state;
    static char big[SF_STOP_BYTES_MAX + 2];
    memset(big, 'x', sizeof big - 1);
    const char *const bad[] = {"", "\xe2\x82", big};
    for (int i = 0; i < 3; i++) {
        sf_stops s = {0};
        sf_err err;
        const char *const stops[] = {"ok", bad[i]};
        assert_int_equal(sf_stops_init(&s, 2, stops, &err), SF_INVALID);
        assert_non_null(strstr(err.msg, "stop[1]"));
        assert_int_equal(s.n, 0);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_stop_split_over_tokens_never_leaks),
        cmocka_unit_test(a_beginning_that_is_no_stop_is_released),
        cmocka_unit_test(a_stop_inside_a_token_cuts_before_it),
        cmocka_unit_test(held_text_comes_out_at_the_end),
        cmocka_unit_test(a_stop_may_begin_inside_a_failed_match),
        cmocka_unit_test(the_first_stop_to_end_counts),
        cmocka_unit_test(of_stops_that_end_together_the_longest_counts),
        cmocka_unit_test(an_unwanted_match_is_passed_over_and_the_next_counts),
        cmocka_unit_test(a_character_is_shown_whole),
        cmocka_unit_test(a_stop_whose_characters_span_tokens_matches),
        cmocka_unit_test(an_unfinished_character_becomes_one_replacement_at_the_end),
        cmocka_unit_test(ill_formed_bytes_become_one_replacement_per_maximal_subpart),
        cmocka_unit_test(validity_follows_the_unicode_table),
        cmocka_unit_test(a_copied_state_replays_the_same),
        cmocka_unit_test(without_an_output_the_state_is_the_same),
        cmocka_unit_test(a_stop_string_must_be_characters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
