/* The scheduler's own state, shared by queue.c (submission, admission, endings) and sched.c (the step). */
#ifndef SF_SCHED_SCHED_PRIV_H
#define SF_SCHED_SCHED_PRIV_H

#include "sched/batch_priv.h"

#include <pthread.h>

struct sf_sched {
    /* fixed after create */
    sf_device *dev;
    sf_rules rules;
    sf_sched_config cfg;

    /* the step's thread only */
    sf_kv kv;
    sf_batch batches[2]; /* a device that feeds has the next pass in flight beside the current one */
    int current;         /* the batch of the pass to be applied next */
    int in_flight;       /* passes launched and not yet applied: batches[current], then the other */
    bool blocked;        /* the last admission left the head of the queue waiting for pages or a slot */
    sf_seq **run;        /* [cfg.max_seqs], the first n_run count, ascending serial */
    int n_run;
    int fast_run; /* fast passes planned since the last pinned one */
    uint64_t serial;
    sf_sched_stats stats;

    atomic_bool cancelled; /* a request was cancelled since the last look at the queue */

    pthread_mutex_t lock;    /* guards what follows */
    sf_request *head, *tail; /* the queue; the head may be admitted in part */
    int n_queue;             /* requests */
    int n_waiting;           /* their choices not yet admitted */
    bool failed;             /* the device is gone; failure says why */
    sf_err failure;
    sf_sched_stats published;
};

/* Ends what was cancelled or has failed, in the queue and running, and frees the pages of all that finished.
 */
void sf_sched_reap(sf_sched *s);
/* Admits choices from the queue, first come first served, while a slot and the pages of its worst case are
 * free. */
void sf_sched_admit(sf_sched *s);
/* The device failed: every request ends with this error, and no further one is taken. */
void sf_sched_fail_all(sf_sched *s, const sf_err *err);
/* Shows the step's counters to other threads. Returns whether anything is left to do. */
bool sf_sched_publish(sf_sched *s);

#endif
