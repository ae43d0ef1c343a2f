#include "bench/determinism.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#define PROMPTS 4
#define COPIES  3
#define N       (PROMPTS * COPIES)

typedef struct fixture {
    sf_bench_send sends[N];
    sf_bench_record records[N];
    sf_bench_results results;
} fixture;

/* Four prompts of three copies in a mixed order, the first two marked deterministic; all agree by their
 * digests. */
static void fill(fixture *f) {
    *f = (fixture){0};
    for (int i = 0; i < N; i++) {
        const int at = i * 5 % N, prompt = i % PROMPTS;
        f->sends[at] = (sf_bench_send){.prompt = prompt,
                                       .copy = i / PROMPTS,
                                       .kind = prompt < 2 ? SF_BENCH_DETERMINISTIC : SF_BENCH_ORDINARY};
        f->records[at] = (sf_bench_record){.success = true, .has_determinism = true, .output_tokens = 10};
        snprintf(f->records[at].digest, SF_BENCH_DIGEST_MAX, "digest %d", prompt);
    }
    f->results = (sf_bench_results){.sends = f->sends, .records = f->records, .n = N};
}

static sf_bench_record *copy_of(fixture *f, int prompt, int copy) {
    for (int i = 0; i < N; i++)
        if (f->sends[i].prompt == prompt && f->sends[i].copy == copy) return &f->records[i];
    return NULL;
}

static sf_bench_determinism compare(const fixture *f) {
    static const sf_bench_counters none;
    sf_bench_determinism d;
    sf_err err;
    assert_int_equal(sf_bench_compare(&f->results, COPIES, &none, &none, &d, &err), SF_OK);
    return d;
}

static void assert_copies(const sf_bench_copies *c, int prompts, int same, int most) {
    assert_int_equal(c->prompts, prompts);
    assert_int_equal(c->same, same);
    assert_int_equal(c->most, most);
}

static void copies_that_agree_are_one_output(void **state) {
    (void)state;
    fixture f;
    fill(&f);
    const sf_bench_determinism d = compare(&f);
    assert_copies(&d.deterministic, 2, 2, 1);
    assert_copies(&d.ordinary, 2, 2, 1);
    assert_true(d.by_digest);
}

static void set_digest(sf_bench_record *r, char digit) {
    r->digest[0] = digit;
    r->digest[1] = '\0';
}

static void a_digest_that_differs_is_an_output_more(void **state) {
    (void)state;
    fixture f;
    fill(&f);
    set_digest(copy_of(&f, 1, 2), 'x');
    set_digest(copy_of(&f, 3, 0), 'x');
    set_digest(copy_of(&f, 3, 1), 'y');
    const sf_bench_determinism d = compare(&f);
    assert_copies(&d.deterministic, 2, 1, 2);
    assert_copies(&d.ordinary, 2, 1, 3);
}

static void failed_copies_are_not_compared(void **state) {
    (void)state;
    fixture f;
    fill(&f);
    copy_of(&f, 0, 1)->success = false;
    set_digest(copy_of(&f, 0, 1), 'x');
    copy_of(&f, 1, 0)->success = copy_of(&f, 1, 1)->success = false; /* one is left: nothing to compare */
    const sf_bench_determinism d = compare(&f);
    assert_copies(&d.deterministic, 1, 1, 1);
    assert_int_equal(d.answers, 3);
}

static void without_digests_texts_and_token_counts_are_compared(void **state) {
    (void)state;
    fixture f;
    sf_err err;
    fill(&f);
    for (int i = 0; i < N; i++)
        f.records[i].digest[0] = 0;
    sf_bench_determinism d = compare(&f);
    assert_false(d.by_digest);
    assert_copies(&d.deterministic, 2, 2, 1);
    copy_of(&f, 0, 0)->output_tokens++;
    assert_int_equal(sf_buf_append(&copy_of(&f, 2, 1)->text, "a", 1, &err), SF_OK);
    d = compare(&f);
    assert_copies(&d.deterministic, 2, 1, 2);
    assert_copies(&d.ordinary, 2, 1, 2);
    sf_buf_fini(&copy_of(&f, 2, 1)->text);
}

