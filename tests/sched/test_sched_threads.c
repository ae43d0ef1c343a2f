/* Submission, cancellation and counters from other threads while one steps. Meant for ThreadSanitizer too. */
#include "sched/fake.h"

#include <pthread.h>
#include <stdarg.h>
#include <setjmp.h>
#include <cmocka.h>
#include <sched.h>
#include <stdlib.h>

enum { CLIENTS = 3, EACH = 60 };

typedef struct world {
    sf_sched *s;
    pthread_mutex_t lock;
    sf_request *live[CLIENTS * EACH]; /* NULL: not submitted, or done and taken back */
    int n_done, n_asked;              /* done; asked to cancel while alive */
} world;

typedef struct client {
    world *w;
    int index;
} client;

static void *client_main(void *arg) {
    client *c = arg;
    uint64_t rng = (uint64_t)c->index + 1;
    for (int i = 0; i < EACH; i++) {
        int32_t prompt[24];
        sf_params p;
        sf_err err;
        sf_sched_stats st;
        rng = fake_mix(rng);
        sf_params_default(&p);
        p.deterministic = rng % 3 != 0;
        p.max_tokens = 1 + (int)(rng % 30);
        p.seed = (int64_t)rng;
        fake_prompt(rng, 24, prompt);
        sf_request *r = fake_request(&p, prompt, 1 + (int)(rng >> 8 & 0xff) % 24);
        pthread_mutex_lock(&c->w->lock); /* so that a request seen here is alive */
        while (sf_sched_submit(c->w->s, r, &err) == SF_FULL) {
            pthread_mutex_unlock(&c->w->lock);
            sched_yield();
            pthread_mutex_lock(&c->w->lock);
        }
        c->w->live[c->index * EACH + i] = r;
        sf_request *victim = c->w->live[c->index * EACH + (int)(rng >> 16 & 0xffff) % (i + 1)];
        if (victim && rng % 5 == 0) {
            sf_sched_cancel(c->w->s, victim);
            c->w->n_asked++;
        }
        pthread_mutex_unlock(&c->w->lock);
        sf_sched_stats_get(c->w->s, &st);
        if (rng % 4 == 0) sched_yield();
    }
    return NULL;
}

static void take_back(world *w) {
    pthread_mutex_lock(&w->lock);
    for (int i = 0; i < CLIENTS * EACH; i++) {
        sf_request *r = w->live[i];
        if (!r || !sf_request_done(r)) continue;
        sf_choice c;
        sf_request_choice(r, 0, &c);
        if (c.finish != SF_FINISH_CANCELLED && sf_request_params(r)->deterministic)
            assert_reference(r, 0, FAKE_CONTEXT);
        w->n_done++;
        w->live[i] = NULL;
        sf_request_destroy(r);
    }
    pthread_mutex_unlock(&w->lock);
}

static void clients_may_submit_and_cancel_while_one_thread_steps(void **state) {
    (void)state;
    fake_device d;
    sf_sched_config cfg;
    sf_err err;
    static world w;
    pthread_t threads[CLIENTS];
    client clients[CLIENTS];
    fake_device_init(&d, 40, 32, 32);
    d.err_per_mille = 100;
    fake_config(&d, &cfg);
    cfg.max_queue = 8;
    w.s = fake_sched(&d, &cfg);
    pthread_mutex_init(&w.lock, NULL);
    for (int i = 0; i < CLIENTS; i++) {
        clients[i] = (client){&w, i};
        assert_int_equal(pthread_create(&threads[i], NULL, client_main, &clients[i]), 0);
    }
    while (w.n_done < CLIENTS * EACH) {
        bool busy;
        assert_int_equal(sf_sched_step(w.s, &busy, &err), SF_OK);
        take_back(&w);
        if (!busy) sched_yield();
    }
    for (int i = 0; i < CLIENTS; i++)
        pthread_join(threads[i], NULL);
    sf_sched_stats st;
    sf_sched_stats_get(w.s, &st);
    assert_int_equal(st.pages_free, 40);
    assert_true(st.rollbacks > 0);
    assert_true(w.n_asked > 0);
    sf_sched_destroy(w.s);
    pthread_mutex_destroy(&w.lock);
    fake_device_fini(&d);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(clients_may_submit_and_cancel_while_one_thread_steps)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
