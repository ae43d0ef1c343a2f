#include "engine/selftest_priv.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Steele, Lea, Flood: Fast splittable pseudorandom number generators (2014). */
static uint64_t splitmix(uint64_t *state) {
    uint64_t z = (*state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

sf_code st_seq_init(st_seq *s, const sf_plan *plan, uint64_t seed, int n, int first_page, sf_err *err) {
    int n_pages = (n + plan->page_size - 1) / plan->page_size;
    int32_t *tokens = malloc(((size_t)n + 1) * sizeof *tokens);
    int32_t *pages = malloc((size_t)n_pages * sizeof *pages);
    if (!tokens || !pages) {
        free(tokens);
        free(pages);
        return SF_FAIL(err, SF_NOMEM, "out of memory for a sequence of %d tokens", n);
    }
    uint64_t state = seed;
    for (int i = 0; i <= n; i++)
        tokens[i] = (int32_t)(splitmix(&state) % (uint64_t)(plan->model.vocab - 1));
    for (int i = 0; i < n_pages; i++)
        pages[i] = first_page + i;
    *s = (st_seq){.seed = seed, .n = n, .tokens = tokens, .pages = pages, .n_pages = n_pages};
    return SF_OK;
}

void st_seq_fini(st_seq *s) {
    free(s->tokens);
    free(s->pages);
    *s = (st_seq){0};
}

static size_t kv_length(const sf_plan *plan) {
    return (size_t)plan->model.layers * (size_t)plan->model.kv_heads * 2 * (size_t)plan->model.head_dim;
}

sf_code st_trace_init(st_trace *t, const sf_plan *plan, int n, sf_err *err) {
    size_t kv_len = kv_length(plan);
    uint16_t *kv = malloc((size_t)n * kv_len * sizeof *kv);
    sf_row_out *out = calloc((size_t)n, sizeof *out);
    if (!kv || !out) {
        free(kv);
        free(out);
        return SF_FAIL(err, SF_NOMEM, "out of memory for a trace of %d rows", n);
    }
    *t = (st_trace){.n = n, .kv_len = kv_len, .kv = kv, .out = out};
    return SF_OK;
}

void st_trace_fini(st_trace *t) {
    free(t->kv);
    free(t->out);
    *t = (st_trace){0};
}

sf_code st_rig_init(st_rig *r, sf_device *d, const st_seq *own, sf_err *err) {
    const sf_plan *plan = d->plan;
    size_t rows = (size_t)plan->max_rows, logits = (size_t)plan->max_logit_rows;
    st_rig n = {.d = d, .plan = plan, .own = own, .fresh_cap = d->n_pages, .kv_len = kv_length(plan)};
    n.tokens = malloc(rows * sizeof *n.tokens);
    n.segs = malloc(rows * sizeof *n.segs);
    n.logit_row = malloc(logits * sizeof *n.logit_row);
    n.samples = malloc(logits * sizeof *n.samples);
    n.out = malloc(logits * sizeof *n.out);
    n.fresh = malloc((size_t)n.fresh_cap * sizeof *n.fresh);
    n.kv = malloc(n.kv_len * sizeof *n.kv);
    if (!n.tokens || !n.segs || !n.logit_row || !n.samples || !n.out || !n.fresh || !n.kv) {
        st_rig_fini(&n);
        return SF_FAIL(err, SF_NOMEM, "out of memory for a pass of %d rows", plan->max_rows);
    }
    *r = n;
    return SF_OK;
}

void st_rig_fini(st_rig *r) {
    free(r->tokens);
    free(r->segs);
    free(r->logit_row);
    free(r->samples);
    free(r->out);
    free(r->fresh);
    free(r->kv);
    *r = (st_rig){0};
}

void st_begin(st_rig *r, sf_class cls) {
    r->pass = (sf_pass){.cls = cls,
                        .tokens = r->tokens,
                        .segs = r->segs,
                        .fresh = r->fresh,
                        .logit_row = r->logit_row,
                        .samples = r->samples,
                        .out = r->out};
}

void st_fresh(st_rig *r, const st_seq *s, int pos0) {
    for (int i = pos0 / r->plan->page_size; i < s->n_pages && r->pass.n_fresh < r->fresh_cap; i++)
        r->fresh[r->pass.n_fresh++] = s->pages[i];
}

static sf_sample sample_of(const st_rig *r, const st_seq *s, int pos) {
    bool own = s == r->own;
    sf_sample p = {.temperature = 0.8f,
                   .top_p = 0.95f,
                   .repetition_penalty = pos % 2 ? 1.1f : 1.0f,
                   .seed = s->seed,
                   .position = (uint32_t)pos + 1,
                   .prompt = s->tokens,
                   .n_prompt = pos + 1,
                   .n_top = own ? ST_TOP : pos % (SF_TOP_MAX + 1),
                   .target = s->tokens[pos + 1],
                   .draw = true};
    if (s->hostile) {
        p.temperature = 1e-30f;
        p.top_k = 1 + pos % 3;
        p.top_p = 1e-6f;
        p.min_p = 1.0f;
        p.repetition_penalty = 1e30f;
        p.frequency_penalty = -1e30f;
        p.presence_penalty = 1e30f;
        p.output = s->tokens;
        p.n_output = pos + 1;
    }
    return p;
}

int st_add(st_rig *r, const st_seq *s, int pos0, int rows, int logits_from) {
    sf_pass *p = &r->pass;
    if (rows > r->plan->max_rows - p->rows) rows = r->plan->max_rows - p->rows;
    if (rows > s->n - pos0) rows = s->n - pos0;
    if (rows <= 0) return 0;
    bool own = s == r->own;
    /* Neighbours before the own segment leave it at least half of the logit rows. */
    int room = own ? r->plan->max_logit_rows : r->plan->max_logit_rows / 2;
    for (int i = 0; i < rows; i++) {
        int row = p->rows + i, pos = pos0 + i;
        r->tokens[row] = s->tokens[pos];
        bool wanted = own ? pos >= logits_from && !r->no_logits : i == rows - 1;
        if (!wanted || p->n_logits >= room) continue;
        r->logit_row[p->n_logits] = row;
        r->samples[p->n_logits++] = sample_of(r, s, pos);
    }
    sf_seg_kind kind = rows == 1 ? SF_SEG_DECODE : rows <= 64 && pos0 > 0 ? SF_SEG_VERIFY : SF_SEG_PREFILL;
    r->segs[p->n_segs++] =
        (sf_segment){.kind = kind, .first_row = p->rows, .rows = rows, .pos0 = pos0, .pages = s->pages};
    p->rows += rows;
    return rows;
}

sf_code st_run(st_rig *r, sf_err *err) {
    SF_TRY(r->d->ops->launch(r->d, &r->pass, err));
    return r->d->ops->sync(r->d, NULL, err);
}

static sf_code read_kv(st_rig *r, int pos, uint16_t *out, sf_err *err) {
    const sf_model_desc *m = &r->plan->model;
    int page = r->own->pages[pos / r->plan->page_size], offset = pos % r->plan->page_size;
    for (int l = 0; l < m->layers; l++) {
        for (int h = 0; h < m->kv_heads; h++) {
            uint16_t *k = out + (size_t)(l * m->kv_heads + h) * 2 * (size_t)m->head_dim;
            SF_TRY(r->d->ops->kv_read(r->d, page, offset, l, h, k, k + m->head_dim, err));
        }
    }
    return SF_OK;
}

static bool same_bits(float a, float b) {
    return memcmp(&a, &b, sizeof a) == 0;
}

const char *st_out_differs(const sf_row_out *a, const sf_row_out *b) {
    if (a->token != b->token) return "drawn token";
    if (!same_bits(a->logprob, b->logprob)) return "log-probability";
    if (a->rank != b->rank) return "rank";
    if (!same_bits(a->target_logprob, b->target_logprob)) return "target's log-probability";
    if (a->target_rank != b->target_rank) return "target's rank";
    if (a->n_top != b->n_top) return "number of top log-probabilities";
    for (int i = 0; i < a->n_top; i++) {
        if (a->top_id[i] != b->top_id[i]) return "top token";
        if (!same_bits(a->top_logprob[i], b->top_logprob[i])) return "top log-probability";
    }
    return a->bad != b->bad ? "bad flag" : NULL;
}

const sf_row_out *st_find_out(const st_rig *r, int pos) {
    for (int i = 0; i < r->pass.n_logits; i++) {
        for (int s = 0; s < r->pass.n_segs; s++) {
            const sf_segment *g = &r->segs[s];
            if (g->pages == r->own->pages && g->first_row + (pos - g->pos0) == r->logit_row[i] &&
                pos >= g->pos0 && pos < g->pos0 + g->rows)
                return &r->out[i];
        }
    }
    return NULL;
}

/* Notes one compared row; where says what differs, NULL for nothing. */
static void note(const st_rig *r, st_diff *diff, int pos, const sf_segment *g, const char *where) {
    diff->rows++;
    if (!where) return;
    if (diff->differing++ == 0) {
        snprintf(
            diff->first, sizeof diff->first,
            "%s at position %d differs (row %d of a pass of %d rows, segment of %d rows from position %d)",
            where, pos, g->first_row + pos - g->pos0, r->pass.rows, g->rows, g->pos0);
    }
}

static sf_code compare_row(st_rig *r, int pos, const sf_segment *g, st_diff *diff, sf_err *err) {
    const sf_model_desc *m = &r->plan->model;
    const uint16_t *want = r->trace->kv + (size_t)pos * r->kv_len;
    SF_TRY(read_kv(r, pos, r->kv, err));
    char kv_where[64];
    const char *where = NULL;
    for (size_t i = 0; i < r->kv_len && !where; i++) {
        if (r->kv[i] == want[i]) continue;
        size_t head = i / (size_t)m->head_dim;
        snprintf(kv_where, sizeof kv_where, "%s of layer %zu", head % 2 ? "V" : "K",
                 head / 2 / (size_t)m->kv_heads);
        where = kv_where;
    }
    const sf_row_out *out = st_find_out(r, pos);
    if (!where && out) where = st_out_differs(out, &r->trace->out[pos]);
    note(r, diff, pos, g, where);
    return SF_OK;
}

sf_code st_compare(st_rig *r, st_diff *diff, sf_err *err) {
    for (int s = 0; s < r->pass.n_segs; s++) {
        const sf_segment *g = &r->segs[s];
        if (g->pages != r->own->pages) continue;
        for (int pos = g->pos0; pos < g->pos0 + g->rows; pos++)
            SF_TRY(compare_row(r, pos, g, diff, err));
    }
    return SF_OK;
}

sf_code st_check(st_rig *r, st_diff *diff, sf_err *err) {
    SF_TRY(st_run(r, err));
    return st_compare(r, diff, err);
}

sf_code st_record_kv(st_rig *r, st_trace *t, sf_err *err) {
    for (int s = 0; s < r->pass.n_segs; s++) {
        const sf_segment *g = &r->segs[s];
        for (int pos = g->pos0; pos < g->pos0 + g->rows && g->pages == r->own->pages; pos++)
            SF_TRY(read_kv(r, pos, t->kv + (size_t)pos * t->kv_len, err));
    }
    return SF_OK;
}

void st_record_out(const st_rig *r, st_trace *t) {
    for (int s = 0; s < r->pass.n_segs; s++) {
        const sf_segment *g = &r->segs[s];
        for (int pos = g->pos0; pos < g->pos0 + g->rows && g->pages == r->own->pages; pos++) {
            const sf_row_out *out = st_find_out(r, pos);
            if (out) t->out[pos] = *out;
        }
    }
}
