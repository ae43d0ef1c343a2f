#include "engine/selftest.h"

#include "device/cpu/cpu.h"
#include "engine/selftest_priv.h"

#include "base/num.h"
#include "base/progress.h"

#include <stdio.h>
#include <string.h>

#define LONG_POSITIONS  576 /* several chunks of attention on every plan so far */
#define SHORT_POSITIONS 96
#define OTHER_POSITIONS 40 /* for other instruction sets, the slow ones among them */
#define PROBE_POSITIONS 10
#define THREADS_MORE    1 /* thread counts tried past the machine's */

static int pages_of(const sf_plan *plan, int positions) {
    return (positions + plan->page_size - 1) / plan->page_size;
}

/* One position less than the context: the last token of a sequence is only a target. */
static int long_positions(const sf_plan *plan) {
    return sf_min_int(plan->max_context - 1, LONG_POSITIONS);
}

static int neighbour_positions(const sf_plan *plan) {
    return sf_min_int(plan->max_context - 1, plan->max_rows > 64 ? plan->max_rows : 64);
}

int sf_selftest_pages(const sf_plan *plan) {
    return pages_of(plan, long_positions(plan)) + 2 * pages_of(plan, neighbour_positions(plan));
}

static int probe_positions(const sf_plan *plan) {
    return sf_min_int(plan->max_context - 1, PROBE_POSITIONS);
}

int sf_selftest_probe_pages(const sf_plan *plan) {
    return 3 * pages_of(plan, probe_positions(plan));
}

typedef struct timed_line {
    sf_selftest_line line;
    st_diff diff;
    double t0;
} timed_line;

static void line_begin(timed_line *t, const char *name, const char *what) {
    *t = (timed_line){.line = {.name = name, .what = what}, .t0 = sf_now_s()};
}

static void line_end(const sf_selftest_config *cfg, sf_selftest_result *out, timed_line *t) {
    sf_selftest_line *l = &t->line;
    l->rows = t->diff.rows;
    l->differing = t->diff.differing;
    l->seconds = sf_now_s() - t->t0;
    snprintf(l->first, sizeof l->first, "%s", t->diff.first);
    if (l->control) {
        out->control_differs = l->differing > 0;
        if (!l->differing) snprintf(l->first, sizeof l->first, "no difference seen on this machine");
    } else {
        l->failed = l->differing > 0;
        out->rows += l->rows;
        out->checks += l->rows > 0; /* none: the plan or the machine has no place for it */
        out->failed += l->failed;
    }
    if (cfg->report && (l->rows > 0 || l->failed)) cfg->report(cfg->report_ctx, l);
}

static sf_code run_table(st_run_ctx *c, sf_selftest_result *out, sf_err *err) {
    for (int i = 0; i < st_n_checks; i++) {
        const st_check_desc *d = &st_checks[i];
        timed_line t;
        line_begin(&t, d->name, d->what);
        t.line.control = d->control;
        SF_TRY(d->fn(c, &c->rig, &t.diff, err));
        line_end(c->cfg, out, &t);
    }
    return SF_OK;
}

/* Rows of the reference on another device: one prefill, windows, and a few decodes. */
static sf_code run_other(st_run_ctx *c, sf_isa isa, int threads, int n, st_diff *diff, sf_err *err) {
    sf_device *d;
    SF_TRY(c->cfg->open(c->cfg->open_ctx, isa, threads, c->own.n_pages, &d, err));
    st_rig rig;
    sf_code rc = st_rig_init(&rig, d, &c->own, err);
    if (rc == SF_OK) {
        rig.trace = &c->trace;
        rc = st_route(&rig, 0, n, n, diff, err);
        if (rc == SF_OK) rc = st_route(&rig, n / 2, n, 8, diff, err);
        if (rc == SF_OK) rc = st_route(&rig, n - 3, n, 1, diff, err);
        st_rig_fini(&rig);
    }
    d->ops->destroy(d);
    return rc;
}

static sf_code run_isas(st_run_ctx *c, sf_selftest_result *out, sf_err *err) {
    for (int i = 0; i < c->cfg->n_isas; i++) {
        char name[32];
        snprintf(name, sizeof name, "isa %s", sf_isa_name(c->cfg->isas[i]));
        timed_line t;
        line_begin(&t, name, "another instruction set");
        int n = sf_min_int(c->own.n, OTHER_POSITIONS);
        SF_TRY(run_other(c, c->cfg->isas[i], c->cfg->threads, n, &t.diff, err));
        line_end(c->cfg, out, &t);
    }
    return SF_OK;
}

/* 1 to 4, then powers of two, the machine's own count and one more than it has. */
static sf_code run_threads(st_run_ctx *c, sf_selftest_result *out, sf_err *err) {
    int most = c->cfg->threads + THREADS_MORE;
    sf_isa best = c->cfg->isas[c->cfg->n_isas - 1];
    for (int n = 1; n <= most; n++) {
        bool power = (n & (n - 1)) == 0;
        if (n > 4 && !power && n < c->cfg->threads) continue;
        char name[32];
        snprintf(name, sizeof name, "threads %d", n);
        timed_line t;
        line_begin(&t, name, "another thread count");
        SF_TRY(run_other(c, best, n, c->n_short, &t.diff, err));
        line_end(c->cfg, out, &t);
    }
    return SF_OK;
}

