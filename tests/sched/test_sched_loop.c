/* The whole loop over the fake device: one behaviour at a time. */
#include "sched/fake.h"

#include <stdarg.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

static int32_t prompt[FAKE_CONTEXT];

static sf_params params(bool deterministic) {
    sf_params p;
    sf_params_default(&p);
    p.deterministic = deterministic;
    p.seed = 42;
    p.max_tokens = 40;
    p.ignore_eos = true;
    p.logprobs = 2;
    return p;
}

/* Runs copies of one request together; fills stats; the requests stay in w. */
static void run_copies(fake_device *d, const sf_sched_config *cfg, const sf_params *p, int n_prompt,
                       watched *w, int n, sf_sched_stats *st) {
    sf_sched *s = fake_sched(d, cfg);
    sf_err err;
    fake_prompt(7, n_prompt, prompt);
    for (int i = 0; i < n; i++) {
        w[i] = (watched){.req = fake_request(p, prompt, n_prompt)};
        assert_int_equal(sf_sched_submit(s, w[i].req, &err), SF_OK);
    }
    run_all(s, w, n);
    sf_sched_stats_get(s, st);
    assert_int_equal(st->pages_free, d->base.n_pages);
    assert_int_equal(st->running + st->waiting, 0);
    sf_sched_destroy(s);
}

static void release(watched *w, int n) {
    for (int i = 0; i < n; i++)
        sf_request_destroy(w[i].req);
}

static watched w[32];

static void a_deterministic_answer_is_the_pinned_one_though_the_fast_path_errs(void **state) {
    (void)state;
    fake_device d;
    sf_sched_config cfg;
    sf_sched_stats st;
    fake_device_init(&d, 64, 64, 64);
    d.err_per_mille = 100;
    fake_config(&d, &cfg);
    sf_params p = params(true);
    run_copies(&d, &cfg, &p, 20, w, 6, &st);
    for (int i = 0; i < 6; i++)
        assert_reference(w[i].req, 0, FAKE_CONTEXT);
    assert_true(st.rollbacks > 0 && st.tokens_rolled_back >= st.rollbacks);
    assert_true(st.drafts_accepted > 0 && st.drafted >= st.drafts_accepted + st.tokens_rolled_back);
    assert_true(st.passes[SF_CLASS_FAST] > 0);
    assert_int_equal(st.committed_tokens, 6 * 40);
    assert_int_equal(st.prompt_tokens, 6 * 20);
    assert_true(st.verify_passes > 0 && st.verify_rows > st.windows_verified);
    sf_request_stats rs;
    sf_request_stats_get(w[0].req, &rs);
    assert_true(rs.windows_verified > 0 && rs.drafts_accepted > 0);
    release(w, 6);
    fake_device_fini(&d);
}

static void an_ordinary_answer_is_not(void **state) { /* the negative control */
    (void)state;
    fake_device d;
    sf_sched_config cfg;
    sf_sched_stats st;
    fake_device_init(&d, 64, 64, 64);
    d.err_per_mille = 100;
    fake_config(&d, &cfg);
    sf_params p = params(false);
    run_copies(&d, &cfg, &p, 20, w, 6, &st);
    reference want;
    reference_run(&p, prompt, 20, 0, FAKE_CONTEXT, &want);
    int differ = 0;
    for (int i = 0; i < 6; i++) {
        sf_choice c;
        sf_request_choice(w[i].req, 0, &c);
        assert_int_equal(c.n_tokens, 40);
        for (int k = 0; k < 40; k++)
            differ += c.tokens[k].id != want.tokens[k].id;
    }
    assert_true(differ > 0);
    assert_int_equal(st.passes[SF_CLASS_PINNED], 0);
    assert_int_equal(st.ordinary_tokens, 6 * 40);
    release(w, 6);
    fake_device_fini(&d);
}

static void without_errors_a_draft_costs_no_rollback(void **state) {
    (void)state;
    fake_device d;
    sf_sched_config cfg;
    sf_sched_stats st;
    fake_device_init(&d, 64, 64, 64);
    fake_config(&d, &cfg);
    sf_params p = params(true);
    p.max_tokens = 33; /* 1 from the prompt, then 4 windows of 8 */
    run_copies(&d, &cfg, &p, 20, w, 1, &st);
    assert_reference(w[0].req, 0, FAKE_CONTEXT);
    assert_int_equal(st.rollbacks, 0);
    assert_int_equal(st.windows_verified, 4);
    assert_int_equal(st.passes[SF_CLASS_PINNED], 1 + 4);
    assert_int_equal(st.passes[SF_CLASS_FAST], 4 * 7);
    assert_int_equal(st.drafts_accepted, st.drafted);
    release(w, 1);
    fake_device_fini(&d);
}

