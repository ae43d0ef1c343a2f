/* Selftest: sequences, passes and the comparison of bits. */
#ifndef SF_ENGINE_SELFTEST_PRIV_H
#define SF_ENGINE_SELFTEST_PRIV_H

#include "engine/selftest.h"

#define ST_TOP 5 /* top log-probabilities compared per row */

/* A made-up sequence in its own KV pages. */
typedef struct st_seq {
    uint64_t seed;
    int n;           /* positions */
    int32_t *tokens; /* [n + 1]: the last is only the target of row n - 1 */
    int32_t *pages;  /* [n_pages] */
    int n_pages;
    bool hostile; /* sampling parameters at their extremes: a neighbour that must not be felt */
} st_seq;

/* What the reference gave. */
typedef struct st_trace {
    int n;
    size_t kv_len;   /* values per position: layers * kv_heads * 2 * head_dim */
    uint16_t *kv;    /* [n, kv_len] bf16 */
    sf_row_out *out; /* [n] */
} st_trace;

typedef struct st_diff {
    int64_t rows, differing;
    char first[240];
} st_diff;

/* One pass being put together on one device. */
typedef struct st_rig {
    sf_device *d;
    const sf_plan *plan;
    const st_seq *own;     /* the sequence that is compared */
    const st_trace *trace; /* NULL: only run */
    bool no_logits;        /* compare K and V only */
    sf_pass pass;
    int32_t *tokens;    /* [max_rows] */
    sf_segment *segs;   /* [max_rows] */
    int32_t *logit_row; /* [max_logit_rows] */
    sf_sample *samples; /* likewise */
    sf_row_out *out;    /* likewise */
    int32_t *fresh;     /* [fresh_cap] */
    int fresh_cap;
    uint16_t *kv; /* [kv_len], one position */
    size_t kv_len;
} st_rig;

/* n tokens drawn from 0..vocab-2 (vocab-1 is left for the poisoned neighbour), pages first_page... */
SF_CHECKED sf_code st_seq_init(st_seq *s, const sf_plan *plan, uint64_t seed, int n, int first_page,
                               sf_err *err);
void st_seq_fini(st_seq *s);
SF_CHECKED sf_code st_trace_init(st_trace *t, const sf_plan *plan, int n, sf_err *err);
void st_trace_fini(st_trace *t);
SF_CHECKED sf_code st_rig_init(st_rig *r, sf_device *d, const st_seq *own, sf_err *err);
void st_rig_fini(st_rig *r);

void st_begin(st_rig *r, sf_class cls);
/* Zeroes the pages of s before this pass, from the page that holds position pos0. */
void st_fresh(st_rig *r, const st_seq *s, int pos0);
/* Adds rows pos0..pos0+rows-1 of s. Own rows all get a logit row while there is room, from position
 * logits_from on; others only the last one. Rows that do not fit in the pass are left out; returns how many
 * were added. */
int st_add(st_rig *r, const st_seq *s, int pos0, int rows, int logits_from);
SF_CHECKED sf_code st_run(st_rig *r, sf_err *err);
/* Compares every own segment of the pass that ran with the trace. */
SF_CHECKED sf_code st_compare(st_rig *r, st_diff *diff, sf_err *err);
/* run, then compare */
SF_CHECKED sf_code st_check(st_rig *r, st_diff *diff, sf_err *err);
/* Store K and V, or the logit rows' results, of the pass's own segments into t. */
SF_CHECKED sf_code st_record_kv(st_rig *r, st_trace *t, sf_err *err);
void st_record_out(const st_rig *r, st_trace *t);
/* NULL when equal, otherwise the name of the field that differs. */
const char *st_out_differs(const sf_row_out *a, const sf_row_out *b);
/* The pass's result for the own row at position pos, or NULL. */
const sf_row_out *st_find_out(const st_rig *r, int pos);

/* One check of the table in selftest_checks.c. */
typedef struct st_run_ctx {
    const sf_plan *plan;
    const sf_selftest_config *cfg;
    st_seq own, left, right; /* the compared sequence, and neighbours' */
    st_trace trace;
    st_rig rig;
    int n_short; /* positions that the costly routes cover */
} st_run_ctx;

typedef sf_code st_check_fn(st_run_ctx *c, st_rig *r, st_diff *diff, sf_err *err);

typedef struct st_check_desc {
    const char *name, *what;
    st_check_fn *fn;
    bool control;
} st_check_desc;

extern const st_check_desc st_checks[];
extern const int st_n_checks;

SF_CHECKED sf_code st_reference(st_rig *r, const st_seq *own, st_trace *t, sf_err *err);
/* Own rows from..to-1 in segments of `step` rows (the last may be shorter), compared. */
SF_CHECKED sf_code st_route(st_rig *r, int from, int to, int step, st_diff *diff, sf_err *err);

#endif
