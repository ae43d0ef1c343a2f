/* A request: parameters, prompt, and what has been committed for each of its choices. */
#ifndef SF_SCHED_REQUEST_H
#define SF_SCHED_REQUEST_H

#include "base/err.h"
#include "device/device.h"

#define SF_STOP_STRINGS_MAX 16
#define SF_N_MAX            64

/* Sampling and stopping. Pointers are copied by sf_request_create. Defaults: sf_params_default. */
typedef struct sf_params {
    float temperature; /* default 1 */
    int top_k;         /* 0: off */
    float top_p, min_p;
    float repetition_penalty, frequency_penalty, presence_penalty;
    int64_t seed;
    int n;          /* choices, 1..SF_N_MAX */
    int max_tokens; /* per choice; 0: only prompt_logprobs are wanted; -1: up to the context limit */
    int min_tokens;
    bool ignore_eos;
    int logprobs;        /* -1: none; 0: the chosen token's; 1..SF_TOP_MAX: the top ones too */
    int prompt_logprobs; /* likewise, for the prompt's tokens */
    bool deterministic;
    int n_stop;
    const char *const *stop; /* UTF-8, non-empty */
    int n_stop_ids;
    const int32_t *stop_ids;
    int n_bias;
    const sf_bias *bias;
} sf_params;

void sf_params_default(sf_params *p);

typedef enum sf_finish {
    SF_FINISH_NONE, /* still running */
    SF_FINISH_STOP, /* eos, stop id or stop string */
    SF_FINISH_LENGTH,
    SF_FINISH_CANCELLED,
    SF_FINISH_ERROR
} sf_finish;

/* One committed token, with the log-probabilities asked for. */
typedef struct sf_token {
    int32_t id;
    float logprob;
    int32_t rank;
    int n_top;
    int32_t top_id[SF_TOP_MAX];
    float top_logprob[SF_TOP_MAX];
} sf_token;

/* What of a choice has been committed: never retracted. Borrowed from the request. */
typedef struct sf_choice {
    const sf_token *tokens;
    int n_tokens;
    const char *text; /* NUL-terminated; whole characters only; a possible beginning of a stop string is held
                         back until it is decided; at the end all of it, cut before the stop string. Special
                         tokens are left out */
    size_t text_len;
    sf_finish finish;
} sf_choice;

/* Counters of one request, for its `determinism` object. */
typedef struct sf_request_stats {
    int64_t windows_verified, rollbacks, tokens_rolled_back;
    int64_t drafted, drafts_accepted;
} sf_request_stats;

typedef struct sf_request sf_request;

/* Copies params and prompt. Errors: SF_INVALID names the field ("top_p is 2, expected (0, 1]"). Checks that
 * need the model (token ids, context) are sf_sched_submit's. */
SF_CHECKED sf_code sf_request_create(const sf_params *params, const int32_t *prompt, int n_prompt,
                                     sf_request **out, sf_err *err);
/* Before r (deterministic) is submitted: choice i is to replay this answer. Pinned passes of many rows take
 * its tokens as given; the choice ends as it would have, or as cancelled where it would have gone another
 * way: its last token is the first that differs, or the first past the answer's end. Errors: SF_INVALID,
 * SF_NOMEM. */
SF_CHECKED sf_code sf_request_expect(sf_request *r, int choice, const int32_t *ids, int n, sf_err *err);
void sf_request_destroy(sf_request *r); /* not while submitted and unfinished */

const sf_params *sf_request_params(const sf_request *r);
const int32_t *sf_request_prompt(const sf_request *r, int *n);
void sf_request_choice(const sf_request *r, int i, sf_choice *out);
/* Per prompt token [n_prompt]; entry 0 is unused (no log-probability). NULL until prefill is over, or when
 * not asked for. */
const sf_token *sf_request_prompt_logprobs(const sf_request *r);
void sf_request_stats_get(const sf_request *r, sf_request_stats *out);
bool sf_request_done(const sf_request *r);     /* every choice has finished */
bool sf_request_admitted(const sf_request *r); /* a choice has left the queue */
const sf_err *
sf_request_error(const sf_request *r); /* set when a choice finished with SF_FINISH_ERROR; else NULL */
void sf_request_set_user(sf_request *r, void *user); /* the caller's own pointer */
void *sf_request_user(const sf_request *r);

#endif
