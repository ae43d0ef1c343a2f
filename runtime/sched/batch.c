#include "sched/batch_priv.h"
#include "sched/verify_priv.h"

#include <stdlib.h>

#include "base/num.h"

sf_code sf_batch_init(sf_batch *b, int max_rows, int max_logits, sf_err *err) {
    size_t rows = (size_t)max_rows, logits = (size_t)max_logits;
    *b = (sf_batch){.max_rows = max_rows, .max_logits = max_logits};
    b->entries = calloc(rows, sizeof *b->entries);
    b->tokens = calloc(rows, sizeof *b->tokens);
    b->segs = calloc(rows, sizeof *b->segs);
    b->fresh = calloc(rows, sizeof *b->fresh);
    b->logit_row = calloc(logits, sizeof *b->logit_row);
    b->samples = calloc(logits, sizeof *b->samples);
    b->out = calloc(logits, sizeof *b->out);
    if (b->entries && b->tokens && b->segs && b->fresh && b->logit_row && b->samples && b->out) return SF_OK;
    sf_batch_fini(b);
    return SF_FAIL(err, SF_NOMEM, "tables for passes of %d rows, %d logit rows", max_rows, max_logits);
}

void sf_batch_fini(sf_batch *b) {
    free(b->entries);
    free(b->tokens);
    free(b->segs);
    free(b->fresh);
    free(b->logit_row);
    free(b->samples);
    free(b->out);
    *b = (sf_batch){0};
}

/* ---- who gets how many rows ---- */

typedef struct budget {
    int rows, logits;
} budget;

static bool live(const sf_seq *q) {
    return q->committed.finish == SF_FINISH_NONE && !q->req->failed;
}

static bool decodes_in(const sf_seq *q, sf_class cls, int window) {
    if (!live(q) || sf_seq_prefilling(q)) return false;
    return cls == SF_CLASS_PINNED || !sf_policy_ready(q, window);
}

/* Index of the first sequence after the one last served. */
static int turn_index(uint64_t last, sf_seq *const *run, int n_run) {
    for (int i = 0; i < n_run; i++)
        if (run[i]->serial > last) return i;
    return 0;
}

/* One row for each, round robin where there are not enough. A prompt that waits keeps one row and one logit
 * row, so that it comes forward under any load. */
static void pick_decode(sf_batch *b, sf_class cls, int window, bool prompts, sf_seq *const *run, int n_run,
                        budget *left) {
    int keep_rows = prompts && left->rows > 1, keep_logits = prompts && left->logits > 1;
    int start = turn_index(b->turn, run, n_run);
    for (int i = 0; i < n_run; i++) {
        sf_seq *q = run[(start + i) % n_run];
        if (!decodes_in(q, cls, window)) continue;
        if (left->rows <= keep_rows || left->logits <= keep_logits) break;
        q->take = 1;
        left->rows--;
        left->logits--;
        b->turn = q->serial;
    }
}

/* The candidates of windows whose first row is in: those that are ready first, round robin where there are
 * not enough rows. A quarter of the pass is kept for prompts that wait. */
static void pick_windows(sf_batch *b, int window, const sf_demand *d, sf_seq *const *run, int n_run,
                         budget *left) {
    int keep = d->prefill_rows > 0 ? sf_min_int(d->prefill_rows, b->max_rows / 4 + 1) : 0;
    int keep_logits = d->prefill_rows > 0;
    int start = turn_index(b->window_turn, run, n_run);
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < n_run; i++) {
            sf_seq *q = run[(start + i) % n_run];
            if (q->take == 0 || !q->req->params.deterministic) continue;
            if (sf_policy_ready(q, window) != (round == 0)) continue;
            int more = sf_min_int(sf_verify_rows(q) - q->take, left->rows - keep);
            more = sf_min_int(more, left->logits - keep_logits);
            if (more <= 0) continue;
            q->take += more;
            left->rows -= more;
            left->logits -= more;
            if (round == 0) b->window_turn = q->serial;
        }
    }
}

