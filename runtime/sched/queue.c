#include "sched/sched.h"
#include "sched/sched_priv.h"

#include <assert.h>
#include <string.h>

/* ---- submission ---- */

static int max_out_of(const sf_sched *s, const sf_request *r) {
    int room = s->cfg.max_context - r->n_prompt, wanted = r->params.max_tokens;
    return wanted < 0 || wanted > room ? room : wanted;
}

/* Prompt rows that choice i computes. The last row only serves to draw the first token. */
static int prefill_of(const sf_request *r, int i, int max_out) {
    if (max_out > 0) return r->n_prompt;
    return i == 0 && r->prompt_lp ? r->n_prompt - 1 : 0;
}

/* Positions with KV at worst: the last token is never fed. */
static int worst_positions(const sf_request *r, int max_out) {
    return max_out > 0 ? r->n_prompt + max_out - 1 : r->n_prompt;
}

static sf_code check_ids(const sf_sched *s, const sf_request *r, sf_err *err) {
    const sf_params *p = &r->params;
    int vocab = s->rules.model->vocab;
    for (int i = 0; i < r->n_prompt; i++)
        if (r->prompt[i] < 0 || r->prompt[i] >= vocab)
            return SF_FAIL(err, SF_INVALID, "prompt[%d] is %d, expected 0..%d", i, r->prompt[i], vocab - 1);
    for (int i = 0; i < p->n_stop_ids; i++)
        if (p->stop_ids[i] < 0 || p->stop_ids[i] >= vocab)
            return SF_FAIL(err, SF_INVALID, "stop_token_ids[%d] is %d, expected 0..%d", i, p->stop_ids[i],
                           vocab - 1);
    for (int i = 0; i < p->n_bias; i++)
        if (p->bias[i].token < 0 || p->bias[i].token >= vocab)
            return SF_FAIL(err, SF_INVALID, "logit_bias has token %d, expected 0..%d", p->bias[i].token,
                           vocab - 1);
    for (int k = 0; k < p->n; k++)
        for (int i = 0; i < r->seqs[k].n_expected; i++)
            if (r->seqs[k].expected[i] < 0 || r->seqs[k].expected[i] >= vocab)
                return SF_FAIL(err, SF_INVALID, "token_ids[%d] of choice %d is %d, expected 0..%d", i, k,
                               r->seqs[k].expected[i], vocab - 1);
    return SF_OK;
}

static sf_code check_submit(const sf_sched *s, const sf_request *r, sf_err *err) {
    if (r->submitted) return SF_FAIL(err, SF_INVALID, "the request was submitted before");
    if (r->n_prompt == 0) return SF_FAIL(err, SF_INVALID, "the prompt has 0 tokens, expected at least 1");
    if (r->n_prompt > s->cfg.max_context || (r->n_prompt == s->cfg.max_context && r->params.max_tokens != 0))
        return SF_FAIL(err, SF_INVALID,
                       "the prompt has %d tokens and the context %d, which leaves no room for %s",
                       r->n_prompt, s->cfg.max_context, r->params.max_tokens != 0 ? "an answer" : "it");
    SF_TRY(check_ids(s, r, err));
    if (r->params.n_stop > 0 && !s->rules.tok)
        return SF_FAIL(err, SF_INVALID, "stop strings need a tokenizer, and this engine has none");
    if (r->params.deterministic && s->cfg.refuse_deterministic)
        return SF_FAIL(err, SF_NONDET, "deterministic requests are refused: %s", s->cfg.refuse_deterministic);
    int pages = sf_kv_pages_for(&s->kv, worst_positions(r, max_out_of(s, r)));
    if (pages > s->kv.n_pages)
        return SF_FAIL(err, SF_INVALID, "the request may need %d KV pages of %d positions, the pool has %d",
                       pages, s->kv.page_size, s->kv.n_pages);
    return SF_OK;
}

static void prepare(const sf_sched *s, sf_request *r) {
    int max_out = max_out_of(s, r);
    r->submitted = true;
    for (int i = 0; i < r->params.n; i++) {
        r->seqs[i].max_out = max_out;
        r->seqs[i].n_prefill = prefill_of(r, i, max_out);
    }
    const sf_model_desc *m = s->rules.model;
    r->n_banned = 0;
    for (int i = 0; i < r->params.n_stop_ids; i++)
        r->banned[r->n_banned++] = r->params.stop_ids[i];
    for (int i = 0; i < m->n_eos && r->n_banned < SF_STOP_MAX; i++)
        r->banned[r->n_banned++] = m->eos[i];
}

static void append(sf_sched *s, sf_request *r) {
    prepare(s, r);
    r->next = NULL;
    if (s->tail)
        s->tail->next = r;
    else
        s->head = r;
    s->tail = r;
    s->n_queue++;
    s->n_waiting += r->params.n;
}

sf_code sf_sched_submit_all(sf_sched *s, sf_request *const *all, int n, sf_err *err) {
    for (int i = 0; i < n; i++)
        SF_TRY(check_submit(s, all[i], err));
    sf_code rc = SF_OK;
    pthread_mutex_lock(&s->lock);
    if (s->failed) {
        rc = s->failure.code;
        if (err) *err = s->failure;
    } else if (n > s->cfg.max_queue - s->n_queue) {
        rc = SF_FAIL(err, SF_FULL, "the queue holds %d requests, its limit is %d", s->n_queue,
                     s->cfg.max_queue);
    } else {
        for (int i = 0; i < n; i++)
            append(s, all[i]);
    }
    pthread_mutex_unlock(&s->lock);
    return rc;
}