static void under_pin_nothing_is_drafted(void **state) {
    (void)state;
    fake_device d;
    sf_sched_config cfg;
    sf_sched_stats st;
    fake_device_init(&d, 64, 64, 64);
    d.err_per_mille = 500;
    fake_config(&d, &cfg);
    cfg.policy = SF_POLICY_PIN;
    sf_params p = params(true);
    run_copies(&d, &cfg, &p, 20, w, 4, &st);
    for (int i = 0; i < 4; i++)
        assert_reference(w[i].req, 0, FAKE_CONTEXT);
    assert_int_equal(st.drafted + st.passes[SF_CLASS_FAST], 0);
    assert_int_equal(st.provenance_tokens, 4 * 39);
    release(w, 4);
    fake_device_fini(&d);
}

static void choices_are_independent_of_n(void **state) {
    (void)state;
    fake_device d;
    sf_sched_config cfg;
    sf_sched_stats st;
    fake_device_init(&d, 64, 64, 64);
    d.err_per_mille = 50;
    fake_config(&d, &cfg);
    cfg.max_seqs = 3; /* fewer slots than choices */
    sf_params p = params(true);
    p.n = 8;
    run_copies(&d, &cfg, &p, 12, w, 1, &st);
    sf_choice a, b;
    for (int i = 0; i < 8; i++)
        assert_reference(w[0].req, i, FAKE_CONTEXT);
    sf_request_choice(w[0].req, 0, &a);
    sf_request_choice(w[0].req, 1, &b);
    assert_true(a.n_tokens != b.n_tokens || a.tokens[5].id != b.tokens[5].id ||
                a.tokens[9].id != b.tokens[9].id);
    release(w, 1);
    fake_device_fini(&d);
}

static void ordinary_rows_ride_along_and_are_not_stopped(void **state) {
    (void)state;
    fake_device d;
    sf_sched_config cfg;
    sf_err err;
    fake_device_init(&d, 64, 64, 64);
    fake_config(&d, &cfg);
    sf_sched *s = fake_sched(&d, &cfg);
    fake_prompt(7, 8, prompt);
    sf_params det = params(true), ord = params(false);
    w[0] = (watched){.req = fake_request(&det, prompt, 8)};
    w[1] = (watched){.req = fake_request(&ord, prompt, 8)};
    for (int i = 0; i < 2; i++)
        assert_int_equal(sf_sched_submit(s, w[i].req, &err), SF_OK);
    bool busy = true;
    for (int steps = 1; steps <= 40; steps++) { /* a token in every single step */
        sf_choice c;
        assert_int_equal(sf_sched_step(s, &busy, &err), SF_OK);
        sf_request_choice(w[1].req, 0, &c);
        assert_int_equal(c.n_tokens, steps);
    }
    run_all(s, w, 2);
    sf_sched_stats st;
    sf_sched_stats_get(s, &st);
    assert_true(st.ride_along_rows > 0);
    assert_reference(w[0].req, 0, FAKE_CONTEXT);
    sf_sched_destroy(s);
    release(w, 2);
    fake_device_fini(&d);
}

static void a_mismatch_injected_at_every_offset_changes_nothing(void **state) {
    (void)state;
    for (int policy_window = 2; policy_window <= 16; policy_window += 7) {
        for (int offset = 0; offset < policy_window - 1; offset++) {
            fake_device d;
            sf_sched_config cfg;
            sf_sched_stats st;
            fake_device_init(&d, 64, 64, 64);
            fake_config(&d, &cfg);
            cfg.window = policy_window;
            cfg.inject_offset = offset;
            sf_params p = params(true);
            p.n = 4;
            p.max_tokens = 80;
            p.min_tokens = 20;
            p.ignore_eos = false;
            p.frequency_penalty = 0.5f;
            p.repetition_penalty = 1.1f;
            p.n_stop = 3;
            p.stop = (const char *const[]){"xyx", "ab", "\342\202\254b"};
            run_copies(&d, &cfg, &p, 11, w, 3, &st);
            for (int i = 0; i < 3; i++)
                for (int c = 0; c < 4; c++)
                    assert_reference(w[i].req, c, FAKE_CONTEXT);
            assert_true(st.rollbacks > 0);
            release(w, 3);
            fake_device_fini(&d);
        }
    }
}

static void prompt_logprobs_come_from_the_prompt_whatever_the_chunks(void **state) {
    (void)state;
    for (int logits = 2; logits <= 16; logits += 7) {
        fake_device d;
        sf_sched_config cfg;
        sf_sched_stats st;
        fake_device_init(&d, 64, 16, logits);
        fake_config(&d, &cfg);
        cfg.prefill_chunk = 7;
        sf_params p = params(true);
        p.prompt_logprobs = 3;
        p.max_tokens = logits == 2 ? 0 : 5;
        run_copies(&d, &cfg, &p, 30, w, 2, &st);
        const sf_token *lp = sf_request_prompt_logprobs(w[1].req);
        assert_non_null(lp);
        for (int i = 1; i < 30; i++) {
            sf_sample sample = {.n_top = 3, .target = prompt[i], .temperature = 1};
            sf_row_out want;
            fake_model(prompt, i, &sample, &want);
            assert_int_equal(lp[i].id, prompt[i]);
            assert_memory_equal(&lp[i].logprob, &want.target_logprob, sizeof(float));
            assert_int_equal(lp[i].rank, want.target_rank);
            assert_int_equal(lp[i].n_top, 3);
            assert_memory_equal(lp[i].top_id, want.top_id, 3 * sizeof(int32_t));
        }
        assert_reference(w[0].req, 0, FAKE_CONTEXT);
        release(w, 2);
        fake_device_fini(&d);
    }
}