static bool wants_prompt_lp(const sf_seq *q) {
    return q->index == 0 && q->req->prompt_lp;
}

/* Logit rows that positions [from, from + n) of the prompt need. */
static int prefill_logits(const sf_seq *q, int from, int n) {
    int n_prompt = q->req->n_prompt;
    int ends = from + n == n_prompt; /* the last row draws the first token */
    return wants_prompt_lp(q) ? n : ends;
}

/* apart: ordinary prompts have fast passes of their own. */
static void pick_prefill(sf_class cls, bool apart, int chunk, sf_seq *const *run, int n_run, budget *left) {
    int room = sf_min_int(chunk, left->rows);
    for (int i = 0; i < n_run && room > 0; i++) {
        sf_seq *q = run[i];
        if (!live(q) || !sf_seq_prefilling(q)) continue;
        const bool det = q->req->params.deterministic;
        if (det ? cls == SF_CLASS_FAST : cls == SF_CLASS_PINNED && apart) continue;
        int from = q->committed.kv_len, n = sf_min_int(q->n_prefill - from, room);
        while (n > 0 && prefill_logits(q, from, n) > left->logits)
            n = wants_prompt_lp(q) ? left->logits : n - 1;
        q->take = n;
        room -= n;
        left->rows -= n;
        left->logits -= prefill_logits(q, from, n);
    }
}

/* ---- the pass's tables ---- */

static void add_logit(sf_batch *b, const sf_seq *q, int row, int position, int n_output) {
    const sf_request *r = q->req;
    const sf_params *p = &r->params;
    bool early = n_output < p->min_tokens;
    b->logit_row[b->pass.n_logits] = row;
    b->samples[b->pass.n_logits++] = (sf_sample){.temperature = p->temperature,
                                                 .top_k = p->top_k,
                                                 .top_p = p->top_p,
                                                 .min_p = p->min_p,
                                                 .repetition_penalty = p->repetition_penalty,
                                                 .frequency_penalty = p->frequency_penalty,
                                                 .presence_penalty = p->presence_penalty,
                                                 .seed = (uint64_t)p->seed,
                                                 .choice = (uint32_t)q->index,
                                                 .position = (uint32_t)position + 1,
                                                 .prompt = r->prompt,
                                                 .n_prompt = r->n_prompt,
                                                 .output = q->ids,
                                                 .n_output = n_output,
                                                 .bias = p->bias,
                                                 .n_bias = p->n_bias,
                                                 .banned = early ? r->banned : NULL,
                                                 .n_banned = early ? r->n_banned : 0,
                                                 .n_top = p->logprobs > 0 ? p->logprobs : 0,
                                                 .target = -1,
                                                 .draw = true};
}

/* Row of a prompt whose log-probabilities are wanted: of the next token, which is known. */
static void add_prompt_logit(sf_batch *b, const sf_seq *q, int row, int position) {
    add_logit(b, q, row, position, 0);
    sf_sample *s = &b->samples[b->pass.n_logits - 1];
    s->n_top = q->req->params.prompt_logprobs;
    s->target = q->req->prompt[position + 1];
    s->draw = false;
}

static void fill_prefill(sf_batch *b, const sf_seq *q, const sf_segment *seg) {
    const sf_request *r = q->req;
    for (int i = 0; i < seg->rows; i++) {
        int pos = seg->pos0 + i, row = seg->first_row + i;
        b->tokens[row] = r->prompt[pos];
        if (pos + 1 == r->n_prompt)
            add_logit(b, q, row, pos, 0);
        else if (wants_prompt_lp(q))
            add_prompt_logit(b, q, row, pos);
    }
}

static void fill_decode(sf_batch *b, const sf_seq *q, const sf_segment *seg, int n_output, bool draft) {
    for (int i = 0; i < seg->rows; i++) {
        b->tokens[seg->first_row + i] = q->ids[n_output - 1 + i];
        add_logit(b, q, seg->first_row + i, seg->pos0 + i, n_output + i);
        if (draft)
            b->samples[b->pass.n_logits - 1].n_top = 0; /* a draft's log-probabilities are never shown */
    }
}

