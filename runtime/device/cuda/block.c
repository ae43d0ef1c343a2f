#include "device/cuda/block.h"

#include <string.h>

#include "device/pass_check.h"

#define ALIGN 16

static int64_t aligned(int64_t n) {
    return (n + ALIGN - 1) / ALIGN * ALIGN;
}

/* Offsets of a block's arrays for these counts; returns its size in bytes. Arrays whose count a pass sets
 * come before the pool, which takes what is left. */
static int64_t lay_out(sf_cuda_block *b, int64_t pool) {
    int64_t at = aligned((int64_t)sizeof *b);
    const struct {
        int *offset;
        int64_t bytes;
    } arrays[] = {
        {&b->tokens, (int64_t)sizeof(int) * b->rows},
        {&b->positions, (int64_t)sizeof(int) * b->rows},
        {&b->row_segs, (int64_t)sizeof(int) * b->rows},
        {&b->segs, (int64_t)sizeof(sf_cuda_segment) * b->n_segs},
        {&b->logit_rows, (int64_t)sizeof(int) * b->n_logits},
        {&b->samples, (int64_t)sizeof(sf_cuda_sample) * b->n_logits},
        {&b->fresh, (int64_t)sizeof(int) * b->n_fresh},
        {&b->pool, (int64_t)sizeof(int) * pool},
    };
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++) {
        *arrays[i].offset = (int)at; /* under INT_MAX: caps_of has seen the largest */
        at = aligned(at + arrays[i].bytes);
    }
    return at;
}

sf_code sf_cuda_block_caps_of(const sf_plan *plan, int n_pages, int max_seqs, sf_cuda_block_caps *out,
                              sf_err *err) {
    const int64_t pages = (plan->max_context + plan->page_size - 1) / plan->page_size;
    const int64_t pool = pages * plan->max_rows + (int64_t)max_seqs * (plan->max_context + 2 * SF_BIAS_MAX) +
                         (int64_t)plan->max_logit_rows * SF_STOP_MAX;
    sf_cuda_block b = {.rows = plan->max_rows,
                       .n_segs = plan->max_rows,
                       .n_logits = plan->max_logit_rows,
                       .n_fresh = n_pages};
    if (pool > INT32_MAX / (int64_t)sizeof(int) || lay_out(&b, pool) > INT32_MAX)
        return SF_FAIL(err, SF_INVALID,
                       "passes of %d rows, %d sequences and %d positions need a block over 2 GiB",
                       plan->max_rows, max_seqs, plan->max_context);
    *out =
        (sf_cuda_block_caps){b.rows, b.n_segs, b.n_logits, b.n_fresh, (int)pool, (size_t)lay_out(&b, pool)};
    return SF_OK;
}

/* ---- the pool ---- */

/* Words are counted first, with no memory, and written in a second walk over the same pass. */
typedef struct pool {
    int *at; /* NULL: only count */
    int64_t n;
} pool;

static int put(pool *p, const void *words, int64_t n) {
    const int64_t at = p->n;
    if (p->at && n > 0) memcpy(p->at + at, words, (size_t)n * sizeof(int));
    p->n += n;
    return (int)at;
}

/* The arrays of the row before; rows of one request follow one another and share them. */
typedef struct shared {
    const sf_sample *sample;
    sf_cuda_sample words;
} shared;

static void put_history(pool *p, shared *before, const sf_sample *s, sf_cuda_sample *w) {
    const bool repeats = s->repetition_penalty != 1.0f;
    const sf_sample *b = before->sample;
    w->n_prompt = repeats ? s->n_prompt : 0;
    w->n_output = repeats || s->frequency_penalty != 0.0f || s->presence_penalty != 0.0f ? s->n_output : 0;
    if (b && b->prompt == s->prompt && before->words.n_prompt >= w->n_prompt)
        w->prompt = before->words.prompt;
    else
        w->prompt = put(p, s->prompt, w->n_prompt);
    /* Outputs grow by a token a row, at one address: a row that continues the array at the pool's end adds
     * its tokens. */
    const bool same = b && b->output == s->output && before->words.n_output > 0;
    if (same && before->words.n_output >= w->n_output) {
        w->output = before->words.output;
    } else if (same && before->words.output + before->words.n_output == p->n) {
        w->output = before->words.output;
        put(p, s->output + before->words.n_output, w->n_output - before->words.n_output);
    } else {
        w->output = put(p, s->output, w->n_output);
    }
}