sf_code sf_sched_submit(sf_sched *s, sf_request *r, sf_err *err) {
    return sf_sched_submit_all(s, &r, 1, err);
}

void sf_sched_cancel(sf_sched *s, sf_request *r) {
    atomic_store(&r->cancel, true);
    atomic_store(&s->cancelled, true);
}

/* ---- admission ---- */

static void end_seq(sf_seq *q, sf_finish finish) {
    sf_seq_finish(q, finish);
    q->req->n_done++;
}

/* Admits the next choice of r; false when it has to wait. */
static bool admit_one(sf_sched *s, sf_request *r) {
    sf_seq *q = &r->seqs[r->n_admitted];
    if (q->max_out == 0 && q->n_prefill == 0) { /* nothing to compute */
        r->n_admitted++;
        s->n_waiting--;
        if (q->index == 0) r->prompt_lp_done = r->prompt_lp != NULL;
        end_seq(q, SF_FINISH_LENGTH);
        return true;
    }
    int pages = sf_kv_pages_for(&s->kv, worst_positions(r, q->max_out));
    if (s->n_run == s->cfg.max_seqs || !sf_kv_reserve(&s->kv, pages)) return false;
    r->n_admitted++;
    s->n_waiting--;
    q->reserved = pages;
    q->serial = ++s->serial;
    s->run[s->n_run++] = q;
    return true;
}

void sf_sched_admit(sf_sched *s) {
    pthread_mutex_lock(&s->lock);
    while (s->head) {
        sf_request *r = s->head;
        while (r->n_admitted < r->params.n && admit_one(s, r)) {
        }
        if (r->n_admitted < r->params.n) break;
        s->head = r->next;
        if (!s->head) s->tail = NULL;
        s->n_queue--;
    }
    s->blocked = s->head != NULL;
    pthread_mutex_unlock(&s->lock);
}

/* ---- endings ---- */

/* How r has to end now, if it has to. */
static sf_finish verdict(const sf_request *r) {
    if (r->failed) return SF_FINISH_ERROR;
    return atomic_load(&r->cancel) ? SF_FINISH_CANCELLED : SF_FINISH_NONE;
}

static void reap_queue(sf_sched *s, bool cancelled) {
    pthread_mutex_lock(&s->lock);
    sf_request *prev = NULL;
    /* Only the head has choices that ran and can have failed. */
    bool look = cancelled || s->failed || (s->head && s->head->failed);
    for (sf_request *r = look ? s->head : NULL, *next; r; r = next) {
        next = r->next;
        sf_finish finish = verdict(r);
        if (finish == SF_FINISH_NONE) {
            prev = r;
            continue;
        }
        s->n_waiting -= r->params.n - r->n_admitted;
        while (r->n_admitted < r->params.n)
            end_seq(&r->seqs[r->n_admitted++], finish);
        if (prev)
            prev->next = next;
        else
            s->head = next;
        if (s->tail == r) s->tail = prev;
        s->n_queue--;
    }
    pthread_mutex_unlock(&s->lock);
}

static void reap_running(sf_sched *s) {
    int kept = 0;
    for (int i = 0; i < s->n_run; i++) {
        sf_seq *q = s->run[i];
        sf_finish finish = q->committed.finish;
        if (finish == SF_FINISH_NONE) finish = verdict(q->req);
        if (finish == SF_FINISH_NONE) {
            s->run[kept++] = q;
            continue;
        }
        sf_kv_release(&s->kv, q->pages, q->n_pages, q->reserved);
        q->n_pages = q->reserved = 0;
        end_seq(q, finish);
    }
    s->n_run = kept;
}

void sf_sched_reap(sf_sched *s) {
    /* Before anything is looked at: who is cancelled meanwhile is told by it again. */
    const bool cancelled = atomic_exchange(&s->cancelled, false);
    reap_running(s);
    reap_queue(s, cancelled);
}

void sf_sched_fail_all(sf_sched *s, const sf_err *err) {
    pthread_mutex_lock(&s->lock);
    s->failed = true;
    s->failure = *err;
    for (sf_request *r = s->head; r; r = r->next)
        sf_request_fail(r, err);
    pthread_mutex_unlock(&s->lock);
    for (int i = 0; i < s->n_run; i++)
        sf_request_fail(s->run[i]->req, err);
    sf_sched_reap(s);
}

bool sf_sched_publish(sf_sched *s) {
    pthread_mutex_lock(&s->lock);
    int waiting = s->n_waiting;
    s->stats.running = s->n_run;
    s->stats.waiting = waiting;
    s->stats.pages_free = s->kv.n_free;
    s->stats.pages_total = s->kv.n_pages;
    s->published = s->stats;
    pthread_mutex_unlock(&s->lock);
    return s->n_run > 0 || waiting > 0;
}

void sf_sched_stats_get(sf_sched *s, sf_sched_stats *out) {
    pthread_mutex_lock(&s->lock);
    *out = s->published;
    out->waiting = s->n_waiting;
    pthread_mutex_unlock(&s->lock);
}
