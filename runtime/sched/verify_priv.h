/* Compare, commit, roll back: the loop's heart (design.md section 3). */
#ifndef SF_SCHED_VERIFY_PRIV_H
#define SF_SCHED_VERIFY_PRIV_H

#include "sched/seq_priv.h"

typedef struct sf_verdict {
    int candidates;  /* outstanding before the pass */
    int accepted;    /* candidates that the pinned rows confirmed */
    int committed;   /* tokens committed */
    int rolled_back; /* candidates discarded; 0: no rollback */
} sf_verdict;

/* Rows a verify segment of q can use: t and its candidates; not the row after a token that ended the draft.
 */
int sf_verify_rows(const sf_seq *q);

/* Takes the pinned rows t, c0, ..., c(rows-2) of a deterministic sequence (rows >= 1; no candidate: the row
 * is committed by provenance). Commits v0..vj, j the first row that differs from its candidate or the last
 * row; rolls back where one differs. Where rows were too few for all candidates and all agree, the rest stays
 * drafted. Errors: SF_DEVICE (a needed row was bad; the message names the position), SF_NOMEM; what was
 * committed before stays. */
SF_CHECKED sf_code sf_verify_apply(sf_seq *q, const sf_rules *rules, const sf_row_out *rows, int n_rows,
                                   sf_verdict *out, sf_err *err);
/* The error of a row whose logits were bad; position: of the token it should have given. */
sf_code sf_bad_row(const sf_seq *q, int position, sf_err *err);

#endif
