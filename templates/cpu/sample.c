//@ template sample
//@ op sample
//@ backend cpu
//@ class both
//@ rows 1..
//@ name
//@ order: exp in 16 lanes by id mod 16 and a fixed tree; masses of top_p in 64-bit fixed point
//@ param VOCAB int = 49152 in 2..1048576 from model.vocab
//@ prelude
#ifndef KERNEL_NAME
#define KERNEL_NAME sample_default
#endif
enum { VOCAB = 49152 };
//@ end
#include "snippets/part.h"
#include "snippets/sample_draw.h"

static int32_t draw(const sf_sample *s, const float *x, const row_stats *raw, draw_scratch *d) {
    row_stats r = *raw;
    if (row_adjusted(s)) {
        row_adjust(s, x, VOCAB, d->z, d->key);
        r = row_max(d->z, VOCAB);
    } else if (s->temperature > 0.0f) {
        memcpy(d->z, x, VOCAB * sizeof *x);
    }
    if (r.bad) return -1; /* everything is banned */
    return s->temperature > 0.0f ? draw_token(d, VOCAB, r.max, s) : r.arg;
}

static void sample_row(const sf_sample *s, const float *x, sf_row_out *out, draw_scratch *d) {
    const row_stats r = row_log_softmax(x, VOCAB);
    *out = (sf_row_out){.token = -1, .bad = r.bad};
    if (r.bad) return;
    if (s->target >= 0) {
        out->target_logprob = row_logprob(&r, x[s->target]);
        out->target_rank = row_rank(x, VOCAB, s->target);
    }
    out->n_top = s->n_top < VOCAB ? s->n_top : VOCAB;
    if (out->n_top > 0) row_top(x, VOCAB, out->n_top, out->top_id);
    for (int i = 0; i < out->n_top; i++)
        out->top_logprob[i] = row_logprob(&r, x[out->top_id[i]]);
    if (!s->draw) return;
    out->token = draw(s, x, &r, d);
    out->bad = out->token < 0;
    if (out->bad) return;
    out->logprob = row_logprob(&r, x[out->token]);
    out->rank = row_rank(x, VOCAB, out->token);
}

SF_CPU_KERNEL(KERNEL_NAME) {
    enum { PADDED = (VOCAB + 15) / 16 * 16 };
    const int from = share_begin(a->rows, part, parts), to = share_begin(a->rows, part + 1, parts);
    float *scratch = part_scratch(a, part);
    draw_scratch d = {.z = scratch,
                      .key = (uint32_t *)(void *)(scratch + PADDED),
                      .id = (uint32_t *)(void *)(scratch + 2 * PADDED),
                      .weight = scratch + 3 * PADDED};
    for (int r = from; r < to; r++)
        sample_row(a->samples + r, (const float *)a->in + (size_t)r * VOCAB, a->results + r, &d);
}
