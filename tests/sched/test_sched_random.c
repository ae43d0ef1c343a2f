/* Random mixes of everything at once, from fixed seeds: whatever the load and the settings, a deterministic
 * request answers as the plain loop does. */
#include "sched/fake.h"

#include <stdarg.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

enum { WORLDS = 1500, MAX_REQUESTS = 14 };

static uint64_t rng;

static int pick(int lo, int hi) { /* lo..hi, both included */
    rng = fake_mix(rng);
    return lo + (int)(rng % (uint64_t)(hi - lo + 1));
}

static bool one_in(int n) {
    return pick(1, n) == 1;
}

static const char *const stops[] = {
    "ab", "abc", "ba", "xyx", "dd", "e", "\xe2\x82\xac", "\303\251a", "b\xf0\x9f\x98\x80", "a b"};
static const sf_bias bias[] = {{5, 1.5f}, {9, -2.0f}};
static const int32_t stop_ids[] = {11, 30};

static void random_params(sf_params *p, const char **stop) {
    sf_params_default(p);
    p->deterministic = !one_in(3);
    p->temperature = one_in(3) ? 0.0f : (float)pick(1, 20) / 10.0f;
    p->seed = (int64_t)fake_mix((uint64_t)pick(0, 1 << 20));
    p->n = one_in(4) ? pick(2, 4) : 1;
    p->max_tokens = one_in(8) ? -1 : pick(one_in(10) ? 0 : 1, 70);
    p->min_tokens = p->max_tokens > 0 && one_in(3) ? pick(0, p->max_tokens) : 0;
    p->ignore_eos = one_in(2);
    p->logprobs = pick(-1, 4);
    p->prompt_logprobs = one_in(4) ? pick(0, 3) : -1;
    if (one_in(3)) p->repetition_penalty = 1.25f;
    if (one_in(3)) p->presence_penalty = -0.5f;
    p->n_stop = one_in(2) ? pick(1, 3) : 0;
    for (int i = 0; i < p->n_stop; i++)
        stop[i] = stops[pick(0, (int)(sizeof stops / sizeof *stops) - 1)];
    p->stop = stop;
    p->n_stop_ids = one_in(4) ? pick(1, 2) : 0;
    p->stop_ids = stop_ids;
    p->n_bias = one_in(4) ? 2 : 0;
    p->bias = bias;
}

static void random_config(const fake_device *d, sf_sched_config *c) {
    fake_config(d, c);
    c->policy = one_in(4) ? SF_POLICY_PIN : SF_POLICY_VERIFY;
    c->window = one_in(2) ? pick(2, 8) : pick(2, 64);
    if (c->window > d->plan.max_logit_rows) c->window = d->plan.max_logit_rows;
    c->verify_group = pick(0, 4);
    c->verify_wait = pick(0, 6);
    c->max_seqs = one_in(3) ? pick(1, 3) : pick(4, 32);
    c->prefill_chunk = one_in(3) ? pick(1, 4) : pick(1, 64);
    c->prefill_split = one_in(2) ? 0 : pick(1, 20);
    c->inject_offset = one_in(3) ? pick(0, c->window - 1) : -1;
}

typedef struct totals {
    int64_t rollbacks, windows, provenance, ride, cancelled, finished, fed;
} totals;

static watched w[MAX_REQUESTS];

/* Submits and cancels at random times; every stream is watched in between. */
static void run_world(sf_sched *s, int n, totals *t) {
    bool busy = true;
    int submitted = 0;
    while (busy || submitted < n) {
        sf_err err;
        while (submitted < n && one_in(4)) {
            if (sf_sched_submit(s, w[submitted].req, &err) != SF_OK) fail_msg("%s", err.msg);
            submitted++;
        }
        if (submitted > 0 && one_in(150)) {
            sf_request *r = w[pick(0, submitted - 1)].req;
            t->cancelled += !sf_request_done(r);
            sf_sched_cancel(s, r);
        }
        assert_int_equal(sf_sched_step(s, &busy, &err), SF_OK);
        for (int i = 0; i < submitted; i++)
            watch(&w[i]);
    }
}

