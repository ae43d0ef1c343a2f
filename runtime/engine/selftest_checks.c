/* The checks that run on the device under test. Each computes rows of the reference's sequence in another
 * way. */
#include "engine/selftest_priv.h"

#include <stdio.h>

#include "base/num.h"

/* Log-probabilities of positions past the first max_logit_rows of a chunk: one more pass over those rows
 * alone, since a whole chunk for each would take most of the selftest's time. */
static sf_code reference_logits(st_rig *r, const st_seq *own, st_trace *t, int from, int end, sf_err *err) {
    for (int at = from; at < end; at += r->plan->max_logit_rows) {
        st_begin(r, SF_CLASS_PINNED);
        st_add(r, own, at, sf_min_int(r->plan->max_logit_rows, end - at), at);
        SF_TRY(st_run(r, err));
        st_record_out(r, t);
    }
    return SF_OK;
}

sf_code st_reference(st_rig *r, const st_seq *own, st_trace *t, sf_err *err) {
    int chunk = r->plan->max_rows;
    for (int at = 0; at < t->n; at += chunk) {
        int end = sf_min_int(at + chunk, t->n);
        st_begin(r, SF_CLASS_PINNED);
        if (at == 0) st_fresh(r, own, 0);
        st_add(r, own, at, end - at, at);
        SF_TRY(st_run(r, err));
        SF_TRY(st_record_kv(r, t, err));
        st_record_out(r, t);
        SF_TRY(reference_logits(r, own, t, at + r->plan->max_logit_rows, end, err));
    }
    return SF_OK;
}

sf_code st_route(st_rig *r, int from, int to, int step, st_diff *diff, sf_err *err) {
    for (int at = from; at < to;) {
        st_begin(r, SF_CLASS_PINNED);
        if (at == 0) st_fresh(r, r->own, 0);
        int added = st_add(r, r->own, at, sf_min_int(step, to - at), 0);
        if (added == 0) break;
        SF_TRY(st_check(r, diff, err));
        at += added;
    }
    return SF_OK;
}

/* A pass of `rows` rows: `before` rows of left, own rows, then neighbours up to the size asked for. */
static sf_code crowd(st_run_ctx *c, st_rig *r, int rows, int before, int pos0, int own_rows, st_diff *diff,
                     sf_err *err) {
    st_begin(r, SF_CLASS_PINNED);
    if (pos0 == 0) st_fresh(r, r->own, 0);
    if (before > 0) {
        st_fresh(r, &c->left, 0);
        before = st_add(r, &c->left, 0, before, 0);
    }
    int after = rows - before - st_add(r, r->own, pos0, own_rows, 0);
    if (after > 0) {
        st_fresh(r, &c->right, 0);
        after -= st_add(r, &c->right, 0, after, 0);
    }
    if (after > 0 && before == 0) {
        st_fresh(r, &c->left, 0);
        st_add(r, &c->left, 0, after, 0);
    }
    return st_check(r, diff, err);
}

/* The smallest pass of each bucket with own rows at its end, the largest with own rows at its beginning. */
static sf_code check_buckets(st_run_ctx *c, st_rig *r, st_diff *diff, sf_err *err) {
    int previous = 0;
    for (int b = 0; b < c->plan->n_buckets; b++) {
        int least = previous + 1, most = sf_min_int(c->plan->buckets[b].rows_max, c->plan->max_rows);
        int own = sf_min_int(3, least);
        SF_TRY(crowd(c, r, least, least - own, 0, own, diff, err));
        if (most > least) SF_TRY(crowd(c, r, most, 0, 0, sf_min_int(most, c->n_short), diff, err));
        previous = most;
    }
    return SF_OK;
}

static sf_code check_positions(st_run_ctx *c, st_rig *r, st_diff *diff, sf_err *err) {
    int base = c->n_short / 3, width = 4, rows = sf_min_int(16, c->plan->max_rows);
    SF_TRY(st_route(r, 0, base, base, diff, err));
    for (int before = 0; before + width <= rows; before++)
        SF_TRY(crowd(c, r, rows, before, base, width, diff, err));
    return SF_OK;
}