/* The same device, launching in another way: whole passes, windows and single rows. */
static sf_code run_modes(st_run_ctx *c, sf_selftest_result *out, sf_err *err) {
    const sf_selftest_config *cfg = c->cfg;
    for (int i = 0; i < cfg->n_modes; i++) {
        timed_line t;
        line_begin(&t, cfg->modes[i], "another way to launch");
        cfg->set_mode(cfg->mode_ctx, i);
        sf_code rc = st_route(&c->rig, 0, c->own.n, c->own.n, &t.diff, err);
        if (rc == SF_OK) rc = st_route(&c->rig, c->n_short / 2, c->n_short, 8, &t.diff, err);
        if (rc == SF_OK) rc = st_route(&c->rig, c->n_short - 3, c->n_short, 1, &t.diff, err);
        cfg->set_mode(cfg->mode_ctx, -1);
        if (rc != SF_OK) return rc;
        line_end(cfg, out, &t);
    }
    return SF_OK;
}

static sf_code run_all(st_run_ctx *c, sf_selftest_result *out, sf_err *err) {
    SF_TRY(st_reference(&c->rig, &c->own, &c->trace, err));
    c->rig.trace = &c->trace;
    SF_TRY(run_table(c, out, err));
    SF_TRY(run_modes(c, out, err));
    if (!c->cfg->open || c->cfg->n_isas < 1) return SF_OK;
    SF_TRY(run_isas(c, out, err));
    return run_threads(c, out, err);
}

static void ctx_fini(st_run_ctx *c) {
    st_rig_fini(&c->rig);
    st_trace_fini(&c->trace);
    st_seq_fini(&c->own);
    st_seq_fini(&c->left);
    st_seq_fini(&c->right);
}

/* own, then left, then right, one after another in the pool. */
static sf_code ctx_init(st_run_ctx *c, sf_device *d, int own, int neighbour, sf_err *err) {
    const sf_plan *plan = d->plan;
    int a = pages_of(plan, own), b = pages_of(plan, neighbour);
    if (a + 2 * b > d->n_pages) {
        return SF_FAIL(err, SF_INVALID, "selftest needs %d KV pages, the pool has %d", a + 2 * b, d->n_pages);
    }
    c->plan = plan;
    c->n_short = sf_min_int(own, SHORT_POSITIONS);
    SF_TRY(st_seq_init(&c->own, plan, 11, own, 0, err));
    SF_TRY(st_seq_init(&c->left, plan, 12, neighbour, a, err));
    SF_TRY(st_seq_init(&c->right, plan, 13, neighbour, a + b, err));
    SF_TRY(st_trace_init(&c->trace, plan, own, err));
    return st_rig_init(&c->rig, d, &c->own, err);
}

sf_code sf_selftest_run(const sf_selftest_config *cfg, sf_selftest_result *out, sf_err *err) {
    st_run_ctx c = {.cfg = cfg};
    sf_selftest_result result = {0};
    const sf_plan *plan = cfg->device->plan;
    sf_code rc = ctx_init(&c, cfg->device, long_positions(plan), neighbour_positions(plan), err);
    if (rc == SF_OK) rc = run_all(&c, &result, err);
    ctx_fini(&c);
    if (rc == SF_OK) *out = result;
    return rc;
}

/* Windows beside a neighbour, then one row alone: other row counts, places and segment lengths than the
 * reference's one pass. */
static sf_code probe_routes(st_run_ctx *c, st_diff *diff, sf_err *err) {
    st_rig *r = &c->rig;
    int n = c->own.n;
    SF_TRY(st_reference(r, &c->own, &c->trace, err));
    r->trace = &c->trace;
    for (int at = 0; at < n;) {
        st_begin(r, SF_CLASS_PINNED);
        if (at == 0) st_fresh(r, &c->own, 0);
        st_fresh(r, &c->left, 0);
        st_add(r, &c->left, 0, 9, 0);
        int added = st_add(r, &c->own, at, sf_min_int(5, n - at), 0);
        if (added == 0) break;
        SF_TRY(st_check(r, diff, err));
        at += added;
    }
    return st_route(r, n - 1, n, 1, diff, err);
}

sf_code sf_selftest_probe(sf_device *d, char *why, size_t why_size, sf_err *err) {
    st_run_ctx c = {0};
    st_diff diff = {0};
    int n = probe_positions(d->plan);
    sf_code rc = ctx_init(&c, d, n, n, err);
    if (rc == SF_OK) rc = probe_routes(&c, &diff, err);
    ctx_fini(&c);
    if (rc != SF_OK || diff.differing == 0) return rc;
    snprintf(why, why_size, "the start-up probe found pinned passes that disagree: %s", diff.first);
    return SF_FAIL(err, SF_NONDET, "%s", why);
}
