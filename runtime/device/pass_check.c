#include "device/pass_check.h"

#include <math.h>

/* What the checks look at. */
typedef struct checked {
    const sf_plan *plan;
    int n_pages;
} checked;

static sf_code check_ids(const char *what, const int32_t *ids, int n, int limit, sf_err *err) {
    for (int i = 0; i < n; i++)
        if (ids[i] < 0 || ids[i] >= limit)
            return SF_FAIL(err, SF_INVALID, "%s %d is %d, expected 0..%d", what, i, ids[i], limit - 1);
    return SF_OK;
}

/* Ids, or places among the logit rows of the pass before. */
static sf_code check_tokens(const sf_pass *pass, int vocab, sf_err *err) {
    for (int i = 0; i < pass->rows; i++)
        if (pass->tokens[i] < -pass->n_fed || pass->tokens[i] >= vocab)
            return SF_FAIL(err, SF_INVALID, "token %d is %d, expected %d..%d", i, pass->tokens[i],
                           -pass->n_fed, vocab - 1);
    return SF_OK;
}

static sf_code check_segment(const checked *d, const sf_segment *s, int row, sf_err *err) {
    const sf_plan *p = d->plan;
    if (s->first_row != row || s->rows < 1)
        return SF_FAIL(err, SF_INVALID, "a segment has %d rows from row %d, expected to begin at row %d",
                       s->rows, s->first_row, row);
    if (s->pos0 < 0 || s->pos0 > p->max_context - s->rows)
        return SF_FAIL(err, SF_INVALID, "a segment has %d positions from %d, expected 0..%d", s->rows,
                       s->pos0, p->max_context - 1);
    return check_ids("page", s->pages, (s->pos0 + s->rows - 1) / p->page_size + 1, d->n_pages, err);
}

static sf_code check_segments(const checked *d, const sf_pass *pass, sf_err *err) {
    int row = 0;
    for (int i = 0; i < pass->n_segs; i++) {
        if (pass->segs[i].rows > pass->rows - row)
            return SF_FAIL(err, SF_INVALID, "segment %d has %d rows, the pass %d more", i, pass->segs[i].rows,
                           pass->rows - row);
        SF_TRY(check_segment(d, pass->segs + i, row, err));
        row += pass->segs[i].rows;
    }
    if (row != pass->rows)
        return SF_FAIL(err, SF_INVALID, "the segments hold %d rows, the pass %d", row, pass->rows);
    return SF_OK;
}

static sf_code check_numbers(const sf_sample *s, sf_err *err) {
    if (!(s->temperature >= 0.0f) || isinf(s->temperature))
        return SF_FAIL(err, SF_INVALID, "temperature is %g, expected 0 or more", (double)s->temperature);
    if (!(s->top_p > 0.0f && s->top_p <= 1.0f))
        return SF_FAIL(err, SF_INVALID, "top_p is %g, expected (0, 1]", (double)s->top_p);
    if (!(s->min_p >= 0.0f && s->min_p <= 1.0f))
        return SF_FAIL(err, SF_INVALID, "min_p is %g, expected 0..1", (double)s->min_p);
    if (!(s->repetition_penalty > 0.0f) || isinf(s->repetition_penalty))
        return SF_FAIL(err, SF_INVALID, "repetition_penalty is %g, expected more than 0",
                       (double)s->repetition_penalty);
    if (!isfinite(s->frequency_penalty) || !isfinite(s->presence_penalty))
        return SF_FAIL(err, SF_INVALID, "a penalty is not a finite number");
    if (s->n_top < 0 || s->n_top > SF_TOP_MAX)
        return SF_FAIL(err, SF_INVALID, "n_top is %d, expected 0..%d", s->n_top, SF_TOP_MAX);
    return SF_OK;
}

static sf_code check_sample(const sf_sample *s, int vocab, sf_err *err) {
    SF_TRY(check_numbers(s, err));
    if (s->n_bias < 0 || s->n_banned < 0 || s->n_prompt < 0 || s->n_output < 0)
        return SF_FAIL(err, SF_INVALID, "a list of a logit row has a negative length");
    if (s->target >= vocab)
        return SF_FAIL(err, SF_INVALID, "target is %d, expected under %d", s->target, vocab);
    for (int i = 0; i < s->n_bias; i++) {
        SF_TRY(check_ids("biased token", &s->bias[i].token, 1, vocab, err));
        if (!isfinite(s->bias[i].bias))
            return SF_FAIL(err, SF_INVALID, "the bias of token %d is not a finite number", s->bias[i].token);
    }
    SF_TRY(check_ids("banned token", s->banned, s->n_banned, vocab, err));
    SF_TRY(check_ids("prompt token", s->prompt, s->n_prompt, vocab, err));
    return check_ids("output token", s->output, s->n_output, vocab, err);
}

static sf_code check_logits(const checked *d, const sf_pass *pass, sf_err *err) {
    const sf_plan *p = d->plan;
    if (pass->n_logits < 0 || pass->n_logits > p->max_logit_rows)
        return SF_FAIL(err, SF_INVALID, "a pass has %d logit rows, expected 0..%d", pass->n_logits,
                       p->max_logit_rows);
    for (int i = 0; i < pass->n_logits; i++) {
        const int below = i == 0 ? -1 : pass->logit_row[i - 1];
        if (pass->logit_row[i] <= below || pass->logit_row[i] >= pass->rows)
            return SF_FAIL(err, SF_INVALID, "logit row %d is row %d, expected %d..%d", i, pass->logit_row[i],
                           below + 1, pass->rows - 1);
        SF_TRY(check_sample(pass->samples + i, p->model.vocab, err));
    }
    return SF_OK;
}

sf_code sf_pass_check(const sf_plan *p, int n_pages, const sf_pass *pass, sf_err *err) {
    const checked all = {p, n_pages}, *d = &all;
    if (pass->cls < 0 || pass->cls >= SF_CLASS_COUNT)
        return SF_FAIL(err, SF_INVALID, "a pass has class %d, expected fast or pinned", (int)pass->cls);
    if (pass->rows < 1 || pass->rows > p->max_rows)
        return SF_FAIL(err, SF_INVALID, "a pass has %d rows, expected 1..%d", pass->rows, p->max_rows);
    if (pass->n_fed < 0 || pass->n_fed > p->max_logit_rows)
        return SF_FAIL(err, SF_INVALID, "a pass is fed by %d logit rows, expected 0..%d", pass->n_fed,
                       p->max_logit_rows);
    SF_TRY(check_tokens(pass, p->model.vocab, err));
    SF_TRY(check_segments(d, pass, err));
    if (pass->n_fresh < 0) return SF_FAIL(err, SF_INVALID, "a pass has %d fresh pages", pass->n_fresh);
    SF_TRY(check_ids("fresh page", pass->fresh, pass->n_fresh, d->n_pages, err));
    return check_logits(d, pass, err);
}
