/* The thread that drives the device: it steps the scheduler while there is work, and hands what has been
 * committed to the thread that serves HTTP. Neither ever waits for the other's input or output. */
#ifndef SF_SERVE_DRIVER_H
#define SF_SERVE_DRIVER_H

#include "base/buf.h"
#include "engine/engine.h"
#include "serve/metrics.h"

/* What a choice has committed since it was last taken. */
typedef struct sf_news {
    sf_token *tokens; /* [n_tokens] */
    int n_tokens, cap;
    sf_buf text;
    sf_finish finish;
} sf_news;

/* One request in the scheduler. Created, taken from and destroyed by the HTTP thread. */
typedef struct sf_job {
    sf_request *req; /* owned; the scheduler's until done was taken */
    void *owner;     /* the HTTP thread's own */
    bool stream;     /* whether news are kept as they come, or only the end is told */
    bool cancelled;  /* by sf_driver_cancel */
    double submitted_s, admitted_s, first_s, last_s; /* sf_now_s; 0: not yet. Stable once done */
    /* the driver's */
    struct sf_job *next;
    struct {
        int tokens;
        size_t text;
        bool end;
    } * seen; /* [n] */
    /* both threads', under the driver's lock */
    sf_news *news; /* [n] */
    sf_request_stats stats;
    struct sf_job *next_ready;
    bool ready, done, out_of_memory;
} sf_job;

typedef struct sf_driver sf_driver;

/* wake is called by the driver's thread when jobs are ready to be taken; it must not block. */
SF_CHECKED sf_code sf_driver_create(sf_engine *e, sf_metrics *m, void (*wake)(void *ctx), void *ctx,
                                    sf_driver **out, sf_err *err);
void sf_driver_destroy(sf_driver *d); /* after sf_driver_run has returned */

/* Steps until sf_driver_stop. Thread: the one that opened the engine. An error is the device's: every
 * request has ended with it, and its job is ready. */
SF_CHECKED sf_code sf_driver_run(sf_driver *d, sf_err *err);
void sf_driver_stop(sf_driver *d); /* any thread; what still runs is cancelled first */

/* Takes req, also on failure. Errors: SF_NOMEM. */
SF_CHECKED sf_code sf_job_create(sf_request *req, bool stream, void *owner, sf_job **out, sf_err *err);
void sf_job_destroy(sf_job *j); /* never submitted, or taken as done */

/* All of jobs [n] or, on error, none. Errors are sf_sched_submit_all's and SF_NOMEM; the jobs stay the
 * caller's, and may be submitted again. */
SF_CHECKED sf_code sf_driver_submit(sf_driver *d, sf_job *const *jobs, int n, sf_err *err);
void sf_driver_cancel(sf_driver *d, sf_job *j); /* it becomes done soon */

/* The job that has waited longest with news, once; NULL: none has any. done: it has ended, it does not come
 * again, and req is the caller's to read. */
sf_job *sf_driver_ready(sf_driver *d, bool *done);
/* Moves the news of all choices to out [n], with the request's counters at that point; done as above. The end
 * of the last choice comes with done. */
void sf_driver_take(sf_driver *d, sf_job *j, sf_news *out, sf_request_stats *stats, bool *done);
void sf_news_fini(sf_news *n);

#endif
