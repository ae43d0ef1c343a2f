/* The device interface: all that sched/ knows of a machine. A device owns the packed weights' device copy,
 * the KV pool and the activation buffers, and runs passes. The CPU and CUDA backends implement it.
 *
 * Words: a row is one token at one position; a segment is consecutive rows of one sequence; a pass is one
 * trip of a set of rows through the model. Class PINNED promises: every output of a row (KV,
 * log-probabilities, sampled token) is a function of the sequence's tokens at positions <= its own, the
 * weights and its sampling parameters only, provided the KV below was written by pinned passes. */
#ifndef SF_DEVICE_DEVICE_H
#define SF_DEVICE_DEVICE_H

#include "base/err.h"
#include "device/plan.h"

#define SF_TOP_MAX  20   /* top log-probabilities per row */
#define SF_STOP_MAX 64   /* banned ids per row */
#define SF_BIAS_MAX 1024 /* logit_bias entries per row */

/* One logit_bias entry. */
typedef struct sf_bias {
    int32_t token;
    float bias;
} sf_bias;

/* How a logit row is sampled. Order of operations (vLLM's, which now puts min_p before top_k; this is the one
 * of Hugging Face): raw logits -> log-probabilities reported -> logit_bias -> banned ids to -inf ->
 * repetition, frequency, presence penalties -> temperature -> top_k -> top_p -> min_p -> Gumbel-max. Pointers
 * are borrowed until the pass is synchronised. */
typedef struct sf_sample {
    float temperature;        /* 0: greedy (arg max after penalties; ties go to the lower id) */
    int top_k;                /* 0: off */
    float top_p;              /* 1: off; in (0, 1] */
    float min_p;              /* 0: off; in [0, 1] */
    float repetition_penalty; /* 1: off; > 0 */
    float frequency_penalty, presence_penalty; /* 0: off */
    uint64_t seed;                             /* the int64 seed's bits */
    uint32_t choice;                           /* index of the choice (n > 1) */
    uint32_t position; /* absolute position of the token being drawn (this row's position + 1) */
    const int32_t *prompt;
    int n_prompt; /* repetition penalty looks at prompt and output */
    const int32_t *output;
    int n_output; /* output tokens before this row's draw, candidates included */
    const sf_bias *bias;
    int n_bias;
    const int32_t *banned;
    int n_banned;   /* ids that may not be drawn: eos and stop ids before min_tokens */
    int n_top;      /* top log-probabilities wanted, 0..SF_TOP_MAX */
    int32_t target; /* >= 0: also report this token's log-probability and rank (prompt_logprobs) */
    bool draw;      /* false: only log-probabilities are wanted, no token is drawn */
} sf_sample;

/* What a logit row gave. Log-probabilities are log-softmax of the raw logits in fp32. */
typedef struct sf_row_out {
    int32_t token; /* drawn; -1 when draw was false */
    float logprob; /* of token */
    int32_t rank;  /* 1 = most likely; ties: the lower id first */
    float target_logprob;
    int32_t target_rank;
    int n_top;
    int32_t top_id[SF_TOP_MAX]; /* by log-probability descending, ties to the lower id */
    float top_logprob[SF_TOP_MAX];
    bool bad; /* the row's logits held a NaN or only -inf: the request must fail, token is -1 */
} sf_row_out;

typedef enum sf_seg_kind { SF_SEG_DECODE, SF_SEG_VERIFY, SF_SEG_PREFILL } sf_seg_kind;

/* Consecutive rows first_row .. first_row+rows-1 of the pass, positions pos0 .. pos0+rows-1 of one sequence.
 * Kernels see positions and pages only; the kind is for statistics. Row i attends positions 0 .. pos0+i. */
typedef struct sf_segment {
    sf_seg_kind kind;
    int first_row, rows;
    int pos0;
    const int32_t *pages; /* page ids of positions 0.., covering pos0+rows-1; borrowed until sync */
} sf_segment;

typedef struct sf_pass {
    sf_class cls;
    int rows;              /* 1..max_rows, segments together */
    const int32_t *tokens; /* [rows]; -(1 + i): the token that logit row i of the pass before draws */
    int n_fed; /* logit rows of the pass before, which is in flight still; 0: tokens are all known */
    int n_segs;
    const sf_segment *segs;
    int n_fresh;
    const int32_t *fresh; /* pages that hold another's KV, of which nothing may reach a sum: the CPU zeroes
                             them; CUDA keeps V finite, and a score past a row's position is replaced */
    int n_logits;         /* 0..max_logit_rows */
    const int32_t *logit_row; /* [n_logits] ascending row indices */
    const sf_sample *samples; /* [n_logits] */
    sf_row_out *out;          /* [n_logits], written by sync */
} sf_pass;

typedef struct sf_device sf_device;

typedef struct sf_device_ops {
    /* Checks and queues one pass; the pass and all it borrows stay valid until sync. One in flight; a device
     * that feeds takes a second one, reads all but `out` of a pass before it returns, and may be given tokens
     * that the first is still to draw. Errors: SF_INVALID (a page, row or token out of range: nothing ran),
     * SF_DEVICE. */
    SF_CHECKED sf_code (*launch)(sf_device *d, const sf_pass *pass, sf_err *err);
    /* Waits for the pass queued first and fills its out. us (may be NULL): its duration in microseconds. */
    SF_CHECKED sf_code (*sync)(sf_device *d, double *us, sf_err *err);
    /* Copies one position's K and V of one layer and KV head as bf16: k and v [head_dim]. Tests and selftest.
     */
    SF_CHECKED sf_code (*kv_read)(sf_device *d, int page, int offset, int layer, int kv_head, uint16_t *k,
                                  uint16_t *v, sf_err *err);
    void (*destroy)(sf_device *d);
} sf_device_ops;

/* Base of every backend; thread: the scheduler's only. */
struct sf_device {
    const sf_device_ops *ops;
    const sf_plan *plan;
    int n_pages;    /* pages in the pool; ids 0..n_pages-1 */
    bool feeds;     /* two passes may be in flight, the second fed by the first */
    char desc[160]; /* for a person: "cpu avx512bf16, 2 threads" */
};

#endif