/* Debugging: a candidate of this window becomes another token, as if the draft had erred. */
static void inject(sf_seq *q, int offset, int vocab) {
    if (offset < 0 || offset >= sf_seq_candidates(q) || offset >= q->take) return;
    int32_t *c = &q->ids[q->committed.n_tokens + offset];
    *c = (*c + 1) % vocab;
}

/* Room in the table for the pages of positions 0..positions-1. */
static sf_code grow_pages(sf_seq *q, int positions, const sf_kv *kv, sf_err *err) {
    int need = sf_kv_pages_for(kv, positions);
    if (need <= q->pages_cap) return SF_OK;
    int cap = sf_min_int(need * 2, q->reserved);
    int32_t *pages = realloc(q->pages, (size_t)cap * sizeof *pages);
    if (!pages) return SF_FAIL(err, SF_NOMEM, "a table of %d KV pages", cap);
    q->pages = pages;
    q->pages_cap = cap;
    return SF_OK;
}

/* Takes them; new ones are listed for zeroing. */
static void cover(sf_batch *b, sf_seq *q, int positions, sf_kv *kv) {
    int need = sf_kv_pages_for(kv, positions);
    while (q->n_pages < need) {
        q->pages[q->n_pages] = sf_kv_take(kv);
        b->fresh[b->pass.n_fresh++] = q->pages[q->n_pages++];
    }
}

static sf_code add_segment(sf_batch *b, const sf_sched_config *cfg, sf_seq *q, sf_kv *kv, int vocab,
                           sf_err *err) {
    sf_pass *p = &b->pass;
    bool prefill = sf_seq_prefilling(q);
    bool draft = !prefill && p->cls == SF_CLASS_FAST && q->req->params.deterministic;
    const sf_state *st = draft ? &q->draft : &q->committed;
    sf_segment *seg = &b->segs[p->n_segs];
    bool verify = !prefill && p->cls == SF_CLASS_PINNED && sf_seq_candidates(q) > 0;
    *seg = (sf_segment){.kind = prefill  ? SF_SEG_PREFILL
                                : verify ? SF_SEG_VERIFY
                                         : SF_SEG_DECODE,
                        .first_row = p->rows,
                        .rows = q->take,
                        .pos0 = st->kv_len};
    SF_TRY(sf_seq_reserve(q, prefill ? 1 : st->n_tokens + q->take, err));
    SF_TRY(grow_pages(q, seg->pos0 + seg->rows, kv, err));
    cover(b, q, seg->pos0 + seg->rows, kv);
    seg->pages = q->pages;
    sf_entry *e = &b->entries[p->n_segs];
    *e = (sf_entry){.seq = q, .first_logit = p->n_logits};
    if (prefill) {
        fill_prefill(b, q, seg);
    } else {
        if (p->cls == SF_CLASS_PINNED) inject(q, cfg->inject_offset, vocab);
        fill_decode(b, q, seg, st->n_tokens, draft);
    }
    e->n_logits = p->n_logits - e->first_logit;
    p->rows += seg->rows;
    p->n_segs++;
    return SF_OK;
}

void sf_batch_plan(sf_batch *b, sf_class cls, const sf_sched_config *cfg, const sf_demand *d,
                   sf_seq *const *run, int n_run, sf_kv *kv, int vocab) {
    budget left = {b->max_rows, b->max_logits};
    for (int i = 0; i < n_run; i++)
        run[i]->take = 0;
    pick_decode(b, cls, cfg->window, d->prefill_rows > 0, run, n_run, &left);
    if (cls == SF_CLASS_PINNED) pick_windows(b, cfg->window, d, run, n_run, &left);
    pick_prefill(cls, sf_policy_splits(cfg, d), cfg->prefill_chunk, run, n_run, &left);

    b->pass = (sf_pass){.cls = cls,
                        .tokens = b->tokens,
                        .segs = b->segs,
                        .fresh = b->fresh,
                        .logit_row = b->logit_row,
                        .samples = b->samples,
                        .out = b->out};
    for (int i = 0; i < n_run; i++) {
        sf_err err;
        if (run[i]->take == 0 || run[i]->req->failed) continue;
        if (add_segment(b, cfg, run[i], kv, vocab, &err) != SF_OK) sf_request_fail(run[i]->req, &err);
    }
}

