/* Replaying a given answer: its tokens stand where drafted ones would, so that pinned passes of many rows say
 * what the engine would have answered, up to the first token where that is something else. */
#include "sched/seq_priv.h"

#include <stdlib.h>
#include <string.h>

sf_code sf_request_expect(sf_request *r, int choice, const int32_t *ids, int n, sf_err *err) {
    if (choice < 0 || choice >= r->params.n)
        return SF_FAIL(err, SF_INVALID, "choice is %d, expected 0..%d", choice, r->params.n - 1);
    if (!r->params.deterministic)
        return SF_FAIL(err, SF_INVALID, "an answer can be expected of a deterministic request only");
    int32_t *copy = malloc((size_t)n * sizeof *copy + 1);
    if (!copy) return SF_FAIL(err, SF_NOMEM, "no memory for %d expected tokens", n);
    if (n > 0) memcpy(copy, ids, (size_t)n * sizeof *copy);
    sf_seq *q = &r->seqs[choice];
    free(q->expected);
    q->expected = copy;
    q->n_expected = n;
    return SF_OK;
}

sf_code sf_replay_draft(sf_seq *q, const sf_rules *rules, sf_err *err) {
    if (sf_seq_prefilling(q) || sf_seq_candidates(q) > 0) return SF_OK;
    SF_TRY(sf_seq_reserve(q, q->n_expected + 1, err));
    while (q->draft.n_tokens < q->n_expected && q->draft.finish == SF_FINISH_NONE)
        sf_seq_draft(q, rules, q->expected[q->draft.n_tokens]);
    return SF_OK;
}

void sf_replay_compare(sf_seq *q, int from) {
    for (int i = from; i < q->committed.n_tokens; i++)
        if (i >= q->n_expected || q->tokens[i].id != q->expected[i]) {
            sf_seq_finish(q, SF_FINISH_CANCELLED);
            return;
        }
}
