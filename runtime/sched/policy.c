#include "sched/policy_priv.h"

#include <limits.h>

bool sf_policy_ready(const sf_seq *q, int window) {
    if (!q->req->params.deterministic || sf_seq_prefilling(q)) return false;
    if (q->expected) return true; /* its draft is given */
    return sf_seq_candidates(q) >= window - 1 || q->draft.finish != SF_FINISH_NONE || q->draft.dead;
}

static int add_rows(int a, int b) {
    return a > INT_MAX - b ? INT_MAX : a + b;
}

void sf_policy_demand(sf_seq *const *run, int n_run, int window, sf_demand *out) {
    *out = (sf_demand){0};
    for (int i = 0; i < n_run; i++) {
        const sf_seq *q = run[i];
        bool det = q->req->params.deterministic;
        if (sf_seq_prefilling(q)) {
            int rows = q->n_prefill - q->committed.kv_len;
            out->prefill_rows = add_rows(out->prefill_rows, rows);
            if (!det) out->ordinary_prefill = add_rows(out->ordinary_prefill, rows);
            out->det_prefill += det;
            continue;
        }
        out->det_decode += det;
        if (sf_policy_ready(q, window)) {
            out->ready++;
            if (q->waited > out->waited) out->waited = q->waited;
        }
    }
}

bool sf_policy_splits(const sf_sched_config *cfg, const sf_demand *d) {
    return cfg->prefill_split > 0 && d->ordinary_prefill >= cfg->prefill_split;
}

/* Fast passes in a row while ordinary prompts are kept apart: one, where a deterministic prompt waits; as
 * many as a full window would wait for others, where only answers do, which draft meanwhile. */
static int fast_turns(const sf_sched_config *cfg, const sf_demand *d) {
    if (d->det_prefill > 0) return 1;
    if (cfg->policy == SF_POLICY_VERIFY) return 0; /* what follows decides */
    return cfg->verify_wait > 1 ? cfg->verify_wait : 1;
}

sf_class sf_policy_class(const sf_sched_config *cfg, const sf_demand *d, int fast_run) {
    if (sf_policy_splits(cfg, d) && fast_run < fast_turns(cfg, d)) return SF_CLASS_FAST;
    if (d->det_prefill > 0) return SF_CLASS_PINNED;
    if (d->det_decode == 0) return SF_CLASS_FAST;
    if (cfg->policy == SF_POLICY_PIN) return SF_CLASS_PINNED;
    if (d->ready == 0) return SF_CLASS_FAST;
    /* Where all who draft are ready there is nobody to wait for, whatever the group asked. */
    int group = cfg->verify_group;
    if (group == 0 || group > d->det_decode) group = d->det_decode;
    return d->ready >= group || d->waited >= cfg->verify_wait ? SF_CLASS_PINNED : SF_CLASS_FAST;
}