static void unmarked_requests_are_what_their_answers_say(void **state) {
    (void)state;
    fixture f;
    fill(&f);
    for (int i = 0; i < N; i++) {
        f.sends[i].kind = SF_BENCH_UNMARKED;
        f.records[i].pinned = f.sends[i].prompt == 2;
    }
    const sf_bench_determinism d = compare(&f);
    assert_copies(&d.deterministic, 1, 1, 1);
    assert_copies(&d.ordinary, 3, 3, 1);
}

static void the_cost_is_that_of_the_deterministic_answers(void **state) {
    (void)state;
    static const sf_bench_counters before = {true, {10, 100, 1, 2}}, after = {true, {15, 180, 4, 9}};
    fixture f;
    sf_bench_determinism d;
    sf_err err;
    fill(&f);
    copy_of(&f, 0, 0)->rollbacks = 2;
    copy_of(&f, 0, 0)->tokens_rolled_back = 6;
    copy_of(&f, 0, 0)->windows = 5;
    copy_of(&f, 3, 0)->rollbacks = 9; /* an ordinary one */
    assert_int_equal(sf_bench_compare(&f.results, COPIES, &before, &after, &d, &err), SF_OK);
    assert_int_equal(d.answers, 6);
    assert_int_equal(d.rollbacks, 2);
    assert_int_equal(d.windows, 5);
    assert_true(d.recompute_ratio > 1.0999 && d.recompute_ratio < 1.1001); /* 66 for 60 tokens */
    assert_true(d.counters.there && d.counters.v[SF_BENCH_VERIFY_PASSES] == 5 &&
                d.counters.v[SF_BENCH_ROLLBACKS] == 3);
}

static void counters_are_sums_over_their_labels(void **state) {
    (void)state;
    sf_bench_counters c;
    sf_bench_counters_read(
        "# HELP steadfast:rollbacks_total x\n# TYPE steadfast:rollbacks_total counter\n"
        "steadfast:rollbacks_total{model_name=\"a b\"} 3\nsteadfast:rollbacks_total{model_name=\"c\"} 4\n"
        "steadfast:rollbacks_total_other 9\nsteadfast:verify_passes_total 2e1",
        &c);
    assert_true(c.there && c.v[SF_BENCH_ROLLBACKS] == 7 && c.v[SF_BENCH_VERIFY_PASSES] == 20);
    sf_bench_counters_read("steadfast:rollbacks_total{model_name=\"} 8 \\\"}\"} 3 1700000000000\n"
                           "steadfast:verify_passes_total 4 1700000000000\n",
                           &c);
    assert_true(c.v[SF_BENCH_ROLLBACKS] == 3 && c.v[SF_BENCH_VERIFY_PASSES] == 4);
    sf_bench_counters_read("steadfast:rollbacks_total NaN\nsteadfast:verify_rows_total{a=\"\"} +Inf\n"
                           "steadfast:verify_passes_total\nsteadfast:verify_passes_total \n7\n"
                           "steadfast:verify_rows_total{a=\"\n",
                           &c);
    assert_false(c.there);
    sf_bench_counters_read("vllm:num_requests_running 1\n", &c);
    assert_false(c.there);
    sf_bench_counters_read("", &c);
    assert_false(c.there);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(copies_that_agree_are_one_output),
        cmocka_unit_test(a_digest_that_differs_is_an_output_more),
        cmocka_unit_test(failed_copies_are_not_compared),
        cmocka_unit_test(without_digests_texts_and_token_counts_are_compared),
        cmocka_unit_test(unmarked_requests_are_what_their_answers_say),
        cmocka_unit_test(the_cost_is_that_of_the_deterministic_answers),
        cmocka_unit_test(counters_are_sums_over_their_labels),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