static sf_code check_neighbours(st_run_ctx *c, st_rig *r, st_diff *diff, sf_err *err) {
    int base = c->n_short / 3 + 1;
    SF_TRY(st_route(r, 0, base, base, diff, err));
    for (int i = 0; i < 6; i++) {
        c->left.hostile = c->right.hostile = i % 2;
        st_begin(r, SF_CLASS_PINNED);
        /* Neighbours that start later read what earlier passes left in their pages. */
        st_add(r, &c->left, i * 2, 6, 0);
        st_add(r, r->own, base, 5, 0);
        st_add(r, &c->right, i * 3, 1, 0);
        st_add(r, &c->right, i * 3 + 1, 8, 0);
        sf_code rc = st_check(r, diff, err);
        c->left.hostile = c->right.hostile = false;
        SF_TRY(rc);
    }
    return SF_OK;
}

static sf_code poisoned_passes(st_run_ctx *c, st_rig *r, st_seq *left, st_seq *right, st_diff *diff,
                               sf_err *err) {
    int n = sf_min_int(24, c->n_short), base = n / 3;
    for (int i = 0; i <= n; i++)
        left->tokens[i] = right->tokens[i] = c->plan->model.vocab - 1;
    r->no_logits = true; /* a tied head would carry the poison into every row's logits, rightly */
    st_begin(r, SF_CLASS_PINNED);
    st_fresh(r, r->own, 0);
    st_add(r, left, 0, 7, 0);
    st_add(r, r->own, 0, base, 0);
    st_add(r, right, 0, 8, 0);
    SF_TRY(st_check(r, diff, err));
    bool bad = r->pass.n_logits > 0 && r->out[0].bad;
    st_begin(r, SF_CLASS_PINNED);
    st_add(r, left, 7, 1, 0);
    st_add(r, r->own, base, n - base, 0);
    st_add(r, right, 8, 8, 0);
    SF_TRY(st_check(r, diff, err));
    if (!bad && diff->differing++ == 0)
        snprintf(diff->first, sizeof diff->first, "the poisoned row was not reported as bad");
    return SF_OK;
}

static sf_code check_poison(st_run_ctx *c, st_rig *r, st_diff *diff, sf_err *err) {
    const sf_selftest_config *cfg = c->cfg;
    if (!cfg->poison) return SF_OK;
    st_seq left = {0}, right = {0};
    sf_code rc = st_seq_init(&left, c->plan, 1, c->left.n, c->left.pages[0], err);
    if (rc == SF_OK) rc = st_seq_init(&right, c->plan, 2, c->right.n, c->right.pages[0], err);
    if (rc == SF_OK) rc = cfg->poison(cfg->poison_ctx, true, err);
    if (rc == SF_OK) {
        rc = poisoned_passes(c, r, &left, &right, diff, err);
        sf_err undo = {0};
        const sf_code back = cfg->poison(cfg->poison_ctx, false, &undo);
        if (rc == SF_OK && back != SF_OK) {
            rc = back;
            if (err) *err = undo;
        }
    }
    r->no_logits = false;
    st_seq_fini(&left);
    st_seq_fini(&right);
    return rc;
}

/* Own rows in pages that just held infinities and NaNs: zeroing must have removed them. */
static sf_code check_reused_pages(st_run_ctx *c, st_rig *r, st_diff *diff, sf_err *err) {
    st_seq moved = c->own;
    moved.pages = c->left.pages;
    moved.n_pages = c->left.n_pages;
    moved.n = sf_min_int(c->left.n, c->n_short);
    const st_seq *own = r->own;
    r->own = &moved;
    sf_code rc = st_route(r, 0, moved.n, 8, diff, err);
    r->own = own;
    return rc;
}

/* What a rolled-back draft leaves behind a position must not be felt. */
static sf_code check_stale(st_run_ctx *c, st_rig *r, st_diff *diff, sf_err *err) {
    int base = c->n_short / 4, drafts = 4;
    st_seq junk;
    SF_TRY(st_seq_init(&junk, c->plan, 3, c->n_short, c->own.pages[0], err));
    sf_code rc = st_route(r, 0, base, base, diff, err);
    for (int p = base; rc == SF_OK && p < base + 4 && p + 1 + drafts < c->n_short; p++) {
        for (int i = 1; rc == SF_OK && i <= drafts; i++) {
            st_begin(r, SF_CLASS_FAST);
            st_add(r, &junk, p + i, 1, 0);
            rc = st_run(r, err);
        }
        if (rc == SF_OK) rc = st_route(r, p, p + 1, 1, diff, err);
    }
    st_seq_fini(&junk);
    return rc;
}

