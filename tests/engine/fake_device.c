#include "fake_device.h"

#include <stdlib.h>
#include <string.h>

enum { VOCAB = 97, LAYERS = 2, KV_HEADS = 2, HEAD_DIM = 4, PAGE = 16, ROWS = 64, LOGITS = 20, CONTEXT = 300 };

static const sf_bucket buckets[] = {{1, {1, 1}}, {8, {2, 2}}, {32, {4, 4}}, {ROWS, {8, 8}}};

const sf_plan fake_plan = {.engine = "fake-fake",
                           .backend = "cpu",
                           .config = "fake",
                           .gen_hash = "0",
                           .pinned_hash = "1",
                           .model = {.name = "fake",
                                     .family = "llama",
                                     .vocab = VOCAB,
                                     .hidden = 8,
                                     .layers = LAYERS,
                                     .heads = KV_HEADS,
                                     .kv_heads = KV_HEADS,
                                     .head_dim = HEAD_DIM,
                                     .context = CONTEXT},
                           .page_size = PAGE,
                           .max_rows = ROWS,
                           .max_logit_rows = LOGITS,
                           .max_context = CONTEXT,
                           .max_seqs = 8,
                           .kv_pages = 64,
                           .window = 8,
                           .prefill_chunk = 32,
                           .policy = "verify",
                           .isas = "generic avx2",
                           .n_buckets = 4,
                           .buckets = buckets};

typedef struct fake {
    sf_device base;
    fake_fault fault;
    sf_isa isa;
    int threads;
    uint64_t *state; /* [n_pages, PAGE] */
    const sf_pass *pass;
} fake;

static uint64_t mix(uint64_t a, uint64_t b) {
    uint64_t z = a * 0x9e3779b97f4a7c15u + b + 0x7f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    return z ^ (z >> 27);
}

static uint64_t *at(fake *f, const sf_segment *g, int pos) {
    return &f->state[(size_t)g->pages[pos / PAGE] * PAGE + (size_t)(pos % PAGE)];
}

static uint64_t fault_of(fake *f, const sf_segment *g, int pos) {
    const sf_pass *p = f->pass;
    int row = g->first_row + pos - g->pos0;
    switch (f->fault) {
    case FAKE_ROW_INDEX:
        return row >= 8 && g->rows < 8 ? 1 : 0;
    case FAKE_NEIGHBOUR:
        return row == g->first_row && row > 0 ? 1 + (uint64_t)p->tokens[row - 1] : 0;
    case FAKE_STALE: /* rolled-back drafts only: a fresh page holds zeros there */
        return g->rows == 1 && (pos + 1) % PAGE && *at(f, g, pos + 1) != 0;
    case FAKE_FRESH:
        return (pos + 1) % PAGE && *at(f, g, pos + 1) == UINT64_MAX;
    case FAKE_CHUNK:
        return g->pos0 % 7 == 5;
    case FAKE_FAR:
        return pos >= 128 && g->rows == 48;
    case FAKE_ISA:
        return f->isa == SF_ISA_AVX2;
    case FAKE_THREADS:
        return f->threads == 3;
    default:
        return 0;
    }
}

static void run_segment(fake *f, const sf_segment *g) {
    for (int pos = g->pos0; pos < g->pos0 + g->rows; pos++) {
        uint64_t before = pos > 0 ? *at(f, g, pos - 1) : 42;
        uint64_t h = mix(before, (uint64_t)f->pass->tokens[g->first_row + pos - g->pos0]);
        h = mix(h, fault_of(f, g, pos));
        if (f->pass->cls == SF_CLASS_FAST) h = mix(h, (uint64_t)f->pass->rows);
        *at(f, g, pos) = h;
    }
}

