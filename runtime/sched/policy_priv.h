/* Which class of pass is due. Nothing here can change a committed bit: only when it is computed. */
#ifndef SF_SCHED_POLICY_PRIV_H
#define SF_SCHED_POLICY_PRIV_H

#include "sched/sched.h"
#include "sched/seq_priv.h"

/* What the running sequences ask for. */
typedef struct sf_demand {
    int det_prefill;      /* deterministic ones still in their prompt */
    int det_decode;       /* deterministic ones past it */
    int ready;            /* of those, with a full window or an ended draft */
    int waited;           /* longest wait of a ready one, in fast passes */
    int prefill_rows;     /* prompt rows outstanding, of all classes (saturating) */
    int ordinary_prefill; /* of those, of ordinary requests */
} sf_demand;

/* Whether the draft is over: the window of W rows is full, or the draft ended. */
bool sf_policy_ready(const sf_seq *q, int window);
void sf_policy_demand(sf_seq *const *run, int n_run, int window, sf_demand *out);
/* Whether ordinary prompts are long enough to keep out of pinned passes. */
bool sf_policy_splits(const sf_sched_config *cfg, const sf_demand *d);
/* PINNED when a pinned pass is due. When it says FAST there is a row that a fast pass can run. fast_run: fast
 * passes since the last pinned one. */
sf_class sf_policy_class(const sf_sched_config *cfg, const sf_demand *d, int fast_run);

#endif
