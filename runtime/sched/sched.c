#include "sched/sched.h"
#include "sched/sched_priv.h"
#include "sched/verify_priv.h"

#include <stdlib.h>
#include <string.h>

void sf_sched_config_default(const sf_plan *plan, sf_sched_config *out) {
    bool pin = plan->policy && strcmp(plan->policy, "pin") == 0;
    *out = (sf_sched_config){.policy = pin ? SF_POLICY_PIN : SF_POLICY_VERIFY,
                             .window = plan->window,
                             .verify_group = 0,
                             .verify_wait = plan->verify_wait,
                             .max_seqs = plan->max_seqs,
                             .max_queue = 4096,
                             .max_rows = plan->max_rows,
                             .prefill_chunk = plan->prefill_chunk,
                             .prefill_split = plan->prefill_split,
                             .max_context = plan->max_context,
                             .inject_offset = -1};
}

static sf_code check_range(const char *field, int value, int lo, int hi, sf_err *err) {
    if (value >= lo && value <= hi) return SF_OK;
    return SF_FAIL(err, SF_INVALID, "%s is %d, expected %d..%d", field, value, lo, hi);
}

/* Every row of a window is a logit row of one pass. */
static sf_code check_window(const sf_plan *plan, const sf_sched_config *c, sf_err *err) {
    SF_TRY(check_range("window", c->window, 2, 64, err));
    const bool rows = c->max_rows < plan->max_logit_rows;
    const int most = rows ? c->max_rows : plan->max_logit_rows;
    if (c->window <= most) return SF_OK;
    return SF_FAIL(err, SF_INVALID, "window is %d, expected at most %s (%d)", c->window,
                   rows ? "max_rows" : "max_logit_rows", most);
}

static sf_code check_config(const sf_device *d, const sf_sched_config *c, sf_err *err) {
    SF_TRY(check_range("verify_group", c->verify_group, 0, 1 << 20, err));
    SF_TRY(check_range("verify_wait", c->verify_wait, 0, 1000, err));
    SF_TRY(check_range("max_seqs", c->max_seqs, 1, 1 << 16, err));
    SF_TRY(check_range("max_queue", c->max_queue, 1, 1 << 24, err));
    SF_TRY(check_range("max_rows", c->max_rows, 1, d->plan->max_rows, err));
    SF_TRY(check_window(d->plan, c, err));
    SF_TRY(check_range("prefill_chunk", c->prefill_chunk, 1, 1 << 20, err));
    SF_TRY(check_range("prefill_split", c->prefill_split, 0, 1 << 20, err));
    SF_TRY(check_range("max_context", c->max_context, 2, d->plan->max_context, err));
    SF_TRY(check_range("inject_offset", c->inject_offset, -1, 63, err));
    return SF_OK;
}

sf_code sf_sched_create(sf_device *d, const sf_tokenizer *t, const sf_sched_config *cfg, sf_sched **out,
                        sf_err *err) {
    SF_TRY(check_config(d, cfg, err));
    sf_sched *s = calloc(1, sizeof *s);
    if (!s) return SF_FAIL(err, SF_NOMEM, "a scheduler of %zu bytes", sizeof *s);
    sf_code rc = SF_OK;
    s->dev = d;
    s->rules = (sf_rules){.tok = t, .model = &d->plan->model};
    s->cfg = *cfg;
    int rows = cfg->max_rows, logits = rows < d->plan->max_logit_rows ? rows : d->plan->max_logit_rows;
    pthread_mutex_init(&s->lock, NULL);
    atomic_init(&s->cancelled, false);
    s->run = calloc((size_t)cfg->max_seqs, sizeof(sf_seq *));
    if (!s->run) {
        rc = SF_FAIL(err, SF_NOMEM, "a table of %d sequences", cfg->max_seqs);
        goto done;
    }
    rc = sf_kv_init(&s->kv, d->n_pages, d->plan->page_size, err);
    for (int i = 0; i < 2 && rc == SF_OK; i++)
        rc = sf_batch_init(&s->batches[i], rows, logits, err);
    if (rc != SF_OK) goto done;
    (void)sf_sched_publish(s);
    *out = s;
done:
    if (rc != SF_OK) sf_sched_destroy(s);
    return rc;
}

/* Nothing may be in flight over a batch that goes, or when the device is given up. */
static void drain(sf_sched *s) {
    for (; s->in_flight > 0; s->in_flight--) {
        sf_err ignored;
        if (s->dev->ops->sync(s->dev, NULL, &ignored) != SF_OK) s->in_flight = 1;
    }
}

void sf_sched_destroy(sf_sched *s) {
    if (!s) return;
    drain(s);
    for (int i = 0; i < s->n_run; i++)
        sf_sched_cancel(s, s->run[i]->req);
    for (sf_request *r = s->head; r; r = r->next)
        sf_sched_cancel(s, r);
    sf_sched_reap(s);
    for (int i = 0; i < 2; i++)
        sf_batch_fini(&s->batches[i]);
    sf_kv_fini(&s->kv);
    free(s->run);
    pthread_mutex_destroy(&s->lock);
    free(s);
}

