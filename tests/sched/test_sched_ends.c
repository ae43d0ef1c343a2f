/* Endings that are not an answer: refusals, cancellation, bad rows, a failing device. */
#include "sched/fake.h"

#include <stdarg.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

static fake_device d;
static sf_sched_config cfg;
static sf_sched *s;
static int32_t prompt[FAKE_CONTEXT * 2];
static watched w[8];

static int open_world(void **state) {
    (void)state;
    fake_device_init(&d, 64, 64, 64);
    fake_config(&d, &cfg);
    fake_prompt(7, 20, prompt);
    memset(w, 0, sizeof w);
    s = fake_sched(&d, &cfg);
    return 0;
}

static int close_world(void **state) {
    (void)state;
    sf_sched_destroy(s);
    for (int i = 0; i < 8; i++)
        sf_request_destroy(w[i].req);
    fake_device_fini(&d);
    return 0;
}

static void reopen(void) {
    sf_sched_destroy(s);
    s = fake_sched(&d, &cfg);
}

static sf_params params(bool deterministic, int64_t seed) {
    sf_params p;
    sf_params_default(&p);
    p.deterministic = deterministic;
    p.seed = seed;
    p.max_tokens = 40;
    p.ignore_eos = true;
    return p;
}

static void submit(int i, const sf_params *p, int n_prompt) {
    sf_err err;
    w[i].req = fake_request(p, prompt, n_prompt);
    assert_int_equal(sf_sched_submit(s, w[i].req, &err), SF_OK);
}

static void steps(int n) {
    bool busy;
    sf_err err;
    for (int i = 0; i < n; i++)
        assert_int_equal(sf_sched_step(s, &busy, &err), SF_OK);
}

static sf_finish finish_of(int i) {
    sf_choice c;
    sf_request_choice(w[i].req, 0, &c);
    return c.finish;
}

static int pages_free(void) {
    sf_sched_stats st;
    sf_sched_stats_get(s, &st);
    return st.pages_free;
}

static void expect_refused(const sf_params *p, int n_prompt, sf_code code, const char *part,
                           const char *part2) {
    sf_err err;
    sf_request *r = fake_request(p, prompt, n_prompt);
    assert_int_equal(sf_sched_submit(s, r, &err), code);
    assert_non_null(strstr(err.msg, part));
    assert_non_null(strstr(err.msg, part2));
    assert_false(sf_request_done(r));
    sf_request_destroy(r);
}

static void submit_refuses_by_name_what_can_t_be_served(void **state) {
    (void)state;
    sf_params p = params(true, 1);
    expect_refused(&p, 0, SF_INVALID, "prompt", "0 tokens");
    expect_refused(&p, FAKE_CONTEXT, SF_INVALID, "160 tokens", "context 160");
    p.n_stop_ids = 1;
    p.stop_ids = (int32_t[]){FAKE_VOCAB};
    expect_refused(&p, 3, SF_INVALID, "stop_token_ids[0]", "40");
    p.n_stop_ids = 0;
    p.n_bias = 1;
    p.bias = (sf_bias[]){{-1, 0.5f}};
    expect_refused(&p, 3, SF_INVALID, "logit_bias", "-1");
    p.n_bias = 0;
    prompt[1] = 999999;
    expect_refused(&p, 3, SF_INVALID, "prompt[1]", "999999");
    assert_int_equal(pages_free(), 64);
}

/* The first token of the context has no log-probability and the last is never fed, so that it fits. */
static void a_prompt_of_the_whole_context_can_be_scored(void **state) {
    (void)state;
    sf_params p = params(true, 1);
    p.max_tokens = 0;
    p.prompt_logprobs = 0;
    fake_prompt(7, FAKE_CONTEXT + 1, prompt);
    expect_refused(&p, FAKE_CONTEXT + 1, SF_INVALID, "161 tokens", "context 160");
    submit(0, &p, FAKE_CONTEXT);
    run_all(s, w, 1);
    assert_int_equal(finish_of(0), SF_FINISH_LENGTH);
    const sf_token *lp = sf_request_prompt_logprobs(w[0].req);
    assert_non_null(lp);
    for (int i = 1; i < FAKE_CONTEXT; i++) {
        sf_row_out row = {0};
        sf_sample at = {
            .top_p = 1.0f, .repetition_penalty = 1.0f, .position = (uint32_t)i, .target = prompt[i]};
        fake_model(prompt, i, &at, &row);
        assert_int_equal(lp[i].id, prompt[i]);
        assert_true(memcmp(&lp[i].logprob, &row.target_logprob, sizeof row.target_logprob) == 0);
    }
}

