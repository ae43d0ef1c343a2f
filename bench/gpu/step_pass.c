#include "gpu/step.h"

#include <stdlib.h>

#include "base/num.h"

#define REPEATS_MAX 256
#define OP_TURNS    9

sf_code step_open(step_bench *b, const sf_engine_config *cfg, sf_err *err) {
    SF_TRY(sf_engine_open(&sf_the_plan, cfg, &b->engine, err));
    b->plan = &sf_the_plan;
    b->cuda = sf_engine_cuda(b->engine);
    if (!b->cuda) return SF_FAIL(err, SF_UNSUPPORTED, "engine %s runs on no GPU", b->plan->engine);
    const size_t rows = (size_t)b->plan->max_rows, logits = (size_t)b->plan->max_logit_rows;
    b->tokens = calloc(rows, sizeof *b->tokens);
    b->segs = calloc(rows, sizeof *b->segs);
    b->pages = calloc((size_t)b->cuda->n_pages, sizeof *b->pages);
    b->logit_row = calloc(logits, sizeof *b->logit_row);
    b->samples = calloc(logits, sizeof *b->samples);
    b->out = calloc(logits, sizeof *b->out);
    if (!b->tokens || !b->segs || !b->pages || !b->logit_row || !b->samples || !b->out)
        return SF_FAIL(err, SF_NOMEM, "no memory for a pass of %zu rows", rows);
    for (int i = 0; i < b->cuda->n_pages; i++)
        b->pages[i] = i;
    return SF_OK;
}

void step_close(step_bench *b) {
    free(b->tokens);
    free(b->segs);
    free(b->pages);
    free(b->logit_row);
    free(b->samples);
    free(b->out);
    sf_engine_close(b->engine);
}

/* Segments of `rows` rows from position pos0, each with the pages of `context` positions; logit rows: the
 * last `logits` of each. */
static sf_code fill(step_bench *b, int first_seq, int groups, int rows, int pos0, int context, int logits,
                    sf_err *err) {
    const sf_plan *p = b->plan;
    const int pages = (context + p->page_size - 1) / p->page_size;
    if ((int64_t)(first_seq + groups) * pages > b->cuda->n_pages || (int64_t)groups * rows > p->max_rows)
        return SF_FAIL(err, SF_INVALID,
                       "%d sequences of %d positions need %lld pages of %d, a pass of %d x %d rows holds %d",
                       first_seq + groups, context, (long long)(first_seq + groups) * pages, b->cuda->n_pages,
                       groups, rows, p->max_rows);
    b->pass = (sf_pass){.rows = groups * rows,
                        .tokens = b->tokens,
                        .n_segs = groups,
                        .segs = b->segs,
                        .logit_row = b->logit_row,
                        .samples = b->samples,
                        .out = b->out};
    for (int g = 0; g < groups; g++) {
        b->segs[g] = (sf_segment){.kind = rows == 1 ? SF_SEG_DECODE : SF_SEG_PREFILL,
                                  .first_row = g * rows,
                                  .rows = rows,
                                  .pos0 = pos0,
                                  .pages = b->pages + (size_t)(first_seq + g) * (size_t)pages};
        for (int i = 0; i < rows; i++) {
            const int row = g * rows + i;
            b->tokens[row] = (int32_t)((unsigned)row * 2654435761u % (unsigned)p->model.vocab);
            if (i < rows - logits || b->pass.n_logits == p->max_logit_rows) continue;
            b->samples[b->pass.n_logits] = (sf_sample){.top_p = 1,
                                                       .repetition_penalty = 1,
                                                       .position = (uint32_t)(pos0 + i + 1),
                                                       .target = -1,
                                                       .draw = true};
            b->logit_row[b->pass.n_logits++] = row;
        }
    }
    return SF_OK;
}

sf_code step_prepare(step_bench *b, int groups, int rows, int context, sf_err *err) {
    return fill(b, 0, groups, rows, context - rows, context, rows, err);
}

static bool has_way(const step_bench *b, step_way way) {
    return way != STEP_OWN || sf_cuda_start_get(b->cuda).library_version > 0;
}

