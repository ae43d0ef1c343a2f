/* The compare-commit-rollback step alone, on hand-made windows. */
#include "sched/fake.h"
#include "sched/verify_priv.h"

#include <stdarg.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

enum { A = 2, B = 3, C = 4, ABC = 7, D = 26, E = 27 }; /* pieces "a", "b", "c", "abc", "d", "e" */

static const sf_model_desc model = {.vocab = FAKE_VOCAB, .n_eos = 1, .eos = {FAKE_EOS}};
static sf_rules rules;

/* A sequence with prompt {1, 2} and the committed token "a". */
static sf_seq *open_seq(const sf_params *p) {
    static const int32_t prompt[] = {A, B};
    sf_err err;
    rules = (sf_rules){.tok = fake_tokenizer(), .model = &model};
    sf_seq *q = fake_request(p, prompt, 2)->seqs;
    q->n_prefill = 2;
    q->max_out = 32;
    assert_int_equal(sf_seq_reserve(q, 32, &err), SF_OK);
    assert_int_equal(sf_seq_commit(q, &rules, &(sf_row_out){.token = A, .logprob = -1.0f, .rank = 1}, &err),
                     SF_OK);
    q->committed.kv_len = 2;
    q->draft = q->committed;
    return q;
}

static void draft(sf_seq *q, int n, const int32_t *ids) {
    for (int i = 0; i < n; i++)
        sf_seq_draft(q, &rules, ids[i]);
}

static sf_verdict verify(sf_seq *q, int n, const int32_t *ids) {
    sf_row_out rows[8] = {0};
    sf_verdict v;
    sf_err err;
    for (int i = 0; i < n; i++)
        rows[i] = (sf_row_out){.token = ids[i], .logprob = -2.0f - (float)i, .rank = 1};
    assert_int_equal(sf_verify_apply(q, &rules, rows, n, &v, &err), SF_OK);
    return v;
}

static void expect(const sf_seq *q, int n, const int32_t *ids, const char *text) {
    sf_choice c;
    sf_request_choice(q->req, 0, &c);
    assert_int_equal(c.n_tokens, n);
    for (int i = 0; i < n; i++)
        assert_int_equal(c.tokens[i].id, ids[i]);
    assert_string_equal(c.text, text);
}

static void expect_rolled_back(const sf_seq *q) {
    assert_memory_equal(&q->draft, &q->committed, sizeof q->draft);
    assert_int_equal(q->committed.kv_len, 2 + q->committed.n_tokens - 1);
}

static sf_params params(void) {
    sf_params p;
    sf_params_default(&p);
    p.deterministic = true;
    return p;
}

static void drafts_are_never_visible(void **state) {
    (void)state;
    sf_params p = params();
    sf_seq *q = open_seq(&p);
    draft(q, 3, (int32_t[]){B, C, FAKE_EOS});
    expect(q, 1, (int32_t[]){A}, "a");
    sf_choice c;
    sf_request_choice(q->req, 0, &c);
    assert_int_equal(c.finish, SF_FINISH_NONE);
    assert_int_equal(q->draft.finish, SF_FINISH_STOP);
    sf_request_destroy(q->req);
}

static void a_window_that_agrees_gives_one_token_more(void **state) {
    (void)state;
    sf_params p = params();
    sf_seq *q = open_seq(&p);
    draft(q, 2, (int32_t[]){B, C});
    assert_int_equal(sf_verify_rows(q), 3);
    sf_verdict v = verify(q, 3, (int32_t[]){B, C, D});
    assert_int_equal(v.accepted, 2);
    assert_int_equal(v.committed, 3);
    assert_int_equal(v.rolled_back, 0);
    expect(q, 4, (int32_t[]){A, B, C, D}, "abcd");
    expect_rolled_back(q);
    assert_true(q->tokens[3].logprob == -4.0f);
    sf_request_destroy(q->req);
}

static void a_mismatch_at_every_place_commits_up_to_it(void **state) {
    (void)state;
    static const int32_t cand[] = {B, C, D};
    for (int at = 0; at < 3; at++) {
        sf_params p = params();
        sf_seq *q = open_seq(&p);
        draft(q, 3, cand);
        int32_t v[] = {B, C, D, E}, want[5] = {A};
        for (int i = at; i < 4; i++)
            v[i] = E; /* the rows after a mismatch say anything */
        sf_verdict got = verify(q, 4, v);
        assert_int_equal(got.accepted, at);
        assert_int_equal(got.committed, at + 1);
        assert_int_equal(got.rolled_back, 3 - at);
        memcpy(want + 1, v, sizeof v);
        expect(q, at + 2, want, at == 0 ? "ae" : at == 1 ? "abe" : "abce");
        expect_rolled_back(q);
        sf_request_destroy(q->req);
    }
}

static void an_ending_that_was_only_drafted_is_undone(void **state) {
    (void)state;
    sf_params p = params();
    p.n_stop = 1;
    p.stop = (const char *const[]){"abc"};
    sf_seq *q = open_seq(&p);
    draft(q, 2, (int32_t[]){B, C}); /* "a" + "bc": the stop string, so the draft has ended */
    assert_int_equal(q->draft.finish, SF_FINISH_STOP);
    assert_int_equal(sf_verify_rows(q), 2); /* no row after the token that ends */
    (void)verify(q, 2, (int32_t[]){B, D});
    assert_int_equal(q->committed.finish, SF_FINISH_NONE);
    expect(q, 3, (int32_t[]){A, B, D}, "abd");
    expect_rolled_back(q);
    sf_request_destroy(q->req);
}

