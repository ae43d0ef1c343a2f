/* Who gets rows when a pass has too few, and what the scheduler keeps of it between steps. */
#include "sched/fake.h"
#include "sched/sched_priv.h"

#include <stdarg.h>
#include <setjmp.h>
#include <cmocka.h>

static fake_device d;
static sf_sched_config cfg;
static sf_sched *s;
static int32_t prompt[FAKE_CONTEXT];
static sf_request *r[8];

static void open_world(int rows, int logits) {
    fake_device_init(&d, 200, rows, logits);
    fake_config(&d, &cfg);
    fake_prompt(7, FAKE_CONTEXT, prompt);
    s = fake_sched(&d, &cfg);
}

static void close_world(int n) {
    sf_sched_destroy(s);
    for (int i = 0; i < n; i++)
        sf_request_destroy(r[i]);
    fake_device_fini(&d);
}

static void submit(int i, bool deterministic, int n_prompt, int n) {
    sf_params p;
    sf_err err;
    sf_params_default(&p);
    p.deterministic = deterministic;
    p.seed = i;
    p.ignore_eos = true;
    p.max_tokens = 100;
    p.n = n;
    p.prompt_logprobs = n > 1 ? 0 : -1;
    r[i] = fake_request(&p, prompt, n_prompt);
    assert_int_equal(sf_sched_submit(s, r[i], &err), SF_OK);
}

static void step(void) {
    bool busy;
    sf_err err;
    assert_int_equal(sf_sched_step(s, &busy, &err), SF_OK);
}

static int tokens(int i) {
    sf_choice c;
    sf_request_choice(r[i], 0, &c);
    return c.n_tokens;
}

static void decode_rows_go_round_robin(void **state) {
    (void)state;
    for (int det = 0; det < 2; det++) {
        open_world(2, 2);
        for (int i = 0; i < 5; i++)
            submit(i, det, 1, 1);
        for (int i = 0; i < 12; i++) /* all prompts in */
            step();
        int before[5];
        for (int i = 0; i < 5; i++)
            before[i] = tokens(i);
        for (int i = 0; i < 100; i++) /* 200 rows: about 40 each, drafts included */
            step();
        for (int i = 0; i < 5; i++)
            assert_in_range(tokens(i) - before[i], det ? 10 : 38, 42);
        close_world(5);
    }
}

static void ready_windows_go_round_robin(void **state) {
    (void)state;
    open_world(10, 10); /* a row for each of 6, and 4 more: far from 6 windows of 8 */
    for (int i = 0; i < 6; i++)
        submit(i, true, 1, 1);
    for (int i = 0; i < 100; i++)
        step();
    int least = tokens(0), most = tokens(0);
    for (int i = 1; i < 6; i++) {
        least = tokens(i) < least ? tokens(i) : least;
        most = tokens(i) > most ? tokens(i) : most;
    }
    assert_true(least > 20 && most - least <= 8);
    close_world(6);
}

static void a_prompt_comes_forward_under_any_load(void **state) {
    (void)state;
    static const struct { int rows, logits; } tight[] = {{16, 2}, {2, 2}, {3, 3}};
    for (int det = 0; det < 2; det++) {
        for (int k = 0; k < 3; k++) {
            open_world(tight[k].rows, tight[k].logits);
            for (int i = 0; i < 3; i++)
                submit(i, det, 1, 1);
            for (int i = 0; i < 8; i++)
                step();
            submit(3, det, 10, 1);
            for (int i = 0; i < 11; i++) /* at least one of its rows a step */
                step();
            assert_true(tokens(3) > 0);
            for (int i = 0; i < 3; i++)
                assert_false(sf_request_done(r[i]));
            close_world(4);
        }
    }
}

static void windows_leave_a_quarter_of_the_pass_to_a_prompt(void **state) {
    (void)state;
    open_world(16, 16);
    for (int i = 0; i < 3; i++)
        submit(i, true, 1, 1);
    for (int i = 0; i < 1 + 7; i++) /* the prompts, then three full windows: 24 rows for a pass of 16 */
        step();
    submit(3, true, 30, 1);
    step();
    assert_int_equal(s->n_run, 4);
    assert_int_equal(s->run[3]->committed.kv_len, 5);
    assert_int_equal(tokens(0) + tokens(1) + tokens(2), 3 + 11);
    close_world(4);
}

static void prompts_are_served_in_order(void **state) {
    (void)state;
    open_world(8, 8);
    submit(0, true, 20, 1);
    submit(1, false, 20, 1);
    submit(2, true, 20, 1);
    int first[3] = {0};
    for (int i = 1; i <= 20; i++) {
        step();
        for (int k = 0; k < 3; k++)
            if (first[k] == 0 && tokens(k) > 0) first[k] = i;
    }
    assert_true(first[0] > 0 && first[0] < first[1] && first[1] < first[2]);
    close_world(3);
}

/* Rows of prompts in the pass that was applied last, of ordinary requests. */
static int ordinary_prompt_rows(void) {
    const sf_batch *b = &s->batches[s->current];
    int rows = 0;
    for (int i = 0; i < b->pass.n_segs; i++)
        if (b->pass.segs[i].kind == SF_SEG_PREFILL && !b->entries[i].seq->req->params.deterministic)
            rows += b->pass.segs[i].rows;
    return rows;
}

