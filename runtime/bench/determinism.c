#include "bench/determinism.h"

#include <stdlib.h>
#include <string.h>

static bool is_deterministic(const sf_bench_results *r, int i) {
    const sf_bench_kind kind = r->sends[i].kind;
    return kind == SF_BENCH_DETERMINISTIC || (kind == SF_BENCH_UNMARKED && r->records[i].pinned);
}

static bool same_output(const sf_bench_record *a, const sf_bench_record *b, bool *by_digest) {
    if (a->digest[0] && b->digest[0]) return strcmp(a->digest, b->digest) == 0;
    *by_digest = false;
    return a->text.len == b->text.len && a->output_tokens == b->output_tokens &&
           (a->text.len == 0 || memcmp(a->text.data, b->text.data, a->text.len) == 0);
}

/* The copies of one prompt, by their indices. */
static void compare_prompt(const sf_bench_results *r, const int *copies, int n, sf_bench_determinism *d) {
    int answers = 0, outputs = 0;
    bool deterministic = false;
    for (int i = 0; i < n; i++) {
        const sf_bench_record *rec = &r->records[copies[i]];
        if (!rec->success) continue;
        bool seen = false;
        for (int k = 0; k < i && !seen; k++) {
            const sf_bench_record *other = &r->records[copies[k]];
            seen = other->success && same_output(rec, other, &d->by_digest);
        }
        answers++;
        outputs += !seen;
        deterministic = deterministic || is_deterministic(r, copies[i]);
    }
    if (answers < 2) return;
    sf_bench_copies *c = deterministic ? &d->deterministic : &d->ordinary;
    c->prompts++;
    c->same += outputs == 1;
    if (outputs > c->most) c->most = outputs;
}

static void count_cost(const sf_bench_results *r, sf_bench_determinism *d) {
    for (int i = 0; i < r->n; i++) {
        const sf_bench_record *rec = &r->records[i];
        if (!rec->success || !rec->has_determinism || !is_deterministic(r, i)) continue;
        d->answers++;
        d->windows += rec->windows;
        d->rollbacks += rec->rollbacks;
        d->tokens_rolled_back += rec->tokens_rolled_back;
        d->tokens += rec->output_tokens;
    }
    if (d->tokens > 0) d->recompute_ratio = (double)(d->tokens + d->tokens_rolled_back) / (double)d->tokens;
}

sf_code sf_bench_compare(const sf_bench_results *r, int copies, const sf_bench_counters *before,
                         const sf_bench_counters *after, sf_bench_determinism *out, sf_err *err) {
    sf_bench_determinism d = {.copies = copies, .by_digest = true};
    int *at = calloc((size_t)r->n, sizeof *at); /* [prompts][copies] */
    if (!at) return SF_FAIL(err, SF_NOMEM, "out of memory for %d answers", r->n);
    for (int i = 0; i < r->n; i++)
        at[r->sends[i].prompt * copies + r->sends[i].copy] = i;
    for (int p = 0; copies > 1 && p < r->n / copies; p++)
        compare_prompt(r, at + p * copies, copies, &d);
    free(at);
    count_cost(r, &d);
    d.counters.there = before->there && after->there;
    for (int i = 0; d.counters.there && i < SF_BENCH_COUNTERS; i++)
        d.counters.v[i] = after->v[i] - before->v[i];
    *out = d;
    return SF_OK;
}