static void check_ordinary_exact(const sf_request *r, int choice) {
    int n_prompt;
    const int32_t *prompt = sf_request_prompt(r, &n_prompt);
    reference want;
    sf_choice got;
    reference_run(sf_request_params(r), prompt, n_prompt, choice, FAKE_CONTEXT, &want);
    sf_request_choice(r, choice, &got);
    assert_int_equal(got.n_tokens, want.n);
    for (int i = 0; i < want.n; i++)
        assert_int_equal(got.tokens[i].id, want.tokens[i].id);
    assert_int_equal(got.text_len, want.text_len);
    assert_memory_equal(got.text, want.text, want.text_len);
}

static void check_answers(int n, bool fast_is_exact, totals *t) {
    for (int i = 0; i < n; i++) {
        const sf_request *r = w[i].req;
        assert_true(sf_request_done(r));
        for (int c = 0; c < sf_request_params(r)->n; c++) {
            sf_choice got;
            sf_request_choice(r, c, &got);
            bool det = sf_request_params(r)->deterministic, whole = got.finish != SF_FINISH_CANCELLED;
            assert_int_not_equal(got.finish, SF_FINISH_ERROR);
            if (det && whole)
                assert_reference(r, c, FAKE_CONTEXT);
            else if (det)
                assert_reference_prefix(r, c, FAKE_CONTEXT);
            else if (whole && fast_is_exact)
                check_ordinary_exact(r, c);
            t->finished += whole;
        }
    }
}

static void one_world(uint64_t seed, totals *t) {
    fake_device d;
    sf_sched_config cfg;
    sf_sched_stats st;
    int32_t prompt[FAKE_CONTEXT];
    const char *stop[SF_STOP_STRINGS_MAX];
    rng = seed;
    int rows = one_in(3) ? pick(2, 6) : pick(2, 96);
    fake_device_init(&d, one_in(2) ? pick(10, 14) : 200, rows, one_in(3) ? pick(2, rows) : rows);
    d.err_per_mille = one_in(3) ? 0 : pick(0, 300);
    d.base.feeds = one_in(2);
    random_config(&d, &cfg);
    int n = pick(1, MAX_REQUESTS);
    for (int i = 0; i < n; i++) {
        sf_params p;
        int n_prompt = one_in(3) ? pick(1, 90) : pick(1, 20);
        random_params(&p, stop);
        fake_prompt(seed + (uint64_t)pick(0, 2), n_prompt, prompt);
        memset(&w[i], 0, sizeof w[i]);
        w[i].req = fake_request(&p, prompt, n_prompt);
    }
    sf_sched *s = fake_sched(&d, &cfg);
    run_world(s, n, t);
    sf_sched_stats_get(s, &st);
    assert_int_equal(st.pages_free, d.base.n_pages);
    assert_int_equal(st.running + st.waiting, 0);
    t->rollbacks += st.rollbacks;
    t->windows += st.windows_verified;
    t->provenance += st.provenance_tokens;
    t->ride += st.ride_along_rows;
    t->fed += d.n_fed;
    check_answers(n, d.err_per_mille == 0, t);
    sf_sched_destroy(s);
    for (int i = 0; i < n; i++)
        sf_request_destroy(w[i].req);
    fake_device_fini(&d);
}

static void any_mix_gives_the_plain_loop_s_answers(void **state) {
    (void)state;
    totals t = {0};
    for (uint64_t seed = 1; seed <= WORLDS; seed++)
        one_world(seed * 7919u, &t);
    print_message("%d worlds: %lld choices finished, %lld requests cancelled, %lld windows, %lld rollbacks\n",
                  WORLDS, (long long)t.finished, (long long)t.cancelled, (long long)t.windows,
                  (long long)t.rollbacks);
    assert_true(t.rollbacks > WORLDS && t.windows > t.rollbacks);
    assert_true(t.fed > WORLDS);
    assert_true(t.provenance > 0 && t.ride > 0 && t.cancelled > 0 && t.finished > WORLDS);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(any_mix_gives_the_plain_loop_s_answers)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