/* ---- the pass after the one in flight ---- */

static bool by_history(const sf_params *p) {
    return p->repetition_penalty != 1.0f || p->frequency_penalty != 0.0f || p->presence_penalty != 0.0f;
}

/* Whether the sequence of a decode row has another one in the pass after it, whatever it draws but an end. */
static bool goes_on(const sf_seq *q, const sf_segment *seg, sf_class cls, const sf_sched_config *cfg) {
    const bool det = q->req->params.deterministic, drafts = det && cls == SF_CLASS_FAST;
    const sf_state *st = drafts ? &q->draft : &q->committed;
    if (!live(q) || sf_seq_prefilling(q) || seg->kind != SF_SEG_DECODE || seg->rows != 1) return false;
    if (st->finish != SF_FINISH_NONE || st->dead || st->n_tokens + 1 >= q->max_out) return false;
    if (by_history(&q->req->params) || q->expected) return false;
    if (drafts) return sf_seq_candidates(q) + 1 < cfg->window - 1;
    /* a pinned pass over candidates is a verify pass; under `verify` a fast one would come next */
    return !det || (cfg->policy == SF_POLICY_PIN && sf_seq_candidates(q) == 0);
}

static int n_output_after(const sf_seq *q, sf_class cls) {
    const bool drafts = q->req->params.deterministic && cls == SF_CLASS_FAST;
    return (drafts ? q->draft : q->committed).n_tokens + 1;
}

static void follow_one(sf_batch *next, const sf_batch *b, int i, sf_kv *kv) {
    sf_seq *q = b->entries[i].seq;
    next->segs[i] = b->segs[i];
    next->segs[i].pos0++;
    cover(next, q, next->segs[i].pos0 + 1, kv);
    next->segs[i].pages = q->pages;
    next->entries[i] = (sf_entry){.seq = q, .first_logit = i, .n_logits = 1};
    next->tokens[i] = -1 - i;
    next->logit_row[i] = i;
    sf_sample *s = &next->samples[i];
    *s = b->samples[i];
    s->position++;
    s->prompt = s->output = NULL; /* nobody looks at the history */
    s->n_prompt = s->n_output = 0;
    if (n_output_after(q, b->pass.cls) >= q->req->params.min_tokens) s->n_banned = 0;
}

bool sf_batch_follow(sf_batch *next, const sf_batch *b, const sf_sched_config *cfg, int n_run, sf_kv *kv) {
    const sf_pass *p = &b->pass;
    if (p->n_segs != n_run || p->n_logits != p->n_segs || p->rows != p->n_segs) return false;
    for (int i = 0; i < p->n_segs; i++)
        if (!goes_on(b->entries[i].seq, &b->segs[i], p->cls, cfg)) return false;
    for (int i = 0; i < p->n_segs; i++) {
        sf_seq *q = b->entries[i].seq;
        sf_err err;
        if (sf_seq_reserve(q, n_output_after(q, p->cls) + 1, &err) != SF_OK) return false;
        if (grow_pages(q, b->segs[i].pos0 + 2, kv, &err) != SF_OK) return false;
    }
    next->turn = b->turn;
    next->window_turn = b->window_turn;
    next->pass = (sf_pass){.cls = p->cls,
                           .rows = p->rows,
                           .tokens = next->tokens,
                           .n_fed = p->n_logits,
                           .n_segs = p->n_segs,
                           .segs = next->segs,
                           .fresh = next->fresh,
                           .n_logits = p->n_logits,
                           .logit_row = next->logit_row,
                           .samples = next->samples,
                           .out = next->out};
    for (int i = 0; i < p->n_segs; i++)
        follow_one(next, b, i, kv);
    return true;
}
