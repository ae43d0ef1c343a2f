/* Replaying given answers: the engine's own are confirmed in few passes, others end where they differ. */
#include "sched/fake.h"

#include <stdarg.h>
#include <setjmp.h>
#include <cmocka.h>
#include <string.h>

enum { PROMPT = 9 };

static int32_t prompt[PROMPT];
static watched w[8];

static sf_params params(void) {
    sf_params p;
    sf_params_default(&p);
    p.deterministic = true;
    p.temperature = 0.8f;
    p.seed = 5;
    p.n = 3;
    p.max_tokens = 50;
    p.frequency_penalty = 0.5f;
    p.min_tokens = 10;
    p.logprobs = 2;
    return p;
}

static reference answer_of(const sf_params *p, int choice) {
    reference r;
    reference_run(p, prompt, PROMPT, choice, FAKE_CONTEXT, &r);
    return r;
}

static void expect(sf_request *r, int choice, const reference *a, int n, int at, int32_t id) {
    int32_t ids[FAKE_CONTEXT];
    sf_err err;
    for (int i = 0; i < n; i++)
        ids[i] = i < a->n ? a->tokens[i].id : 7;
    if (at >= 0) ids[at] = id;
    assert_int_equal(sf_request_expect(r, choice, ids, n, &err), SF_OK);
}

/* Runs the requests beside ordinary ones; returns the passes it took. */
static int64_t run(watched *all, int n) {
    fake_device d;
    sf_sched_config cfg;
    sf_sched_stats st;
    sf_err err;
    fake_device_init(&d, 64, 64, 64);
    d.err_per_mille = 100;
    fake_config(&d, &cfg);
    sf_sched *s = fake_sched(&d, &cfg);
    for (int i = 0; i < n; i++)
        assert_int_equal(sf_sched_submit(s, all[i].req, &err), SF_OK);
    run_all(s, all, n);
    sf_sched_stats_get(s, &st);
    assert_int_equal(st.pages_free, d.base.n_pages);
    sf_sched_destroy(s);
    fake_device_fini(&d);
    return st.passes[SF_CLASS_PINNED] + st.passes[SF_CLASS_FAST];
}

static void the_engines_own_answers_are_confirmed_in_few_passes(void **state) {
    (void)state;
    const sf_params p = params();
    fake_prompt(7, PROMPT, prompt);
    w[0] = (watched){.req = fake_request(&p, prompt, PROMPT)};
    for (int c = 0; c < p.n; c++) {
        const reference a = answer_of(&p, c);
        expect(w[0].req, c, &a, a.n, -1, 0);
    }
    const int64_t passes = run(w, 1);
    for (int c = 0; c < p.n; c++)
        assert_reference(w[0].req, c, FAKE_CONTEXT);
    assert_in_range(passes, 2, 6);
    sf_request_destroy(w[0].req);
}

static void an_answer_that_differs_ends_at_its_first_other_token(void **state) {
    (void)state;
    sf_params p = params();
    p.n = 1;
    fake_prompt(7, PROMPT, prompt);
    const reference a = answer_of(&p, 0);
    for (int at = 0; at < a.n; at++) {
        sf_choice c;
        w[0] = (watched){.req = fake_request(&p, prompt, PROMPT)};
        expect(w[0].req, 0, &a, a.n, at, (a.tokens[at].id + 1) % FAKE_VOCAB);
        (void)run(w, 1);
        sf_request_choice(w[0].req, 0, &c);
        assert_int_equal(c.n_tokens, at + 1);
        assert_int_equal(c.finish, SF_FINISH_CANCELLED);
        for (int i = 0; i <= at; i++)
            assert_memory_equal(&c.tokens[i].logprob, &a.tokens[i].logprob, sizeof(float));
        sf_request_destroy(w[0].req);
    }
}

static void an_answer_cut_short_or_drawn_out_is_not_confirmed(void **state) {
    (void)state;
    sf_params p = params();
    p.n = 1;
    fake_prompt(7, PROMPT, prompt);
    const reference a = answer_of(&p, 0);
    for (int n = 0; n < a.n; n++) {
        sf_choice c;
        w[0] = (watched){.req = fake_request(&p, prompt, PROMPT)};
        expect(w[0].req, 0, &a, n, -1, 0);
        (void)run(w, 1);
        sf_request_choice(w[0].req, 0, &c);
        assert_int_equal(c.n_tokens, n + 1);
        assert_int_equal(c.finish, SF_FINISH_CANCELLED);
        sf_request_destroy(w[0].req);
    }
    sf_choice c;
    w[0] = (watched){.req = fake_request(&p, prompt, PROMPT)};
    expect(w[0].req, 0, &a, a.n + 5, -1, 0);
    (void)run(w, 1);
    sf_request_choice(w[0].req, 0, &c);
    assert_int_equal(c.n_tokens, a.n); /* fewer than the answer has */
    sf_request_destroy(w[0].req);
}

static void replays_and_other_requests_do_not_touch_one_another(void **state) {
    (void)state;
    sf_params p = params(), ordinary = params();
    ordinary.deterministic = false;
    fake_prompt(7, PROMPT, prompt);
    for (int i = 0; i < 6; i++) {
        w[i] = (watched){.req = fake_request(i % 3 == 2 ? &ordinary : &p, prompt, PROMPT)};
        for (int c = 0; i % 3 == 0 && c < p.n; c++) {
            const reference a = answer_of(&p, c);
            expect(w[i].req, c, &a, a.n, -1, 0);
        }
    }
    (void)run(w, 6);
    for (int i = 0; i < 6; i++)
        for (int c = 0; i % 3 != 2 && c < p.n; c++)
            assert_reference(w[i].req, c, FAKE_CONTEXT);
    for (int i = 0; i < 6; i++)
        sf_request_destroy(w[i].req);
}

static void what_cannot_be_replayed_is_refused(void **state) {
    (void)state;
    sf_params p = params();
    sf_err err;
    const int32_t bad[] = {1, FAKE_VOCAB};
    fake_device d;
    sf_sched_config cfg;
    fake_prompt(7, PROMPT, prompt);
    sf_request *r = fake_request(&p, prompt, PROMPT);
    assert_int_equal(sf_request_expect(r, 3, bad, 1, &err), SF_INVALID);
    assert_int_equal(sf_request_expect(r, 1, bad, 2, &err), SF_OK);
    fake_device_init(&d, 64, 64, 64);
    fake_config(&d, &cfg);
    sf_sched *s = fake_sched(&d, &cfg);
    assert_int_equal(sf_sched_submit(s, r, &err), SF_INVALID);
    assert_string_equal(err.msg, "token_ids[1] of choice 1 is 40, expected 0..39");
    sf_sched_destroy(s);
    fake_device_fini(&d);
    sf_request_destroy(r);
    p.deterministic = false;
    r = fake_request(&p, prompt, PROMPT);
    assert_int_equal(sf_request_expect(r, 0, bad, 1, &err), SF_INVALID);
    sf_request_destroy(r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_engines_own_answers_are_confirmed_in_few_passes),
        cmocka_unit_test(an_answer_that_differs_ends_at_its_first_other_token),
        cmocka_unit_test(an_answer_cut_short_or_drawn_out_is_not_confirmed),
        cmocka_unit_test(replays_and_other_requests_do_not_touch_one_another),
        cmocka_unit_test(what_cannot_be_replayed_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