static void submit_refuses_what_the_pool_can_never_hold(void **state) {
    (void)state;
    d.base.n_pages = 3;
    reopen();
    sf_params p = params(true, 1);
    expect_refused(&p, 20, SF_INVALID, "4 KV pages", "has 3");
    p.max_tokens = 20;
    submit(0, &p, 20);
    run_all(s, w, 1);
    assert_int_equal(finish_of(0), SF_FINISH_LENGTH);
}

static void a_full_queue_says_so(void **state) {
    (void)state;
    cfg.max_queue = 2;
    reopen();
    sf_params p = params(true, 1);
    submit(0, &p, 5);
    submit(1, &p, 5);
    expect_refused(&p, 5, SF_FULL, "2 requests", "limit");
    steps(1);
    submit(2, &p, 5);
    run_all(s, w, 3);
}

static void a_list_is_queued_whole_or_not_at_all(void **state) {
    (void)state;
    cfg.max_queue = 3;
    reopen();
    sf_params p = params(true, 1);
    sf_err err;
    submit(0, &p, 5);
    sf_request *all[3];
    for (int i = 0; i < 3; i++)
        all[i] = w[i + 1].req = fake_request(&p, prompt, 5);
    assert_int_equal(sf_sched_submit_all(s, all, 3, &err), SF_FULL);
    assert_int_equal(sf_sched_submit_all(s, (sf_request *[]){all[0], w[0].req}, 2, &err), SF_INVALID);
    assert_int_equal(sf_sched_submit_all(s, all, 2, &err), SF_OK); /* none of them was queued before */
    assert_int_equal(sf_sched_submit(s, all[2], &err), SF_FULL);
    steps(1);
    assert_int_equal(sf_sched_submit(s, all[2], &err), SF_OK);
    run_all(s, w, 4);
}

static void determinism_that_failed_its_selftest_is_refused_and_ordinary_service_goes_on(void **state) {
    (void)state;
    cfg.refuse_deterministic = "gemm rows differ";
    reopen();
    sf_params p = params(true, 1);
    expect_refused(&p, 5, SF_NONDET, "refused", "gemm rows differ");
    p.deterministic = false;
    submit(0, &p, 5);
    run_all(s, w, 1);
}

static void a_request_is_submitted_once(void **state) {
    (void)state;
    sf_params p = params(true, 1);
    sf_err err;
    submit(0, &p, 5);
    assert_int_equal(sf_sched_submit(s, w[0].req, &err), SF_INVALID);
    run_all(s, w, 1);
    assert_int_equal(sf_sched_submit(s, w[0].req, &err), SF_INVALID);
}

static void create_refuses_a_wrong_configuration(void **state) {
    (void)state;
    sf_sched_config bad[] = {cfg, cfg, cfg, cfg};
    static const char *const field[] = {"window is 65", "max_rows is 65", "max_context is 161",
                                        "verify_wait is 1001"};
    bad[0].window = 65;
    bad[1].max_rows = 65;
    bad[2].max_context = FAKE_CONTEXT + 1;
    bad[3].verify_wait = 1001;
    for (int i = 0; i < 4; i++) {
        sf_sched *out = NULL;
        sf_err err;
        assert_int_equal(sf_sched_create(&d.base, fake_tokenizer(), &bad[i], &out, &err), SF_INVALID);
        assert_non_null(strstr(err.msg, field[i]));
        assert_null(out);
    }
}