/* ---- what a pass gave ---- */

/* Pages that committed pinned rows have just filled. */
static void mark_pinned(sf_sched *s, const sf_seq *q, int from) {
    for (int i = from / s->kv.page_size; i < q->committed.kv_len / s->kv.page_size; i++)
        sf_kv_mark_pinned(&s->kv, q->pages[i]);
}

static sf_code commit_row(sf_sched *s, sf_seq *q, const sf_row_out *row, sf_err *err) {
    if (row->bad) return sf_bad_row(q, q->req->n_prompt + q->committed.n_tokens, err);
    return sf_seq_commit(q, &s->rules, row, err);
}

static void keep_prompt_logprob(sf_request *r, const sf_sample *sample, const sf_row_out *row) {
    sf_token *t = &r->prompt_lp[sample->position];
    *t = (sf_token){.id = sample->target, .logprob = row->target_logprob, .rank = row->target_rank};
    t->n_top = row->n_top < sample->n_top ? row->n_top : sample->n_top;
    memcpy(t->top_id, row->top_id, sizeof t->top_id);
    memcpy(t->top_logprob, row->top_logprob, sizeof t->top_logprob);
}

static sf_code apply_prefill(sf_sched *s, const sf_batch *b, const sf_segment *seg, const sf_entry *e,
                             sf_err *err) {
    sf_seq *q = e->seq;
    s->stats.prompt_tokens += seg->rows;
    for (int i = e->first_logit; i < e->first_logit + e->n_logits; i++) {
        const sf_sample *sample = &b->samples[i];
        const sf_row_out *row = &b->out[i];
        if (sample->draw) {
            SF_TRY(commit_row(s, q, row, err));
            continue;
        }
        if (row->bad) return sf_bad_row(q, (int)sample->position, err);
        keep_prompt_logprob(q->req, sample, row);
    }
    q->committed.kv_len += seg->rows;
    if (!sf_seq_prefilling(q)) {
        if (q->index == 0) q->req->prompt_lp_done = q->req->prompt_lp != NULL;
        if (q->max_out == 0) q->committed.finish = SF_FINISH_LENGTH;
    }
    q->draft = q->committed;
    return SF_OK;
}

static void apply_draft(sf_sched *s, sf_seq *q, const sf_row_out *row) {
    if (row->bad) { /* the verifier decides whether this is the request's end or only the draft's */
        q->draft.dead = true;
        return;
    }
    sf_seq_draft(q, &s->rules, row->token);
    q->req->stats.drafted++;
    s->stats.drafted++;
}

static sf_code apply_ordinary(sf_sched *s, sf_seq *q, const sf_row_out *row, sf_err *err) {
    SF_TRY(commit_row(s, q, row, err));
    q->committed.kv_len++;
    q->draft = q->committed;
    return SF_OK;
}

static sf_code apply_verify(sf_sched *s, const sf_batch *b, const sf_segment *seg, const sf_entry *e,
                            sf_err *err) {
    sf_seq *q = e->seq;
    sf_request_stats *rs = &q->req->stats;
    sf_sched_stats *ss = &s->stats;
    sf_verdict v;
    sf_code rc = sf_verify_apply(q, &s->rules, &b->out[e->first_logit], seg->rows, &v, err);
    q->waited = 0;
    if (v.candidates == 0) {
        ss->provenance_tokens += v.committed;
        return rc;
    }
    ss->verify_rows += seg->rows;
    ss->windows_verified++;
    rs->windows_verified++;
    ss->drafts_accepted += v.accepted;
    rs->drafts_accepted += v.accepted;
    ss->rollbacks += v.rolled_back > 0;
    rs->rollbacks += v.rolled_back > 0;
    ss->tokens_rolled_back += v.rolled_back;
    rs->tokens_rolled_back += v.rolled_back;
    return rc;
}

static sf_code apply_one(sf_sched *s, const sf_batch *b, const sf_segment *seg, const sf_entry *e,
                         sf_err *err) {
    sf_seq *q = e->seq;
    const sf_row_out *row = &b->out[e->first_logit];
    if (seg->kind == SF_SEG_PREFILL) return apply_prefill(s, b, seg, e, err);
    if (!q->req->params.deterministic) {
        s->stats.ride_along_rows += b->pass.cls == SF_CLASS_PINNED;
        return apply_ordinary(s, q, row, err);
    }
    if (b->pass.cls == SF_CLASS_PINNED) return apply_verify(s, b, seg, e, err);
    apply_draft(s, q, row);
    return SF_OK;
}

/* A row queued before its sequence was known to end, or its draft to: nobody's. */
static bool is_stray(const sf_batch *b, const sf_seq *q) {
    if (q->committed.finish != SF_FINISH_NONE || q->req->failed) return true;
    const bool drafts = q->req->params.deterministic && b->pass.cls == SF_CLASS_FAST;
    return drafts && (q->draft.finish != SF_FINISH_NONE || q->draft.dead);
}

