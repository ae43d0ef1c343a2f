/* The whole tiny model on the device against its forward pass in straight fp32 loops. */
#include "tiny.h"

static const sf_plan *const plan = &sf_the_plan;

static void log_probabilities_are_near_the_reference(void **state) {
    const tiny *t = *state;
    static tiny_result got;
    float *lp = calloc((size_t)plan->model.vocab, sizeof *lp);
    assert_non_null(lp);
    for (int cls = 0; cls < SF_CLASS_COUNT; cls++) {
        sf_device *d = tiny_open(t, "auto", 2);
        double sum = 0, worst = 0;
        int n = 0;
        tiny_feed(d, t, (sf_class)cls, 0, 60, 23, &got);
        for (int p = 0; p < 60; p += 7) {
            tiny_reference(t, p + 1, lp);
            for (int i = 0; i < got.row[p].n_top; i++, n++) {
                const double error =
                    fabs((double)got.row[p].top_logprob[i] - (double)lp[got.row[p].top_id[i]]);
                sum += error;
                worst = fmax(worst, error);
            }
        }
        print_message("%s: mean error %.4f, worst %.4f\n", cls == SF_CLASS_PINNED ? "pinned" : "fast",
                      sum / n, worst);
        assert_true(sum / n < 0.02 && worst < 0.1);
        tiny_close(d);
    }
    free(lp);
}

static void a_greedy_token_is_the_top_one(void **state) {
    const tiny *t = *state;
    static tiny_result got;
    sf_device *d = tiny_open(t, "auto", 1);
    tiny_feed(d, t, SF_CLASS_PINNED, 0, 30, 30, &got);
    for (int p = 0; p < 30; p += 3) { /* every third row is greedy */
        assert_int_equal(got.row[p].token, got.row[p].top_id[0]);
        assert_true(got.row[p].logprob == got.row[p].top_logprob[0]);
        assert_int_equal(got.row[p].rank, 1);
    }
    tiny_close(d);
}

static void a_pass_without_logits_writes_kv(void **state) {
    const tiny *t = *state;
    sf_device *d = tiny_open(t, "auto", 2), *e = tiny_open(t, "auto", 2);
    static tiny_result x, y;
    sf_err err;
    const sf_segment seg = {.rows = 20, .pages = t->pages};
    const sf_pass pass = {.cls = SF_CLASS_PINNED,
                          .rows = 20,
                          .tokens = t->tokens,
                          .n_segs = 1,
                          .segs = &seg,
                          .n_fresh = 16,
                          .fresh = t->pages};
    assert_int_equal(d->ops->launch(d, &pass, &err), SF_OK);
    double us = -1;
    assert_int_equal(d->ops->sync(d, &us, &err), SF_OK);
    assert_true(us > 0);
    tiny_feed(e, t, SF_CLASS_PINNED, 0, 30, 30, &x);
    tiny_feed(d, t, SF_CLASS_PINNED, 20, 30, 10, &y);
    assert_true(tiny_same(d, e, t, &x, &y, 20, 30));
    tiny_close(d);
    tiny_close(e);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(log_probabilities_are_near_the_reference),
        cmocka_unit_test(a_greedy_token_is_the_top_one),
        cmocka_unit_test(a_pass_without_logits_writes_kv),
    };
    return cmocka_run_group_tests(tests, tiny_setup, tiny_teardown);
}
