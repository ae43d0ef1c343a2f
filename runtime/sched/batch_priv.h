/* Sequences -> segments -> one pass: who gets how many rows, and the pass's tables. */
#ifndef SF_SCHED_BATCH_PRIV_H
#define SF_SCHED_BATCH_PRIV_H

#include "sched/kv_priv.h"
#include "sched/policy_priv.h"

/* Whose segment i of the pass is, and which logit rows it has. */
typedef struct sf_entry {
    sf_seq *seq;
    int first_logit, n_logits;
} sf_entry;

typedef struct sf_batch {
    int max_rows, max_logits;
    sf_pass pass;         /* points into what follows */
    sf_entry *entries;    /* [max_rows], one per segment */
    int32_t *tokens;      /* [max_rows] */
    sf_segment *segs;     /* [max_rows] */
    int32_t *fresh;       /* [max_rows]: a row takes one page at most */
    int32_t *logit_row;   /* [max_logits] */
    sf_sample *samples;   /* [max_logits] */
    sf_row_out *out;      /* [max_logits] */
    uint64_t turn;        /* serial of the last sequence given a decode row: the next pass begins after it */
    uint64_t window_turn; /* likewise, given the rows of its ready window */
} sf_batch;

SF_CHECKED sf_code sf_batch_init(sf_batch *b, int max_rows, int max_logits, sf_err *err);
void sf_batch_fini(sf_batch *b);

/* Plans a pass of class cls over the running sequences (ascending serial): decode rows first, then windows,
 * then prompts in order of admission. pass.rows is 0 when nothing could be placed. A sequence for which
 * memory ran out fails (sf_request_fail) and is left out. */
void sf_batch_plan(sf_batch *b, sf_class cls, const sf_sched_config *cfg, const sf_demand *d,
                   sf_seq *const *run, int n_run, sf_kv *kv, int vocab);

/* Plans the pass after b, which is in flight, as if each of its rows went on by one token: the tokens are the
 * device's to feed. Only where that is the pass that sf_batch_plan would make too, bar endings that the draws
 * decide: every running sequence has one decode row in b, none is to be verified next or has reached its last
 * token, and no row is sampled by its history. Returns false otherwise, or when memory ran out; then there is
 * no such pass. */
bool sf_batch_follow(sf_batch *next, const sf_batch *b, const sf_sched_config *cfg, int n_run, sf_kv *kv);

#endif