static void a_verified_ending_ends_and_cuts(void **state) {
    (void)state;
    sf_params p = params();
    p.n_stop = 1;
    p.stop = (const char *const[]){"bc"};
    sf_seq *q = open_seq(&p);
    draft(q, 1, (int32_t[]){B});
    expect(q, 1, (int32_t[]){A}, "a");
    (void)verify(q, 2, (int32_t[]){B, ABC});
    assert_int_equal(q->committed.finish, SF_FINISH_STOP);
    expect(q, 3, (int32_t[]){A, B, ABC}, "aba");
    sf_request_destroy(q->req);
}

static void an_ending_before_the_draft_s_end_wins(void **state) {
    (void)state;
    sf_params p = params();
    sf_seq *q = open_seq(&p);
    draft(q, 3, (int32_t[]){B, C, D});
    sf_verdict v = verify(q, 4, (int32_t[]){B, FAKE_EOS, D, E});
    assert_int_equal(v.committed, 2);
    assert_int_equal(q->committed.finish, SF_FINISH_STOP);
    expect(q, 3, (int32_t[]){A, B, FAKE_EOS}, "ab");
    sf_request_destroy(q->req);
}

static void a_row_without_candidates_is_committed_by_provenance(void **state) {
    (void)state;
    sf_params p = params();
    sf_seq *q = open_seq(&p);
    assert_int_equal(sf_verify_rows(q), 1);
    sf_verdict v = verify(q, 1, (int32_t[]){D});
    assert_int_equal(v.candidates, 0);
    assert_int_equal(v.committed, 1);
    assert_int_equal(v.rolled_back, 0);
    expect(q, 2, (int32_t[]){A, D}, "ad");
    expect_rolled_back(q);
    sf_request_destroy(q->req);
}

static void a_window_cut_short_keeps_the_rest_of_its_draft(void **state) {
    (void)state;
    sf_params p = params();
    sf_seq *q = open_seq(&p);
    draft(q, 3, (int32_t[]){B, C, D});
    sf_verdict v = verify(q, 2, (int32_t[]){B, C});
    assert_int_equal(v.accepted, 2);
    assert_int_equal(v.rolled_back, 0);
    assert_int_equal(sf_seq_candidates(q), 1);
    expect(q, 3, (int32_t[]){A, B, C}, "abc");
    v = verify(q, 2, (int32_t[]){D, E});
    assert_int_equal(v.committed, 2);
    expect(q, 5, (int32_t[]){A, B, C, D, E}, "abcde");
    expect_rolled_back(q);
    sf_request_destroy(q->req);
}

static void a_dead_draft_lives_again_after_its_verify(void **state) {
    (void)state;
    for (int n = 0; n < 2; n++) { /* the fast path failed at once, or after a candidate */
        sf_params p = params();
        sf_seq *q = open_seq(&p);
        draft(q, n, (int32_t[]){B});
        q->draft.dead = true;
        (void)verify(q, n + 1, (int32_t[]){B, C});
        expect(q, n + 2, (int32_t[]){A, B, C}, n ? "abc" : "ab");
        expect_rolled_back(q);
        assert_false(q->draft.dead);
        sf_request_destroy(q->req);
    }
}

static void a_bad_row_counts_only_before_the_mismatch(void **state) {
    (void)state;
    for (int at = 0; at < 3; at++) {
        sf_params p = params();
        sf_seq *q = open_seq(&p);
        draft(q, 2, (int32_t[]){B, C});
        sf_row_out rows[3] = {{.token = B}, {.token = E}, {.token = D}};
        rows[at] = (sf_row_out){.token = -1, .bad = true};
        sf_verdict v;
        sf_err err = {0};
        sf_code rc = sf_verify_apply(q, &rules, rows, 3, &v, &err);
        if (at == 2) {
            assert_int_equal(rc, SF_OK); /* row 1 differs, so row 2 is not looked at */
            expect(q, 3, (int32_t[]){A, B, E}, "abe");
        } else {
            char want[32];
            snprintf(want, sizeof want, "position %d ", 3 + at);
            assert_int_equal(rc, SF_DEVICE);
            assert_non_null(strstr(err.msg, want));
            assert_int_equal(v.committed, at);
        }
        expect_rolled_back(q);
        sf_request_destroy(q->req);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(drafts_are_never_visible),
        cmocka_unit_test(a_window_that_agrees_gives_one_token_more),
        cmocka_unit_test(a_mismatch_at_every_place_commits_up_to_it),
        cmocka_unit_test(an_ending_that_was_only_drafted_is_undone),
        cmocka_unit_test(a_verified_ending_ends_and_cuts),
        cmocka_unit_test(an_ending_before_the_draft_s_end_wins),
        cmocka_unit_test(a_row_without_candidates_is_committed_by_provenance),
        cmocka_unit_test(a_window_cut_short_keeps_the_rest_of_its_draft),
        cmocka_unit_test(a_dead_draft_lives_again_after_its_verify),
        cmocka_unit_test(a_bad_row_counts_only_before_the_mismatch),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