static sf_code once(step_bench *b, step_way way, double *us, sf_err *err) {
    b->pass.cls = way == STEP_PINNED ? SF_CLASS_PINNED : SF_CLASS_FAST;
    sf_cuda_library_use(b->cuda, way != STEP_OWN);
    SF_TRY(b->cuda->ops->launch(b->cuda, &b->pass, err));
    return b->cuda->ops->sync(b->cuda, us, err);
}

static int by_value(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *v, int n) {
    qsort(v, (size_t)n, sizeof *v, by_value);
    return v[n / 2];
}

sf_code step_time_ways(step_bench *b, int repeats, double us[STEP_WAYS], sf_err *err) {
    double all[STEP_WAYS][REPEATS_MAX] = {0};
    repeats = sf_min_int(repeats, REPEATS_MAX);
    for (int i = -2; i < repeats; i++) /* two turns warm up */
        for (int w = 0; w < STEP_WAYS; w++)
            if (has_way(b, (step_way)w)) SF_TRY(once(b, (step_way)w, &all[w][i < 0 ? 0 : i], err));
    for (int w = 0; w < STEP_WAYS; w++)
        us[w] = median(all[w], repeats);
    return SF_OK;
}

sf_code step_time_prefill(step_bench *b, step_way way, int prompts, int tokens, int repeats, double *us,
                          sf_err *err) {
    double all[REPEATS_MAX];
    const int most = b->plan->max_rows, together = tokens < most ? most / tokens : 1;
    repeats = sf_min_int(repeats, REPEATS_MAX);
    *us = 0;
    if (!has_way(b, way)) return SF_OK;
    for (int r = -1; r < repeats; r++) {
        double sum = 0;
        for (int first = 0; first < prompts; first += together) {
            const int groups = sf_min_int(together, prompts - first);
            for (int at = 0; at < tokens; at += most) {
                double part = 0;
                const int rows = sf_min_int(most, tokens - at);
                SF_TRY(fill(b, first, groups, rows, at, tokens, at + rows == tokens, err));
                SF_TRY(once(b, way, &part, err));
                sum += part;
            }
        }
        all[r < 0 ? 0 : r] = sum;
    }
    *us = median(all, repeats);
    return SF_OK;
}

/* Bytes of K and V that the pass's segments read once, in one layer. */
static double kv_bytes(const step_bench *b) {
    const sf_model_desc *m = &b->plan->model;
    double positions = 0;
    for (int i = 0; i < b->pass.n_segs; i++)
        positions += b->segs[i].pos0 + b->segs[i].rows;
    return positions * m->kv_heads * m->head_dim * 2 * 2;
}

/* Products of every row with the keys it sees, and of the weights with the values. */
static double attention_flops(const step_bench *b) {
    const sf_model_desc *m = &b->plan->model;
    double pairs = 0;
    for (int i = 0; i < b->pass.n_segs; i++)
        for (int r = 0; r < b->segs[i].rows; r++)
            pairs += b->segs[i].pos0 + r + 1;
    return pairs * m->heads * m->head_dim * 2 * 2;
}

sf_code step_time_op(step_bench *b, sf_class cls, int op, step_op *out, sf_err *err) {
    const sf_op_desc *d = b->plan->ops + op;
    b->pass.cls = cls;
    SF_TRY(sf_cuda_op_time_get(b->cuda, &b->pass, op, OP_TURNS, &out->time, err));
    const int rows = d->scope == SF_SCOPE_HEAD ? b->pass.n_logits : b->pass.rows;
    double bytes = (double)d->weight_bytes + (double)d->row_bytes * rows, flops = (double)d->row_flops * rows;
    if (d->op == SF_OP_ATTENTION || d->op == SF_OP_ATTENTION_LONG) {
        bytes += kv_bytes(b);
        flops += attention_flops(b);
    }
    /* the measured ceilings of an H200: 4.63 TB/s of pure reading, 790 TFLOP/s of a large bf16 product */
    const double memory = bytes / 4.63e6, compute = flops / 790e6;
    out->roof_us = memory > compute ? memory : compute;
    return SF_OK;
}
