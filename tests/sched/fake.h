/* A machine for tests: a device whose "model" is a hash of the token history, that keeps its own KV and
 * aborts when the scheduler breaks the device contract; a tokenizer of a few pieces; and the plain loop that
 * says what a deterministic request must answer. */
#ifndef SF_TESTS_SCHED_FAKE_H
#define SF_TESTS_SCHED_FAKE_H

#include "sched/sched.h"

enum { FAKE_VOCAB = 40, FAKE_EOS = 0, FAKE_EOS2 = 1, FAKE_PAGE = 16, FAKE_CONTEXT = 160 };

typedef struct fake_entry {
    int32_t token;
    int pos;
    bool written;
    bool taint; /* written by a fast pass, or by a pinned one over tainted KV */
} fake_entry;

/* A pass in flight, copied where the device feeds: what the scheduler lent may change then. */
typedef struct fake_flight {
    sf_pass pass;
    int32_t *tokens, *fresh, *logit_row, *pages, *outputs;
    sf_segment *segs;
    sf_sample *samples;
} fake_flight;

typedef struct fake_device {
    sf_device base; /* first: the scheduler's handle */
    sf_plan plan;
    fake_entry *kv; /* [n_pages * FAKE_PAGE] */
    int *owner; /* [n_pages] first page of the sequence that a page belongs to, -1: zeroed, free to take */
    int64_t *owner_gen;     /* [n_pages] how often that first page had been zeroed by then */
    int64_t *zeroed;        /* [n_pages] */
    fake_flight flights[2]; /* in the order they were launched */
    int n_flights;
    const sf_pass *pass; /* the one that runs */
    int32_t *drawn;      /* [max_logit_rows] of the pass that ran last */
    int n_drawn;
    int64_t n_pass, n_fed; /* passes run; of them fed by the one before */
    /* knobs */
    int err_per_mille; /* how often a fast row draws another token */
    bool bad[SF_CLASS_COUNT];
    int bad_pos;       /* rows of these classes at this position, */
    uint64_t bad_seed; /* of this seed, have bad logits */
    int64_t fail_at;   /* pass number whose sync fails, -1: never */
    int64_t launch_fail_at;
} fake_device;

void fake_device_init(fake_device *d, int n_pages, int max_rows, int max_logit_rows);
void fake_device_fini(fake_device *d);
/* The model: what a pinned row after tokens[0..n) gives. */
void fake_model(const int32_t *tokens, int n, const sf_sample *s, sf_row_out *out);
uint64_t fake_mix(uint64_t x);

/* Pieces by id, with their lengths; sf_tokenizer_* below are defined by fake_tokenizer.c. */
const sf_tokenizer *fake_tokenizer(void);
const char *fake_piece(int32_t id, size_t *len);

/* What the plain loop says of choice `choice`. */
typedef struct reference {
    sf_token tokens[FAKE_CONTEXT];
    int n;
    char text[4096];
    size_t text_len;
    sf_finish finish;
} reference;
void reference_run(const sf_params *p, const int32_t *prompt, int n_prompt, int choice, int max_context,
                   reference *out);

/* A request (of at most 8 choices) under watch: after every step its streams may only have grown. */
typedef struct watched {
    sf_request *req;
    int32_t ids[8][FAKE_CONTEXT];
    int n_ids[8];
    char text[8][4096];
    size_t text_len[8];
} watched;
void watch(watched *w);
/* Steps until nothing is left, watching. */
void run_all(sf_sched *s, watched *w, int n);
/* Asserts that choice i of a finished request is the reference's answer, whole. */
void assert_reference(const sf_request *r, int choice, int max_context);
/* Asserts that choice i is a beginning of the reference's answer. */
void assert_reference_prefix(const sf_request *r, int choice, int max_context);

sf_sched *fake_sched(fake_device *d, const sf_sched_config *cfg);
void fake_config(const fake_device *d, sf_sched_config *cfg);
sf_request *fake_request(const sf_params *p, const int32_t *prompt, int n_prompt);
void fake_prompt(uint64_t seed, int n, int32_t *out);

#endif
