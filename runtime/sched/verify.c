#include "sched/verify_priv.h"

int sf_verify_rows(const sf_seq *q) {
    int n = sf_seq_candidates(q);
    return q->draft.finish != SF_FINISH_NONE && n > 0 ? n : n + 1;
}

sf_code sf_bad_row(const sf_seq *q, int position, sf_err *err) {
    return SF_FAIL(err, SF_DEVICE, "choice %d: the logits for position %d are not finite", q->index,
                   position);
}

sf_code sf_verify_apply(sf_seq *q, const sf_rules *rules, const sf_row_out *rows, int n_rows, sf_verdict *out,
                        sf_err *err) {
    int base = q->committed.n_tokens;
    sf_verdict v = {.candidates = sf_seq_candidates(q)};
    sf_code rc = SF_OK;
    bool differs = false;
    for (int i = 0; i < n_rows && !differs && q->committed.finish == SF_FINISH_NONE; i++) {
        if (rows[i].bad) {
            rc = sf_bad_row(q, q->req->n_prompt + base + i, err);
            break;
        }
        bool drafted = i < v.candidates;
        differs = drafted && q->ids[base + i] != rows[i].token;
        rc = sf_seq_commit(q, rules, &rows[i], err);
        if (rc != SF_OK) break;
        q->committed.kv_len++;
        v.committed++;
        v.accepted += drafted && !differs;
    }
    if (differs) v.rolled_back = v.candidates - v.accepted;
    bool over = differs || rc != SF_OK || q->committed.finish != SF_FINISH_NONE;
    if (over || sf_seq_candidates(q) <= 0) q->draft = q->committed; /* the rollback, whole */
    *out = v;
    return rc;
}