static void apply(sf_sched *s, const sf_batch *b, double us) {
    const sf_pass *p = &b->pass;
    bool verified = false;
    s->stats.passes[p->cls]++;
    s->stats.rows[p->cls] += p->rows;
    s->stats.us[p->cls] += us;
    for (int i = 0; i < p->n_segs; i++) {
        const sf_entry *e = &b->entries[i];
        sf_seq *q = e->seq;
        sf_err err = {0};
        if (is_stray(b, q)) continue;
        verified = verified || p->segs[i].kind == SF_SEG_VERIFY;
        int tokens = q->committed.n_tokens, kv_len = q->committed.kv_len;
        if (apply_one(s, b, &p->segs[i], e, &err) != SF_OK) sf_request_fail(q->req, &err);
        if (q->expected) sf_replay_compare(q, tokens);
        tokens = q->committed.n_tokens - tokens;
        if (q->req->params.deterministic) {
            s->stats.committed_tokens += tokens;
            mark_pinned(s, q, kv_len);
        } else {
            s->stats.ordinary_tokens += tokens;
        }
    }
    s->stats.verify_passes += verified;
}

/* ---- the step: plan, launch, sync, apply ---- */

static void plan(sf_sched *s, sf_batch *b) {
    sf_demand d;
    for (int i = 0; i < s->n_run; i++) {
        sf_seq *q = s->run[i];
        sf_err err;
        if (q->expected && sf_replay_draft(q, &s->rules, &err) != SF_OK) sf_request_fail(q->req, &err);
    }
    sf_policy_demand(s->run, s->n_run, s->cfg.window, &d);
    sf_class cls = sf_policy_class(&s->cfg, &d, s->fast_run);
    s->fast_run = cls == SF_CLASS_FAST ? s->fast_run + 1 : 0;
    if (cls == SF_CLASS_FAST)
        for (int i = 0; i < s->n_run; i++)
            s->run[i]->waited += sf_policy_ready(s->run[i], s->cfg.window);
    sf_batch_plan(b, cls, &s->cfg, &d, s->run, s->n_run, &s->kv, s->rules.model->vocab);
}

static sf_code launch(sf_sched *s, const sf_batch *b, sf_err *err) {
    SF_TRY(s->dev->ops->launch(s->dev, &b->pass, err));
    s->in_flight++;
    return SF_OK;
}

/* Whether somebody waits whom the next admission could let in, or somebody is to be let go. */
static bool must_look(sf_sched *s) {
    if (atomic_load(&s->cancelled)) return true;
    pthread_mutex_lock(&s->lock);
    bool waiting = s->n_waiting > 0;
    pthread_mutex_unlock(&s->lock);
    return waiting && !s->blocked;
}

/* Queues the next pass behind the current one, where that needs nothing that the current one tells. */
static sf_code follow(sf_sched *s, sf_err *err) {
    sf_batch *b = &s->batches[s->current], *next = &s->batches[!s->current];
    if (!s->dev->feeds || must_look(s)) return SF_OK;
    if (!sf_batch_follow(next, b, &s->cfg, s->n_run, &s->kv)) return SF_OK;
    return launch(s, next, err);
}

/* Waits for the current pass and applies it; the other one becomes current. */
static sf_code finish(sf_sched *s, sf_err *err) {
    double us = 0;
    const sf_code rc = s->dev->ops->sync(s->dev, &us, err);
    s->in_flight--; /* also where it failed */
    if (rc != SF_OK) return rc;
    apply(s, &s->batches[s->current], us);
    if (s->in_flight > 0) s->current = !s->current;
    return SF_OK;
}

static sf_code run_pass(sf_sched *s, sf_err *err) {
    sf_err why = {0};
    sf_code rc = SF_OK;
    if (s->in_flight == 0) rc = launch(s, &s->batches[s->current], &why);
    if (rc == SF_OK) rc = follow(s, &why);
    if (rc == SF_OK) rc = finish(s, &why);
    if (rc == SF_OK) return SF_OK;
    drain(s);
    why.code = rc;
    sf_sched_fail_all(s, &why);
    if (err) *err = why;
    return rc;
}

/* Requests come and go only while nothing is in flight: a pass holds their pages. */
static bool prepare(sf_sched *s) {
    if (s->in_flight > 0) return true;
    sf_sched_reap(s);
    sf_sched_admit(s);
    if (s->n_run == 0) return false;
    plan(s, &s->batches[s->current]);
    return s->batches[s->current].pass.rows > 0;
}

sf_code sf_sched_step(sf_sched *s, bool *busy, sf_err *err) {
    sf_code rc = SF_OK;
    *busy = false;
    if (s->failed) { /* written by this thread only */
        if (err) *err = s->failure;
        return s->failure.code;
    }
    if (prepare(s)) rc = run_pass(s, err);
    if (rc == SF_OK && s->in_flight == 0) sf_sched_reap(s);
    bool left = sf_sched_publish(s);
    *busy = rc == SF_OK && left;
    return rc;
}
