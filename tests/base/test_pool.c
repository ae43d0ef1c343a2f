#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/pool.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { PARTS_MAX = 9, STEPS = 200 };

typedef struct job {
    sf_pool *pool;
    int runs[PARTS_MAX], parts;
    int shared[2]
              [PARTS_MAX]; /* written by each part, read by all after the barrier: TSan sees a missing one */
    int wrong[PARTS_MAX];
} job;

static sf_pool *create(int threads) {
    sf_pool *p = NULL;
    sf_err err;
    assert_int_equal(sf_pool_create(threads, &p, &err), SF_OK);
    assert_int_equal(sf_pool_threads(p), threads);
    return p;
}

static void count_part(void *ctx, int part, int parts) {
    job *j = ctx;
    j->runs[part]++;
    if (part == 0) j->parts = parts;
}

static void every_part_runs_once_a_call(void **state) {
    (void)state;
    for (int threads = 1; threads <= PARTS_MAX; threads++) {
        job j = {.pool = create(threads)};
        for (int i = 1; i <= STEPS; i++) {
            sf_pool_run(j.pool, count_part, &j);
            assert_int_equal(j.parts, threads);
            for (int part = 0; part < PARTS_MAX; part++)
                assert_int_equal(j.runs[part], part < threads ? i : 0);
        }
        sf_pool_destroy(j.pool);
    }
}

static void step_part(void *ctx, int part, int parts) {
    job *j = ctx;
    for (int step = 0; step < STEPS; step++) {
        j->shared[step % 2][part] = step * 100 + part;
        sf_pool_barrier(j->pool);
        for (int other = 0; other < parts; other++)
            j->wrong[part] += j->shared[step % 2][other] != step * 100 + other;
    }
}

static void a_barrier_waits_for_every_part(void **state) {
    (void)state;
    for (int threads = 1; threads <= PARTS_MAX; threads += 2) {
        job j = {.pool = create(threads)};
        for (int i = 0; i < 3; i++)
            sf_pool_run(j.pool, step_part, &j);
        for (int part = 0; part < threads; part++)
            assert_int_equal(j.wrong[part], 0);
        sf_pool_destroy(j.pool);
    }
}

/* Longer than workers spin, so that they are woken out of their sleep. */
static void sleeping_workers_wake_up(void **state) {
    (void)state;
    job j = {.pool = create(3)};
    for (int i = 1; i <= 5; i++) {
        const struct timespec pause = {.tv_nsec = 20000000};
        nanosleep(&pause, NULL);
        sf_pool_run(j.pool, count_part, &j);
        assert_int_equal(j.runs[2], i);
    }
    sf_pool_destroy(j.pool);
}

static void late_part(void *ctx, int part, int parts) {
    job *j = ctx;
    const struct timespec pause = {.tv_nsec = 5000000};
    for (int step = 0; step < 4; step++) {
        if (step % parts == part) nanosleep(&pause, NULL);
        j->shared[0][part] = step;
        sf_pool_barrier(j->pool);
        for (int other = 0; other < parts; other++)
            j->wrong[part] += j->shared[0][other] != step;
        sf_pool_barrier(j->pool);
    }
}

static void a_late_part_is_waited_for_asleep(void **state) {
    (void)state;
    job j = {.pool = create(4)};
    sf_pool_run(j.pool, late_part, &j);
    for (int part = 0; part < 4; part++)
        assert_int_equal(j.wrong[part], 0);
    sf_pool_destroy(j.pool);
}

/* The cores of the process's affinity count, not the machine's: here the first of them alone. */
static void more_threads_than_the_affinity_holds_do_not_spin(void **state) {
    (void)state;
    cpu_set_t all, one;
    assert_int_equal(sched_getaffinity(0, sizeof all, &all), 0);
    assert_int_equal(sf_pool_cores(), CPU_COUNT(&all));
    size_t first = 0;
    while (!CPU_ISSET(first, &all))
        first++;
    CPU_ZERO(&one);
    CPU_SET(first, &one);
    assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
    job j = {.pool = create(2)};
    sf_pool *alone = create(1);
    const int cores = sf_pool_cores();
    sf_pool_run(j.pool, step_part, &j);
    assert_int_equal(sched_setaffinity(0, sizeof all, &all), 0);
    assert_int_equal(cores, 1);
    assert_false(sf_pool_spins(j.pool));
    assert_true(sf_pool_spins(alone));
    for (int part = 0; part < 2; part++)
        assert_int_equal(j.wrong[part], 0);
    sf_pool_destroy(j.pool);
    sf_pool_destroy(alone);
}

static void thread_counts_out_of_range_are_refused(void **state) {
    (void)state;
    static const int bad[] = {0, -1, 257};
    for (int i = 0; i < 3; i++) {
        sf_pool *p = NULL;
        sf_err err = {0};
        assert_int_equal(sf_pool_create(bad[i], &p, &err), SF_INVALID);
        assert_non_null(strstr(err.msg, "1..256"));
        assert_null(p);
    }
}

static void destroy_accepts_null_and_an_unused_pool(void **state) {
    (void)state;
    sf_pool_destroy(NULL);
    sf_pool_destroy(create(4));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_part_runs_once_a_call),
        cmocka_unit_test(a_barrier_waits_for_every_part),
        cmocka_unit_test(sleeping_workers_wake_up),
        cmocka_unit_test(a_late_part_is_waited_for_asleep),
        cmocka_unit_test(more_threads_than_the_affinity_holds_do_not_spin),
        cmocka_unit_test(thread_counts_out_of_range_are_refused),
        cmocka_unit_test(destroy_accepts_null_and_an_unused_pool),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
