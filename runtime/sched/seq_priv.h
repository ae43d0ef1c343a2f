/* A sequence: one choice of a request on its way through the scheduler. */
#ifndef SF_SCHED_SEQ_PRIV_H
#define SF_SCHED_SEQ_PRIV_H

#include "base/buf.h"
#include "model/tokenizer.h"
#include "sched/request.h"
#include "sched/text_priv.h"

#include <stdatomic.h>

/* Everything that a rollback restores, in one plain struct: rolling back is `draft = committed`. The arrays
 * beside it (ids, tokens, text, pages) only grow past what the committed state counts. */
typedef struct sf_state {
    int n_tokens; /* output tokens: also the penalties' history, and the log-probabilities in tokens[] */
    int kv_len;   /* positions 0..kv_len-1 have KV */
    sf_finish finish;
    bool dead;          /* the fast path had bad logits: only a verify pass can go on from here */
    sf_text_state text; /* UTF-8 decoder, stop matcher, streamed mark */
} sf_state;

typedef struct sf_seq {
    sf_request *req;
    int index;                 /* of the choice */
    sf_state committed, draft; /* equal for an ordinary request; draft.n_tokens >= committed.n_tokens */
    int32_t *ids;              /* [cap] output ids, candidates included */
    sf_token *tokens;          /* [cap] committed ones only */
    int cap;
    sf_buf text;    /* text so far, held-back bytes included */
    sf_buf shown;   /* its streamed part, NUL-terminated */
    int32_t *pages; /* [n_pages] */
    int n_pages, pages_cap;
    int n_prefill;     /* prompt rows to compute */
    int max_out;       /* output tokens at most, by max_tokens and the context */
    int reserved;      /* pages it may take in all */
    int waited;        /* fast passes that a ready window has waited */
    int take;          /* rows in the pass being planned */
    uint64_t serial;   /* order of admission */
    int32_t *expected; /* [n_expected] the answer to be replayed; NULL: none */
    int n_expected;
} sf_seq;

struct sf_request {
    sf_params params; /* its pointers are owned */
    int32_t *prompt;  /* [n_prompt] */
    int n_prompt;
    sf_stops stops;
    int32_t *banned; /* [n_banned] eos and stop ids, not to be drawn before min_tokens */
    int n_banned;
    sf_seq *seqs;        /* [params.n] */
    sf_token *prompt_lp; /* [n_prompt], NULL when not asked for */
    bool prompt_lp_done;
    int n_admitted, n_done; /* choices */
    sf_request_stats stats;
    bool submitted, failed;
    atomic_bool cancel;
    sf_err error;
    void *user;
    sf_request *next; /* in the queue */
};

/* What turning tokens into text and endings needs to know of the model. */
typedef struct sf_rules {
    const sf_tokenizer *tok; /* NULL: no text */
    const sf_model_desc *model;
} sf_rules;

static inline bool sf_seq_prefilling(const sf_seq *q) {
    return q->committed.kv_len < q->n_prefill;
}
static inline int sf_seq_candidates(const sf_seq *q) {
    return q->draft.n_tokens - q->committed.n_tokens;
}

/* replay.c, for a sequence with an expected answer. Its tokens become the draft, where none is outstanding.
 */
SF_CHECKED sf_code sf_replay_draft(sf_seq *q, const sf_rules *rules, sf_err *err);
/* Ends the choice as cancelled where a committed token from `from` on isn't the expected one. */
void sf_replay_compare(sf_seq *q, int from);

/* Ends the request with this error at the end of the step; the first error stays. */
void sf_request_fail(sf_request *r, const sf_err *err);

void sf_seq_fini(sf_seq *q);
/* Room for n output ids and tokens in all. Errors: SF_NOMEM, q unchanged. */
SF_CHECKED sf_code sf_seq_reserve(sf_seq *q, int n, sf_err *err);
/* Appends a candidate to the draft; its row's KV is counted. Room for it is there. */
void sf_seq_draft(sf_seq *q, const sf_rules *rules, int32_t token);
/* Appends a row's token to the committed state: token, log-probabilities, text, endings. Does not touch the
 * draft. Room for it is there. Errors: SF_NOMEM (text), committed state unchanged. */
SF_CHECKED sf_code sf_seq_commit(sf_seq *q, const sf_rules *rules, const sf_row_out *row, sf_err *err);
/* Ends the choice; text held back comes out. Never allocates. */
void sf_seq_finish(sf_seq *q, sf_finish finish);

#endif
