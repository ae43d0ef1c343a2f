#include "serve/driver.h"

#include "base/progress.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct sf_driver {
    sf_engine *engine;
    sf_sched *sched;
    sf_metrics *metrics;
    void (*wake)(void *ctx);
    void *wake_ctx;
    sf_job *active; /* the driver's alone */
    sf_sched_stats last;
    pthread_mutex_t lock;
    pthread_cond_t work;
    sf_job *incoming;                 /* submitted since the last step */
    sf_job *ready_head, **ready_tail; /* to be taken */
    bool stop, poked;
};

sf_code sf_driver_create(sf_engine *e, sf_metrics *m, void (*wake)(void *ctx), void *ctx, sf_driver **out,
                         sf_err *err) {
    sf_driver *d = calloc(1, sizeof *d);
    if (!d) return SF_FAIL(err, SF_NOMEM, "no memory for the driver");
    *d = (sf_driver){.engine = e, .sched = sf_engine_sched(e), .metrics = m, .wake = wake, .wake_ctx = ctx};
    d->ready_tail = &d->ready_head;
    pthread_mutex_init(&d->lock, NULL);
    pthread_cond_init(&d->work, NULL);
    sf_sched_stats_get(d->sched, &d->last);
    *out = d;
    return SF_OK;
}

void sf_driver_destroy(sf_driver *d) {
    if (!d) return;
    pthread_mutex_destroy(&d->lock);
    pthread_cond_destroy(&d->work);
    free(d);
}

/* ---- jobs ---- */

sf_code sf_job_create(sf_request *req, bool stream, void *owner, sf_job **out, sf_err *err) {
    const size_t n = (size_t)sf_request_params(req)->n;
    sf_job *j = calloc(1, sizeof *j);
    if (j) {
        j->seen = calloc(n, sizeof *j->seen);
        j->news = calloc(n, sizeof *j->news);
    }
    if (!j || !j->seen || !j->news) {
        if (j) free(j->seen), free(j->news);
        free(j);
        sf_request_destroy(req);
        return SF_FAIL(err, SF_NOMEM, "no memory for a request");
    }
    j->req = req;
    j->stream = stream;
    j->owner = owner;
    *out = j;
    return SF_OK;
}

void sf_news_fini(sf_news *n) {
    free(n->tokens);
    sf_buf_fini(&n->text);
    *n = (sf_news){0};
}

void sf_job_destroy(sf_job *j) {
    if (!j) return;
    for (int i = 0; i < sf_request_params(j->req)->n; i++)
        sf_news_fini(&j->news[i]);
    free(j->news);
    free(j->seen);
    sf_request_destroy(j->req);
    free(j);
}

sf_code sf_driver_submit(sf_driver *d, sf_job *const *jobs, int n, sf_err *err) {
    sf_request **all = malloc((size_t)n * sizeof *all);
    if (!all) return SF_FAIL(err, SF_NOMEM, "no memory for a request");
    for (int i = 0; i < n; i++) {
        all[i] = jobs[i]->req;
        jobs[i]->submitted_s = sf_now_s();
    }
    /* Under the lock, so that the driver has the jobs on its list before the scheduler can end them. */
    pthread_mutex_lock(&d->lock);
    const sf_code rc = sf_sched_submit_all(d->sched, all, n, err);
    if (rc == SF_OK) {
        for (int i = 0; i < n; i++) {
            jobs[i]->next = d->incoming;
            d->incoming = jobs[i];
        }
        pthread_cond_signal(&d->work);
    }
    pthread_mutex_unlock(&d->lock);
    free(all);
    return rc;
}

void sf_driver_cancel(sf_driver *d, sf_job *j) {
    j->cancelled = true;
    sf_sched_cancel(d->sched, j->req);
    pthread_mutex_lock(&d->lock);
    d->poked = true;
    pthread_cond_signal(&d->work);
    pthread_mutex_unlock(&d->lock);
}

void sf_driver_stop(sf_driver *d) {
    pthread_mutex_lock(&d->lock);
    d->stop = true;
    pthread_cond_signal(&d->work);
    pthread_mutex_unlock(&d->lock);
}

sf_job *sf_driver_ready(sf_driver *d, bool *done) {
    pthread_mutex_lock(&d->lock);
    sf_job *j = d->ready_head;
    if (j) {
        d->ready_head = j->next_ready;
        if (!d->ready_head) d->ready_tail = &d->ready_head;
        j->ready = false;
        *done = j->done;
    }
    pthread_mutex_unlock(&d->lock);
    return j;
}

void sf_driver_take(sf_driver *d, sf_job *j, sf_news *out, sf_request_stats *stats, bool *done) {
    const size_t n = (size_t)sf_request_params(j->req)->n;
    pthread_mutex_lock(&d->lock);
    memcpy(out, j->news, n * sizeof *out);
    memset(j->news, 0, n * sizeof *out);
    *stats = j->stats;
    *done = j->done;
    pthread_mutex_unlock(&d->lock);
}

/* ---- the driver's thread ---- */

static bool add_tokens(sf_news *n, const sf_token *tokens, int count) {
    if (count == 0) return true;
    if (n->n_tokens + count > n->cap) {
        const int cap = 2 * n->cap > n->n_tokens + count ? 2 * n->cap : n->n_tokens + count;
        sf_token *grown = realloc(n->tokens, (size_t)cap * sizeof *grown);
        if (!grown) return false;
        n->tokens = grown;
        n->cap = cap;
    }
    memcpy(n->tokens + n->n_tokens, tokens, (size_t)count * sizeof *tokens);
    n->n_tokens += count;
    return true;
}

