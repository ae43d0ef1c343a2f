#include "base/pool.h"

#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Turns of a waiting loop before the thread sleeps: about 50 us, a few passes' worth of the time between two
 * operations. With more threads than cores waiting burns the time that the others need. */
#define SPINS 2000

typedef struct worker {
    sf_pool *pool;
    int part;
    pthread_t thread;
} worker;

/* A word that threads wait on until it changes. */
typedef struct gate {
    _Alignas(64) _Atomic uint32_t value;
    _Atomic uint32_t sleepers;
} gate;

struct sf_pool {
    gate start, done, turn; /* a run begins; a run is over; a barrier opens */
    _Alignas(64) _Atomic int busy, arrived;
    _Alignas(64) sf_pool_fn *fn;
    void *ctx;
    int threads, started, spins;
    bool stop;
    worker *workers; /* [threads - 1] */
};

static void pause_cpu(void) {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#endif
}

static void gate_open(gate *g) {
    atomic_fetch_add(&g->value, 1);
    if (atomic_load(&g->sleepers) > 0)
        (void)syscall(SYS_futex, (uint32_t *)&g->value, FUTEX_WAKE_PRIVATE, 1 << 30, NULL, NULL, 0);
}

/* Waits until the word is no longer `seen`. */
static void gate_wait(gate *g, uint32_t seen, int spins) {
    for (int i = 0; i < spins; i++) {
        if (atomic_load_explicit(&g->value, memory_order_acquire) != seen) return;
        pause_cpu();
    }
    /* Counted before the kernel compares the word: an opener either sees the sleeper or the sleeper sees the
     * new value. */
    atomic_fetch_add(&g->sleepers, 1);
    while (atomic_load(&g->value) == seen)
        (void)syscall(SYS_futex, (uint32_t *)&g->value, FUTEX_WAIT_PRIVATE, seen, NULL, NULL, 0);
    atomic_fetch_sub(&g->sleepers, 1);
}

static void *work(void *arg) {
    const worker *w = arg;
    sf_pool *p = w->pool;
    uint32_t seen = 0;
    for (;;) {
        gate_wait(&p->start, seen, p->spins);
        seen++;
        if (p->stop) return NULL;
        p->fn(p->ctx, w->part, p->threads);
        if (atomic_fetch_sub(&p->busy, 1) == 1) gate_open(&p->done);
    }
}

static sf_code start_workers(sf_pool *p, sf_err *err) {
    for (; p->started < p->threads - 1; p->started++) {
        worker *w = p->workers + p->started;
        *w = (worker){.pool = p, .part = p->started + 1};
        const int e = pthread_create(&w->thread, NULL, work, w);
        if (e != 0)
            return SF_FAIL(err, e == EAGAIN ? SF_FULL : SF_IO,
                           "thread %d of %d could not be started (error %d)", p->started + 2, p->threads, e);
    }
    return SF_OK;
}

/* A mask of more than 1,024 processors does not fit cpu_set_t: then all of them count. */
int sf_pool_cores(void) {
    cpu_set_t set;
    const int mine = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 0;
    const long all = mine > 0 ? mine : sysconf(_SC_NPROCESSORS_ONLN);
    return all > 0 ? (int)all : 1;
}

sf_code sf_pool_create(int threads, sf_pool **out, sf_err *err) {
    if (threads < 1 || threads > 256)
        return SF_FAIL(err, SF_INVALID, "threads is %d, expected 1..256", threads);
    sf_pool *p = aligned_alloc(64, (sizeof *p + 63) / 64 * 64);
    if (!p) return SF_FAIL(err, SF_NOMEM, "a thread pool needs %zu bytes", sizeof *p);
    *p = (sf_pool){.threads = threads, .spins = threads > sf_pool_cores() ? 0 : SPINS};
    p->workers = calloc((size_t)threads, sizeof *p->workers);
    sf_code rc = p->workers ? start_workers(p, err)
                            : SF_FAIL(err, SF_NOMEM, "%d threads need %zu bytes", threads,
                                      (size_t)threads * sizeof *p->workers);
    if (rc == SF_OK)
        *out = p;
    else
        sf_pool_destroy(p);
    return rc;
}

void sf_pool_destroy(sf_pool *p) {
    if (!p) return;
    p->stop = true;
    gate_open(&p->start);
    for (int i = 0; i < p->started; i++)
        (void)pthread_join(p->workers[i].thread, NULL);
    free(p->workers);
    free(p);
}

int sf_pool_threads(const sf_pool *p) {
    return p->threads;
}

bool sf_pool_spins(const sf_pool *p) {
    return p->spins > 0;
}

void sf_pool_run(sf_pool *p, sf_pool_fn *fn, void *ctx) {
    if (p->threads == 1) {
        fn(ctx, 0, 1);
        return;
    }
    const uint32_t seen = atomic_load(&p->done.value);
    p->fn = fn;
    p->ctx = ctx;
    atomic_store(&p->busy, p->threads - 1);
    gate_open(&p->start);
    fn(ctx, 0, p->threads);
    gate_wait(&p->done, seen, p->spins);
}

void sf_pool_barrier(sf_pool *p) {
    if (p->threads == 1) return;
    const uint32_t seen = atomic_load(&p->turn.value);
    if (atomic_fetch_add(&p->arrived, 1) == p->threads - 1) {
        atomic_store(&p->arrived, 0);
        gate_open(&p->turn);
    } else {
        gate_wait(&p->turn, seen, p->spins);
    }
}
