#include "sched/fake.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The contract is checked in every build, on whatever thread steps. */
#define MUST(cond)                                                                                           \
    do {                                                                                                     \
        if (!(cond)) {                                                                                       \
            fprintf(stderr, "%s:%d: the device contract is broken: %s\n", __FILE__, __LINE__, #cond);        \
            abort();                                                                                         \
        }                                                                                                    \
    } while (0)

uint64_t fake_mix(uint64_t x) { /* splitmix64's finaliser (Steele et al., OOPSLA 2014) */
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

static uint64_t mix_float(uint64_t h, float f) {
    uint32_t u;
    memcpy(&u, &f, sizeof u);
    return fake_mix(h ^ u);
}

static uint64_t mix_ids(uint64_t h, const int32_t *ids, int n) {
    for (int i = 0; i < n; i++)
        h = fake_mix(h ^ (uint64_t)(uint32_t)ids[i]);
    return fake_mix(h ^ (uint64_t)n << 32);
}

static bool banned(const sf_sample *s, int32_t token) {
    for (int i = 0; i < s->n_banned; i++)
        if (s->banned[i] == token) return true;
    return false;
}

static float logprob_of(uint64_t h) {
    return -(float)(fake_mix(h) % 100000u) / 4096.0f;
}

void fake_model(const int32_t *tokens, int n, const sf_sample *s, sf_row_out *out) {
    uint64_t logits = mix_ids(1, tokens, n), h = mix_float(logits, s->temperature);
    h = fake_mix(mix_float(mix_float(h, s->top_p), s->min_p) ^ (uint64_t)s->top_k);
    for (int i = 0; i < s->n_bias; i++)
        h = mix_float(fake_mix(h ^ (uint64_t)s->bias[i].token), s->bias[i].bias);
    if (s->temperature > 0.0f)
        h = fake_mix(fake_mix(h ^ s->seed) ^ ((uint64_t)s->choice << 32 | s->position));
    /* A wrong output history shows when a penalty is on. */
    if (s->repetition_penalty != 1.0f || s->frequency_penalty != 0.0f || s->presence_penalty != 0.0f) {
        h = mix_float(mix_float(h, s->repetition_penalty), s->frequency_penalty);
        h = mix_ids(mix_ids(mix_float(h, s->presence_penalty), s->prompt, s->n_prompt), s->output,
                    s->n_output);
    }
    int32_t token = (int32_t)(h % FAKE_VOCAB);
    while (banned(s, token))
        token = (token + 1) % FAKE_VOCAB;
    *out = (sf_row_out){.token = s->draw ? token : -1, .n_top = s->n_top};
    out->logprob = logprob_of(logits ^ (uint64_t)(uint32_t)token << 20);
    out->rank = 1 + (int32_t)(fake_mix(logits ^ 77u) % FAKE_VOCAB);
    if (s->target >= 0) {
        out->target_logprob = logprob_of(logits ^ (uint64_t)(uint32_t)s->target << 20);
        out->target_rank = 1 + (int32_t)(fake_mix(logits ^ (uint64_t)(uint32_t)s->target) % FAKE_VOCAB);
    }
    for (int i = 0; i < s->n_top; i++) {
        out->top_id[i] = (int32_t)(fake_mix(logits + (uint64_t)i) % FAKE_VOCAB);
        out->top_logprob[i] = logprob_of(logits + 1000u + (uint64_t)i);
    }
}

static fake_entry *entry_at(const fake_device *d, const int32_t *pages, int pos) {
    return &d->kv[pages[pos / FAKE_PAGE] * FAKE_PAGE + pos % FAKE_PAGE];
}

static void check_samples(const fake_device *d, const sf_pass *p) {
    MUST(p->n_logits >= 0 && p->n_logits <= d->plan.max_logit_rows);
    for (int i = 0; i < p->n_logits; i++) {
        MUST(p->logit_row[i] >= 0 && p->logit_row[i] < p->rows);
        MUST(i == 0 || p->logit_row[i] > p->logit_row[i - 1]);
        MUST(p->samples[i].n_top >= 0 && p->samples[i].n_top <= SF_TOP_MAX);
        MUST(p->samples[i].n_banned <= SF_STOP_MAX);
        MUST(p->samples[i].draw || p->samples[i].target >= 0);
    }
}

static void zero_fresh(fake_device *d, const sf_pass *p) {
    for (int i = 0; i < p->n_fresh; i++) {
        int page = p->fresh[i];
        MUST(page >= 0 && page < d->base.n_pages);
        memset(&d->kv[page * FAKE_PAGE], 0, FAKE_PAGE * sizeof(fake_entry));
        d->zeroed[page]++;
        d->owner[page] = -1;
        for (int k = 0; k < i; k++)
            MUST(p->fresh[k] != page);
    }
}

/* Each page a segment reaches is this sequence's alone, and was zeroed since it was another's. */
static void check_pages(fake_device *d, const sf_segment *seg) {
    int n = (seg->pos0 + seg->rows + FAKE_PAGE - 1) / FAKE_PAGE;
    for (int i = 0; i < n; i++) {
        int page = seg->pages[i], head = seg->pages[0];
        MUST(page >= 0 && page < d->base.n_pages);
        if (d->owner[page] < 0) {
            d->owner[page] = head;
            d->owner_gen[page] = d->zeroed[head];
        }
        MUST(d->owner[page] == head && d->owner_gen[page] == d->zeroed[head]);
    }
}

static void *copy_of(const void *from, size_t n, size_t size) {
    void *to = malloc(n * size + 1);
    MUST(to);
    if (n > 0) memcpy(to, from, n * size);
    return to;
}

static void copy_pages(fake_flight *f, const sf_pass *p) {
    enum { MOST = FAKE_CONTEXT / FAKE_PAGE };
    f->pages = calloc((size_t)p->n_segs * MOST + 1, sizeof *f->pages);
    MUST(f->pages);
    for (int i = 0; i < p->n_segs; i++) {
        const int n = (f->segs[i].pos0 + f->segs[i].rows + FAKE_PAGE - 1) / FAKE_PAGE;
        memcpy(f->pages + i * MOST, f->segs[i].pages, (size_t)n * sizeof *f->pages);
        f->segs[i].pages = f->pages + i * MOST;
    }
}

static void copy_outputs(fake_flight *f, const sf_pass *p) {
    f->outputs = calloc((size_t)p->n_logits * FAKE_CONTEXT + 1, sizeof *f->outputs);
    MUST(f->outputs);
    for (int i = 0; i < p->n_logits; i++) {
        if (f->samples[i].n_output == 0) continue;
        memcpy(f->outputs + i * FAKE_CONTEXT, f->samples[i].output,
               (size_t)f->samples[i].n_output * sizeof *f->outputs);
        f->samples[i].output = f->outputs + i * FAKE_CONTEXT;
    }
}

static void flight_open(fake_flight *f, const sf_pass *p, bool copies) {
    *f = (fake_flight){.pass = *p};
    if (!copies) return;
    f->pass.tokens = f->tokens = copy_of(p->tokens, (size_t)p->rows, sizeof *f->tokens);
    f->pass.fresh = f->fresh = copy_of(p->fresh, (size_t)p->n_fresh, sizeof *f->fresh);
    f->pass.logit_row = f->logit_row = copy_of(p->logit_row, (size_t)p->n_logits, sizeof *f->logit_row);
    f->pass.segs = f->segs = copy_of(p->segs, (size_t)p->n_segs, sizeof *f->segs);
    f->pass.samples = f->samples = copy_of(p->samples, (size_t)p->n_logits, sizeof *f->samples);
    copy_pages(f, p);
    copy_outputs(f, p);
}

static void flight_fini(fake_flight *f) {
    free(f->tokens);
    free(f->fresh);
    free(f->logit_row);
    free(f->segs);
    free(f->samples);
    free(f->pages);
    free(f->outputs);
}

static sf_code fake_launch(sf_device *base, const sf_pass *p, sf_err *err) {
    fake_device *d = (fake_device *)base;
    MUST(d->n_flights < (d->base.feeds ? 2 : 1));
    MUST(p->n_fed == 0 || (d->n_flights == 1 && p->n_fed == d->flights[0].pass.n_logits));
    if (d->n_pass == d->launch_fail_at) return SF_FAIL(err, SF_DEVICE, "the launch failed on purpose");
    MUST(p->rows >= 1 && p->rows <= d->plan.max_rows);
    check_samples(d, p);
    zero_fresh(d, p);
    int row = 0;
    for (int i = 0; i < p->n_segs; i++) {
        const sf_segment *seg = &p->segs[i];
        MUST(seg->first_row == row && seg->rows >= 1 && seg->pos0 >= 0);
        MUST(seg->pos0 + seg->rows <= d->plan.max_context);
        MUST(seg->kind != SF_SEG_VERIFY || p->cls == SF_CLASS_PINNED);
        MUST(seg->kind != SF_SEG_DECODE || seg->rows == 1);
        check_pages(d, seg);
        for (int k = 0; k < i; k++)
            MUST(p->segs[k].pages[0] != seg->pages[0]);
        row += seg->rows;
    }
    MUST(row == p->rows);
    flight_open(&d->flights[d->n_flights++], p, d->base.feeds);
    return SF_OK;
}

static void draw(fake_device *d, const sf_segment *seg, int pos, const int32_t *tokens, bool taint,
                 const sf_sample *s, sf_row_out *out) {
    sf_class cls = d->pass->cls;
    MUST(s->position == (uint32_t)pos + 1);
    if (d->pass->n_fed > 0) { /* its end is not known yet, so nothing may depend on it */
        MUST(s->n_output == 0 && s->repetition_penalty == 1.0f && s->frequency_penalty == 0.0f &&
             s->presence_penalty == 0.0f);
    } else if (s->draw) { /* the history given is the history that was fed */
        MUST(s->n_prompt + s->n_output == pos + 1);
        MUST(memcmp(tokens, s->prompt, (size_t)s->n_prompt * sizeof *tokens) == 0);
        MUST(s->n_output == 0 ||
             memcmp(tokens + s->n_prompt, s->output, (size_t)s->n_output * sizeof *tokens) == 0);
        MUST(seg->kind == SF_SEG_PREFILL ? s->n_output == 0 : s->n_output > 0);
    }
    fake_model(tokens, pos + 1, s, out);
    if (cls == SF_CLASS_FAST || taint) { /* must never be seen as pinned */
        out->logprob -= 1000.0f;
        out->target_logprob -= 1000.0f;
    }
    uint64_t h = fake_mix((uint64_t)d->n_pass << 20 ^ (uint64_t)(uint32_t)pos << 8 ^ s->seed);
    if (cls == SF_CLASS_FAST && s->draw && (int)(h % 1000u) < d->err_per_mille)
        out->token = (out->token + 1 + (int32_t)(h >> 32) % 7 + 7) % FAKE_VOCAB;
    if (d->bad[cls] && pos == d->bad_pos && s->seed == d->bad_seed)
        *out = (sf_row_out){.token = -1, .bad = true};
}

static void run_segment(fake_device *d, const sf_segment *seg, int *logit) {
    const sf_pass *p = d->pass;
    int32_t tokens[FAKE_CONTEXT];
    bool taint = false;
    for (int pos = 0; pos < seg->pos0 + seg->rows; pos++) {
        fake_entry *e = entry_at(d, seg->pages, pos);
        int row = seg->first_row + pos - seg->pos0;
        if (pos >= seg->pos0) {
            int32_t token = p->tokens[row];
            MUST(token >= -p->n_fed && token < FAKE_VOCAB);
            if (token < 0) token = d->drawn[-1 - token];
            if (token < 0) token = 0; /* of a row with bad logits: its request ends */
            *e = (fake_entry){token, pos, true, taint || p->cls == SF_CLASS_FAST};
        }
        MUST(e->written && e->pos == pos);
        tokens[pos] = e->token;
        taint = taint || e->taint;
        if (pos >= seg->pos0 && *logit < p->n_logits && p->logit_row[*logit] == row) {
            draw(d, seg, pos, tokens, taint, &p->samples[*logit], &p->out[*logit]);
            ++*logit;
        }
    }
}

static void run_flight(fake_device *d, const fake_flight *f) {
    int logit = 0;
    d->pass = &f->pass;
    MUST(f->pass.n_fed == 0 || f->pass.n_fed == d->n_drawn);
    d->n_fed += f->pass.n_fed > 0;
    for (int i = 0; i < f->pass.n_segs; i++)
        run_segment(d, &f->pass.segs[i], &logit);
    MUST(logit == f->pass.n_logits);
    for (int i = 0; i < logit; i++)
        d->drawn[i] = f->pass.out[i].token;
    d->n_drawn = logit;
}

static sf_code fake_sync(sf_device *base, double *us, sf_err *err) {
    fake_device *d = (fake_device *)base;
    MUST(d->n_flights > 0);
    fake_flight f = d->flights[0];
    d->flights[0] = d->flights[1];
    d->n_flights--;
    bool fails = d->n_pass++ == d->fail_at;
    if (!fails) run_flight(d, &f);
    flight_fini(&f);
    if (fails) return SF_FAIL(err, SF_DEVICE, "the device failed on purpose");
    if (us) *us = 1.0;
    return SF_OK;
}

void fake_device_init(fake_device *d, int n_pages, int max_rows, int max_logit_rows) {
    static const sf_device_ops ops = {.launch = fake_launch, .sync = fake_sync};
    *d = (fake_device){.fail_at = -1, .launch_fail_at = -1, .bad_pos = -1};
    d->plan = (sf_plan){.engine = "fake",
                        .policy = "verify",
                        .page_size = FAKE_PAGE,
                        .max_rows = max_rows,
                        .max_logit_rows = max_logit_rows,
                        .max_context = FAKE_CONTEXT,
                        .max_seqs = 32,
                        .kv_pages = n_pages,
                        .window = 8,
                        .prefill_chunk = 32,
                        .verify_wait = 4,
                        .model = {.vocab = FAKE_VOCAB, .n_eos = 2, .eos = {FAKE_EOS, FAKE_EOS2}}};
    d->base = (sf_device){.ops = &ops, .plan = &d->plan, .n_pages = n_pages};
    size_t n = (size_t)n_pages;
    d->kv = calloc(n * FAKE_PAGE, sizeof *d->kv);
    d->owner = calloc(n, sizeof *d->owner);
    d->owner_gen = calloc(n, sizeof *d->owner_gen);
    d->zeroed = calloc(n, sizeof *d->zeroed);
    d->drawn = calloc((size_t)max_logit_rows, sizeof *d->drawn);
    MUST(d->kv && d->owner && d->owner_gen && d->zeroed && d->drawn);
    for (int i = 0; i < n_pages; i++)
        d->owner[i] = n_pages; /* nobody's: must be zeroed first */
}

void fake_device_fini(fake_device *d) {
    MUST(d->n_flights == 0);
    free(d->drawn);
    free(d->kv);
    free(d->owner);
    free(d->owner_gen);
    free(d->zeroed);
}