static sf_code fake_launch(sf_device *d, const sf_pass *pass, sf_err *err) {
    fake *f = (fake *)d;
    if (f->fault == FAKE_BROKEN) return SF_FAIL(err, SF_DEVICE, "the fake device is broken");
    int row = 0;
    for (int i = 0; i < pass->n_segs; i++) {
        if (pass->segs[i].first_row != row) return SF_FAIL(err, SF_INVALID, "segment %d leaves a gap", i);
        row += pass->segs[i].rows;
    }
    if (row != pass->rows || pass->rows < 1 || pass->rows > ROWS || pass->n_logits > LOGITS)
        return SF_FAIL(err, SF_INVALID, "a pass of %d rows, %d logits", pass->rows, pass->n_logits);
    f->pass = pass;
    for (int i = 0; i < pass->n_fresh && f->fault != FAKE_FRESH; i++)
        memset(&f->state[(size_t)pass->fresh[i] * PAGE], 0, PAGE * sizeof *f->state);
    for (int i = 0; i < pass->n_segs; i++)
        run_segment(f, &pass->segs[i]);
    return SF_OK;
}

static float value(uint64_t h, uint64_t salt) {
    return -(float)(mix(h, salt) % 100000) / 8192.0f;
}

static const sf_segment *segment_of(const sf_pass *p, int row) {
    for (int i = 0; i < p->n_segs; i++)
        if (row < p->segs[i].first_row + p->segs[i].rows) return &p->segs[i];
    return NULL;
}

static void fill(fake *f, int i, sf_row_out *o) {
    const sf_pass *p = f->pass;
    const sf_sample *s = &p->samples[i];
    const sf_segment *g = segment_of(p, p->logit_row[i]);
    uint64_t h = *at(f, g, g->pos0 + p->logit_row[i] - g->first_row);
    float other = i > 0 ? p->samples[i - 1].temperature : s->temperature;
    bool felt = f->fault == FAKE_SAMPLING && other < 1e-20f;
    *o = (sf_row_out){.token = (int32_t)(mix(h, s->seed + s->position + felt) % VOCAB), .rank = 1};
    o->logprob = value(h, f->fault == FAKE_ROWS && p->rows > 8 ? 2 : 1);
    o->target_logprob = value(h, 100 + (uint64_t)s->target);
    o->target_rank = s->target;
    o->n_top = s->n_top;
    for (int k = 0; k < s->n_top; k++) {
        o->top_id[k] = (int32_t)(mix(h, 300 + (uint64_t)k) % VOCAB);
        o->top_logprob[k] = value(h, 400 + (uint64_t)k);
    }
}

static sf_code fake_sync(sf_device *d, double *us, sf_err *err) {
    (void)err;
    fake *f = (fake *)d;
    for (int i = 0; i < f->pass->n_logits; i++)
        fill(f, i, &f->pass->out[i]);
    if (us) *us = 1;
    return SF_OK;
}

static sf_code fake_kv_read(sf_device *d, int page, int offset, int layer, int kv_head, uint16_t *k,
                            uint16_t *v, sf_err *err) {
    (void)err;
    fake *f = (fake *)d;
    uint64_t h = mix(f->state[(size_t)page * PAGE + (size_t)offset], (uint64_t)(layer * KV_HEADS + kv_head));
    for (int i = 0; i < HEAD_DIM; i++) {
        k[i] = (uint16_t)mix(h, (uint64_t)i);
        v[i] = (uint16_t)mix(h, 100 + (uint64_t)i);
    }
    return SF_OK;
}

static void fake_destroy(sf_device *d) {
    free(((fake *)d)->state);
    free(d);
}

static const sf_device_ops ops = {fake_launch, fake_sync, fake_kv_read, fake_destroy};

sf_device *fake_device(fake_fault fault, int n_pages, sf_isa isa, int threads) {
    fake *f = calloc(1, sizeof *f);
    uint64_t *state = malloc((size_t)n_pages * PAGE * sizeof *state);
    if (!f || !state) abort();
    memset(state, 0xff, (size_t)n_pages * PAGE * sizeof *state);
    *f = (fake){{.ops = &ops, .plan = &fake_plan, .n_pages = n_pages}, fault, isa, threads, state, NULL};
    return &f->base;
}

sf_code fake_open(void *ctx, sf_isa isa, int threads, int n_pages, sf_device **out, sf_err *err) {
    (void)err;
    *out = fake_device(*(fake_fault *)ctx, n_pages, isa, threads);
    return SF_OK;
}