static void a_window_wider_than_a_pass_holds_is_refused(void **state) {
    (void)state;
    static const struct {
        int window, max_rows, max_logit_rows;
        const char *says; /* NULL: it fits */
    } cases[] = {
        {17, 64, 16, "window is 17, expected at most max_logit_rows (16)"}, {16, 64, 16, NULL},
        {17, 16, 64, "window is 17, expected at most max_rows (16)"},       {16, 16, 64, NULL},
        {17, 16, 8, "window is 17, expected at most max_logit_rows (8)"},   {64, 64, 64, NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        sf_sched_config c = cfg;
        sf_sched *out = NULL;
        sf_err err;
        c.window = cases[i].window;
        c.max_rows = cases[i].max_rows;
        d.plan.max_logit_rows = cases[i].max_logit_rows;
        sf_code rc = sf_sched_create(&d.base, fake_tokenizer(), &c, &out, &err);
        assert_int_equal(rc, cases[i].says ? SF_INVALID : SF_OK);
        if (cases[i].says) assert_string_equal(err.msg, cases[i].says);
        sf_sched_destroy(out);
    }
    d.plan.max_logit_rows = 64;
}

static void cancelled_in_the_queue_in_prefill_or_in_decode_everything_comes_back(void **state) {
    (void)state;
    cfg.max_seqs = 1;
    cfg.prefill_chunk = 4;
    reopen();
    for (int after = 0; after < 30; after++) { /* 0: queued; 1..4: prefill; then draft and verify */
        sf_params p = params(true, after);
        submit(0, &p, 20);
        submit(1, &p, 20);
        steps(after);
        sf_sched_cancel(s, w[0].req);
        steps(1);
        assert_true(sf_request_done(w[0].req));
        assert_int_equal(finish_of(0), SF_FINISH_CANCELLED);
        assert_null(sf_request_error(w[0].req));
        assert_reference_prefix(w[0].req, 0, FAKE_CONTEXT);
        sf_sched_cancel(s, w[1].req);
        steps(1);
        assert_int_equal(finish_of(1), SF_FINISH_CANCELLED);
        assert_int_equal(pages_free(), 64);
        sf_request_destroy(w[0].req);
        sf_request_destroy(w[1].req);
        memset(w, 0, sizeof w);
    }
}

static void cancelling_the_middle_of_the_queue_keeps_the_rest_in_order(void **state) {
    (void)state;
    sf_params p = params(true, 1);
    for (int i = 0; i < 4; i++)
        submit(i, &p, 5);
    sf_sched_cancel(s, w[1].req);
    sf_sched_cancel(s, w[3].req);
    run_all(s, w, 4);
    static const sf_finish want[] = {SF_FINISH_LENGTH, SF_FINISH_CANCELLED, SF_FINISH_LENGTH,
                                     SF_FINISH_CANCELLED};
    for (int i = 0; i < 4; i++)
        assert_int_equal(finish_of(i), want[i]);
    submit(4, &p, 5); /* the queue's tail is whole */
    run_all(s, w, 5);
    assert_int_equal(finish_of(4), SF_FINISH_LENGTH);
}

static void a_bad_pinned_row_fails_its_request_alone(void **state) {
    (void)state;
    d.bad[SF_CLASS_PINNED] = true;
    d.bad_seed = 5;
    d.bad_pos = 27;
    sf_params bad = params(true, 5), good = params(true, 6);
    bad.n = 2;
    submit(0, &bad, 20);
    submit(1, &good, 20);
    run_all(s, w, 2);
    assert_int_equal(finish_of(0), SF_FINISH_ERROR);
    assert_non_null(sf_request_error(w[0].req));
    assert_non_null(strstr(sf_request_error(w[0].req)->msg, "position 28"));
    assert_reference_prefix(w[0].req, 0, FAKE_CONTEXT);
    assert_reference(w[1].req, 0, FAKE_CONTEXT);
    assert_null(sf_request_error(w[1].req));
    assert_int_equal(pages_free(), 64);
}

static void a_bad_prompt_row_fails_its_request(void **state) {
    (void)state;
    d.bad[SF_CLASS_PINNED] = true;
    d.bad_seed = 5;
    d.bad_pos = 19;
    sf_params p = params(true, 5);
    submit(0, &p, 20);
    run_all(s, w, 1);
    assert_int_equal(finish_of(0), SF_FINISH_ERROR);
    assert_non_null(strstr(sf_request_error(w[0].req)->msg, "position 20"));
}

static void a_bad_draft_only_ends_the_draft(void **state) {
    (void)state;
    d.bad[SF_CLASS_FAST] = true;
    d.bad_seed = 5;
    sf_params p = params(true, 5);
    for (int i = 0; i < 8; i++) {
        d.bad_pos = 20 + i;
        submit(i, &p, 20);
        run_all(s, w, i + 1);
        assert_reference(w[i].req, 0, FAKE_CONTEXT);
    }
}

static void a_bad_fast_row_fails_an_ordinary_request(void **state) {
    (void)state;
    d.bad[SF_CLASS_FAST] = true;
    d.bad_seed = 5;
    d.bad_pos = 25;
    sf_params bad = params(false, 5), good = params(true, 6);
    submit(0, &bad, 20);
    submit(1, &good, 20);
    d.bad[SF_CLASS_PINNED] = true; /* whichever pass takes that row */
    run_all(s, w, 2);
    assert_int_equal(finish_of(0), SF_FINISH_ERROR);
    assert_reference(w[1].req, 0, FAKE_CONTEXT);
}

static void expect_dead(const char *why) {
    bool busy = true;
    sf_err err;
    sf_code rc = SF_OK;
    for (int i = 0; i < 100 && rc == SF_OK; i++)
        rc = sf_sched_step(s, &busy, &err);
    assert_int_equal(rc, SF_DEVICE);
    assert_string_equal(err.msg, why);
    assert_false(busy);
    for (int i = 0; i < 3; i++) {
        assert_true(sf_request_done(w[i].req));
        assert_int_equal(finish_of(i), SF_FINISH_ERROR);
        assert_string_equal(sf_request_error(w[i].req)->msg, why);
        assert_reference_prefix(w[i].req, 0, FAKE_CONTEXT);
    }
    sf_params p = params(true, 1);
    expect_refused(&p, 5, SF_DEVICE, why, "on purpose");
    assert_int_equal(sf_sched_step(s, &busy, &err), SF_DEVICE);
    assert_int_equal(pages_free(), 64);
}

static void when_the_device_fails_everybody_hears_why(void **state) {
    (void)state;
    for (int launch = 0; launch < 2; launch++) {
        cfg.max_seqs = 2; /* the third waits in the queue */
        d.pass = NULL;
        reopen();
        sf_params p = params(true, 1);
        for (int i = 0; i < 3; i++)
            submit(i, &p, 5);
        d.fail_at = launch ? -1 : d.n_pass + 9;
        d.launch_fail_at = launch ? d.n_pass + 9 : -1;
        expect_dead(launch ? "the launch failed on purpose" : "the device failed on purpose");
        for (int i = 0; i < 3; i++)
            sf_request_destroy(w[i].req);
        memset(w, 0, sizeof w);
    }
}

static void destroying_the_scheduler_cancels_what_is_left(void **state) {
    (void)state;
    cfg.max_seqs = 1;
    reopen();
    sf_params p = params(true, 1);
    submit(0, &p, 5);
    submit(1, &p, 5);
    steps(4);
    sf_sched_destroy(s);
    s = NULL;
    assert_int_equal(finish_of(0), SF_FINISH_CANCELLED);
    assert_int_equal(finish_of(1), SF_FINISH_CANCELLED);
    assert_true(sf_request_done(w[0].req) && sf_request_done(w[1].req));
}

static void without_a_tokenizer_ids_flow_and_stop_strings_are_refused(void **state) {
    (void)state;
    sf_err err;
    sf_sched_destroy(s);
    assert_int_equal(sf_sched_create(&d.base, NULL, &cfg, &s, &err), SF_OK);
    sf_params p = params(true, 1);
    submit(0, &p, 5);
    run_all(s, w, 1);
    sf_choice c;
    sf_request_choice(w[0].req, 0, &c);
    assert_int_equal(c.n_tokens, 40);
    assert_string_equal(c.text, "");
    p.n_stop = 1;
    p.stop = (const char *const[]){"a"};
    expect_refused(&p, 5, SF_INVALID, "stop strings", "tokenizer");
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, open_world, close_world)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(submit_refuses_by_name_what_can_t_be_served),
        TEST(a_prompt_of_the_whole_context_can_be_scored),
        TEST(submit_refuses_what_the_pool_can_never_hold),
        TEST(a_full_queue_says_so),
        TEST(a_list_is_queued_whole_or_not_at_all),
        TEST(determinism_that_failed_its_selftest_is_refused_and_ordinary_service_goes_on),
        TEST(a_request_is_submitted_once),
        TEST(create_refuses_a_wrong_configuration),
        TEST(a_window_wider_than_a_pass_holds_is_refused),
        TEST(cancelled_in_the_queue_in_prefill_or_in_decode_everything_comes_back),
        TEST(cancelling_the_middle_of_the_queue_keeps_the_rest_in_order),
        TEST(a_bad_pinned_row_fails_its_request_alone),
        TEST(a_bad_prompt_row_fails_its_request),
        TEST(a_bad_draft_only_ends_the_draft),
        TEST(a_bad_fast_row_fails_an_ordinary_request),
        TEST(when_the_device_fails_everybody_hears_why),
        TEST(destroying_the_scheduler_cancels_what_is_left),
        TEST(without_a_tokenizer_ids_flow_and_stop_strings_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