/* Copies what choice i has committed since the last step; returns whether that is anything. Locked. */
static bool note_choice(sf_job *j, int i) {
    sf_choice c;
    sf_request_choice(j->req, i, &c);
    const int tokens = c.n_tokens - j->seen[i].tokens;
    const size_t text = c.text_len - j->seen[i].text;
    const bool ended = c.finish != SF_FINISH_NONE && !j->seen[i].end;
    if (tokens == 0 && text == 0 && !ended) return false;
    sf_news *n = &j->news[i];
    sf_err ignored;
    if (j->stream && (!add_tokens(n, c.tokens + j->seen[i].tokens, tokens) ||
                      sf_buf_append(&n->text, c.text + j->seen[i].text, text, &ignored) != SF_OK))
        j->out_of_memory = true;
    if (ended) n->finish = c.finish;
    j->seen[i].end = c.finish != SF_FINISH_NONE;
    j->seen[i].tokens = c.n_tokens;
    j->seen[i].text = c.text_len;
    return true;
}

static void note_times(sf_job *j, double now) {
    bool any = false;
    if (j->admitted_s == 0 && sf_request_admitted(j->req)) j->admitted_s = now;
    for (int i = 0; i < sf_request_params(j->req)->n && !any; i++)
        any = j->seen[i].tokens > 0;
    if (any && j->first_s == 0) j->first_s = now;
    if (any) j->last_s = now;
}

/* All choices have ended, but a pass in flight still holds their pages. */
static bool is_closing(const sf_request *r) {
    for (int i = 0; i < sf_request_params(r)->n; i++) {
        sf_choice c;
        sf_request_choice(r, i, &c);
        if (c.finish == SF_FINISH_NONE) return false;
    }
    return !sf_request_done(r);
}

/* The prompt's log-probabilities are still being written. An echo tells them with the first news of every
 * choice, and a choice of no tokens has its only news at once. */
static bool lacks_prompt(const sf_request *r) {
    return sf_request_params(r)->prompt_logprobs >= 0 && !sf_request_prompt_logprobs(r) &&
           !sf_request_done(r);
}

/* Returns whether the job has ended. Locked. */
static bool note_job(sf_driver *d, sf_job *j, double now) {
    bool news = false;
    const bool done = sf_request_done(j->req);
    if (is_closing(j->req)) return false; /* its last news come with its end */
    for (int i = 0; i < sf_request_params(j->req)->n && !lacks_prompt(j->req); i++)
        news = note_choice(j, i) || news;
    if (news || j->admitted_s == 0) note_times(j, now);
    sf_request_stats_get(j->req, &j->stats);
    j->done = done;
    if (j->out_of_memory && !done) sf_sched_cancel(d->sched, j->req);
    if (!j->ready && (done || (news && j->stream))) {
        j->ready = true;
        j->next_ready = NULL;
        *d->ready_tail = j;
        d->ready_tail = &j->next_ready;
    }
    return done;
}

/* Hands over what the last step has committed. */
static void publish(sf_driver *d) {
    const double now = sf_now_s();
    pthread_mutex_lock(&d->lock);
    for (sf_job **at = &d->active; *at;) {
        sf_job *j = *at;
        if (note_job(d, j, now))
            *at = j->next;
        else
            at = &j->next;
    }
    const bool wake = d->ready_head != NULL;
    pthread_mutex_unlock(&d->lock);
    if (wake) d->wake(d->wake_ctx);
}

static void count_step(sf_driver *d) {
    sf_sched_stats s;
    sf_sched_stats_get(d->sched, &s);
    for (int c = 0; c < SF_CLASS_COUNT; c++) {
        if (s.passes[c] == d->last.passes[c]) continue;
        sf_metrics_pass(d->metrics, (sf_class)c, (int)(s.rows[c] - d->last.rows[c]),
                        (s.us[c] - d->last.us[c]) * 1e-6);
    }
    d->last = s;
}

/* Waits while there is nothing to do; returns whether to go on. */
static bool gather(sf_driver *d, bool busy) {
    pthread_mutex_lock(&d->lock);
    while (!busy && !d->stop && !d->incoming && !d->poked && !d->active)
        pthread_cond_wait(&d->work, &d->lock);
    d->poked = false;
    while (d->incoming) {
        sf_job *j = d->incoming;
        d->incoming = j->next;
        j->next = d->active;
        d->active = j;
    }
    const bool stop = d->stop;
    pthread_mutex_unlock(&d->lock);
    if (stop)
        for (sf_job *j = d->active; j; j = j->next)
            sf_sched_cancel(d->sched, j->req);
    return !stop || d->active;
}

sf_code sf_driver_run(sf_driver *d, sf_err *err) {
    bool busy = false;
    while (gather(d, busy)) {
        const sf_code rc = sf_sched_step(d->sched, &busy, err);
        count_step(d);
        publish(d);
        if (rc == SF_OK) continue;
        (void)gather(d, true); /* those that came during the step have ended with it too */
        publish(d);
        return rc;
    }
    return SF_OK;
}