static void long_ordinary_prompts_stay_out_of_pinned_passes(void **state) {
    (void)state;
    for (int policy = 0; policy < 2; policy++) {
        open_world(64, 64);
        sf_sched_destroy(s);
        cfg.policy = policy ? SF_POLICY_PIN : SF_POLICY_VERIFY;
        cfg.prefill_split = 8;
        cfg.prefill_chunk = 4;
        s = fake_sched(&d, &cfg);
        submit(0, true, 3, 1);
        step();
        submit(1, false, 36, 1);
        submit(2, true, 20, 1);
        int fast = 0, rode = 0;
        while (tokens(1) == 0 || tokens(2) == 0) {
            const int left = s->n_run > 1 ? 36 - s->run[1]->committed.kv_len : 36;
            step();
            const int rows = ordinary_prompt_rows();
            if (s->batches[s->current].pass.cls == SF_CLASS_FAST)
                fast += rows;
            else if (left >= 8)
                assert_int_equal(rows, 0);
            else
                rode += rows; /* what is left of it is short */
        }
        assert_true(fast > 0);
        assert_int_equal(fast + rode, 36);
        assert_true(tokens(0) > 2); /* it went on meanwhile */
        close_world(3);
    }
}

static void prompt_logprobs_are_not_shown_before_all_are_there(void **state) {
    (void)state;
    open_world(4, 4);
    submit(0, true, 12, 2);
    for (int i = 0; i < 2; i++) {
        step();
        assert_null(sf_request_prompt_logprobs(r[0]));
    }
    step();
    assert_non_null(sf_request_prompt_logprobs(r[0]));
    close_world(1);

    open_world(4, 4); /* the second choice has nothing to compute, and is over at once */
    sf_params p;
    sf_err err;
    sf_params_default(&p);
    p.n = 2;
    p.max_tokens = 0;
    p.prompt_logprobs = 0;
    r[0] = fake_request(&p, prompt, 12);
    assert_int_equal(sf_sched_submit(s, r[0], &err), SF_OK);
    step();
    assert_null(sf_request_prompt_logprobs(r[0]));
    for (int i = 0; i < 2; i++)
        step();
    assert_true(sf_request_done(r[0]));
    assert_non_null(sf_request_prompt_logprobs(r[0]));
    close_world(1);
}

static void a_page_is_pinned_when_all_of_it_is_committed(void **state) {
    (void)state;
    open_world(64, 64);
    d.err_per_mille = 100;
    submit(0, true, 20, 1);
    submit(1, false, 20, 1);
    int pinned = 0, fast = 0;
    for (int i = 0; i < 60; i++) {
        step();
        for (int k = 0; k < s->n_run; k++) {
            const sf_seq *q = s->run[k];
            int whole = q->req->params.deterministic ? q->committed.kv_len / FAKE_PAGE : 0;
            for (int page = 0; page < q->n_pages; page++) {
                sf_class want = page < whole ? SF_CLASS_PINNED : SF_CLASS_FAST;
                assert_int_equal(s->kv.pages[q->pages[page]].cls, want);
                pinned += want == SF_CLASS_PINNED;
                fast += want == SF_CLASS_FAST;
            }
        }
    }
    assert_true(pinned > 0 && fast > 0);
    close_world(2);
}

static void an_ended_draft_waits_for_its_group_and_no_longer(void **state) {
    (void)state;
    for (int wait = 0; wait <= 12; wait += 3) {
        open_world(64, 64);
        sf_sched_destroy(s);
        cfg.window = 8;
        cfg.verify_wait = wait;
        s = fake_sched(&d, &cfg);
        d.bad[SF_CLASS_FAST] = true; /* request 0's first draft dies in its second row, all others go on */
        d.bad_pos = 6;
        d.bad_seed = 0;
        for (int i = 0; i < 4; i++)
            submit(i, true, 5, 1);
        int longest = 0;
        for (int i = 0; i < 40; i++) {
            step();
            for (int k = 0; k < s->n_run; k++) {
                int w = s->run[k]->waited;
                if (w > longest) longest = w;
                if (s->batches[s->current].pass.cls == SF_CLASS_PINNED) assert_int_equal(w, 0);
            }
        }
        assert_int_equal(longest, wait < 5 ? wait : 5); /* the group is full 5 passes later */
        close_world(4);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(decode_rows_go_round_robin),
        cmocka_unit_test(ready_windows_go_round_robin),
        cmocka_unit_test(a_prompt_comes_forward_under_any_load),
        cmocka_unit_test(windows_leave_a_quarter_of_the_pass_to_a_prompt),
        cmocka_unit_test(prompts_are_served_in_order),
        cmocka_unit_test(long_ordinary_prompts_stay_out_of_pinned_passes),
        cmocka_unit_test(prompt_logprobs_are_not_shown_before_all_are_there),
        cmocka_unit_test(a_page_is_pinned_when_all_of_it_is_committed),
        cmocka_unit_test(an_ended_draft_waits_for_its_group_and_no_longer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
