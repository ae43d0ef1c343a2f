#include "sched/policy_priv.h"

#include <stdarg.h>
#include <setjmp.h>
#include <cmocka.h>

static sf_sched_config config(sf_policy policy, int group, int wait) {
    return (sf_sched_config){.policy = policy, .verify_group = group, .verify_wait = wait};
}

static sf_class due(const sf_sched_config *c, int det_decode, int ready, int waited) {
    return sf_policy_class(c, &(sf_demand){.det_decode = det_decode, .ready = ready, .waited = waited}, 0);
}

static void ordinary_requests_alone_never_pay_for_determinism(void **state) {
    (void)state;
    sf_sched_config verify = config(SF_POLICY_VERIFY, 0, 0), pin = config(SF_POLICY_PIN, 0, 0);
    assert_int_equal(due(&verify, 0, 0, 0), SF_CLASS_FAST);
    assert_int_equal(due(&pin, 0, 0, 0), SF_CLASS_FAST);
    assert_int_equal(sf_policy_class(&pin, &(sf_demand){.prefill_rows = 100}, 0), SF_CLASS_FAST);
}

static void a_deterministic_prompt_is_always_pinned(void **state) {
    (void)state;
    sf_sched_config c = config(SF_POLICY_VERIFY, 0, 1000);
    assert_int_equal(sf_policy_class(&c, &(sf_demand){.det_prefill = 1}, 0), SF_CLASS_PINNED);
}

static void pin_never_drafts(void **state) {
    (void)state;
    sf_sched_config c = config(SF_POLICY_PIN, 0, 1000);
    assert_int_equal(due(&c, 3, 0, 0), SF_CLASS_PINNED);
}

static void nobody_waits_when_nobody_else_is_drafting(void **state) {
    (void)state;
    sf_sched_config c = config(SF_POLICY_VERIFY, 8, 1000);
    assert_int_equal(due(&c, 1, 1, 0), SF_CLASS_PINNED);
    assert_int_equal(due(&c, 3, 3, 0), SF_CLASS_PINNED);
    assert_int_equal(due(&c, 3, 2, 0), SF_CLASS_FAST);
}

static void a_group_starts_at_once(void **state) {
    (void)state;
    sf_sched_config c = config(SF_POLICY_VERIFY, 2, 1000);
    assert_int_equal(due(&c, 5, 1, 0), SF_CLASS_FAST);
    assert_int_equal(due(&c, 5, 2, 0), SF_CLASS_PINNED);
}

static void the_wait_is_bounded(void **state) {
    (void)state;
    sf_sched_config c = config(SF_POLICY_VERIFY, 0, 3);
    assert_int_equal(due(&c, 5, 1, 2), SF_CLASS_FAST);
    assert_int_equal(due(&c, 5, 1, 3), SF_CLASS_PINNED);
    sf_sched_config none = config(SF_POLICY_VERIFY, 0, 0);
    assert_int_equal(due(&none, 5, 1, 0), SF_CLASS_PINNED);
    assert_int_equal(due(&none, 5, 0, 0), SF_CLASS_FAST);
}

static void long_ordinary_prompts_have_fast_passes_of_their_own(void **state) {
    (void)state;
    sf_sched_config pin = config(SF_POLICY_PIN, 0, 3), eager = config(SF_POLICY_PIN, 0, 0),
                    verify = config(SF_POLICY_VERIFY, 0, 3);
    pin.prefill_split = eager.prefill_split = verify.prefill_split = 10;
    sf_demand answers = {.det_decode = 2, .prefill_rows = 10, .ordinary_prefill = 10};
    assert_int_equal(sf_policy_class(&pin, &answers, 2), SF_CLASS_FAST);
    assert_int_equal(sf_policy_class(&pin, &answers, 3), SF_CLASS_PINNED);
    assert_int_equal(sf_policy_class(&eager, &answers, 0), SF_CLASS_FAST);
    assert_int_equal(sf_policy_class(&eager, &answers, 1), SF_CLASS_PINNED);
    assert_int_equal(sf_policy_class(&verify, &answers, 9), SF_CLASS_FAST); /* no window is full */
    answers.ready = 2;
    assert_int_equal(sf_policy_class(&verify, &answers, 0), SF_CLASS_PINNED);
    sf_demand prompt = {.det_prefill = 1, .prefill_rows = 15, .ordinary_prefill = 10};
    assert_int_equal(sf_policy_class(&pin, &prompt, 0), SF_CLASS_FAST);
    assert_int_equal(sf_policy_class(&pin, &prompt, 1), SF_CLASS_PINNED);
    assert_int_equal(sf_policy_class(&verify, &prompt, 0), SF_CLASS_FAST);
    assert_int_equal(sf_policy_class(&verify, &prompt, 1), SF_CLASS_PINNED);
    answers.ordinary_prefill = prompt.ordinary_prefill = 9;
    assert_int_equal(sf_policy_class(&pin, &answers, 0), SF_CLASS_PINNED);
    assert_int_equal(sf_policy_class(&pin, &prompt, 0), SF_CLASS_PINNED);
}

static void a_draft_is_ready_when_full_ended_or_dead(void **state) {
    (void)state;
    sf_request r = {.params.deterministic = true};
    sf_seq q = {.req = &r, .n_prefill = 4};
    q.committed.kv_len = q.draft.kv_len = 4;
    q.committed.n_tokens = q.draft.n_tokens = 1;
    assert_false(sf_policy_ready(&q, 4));
    q.draft.n_tokens = 3;
    assert_false(sf_policy_ready(&q, 4));
    q.draft.n_tokens = 4;
    assert_true(sf_policy_ready(&q, 4));
    q.draft.n_tokens = 2;
    q.draft.finish = SF_FINISH_STOP;
    assert_true(sf_policy_ready(&q, 4));
    q.draft = q.committed;
    q.draft.dead = true;
    assert_true(sf_policy_ready(&q, 4));
    r.params.deterministic = false;
    assert_false(sf_policy_ready(&q, 4));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ordinary_requests_alone_never_pay_for_determinism),
        cmocka_unit_test(a_deterministic_prompt_is_always_pinned),
        cmocka_unit_test(pin_never_drafts),
        cmocka_unit_test(nobody_waits_when_nobody_else_is_drafting),
        cmocka_unit_test(a_group_starts_at_once),
        cmocka_unit_test(the_wait_is_bounded),
        cmocka_unit_test(long_ordinary_prompts_have_fast_passes_of_their_own),
        cmocka_unit_test(a_draft_is_ready_when_full_ended_or_dead),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
