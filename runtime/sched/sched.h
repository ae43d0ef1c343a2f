/* The scheduler: requests, KV pages, continuous batching, and the verify-rollback loop over a device. */
#ifndef SF_SCHED_SCHED_H
#define SF_SCHED_SCHED_H

#include "device/device.h"
#include "model/tokenizer.h"
#include "sched/request.h"

typedef struct sf_sched sf_sched;

typedef enum sf_policy { SF_POLICY_VERIFY, SF_POLICY_PIN } sf_policy;

typedef struct sf_sched_config {
    sf_policy policy;
    int window;        /* W, 2..64: rows of a verify segment; <= max_rows and plan->max_logit_rows */
    int verify_group;  /* full windows that start a verify pass at once; 0: as many as there are drafting
                          choices */
    int verify_wait;   /* fast passes that a full window (or an ended choice) waits for the group, 0..1000 */
    int max_seqs;      /* choices running at once */
    int max_queue;     /* requests waiting; submit says SF_FULL beyond */
    int max_rows;      /* rows of a pass, <= plan->max_rows */
    int prefill_chunk; /* rows of prefill in one pass */
    int prefill_split; /* where this many rows of ordinary prompts wait or more, they go through fast passes
                          between the pinned ones, and ride in none; 0: never */
    int max_context;   /* positions per choice, <= plan->max_context */
    const char
        *refuse_deterministic; /* NULL, or why deterministic requests must be refused (selftest failed) */
    int inject_offset; /* debugging, -1: off. Before each verify of a window that has a candidate at this
                          index, that candidate is replaced by another token, as if the draft had erred */
} sf_sched_config;

void sf_sched_config_default(const sf_plan *plan, sf_sched_config *out);

typedef struct sf_sched_stats {
    int64_t passes[SF_CLASS_COUNT], rows[SF_CLASS_COUNT];
    double us[SF_CLASS_COUNT];
    int64_t verify_passes, verify_rows, windows_verified, rollbacks, tokens_rolled_back;
    int64_t drafted, drafts_accepted, ride_along_rows, provenance_tokens;
    int64_t prompt_tokens, committed_tokens; /* committed: of deterministic choices; */
    int64_t ordinary_tokens;                 /* of ordinary ones */
    int running, waiting;                    /* choices */
    int pages_free, pages_total;
} sf_sched_stats;

/* Device and tokenizer are borrowed. tokenizer gives the pieces for text and stop strings; eos ids are the
 * plan's. Errors: SF_INVALID names the field of cfg that is out of range, and the range; SF_NOMEM. */
SF_CHECKED sf_code sf_sched_create(sf_device *d, const sf_tokenizer *t, const sf_sched_config *cfg,
                                   sf_sched **out, sf_err *err);
void sf_sched_destroy(sf_sched *s); /* unfinished requests end as cancelled */

/* Queues r (borrowed until it is done). Any thread. Errors, r untouched: SF_FULL (queue), SF_INVALID (empty
 * prompt; a token, stop or bias id outside the vocabulary; prompt + 1 (with max_tokens 0: the
 * prompt) over the context, naming both counts;
 * more pages than the pool has), SF_NONDET (deterministic service is refused; says why). */
SF_CHECKED sf_code sf_sched_submit(sf_sched *s, sf_request *r, sf_err *err);
/* The same for all [n], each another one: all are queued, or on error none. */
SF_CHECKED sf_code sf_sched_submit_all(sf_sched *s, sf_request *const *all, int n, sf_err *err);
/* Asks for r to end; its slot and pages are free after the next step. Any thread. */
void sf_sched_cancel(sf_sched *s, sf_request *r);

/* Runs one pass, commits, rolls back. busy: false when nothing is left to do. The one scheduler thread. An
 * error of a single request ends that request; an error return means that the device failed: every running
 * request has ended with that error. Reads of a submitted request (sf_request_*) belong to this thread,
 * between steps. */
SF_CHECKED sf_code sf_sched_step(sf_sched *s, bool *busy, sf_err *err);
void sf_sched_stats_get(sf_sched *s, sf_sched_stats *out); /* any thread */

#endif