static void put_lists(pool *p, shared *before, const sf_sample *s, sf_cuda_sample *w) {
    _Static_assert(sizeof(sf_bias) == 2 * sizeof(int), "a bias is a pair of words");
    const sf_sample *b = before->sample;
    w->n_banned = s->n_banned;
    w->n_bias = s->n_bias;
    if (b && b->banned == s->banned && b->n_banned == s->n_banned)
        w->banned = before->words.banned;
    else
        w->banned = put(p, s->banned, s->n_banned);
    if (b && b->bias == s->bias && b->n_bias == s->n_bias)
        w->bias = before->words.bias;
    else
        w->bias = put(p, s->bias, 2 * (int64_t)s->n_bias);
}

static sf_cuda_sample sample_of(const sf_sample *s) {
    return (sf_cuda_sample){.temperature = s->temperature,
                            .top_p = s->top_p,
                            .min_p = s->min_p,
                            .repetition_penalty = s->repetition_penalty,
                            .frequency_penalty = s->frequency_penalty,
                            .presence_penalty = s->presence_penalty,
                            .top_k = s->top_k,
                            .n_top = s->n_top,
                            .target = s->target,
                            .draw = s->draw,
                            .seed_low = (unsigned)s->seed,
                            .seed_high = (unsigned)(s->seed >> 32),
                            .choice = s->choice,
                            .position = s->position};
}

static void put_samples(pool *p, const sf_pass *pass, sf_cuda_sample *to) {
    shared before = {0};
    for (int i = 0; i < pass->n_logits; i++) {
        const sf_sample *s = pass->samples + i;
        sf_cuda_sample w = sample_of(s);
        put_lists(p, &before, s, &w);
        put_history(p, &before, s, &w); /* last: the next row's output may continue it */
        before = (shared){s, w};
        if (to) to[i] = w;
    }
}

static void put_segments(pool *p, const sf_pass *pass, int page_size, sf_cuda_segment *to) {
    for (int i = 0; i < pass->n_segs; i++) {
        const sf_segment *s = pass->segs + i;
        const int pages = put(p, s->pages, (s->pos0 + s->rows - 1) / page_size + 1);
        if (to) to[i] = (sf_cuda_segment){s->first_row, s->rows, s->pos0, pages};
    }
}

/* ---- filling ---- */

static void put_rows(const sf_pass *pass, int *tokens, int *positions, int *row_segs) {
    memcpy(tokens, pass->tokens, (size_t)pass->rows * sizeof *tokens);
    for (int i = 0; i < pass->n_segs; i++) {
        const sf_segment *s = pass->segs + i;
        for (int j = 0; j < s->rows; j++) {
            positions[s->first_row + j] = s->pos0 + j;
            row_segs[s->first_row + j] = i;
        }
    }
}

sf_code sf_cuda_block_fill(const sf_cuda_block_caps *caps, const sf_plan *plan, int n_pages,
                           const sf_pass *pass, void *mem, size_t *used, sf_err *err) {
    SF_TRY(sf_pass_check(plan, n_pages, pass, err));
    if (pass->n_fresh > caps->fresh)
        return SF_FAIL(err, SF_INVALID, "a pass has %d fresh pages, expected 0..%d", pass->n_fresh,
                       caps->fresh);
    pool count = {0};
    put_segments(&count, pass, plan->page_size, NULL);
    put_samples(&count, pass, NULL);
    if (count.n > caps->pool)
        return SF_FAIL(err, SF_INVALID,
                       "a pass's pages, histories and biases take %lld words, expected %d at most",
                       (long long)count.n, caps->pool);

    sf_cuda_block b = {
        .rows = pass->rows, .n_segs = pass->n_segs, .n_logits = pass->n_logits, .n_fresh = pass->n_fresh};
    const int64_t bytes = lay_out(&b, count.n);
    char *to = mem;
    memcpy(to, &b, sizeof b);
    put_rows(pass, (int *)(void *)(to + b.tokens), (int *)(void *)(to + b.positions),
             (int *)(void *)(to + b.row_segs));
    if (pass->n_logits > 0) memcpy(to + b.logit_rows, pass->logit_row, (size_t)pass->n_logits * sizeof(int));
    if (pass->n_fresh > 0) memcpy(to + b.fresh, pass->fresh, (size_t)pass->n_fresh * sizeof(int));
    pool write = {.at = (int *)(void *)(to + b.pool)};
    put_segments(&write, pass, plan->page_size, (sf_cuda_segment *)(void *)(to + b.segs));
    put_samples(&write, pass, (sf_cuda_sample *)(void *)(to + b.samples));
    *used = (size_t)bytes;
    return SF_OK;
}