static sf_code check_chunks(st_run_ctx *c, st_rig *r, st_diff *diff, sf_err *err) {
    static const int steps[] = {7, 16, 33};
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++)
        SF_TRY(st_route(r, 0, c->n_short, steps[i], diff, err));
    return SF_OK;
}

static sf_code check_decode(st_run_ctx *c, st_rig *r, st_diff *diff, sf_err *err) {
    return st_route(r, 0, sf_min_int(c->n_short, 32), 1, diff, err);
}

static sf_code check_windows(st_run_ctx *c, st_rig *r, st_diff *diff, sf_err *err) {
    static const int windows[] = {2, 5, 8, 32, 64};
    for (size_t i = 0; i < sizeof windows / sizeof *windows; i++) {
        SF_TRY(st_route(r, 0, sf_min_int(3, c->n_short), 3, diff, err)); /* windows begin at odd places */
        SF_TRY(st_route(r, 3, windows[i] < 8 ? c->n_short / 2 : c->n_short, windows[i], diff, err));
    }
    return SF_OK;
}

static sf_code check_long(st_run_ctx *c, st_rig *r, st_diff *diff, sf_err *err) {
    int n = c->own.n, tail = sf_min_int(n / 2, 24);
    SF_TRY(st_route(r, 0, n - tail, 48, diff, err));
    SF_TRY(st_route(r, n - tail, n, 8, diff, err));
    return st_route(r, n - sf_min_int(tail, 8), n, 1, diff, err);
}

/* One fast decode of own position p among `others` one-token sequences. */
static sf_code fast_decode(st_run_ctx *c, st_rig *r, int p, int others, sf_row_out *out, sf_err *err) {
    st_begin(r, SF_CLASS_FAST);
    st_add(r, r->own, p, 1, 0);
    for (int i = 0; i < others; i++) {
        st_seq one = {.n = 1, .tokens = c->right.tokens + i, .pages = c->right.pages + i, .n_pages = 1};
        st_add(r, &one, 0, 1, 0);
    }
    SF_TRY(st_run(r, err));
    *out = *st_find_out(r, p);
    return SF_OK;
}

/* The negative control: the fast class makes no promise, and here it should show. */
static sf_code check_fast(st_run_ctx *c, st_rig *r, st_diff *diff, sf_err *err) {
    int base = c->n_short / 2, end = sf_min_int(base + 12, c->n_short);
    st_diff ignored = {0};
    SF_TRY(st_route(r, 0, base, base, &ignored, err));
    for (int p = base; p < end; p++) {
        sf_row_out alone, among;
        SF_TRY(fast_decode(c, r, p, 0, &alone, err));
        SF_TRY(fast_decode(c, r, p, sf_min_int(c->right.n_pages, 31), &among, err));
        diff->rows++;
        if (st_out_differs(&alone, &among) || st_out_differs(&alone, &c->trace.out[p])) diff->differing++;
    }
    return SF_OK;
}

const st_check_desc st_checks[] = {
    {"row buckets", "passes at both ends of every row bucket", check_buckets, false},
    {"row positions", "a window at every place of a pass", check_positions, false},
    {"neighbours", "other tokens beside, with extreme sampling parameters", check_neighbours, false},
    {"poisoned neighbours", "rows of infinities beside", check_poison, false},
    {"reused pages", "pages that held infinities", check_reused_pages, false},
    {"stale drafts", "rolled-back fast K and V behind the position", check_stale, false},
    {"prefill chunks", "chunks of 7, 16 and 33 rows", check_chunks, false},
    {"decode", "one row a pass", check_decode, false},
    {"verify windows", "windows of 2, 5, 8, 32 and 64 rows", check_windows, false},
    {"long context", "chunks, windows and decode far from the start", check_long, false},
    {"fast class (control)", "alone, among others, and pinned", check_fast, true},
};
const int st_n_checks = (int)(sizeof st_checks / sizeof *st_checks);
