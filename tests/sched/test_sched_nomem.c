/* The n-th allocation fails, for every n: at most the request that met it ends, with SF_NOMEM. */
#include "sched/fake.h"

#include <stdarg.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t n);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t n);

static long countdown = -1; /* -1: off; the allocation that finds 0 fails */
static bool met;

static bool fails(void) {
    if (countdown < 0) return false;
    if (countdown-- > 0) return false;
    met = true;
    return true;
}

void *__wrap_malloc(size_t n) {
    return fails() ? NULL : __real_malloc(n);
}
void *__wrap_calloc(size_t n, size_t size) {
    return fails() ? NULL : __real_calloc(n, size);
}
void *__wrap_realloc(void *p, size_t n) {
    return fails() ? NULL : __real_realloc(p, n);
}

enum { REQUESTS = 3 };

static sf_code create(int i, sf_request **out, sf_err *err) {
    int32_t prompt[40];
    sf_params p;
    sf_params_default(&p);
    p.deterministic = i != 1;
    p.seed = i;
    p.n = i == 2 ? 2 : 1;
    p.max_tokens = 60;
    p.ignore_eos = true;
    p.prompt_logprobs = 1;
    p.n_stop = 2;
    p.stop = (const char *const[]){"xyxy", "abca"};
    p.n_stop_ids = 1;
    p.stop_ids = (int32_t[]){39};
    p.n_bias = 1;
    p.bias = (sf_bias[]){{3, 1.0f}};
    fake_prompt((uint64_t)i, 40, prompt);
    return sf_request_create(&p, prompt, 20 + i, out, err);
}

/* One request goes through whole on what is left after the failure. */
static void probe(sf_sched *s) {
    sf_request *r = NULL;
    sf_err err;
    bool busy = true;
    assert_int_equal(create(0, &r, &err), SF_OK);
    assert_int_equal(sf_sched_submit(s, r, &err), SF_OK);
    while (busy)
        assert_int_equal(sf_sched_step(s, &busy, &err), SF_OK);
    assert_reference(r, 0, FAKE_CONTEXT);
    sf_request_destroy(r);
}

static int count_errors(sf_request *const *r, int n) {
    int errors = 0;
    for (int i = 0; i < n; i++) {
        if (!r[i]) continue;
        assert_true(sf_request_done(r[i]));
        const sf_err *e = sf_request_error(r[i]);
        errors += e != NULL;
        if (e) assert_int_equal(e->code, SF_NOMEM);
        for (int c = 0; c < sf_request_params(r[i])->n && i != 1; c++) {
            if (e)
                assert_reference_prefix(r[i], c, FAKE_CONTEXT);
            else
                assert_reference(r[i], c, FAKE_CONTEXT);
        }
    }
    return errors;
}

/* Returns false when the run made fewer than n + 1 allocations. */
static bool run_with_failure(long n) {
    fake_device d;
    sf_sched_config cfg;
    sf_sched *s = NULL;
    sf_request *r[REQUESTS] = {0};
    sf_err err;
    int refused = 0;
    fake_device_init(&d, 40, 24, 24);
    d.err_per_mille = 100;
    fake_config(&d, &cfg);
    met = false;
    countdown = n;
    sf_code rc = sf_sched_create(&d.base, fake_tokenizer(), &cfg, &s, &err);
    if (rc == SF_OK) {
        bool busy = true;
        for (int i = 0; i < REQUESTS; i++) {
            rc = create(i, &r[i], &err);
            refused += rc != SF_OK;
            if (rc != SF_OK)
                assert_int_equal(rc, SF_NOMEM);
            else
                assert_int_equal(sf_sched_submit(s, r[i], &err), SF_OK);
        }
        while (busy)
            assert_int_equal(sf_sched_step(s, &busy, &err), SF_OK);
        countdown = -1;
        assert_int_equal(refused + count_errors(r, REQUESTS), met);
        probe(s);
        sf_sched_stats st;
        sf_sched_stats_get(s, &st);
        assert_int_equal(st.pages_free, 40);
    } else {
        countdown = -1;
        assert_true(met);
        assert_int_equal(rc, SF_NOMEM);
        assert_null(s);
    }
    sf_sched_destroy(s);
    for (int i = 0; i < REQUESTS; i++)
        sf_request_destroy(r[i]);
    fake_device_fini(&d);
    return met;
}

static void the_nth_allocation_failing_ends_at_most_one_request(void **state) {
    (void)state;
    long n = 0;
    while (run_with_failure(n))
        n++;
    print_message("%ld allocations, each failed once\n", n);
    assert_true(n > 40);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_nth_allocation_failing_ends_at_most_one_request)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