static void the_context_s_end_is_a_length_finish(void **state) {
    (void)state;
    for (int n_prompt = FAKE_CONTEXT - 2; n_prompt < FAKE_CONTEXT; n_prompt++) {
        fake_device d;
        sf_sched_config cfg;
        sf_sched_stats st;
        fake_device_init(&d, 10, 64, 64);
        fake_config(&d, &cfg);
        sf_params p = params(true);
        p.max_tokens = -1;
        run_copies(&d, &cfg, &p, n_prompt, w, 1, &st);
        sf_choice c;
        sf_request_choice(w[0].req, 0, &c);
        assert_int_equal(c.finish, SF_FINISH_LENGTH);
        assert_int_equal(c.n_tokens, FAKE_CONTEXT - n_prompt);
        assert_reference(w[0].req, 0, FAKE_CONTEXT);
        release(w, 1);
        fake_device_fini(&d);
    }
}

static void a_small_pool_makes_requests_wait_and_changes_nothing(void **state) {
    (void)state;
    fake_device d;
    sf_sched_config cfg;
    sf_sched_stats st;
    fake_device_init(&d, 5, 64, 64); /* a request needs 4 pages at worst */
    d.err_per_mille = 100;
    fake_config(&d, &cfg);
    sf_params p = params(true);
    run_copies(&d, &cfg, &p, 20, w, 8, &st);
    for (int i = 0; i < 8; i++)
        assert_reference(w[i].req, 0, FAKE_CONTEXT);
    release(w, 8);
    fake_device_fini(&d);
}

/* The passes of which one is queued while the one before it runs, out of all. */
static void fed_share(const sf_params *p, sf_policy policy, int64_t *fed, int64_t *passes) {
    fake_device d;
    sf_sched_config cfg;
    sf_sched_stats st;
    fake_device_init(&d, 64, 64, 64);
    d.base.feeds = true;
    fake_config(&d, &cfg);
    cfg.policy = policy;
    cfg.prefill_chunk = 60; /* all three prompts in one pass */
    run_copies(&d, &cfg, p, 20, w, 3, &st);
    for (int i = 0; i < 3; i++)
        if (p->deterministic) assert_reference(w[i].req, 0, FAKE_CONTEXT);
    *fed = d.n_fed;
    *passes = d.n_pass;
    release(w, 3);
    fake_device_fini(&d);
}

static void decode_passes_are_queued_behind_the_one_that_runs(void **state) {
    (void)state;
    int64_t fed, passes;
    sf_params p = params(false);
    fed_share(&p, SF_POLICY_VERIFY, &fed, &passes);
    assert_int_equal(passes, 40); /* one prefill, 39 decodes */
    assert_int_equal(fed, passes - 2);
    p = params(true);
    fed_share(&p, SF_POLICY_PIN, &fed, &passes);
    assert_int_equal(fed, passes - 2);
    fed_share(&p, SF_POLICY_VERIFY, &fed,
              &passes); /* a window's first draft and its verify pass stand alone */
    assert_true(fed > passes / 2 && fed < passes - 2);
}

static void a_row_sampled_by_its_history_waits_for_it(void **state) {
    (void)state;
    int64_t fed, passes;
    sf_params p = params(false);
    p.presence_penalty = 0.5f;
    fed_share(&p, SF_POLICY_VERIFY, &fed, &passes);
    assert_int_equal(fed, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_deterministic_answer_is_the_pinned_one_though_the_fast_path_errs),
        cmocka_unit_test(an_ordinary_answer_is_not),
        cmocka_unit_test(without_errors_a_draft_costs_no_rollback),
        cmocka_unit_test(under_pin_nothing_is_drafted),
        cmocka_unit_test(choices_are_independent_of_n),
        cmocka_unit_test(ordinary_rows_ride_along_and_are_not_stopped),
        cmocka_unit_test(a_mismatch_injected_at_every_offset_changes_nothing),
        cmocka_unit_test(prompt_logprobs_come_from_the_prompt_whatever_the_chunks),
        cmocka_unit_test(the_context_s_end_is_a_length_finish),
        cmocka_unit_test(a_small_pool_makes_requests_wait_and_changes_nothing),
        cmocka_unit_test(decode_passes_are_queued_behind_the_one_that_runs),
        cmocka_unit_test(a_row_sampled_by_its_history_waits_for_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
