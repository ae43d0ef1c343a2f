/* A completion, chat or audit from its body to the end of its answer. */
#include "serve/http_priv.h"
#include "serve/serve_priv.h"

#include <event2/event.h>

#include "api/audit.h"
#include "api/json.h"
#include "base/progress.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define TURN 64 /* jobs whose news are told before other events have their turn */

void sf_call_drop(sf_call *c) {
    sf_server *s = c->server;
    if (c->conn) c->conn->call = NULL;
    for (int i = 0; i < c->n_jobs; i++)
        sf_job_destroy(c->jobs[i]);
    free(c->jobs);
    free(c->told);
    json_decref(c->answer);
    sf_api_request_fini(&c->api);
    if (c->prev)
        c->prev->next = c->next;
    else if (s->calls == c)
        s->calls = c->next;
    if (c->next) c->next->prev = c->prev;
    s->n_calls--;
    free(c);
}

static void call_free(sf_call *c) {
    sf_server *s = c->server;
    sf_call_drop(c);
    sf_server_try_stop(s);
}

static void cancel_all(sf_call *c) {
    for (int i = 0; i < c->n_submitted; i++)
        sf_driver_cancel(c->server->driver, c->jobs[i]);
}

/* An answer in one piece; a call that has none yet has nobody to tell any more. */
static void refuse(sf_call *c, const sf_api_error *e) {
    if (c->conn && !c->answered) {
        int status = e->status;
        if (c->streaming)
            sf_stream_error(c, e);
        else
            status = sf_http_refuse(c->server, c->req, e);
        sf_log_call(c, status, e->reason ? e->reason : e->type);
        c->conn->call = NULL; /* its next request may come before the last job of this one ends */
        c->conn = NULL;
    }
    c->answered = true;
    cancel_all(c);
}

/* ---- beginning ---- */

static sf_code check_model(const sf_call *c, sf_api_error *err) {
    const char *asked = c->api.model;
    if (!asked || strcmp(asked, c->server->cfg->model) == 0) return SF_OK;
    sf_api_fail(err, "model", "model_not_found", "model is \"%.100s\", this server has %s", asked,
                c->server->cfg->model);
    err->status = 404;
    return SF_NOT_FOUND;
}

static sf_code create_jobs(sf_call *c, sf_api_error *err) {
    const sf_api_model *m = c->server->model;
    c->jobs = calloc((size_t)c->api.n_prompts, sizeof *c->jobs);
    if (c->api.stream) c->told = calloc((size_t)c->api.n_prompts * (size_t)c->api.params.n, sizeof *c->told);
    if (!c->jobs || (c->api.stream && !c->told)) return sf_api_nomem(err);
    for (int i = 0; i < c->api.n_prompts; i++) {
        sf_err below;
        sf_request *r = NULL;
        sf_code rc =
            sf_request_create(&c->api.params, c->api.prompts[i].data, (int)c->api.prompts[i].len, &r, &below);
        if (rc == SF_OK) rc = sf_job_create(r, c->api.stream, c, &c->jobs[i], &below);
        if (rc != SF_OK) {
            sf_api_error_from(&below, err);
            return rc;
        }
        c->n_jobs++;
        if (c->answer) SF_TRY(sf_api_audit_expect(m, c->answer, i, c->jobs[i]->req, err));
    }
    return SF_OK;
}

/* All or none: prompts that ran while the rest of them is refused would run for nobody. */
static sf_code submit(sf_call *c, sf_api_error *err) {
    const int most = sf_engine_sched_config(c->server->engine)->max_queue;
    sf_err below;
    if (c->n_jobs > most)
        return sf_api_fail(err, "prompt", "too_many_prompts",
                           "prompt lists %d prompts, expected at most %d, as many as may wait (--max-queue)",
                           c->n_jobs, most);
    const sf_code rc = sf_driver_submit(c->server->driver, c->jobs, c->n_jobs, &below);
    if (rc != SF_OK)
        sf_api_error_from(&below, err);
    else
        c->n_submitted = c->n_jobs;
    return rc;
}

static sf_code read_call(sf_call *c, json_t *body, sf_api_error *err) {
    const sf_api_model *m = c->server->model;
    if (c->kind == SF_CALL_AUDIT) {
        SF_TRY(sf_api_audit_read(m, body, &c->api, &c->answer, err));
        return create_jobs(c, err);
    }
    SF_TRY(sf_api_request_read(m, (unsigned)c->kind, body, &c->api, err));
    SF_TRY(check_model(c, err));
    SF_TRY(sf_api_request_prompts(m, &c->api, err));
    if (c->api.ignored) {
        char names[400];
        sf_log_event(c->server, "request %s: unknown and ignored: %s", c->ticket.id,
                     sf_api_request_unknown(&c->api, names, sizeof names));
    }
    return create_jobs(c, err);
}

static sf_call *call_create(sf_server *s, struct evhttp_request *req, sf_call_kind kind, const char *prefix) {
    sf_conn *conn = sf_conn_find(s, req);
    sf_call *c = conn ? calloc(1, sizeof *c) : NULL;
    if (!c) return NULL;
    c->server = s;
    c->req = req;
    c->conn = conn;
    c->kind = kind;
    c->created = (int64_t)time(NULL);
    sf_new_id(prefix, conn->ticket.id);
    c->ticket = conn->ticket;
    c->next = s->calls;
    if (s->calls) s->calls->prev = c;
    s->calls = c;
    s->n_calls++;
    return c;
}

static void begin(sf_server *s, struct evhttp_request *req, sf_call_kind kind, const char *prefix) {
    json_t *body = NULL;
    sf_api_error err;
    sf_call *c = call_create(s, req, kind, prefix);
    if (!c) {
        (void)sf_api_nomem(&err);
        sf_http_error(s, req, &err);
        return;
    }
    sf_code rc = sf_http_body(req, &body, &err);
    if (rc == SF_OK) rc = read_call(c, body, &err);
    json_decref(body);
    if (rc == SF_OK) rc = submit(c, &err);
    if (rc != SF_OK) {
        refuse(c, &err);
        call_free(c);
        return;
    }
    sf_conn_wait(c->conn, c);
    c->streaming = c->api.stream;
    if (c->streaming) sf_stream_begin(c);
}

void sf_handle_completions(sf_server *s, struct evhttp_request *req) {
    begin(s, req, SF_CALL_COMPLETION, "cmpl-");
}

void sf_handle_chat(sf_server *s, struct evhttp_request *req) {
    begin(s, req, SF_CALL_CHAT, "chatcmpl-");
}

void sf_handle_audit(sf_server *s, struct evhttp_request *req) {
    begin(s, req, SF_CALL_AUDIT, "audit-");
}

/* ---- end ---- */

static void count(const sf_call *c, const sf_job *j) {
    sf_choice store[SF_N_MAX];
    sf_api_answer a;
    sf_api_answer_of(j->req, store, &a);
    sf_request_times t = {.prompt_tokens = a.n_prompt, .queued = -1, .first_token = -1, .per_token = -1};
    int longest = 0;
    for (int i = 0; i < a.n_choices; i++) {
        t.generated_tokens += a.choices[i].n_tokens;
        longest = a.choices[i].n_tokens > longest ? a.choices[i].n_tokens : longest;
        if (a.choices[i].finish > t.finish) t.finish = a.choices[i].finish;
    }
    t.whole = sf_now_s() - c->ticket.arrived_s;
    if (j->admitted_s > 0) t.queued = j->admitted_s - c->ticket.arrived_s;
    if (j->first_s > 0) t.first_token = j->first_s - c->ticket.arrived_s;
    if (longest > 1) t.per_token = (j->last_s - j->first_s) / (longest - 1);
    sf_metrics_request(c->server->metrics, &t);
}

static const sf_api_error shutdown_error = {.code = SF_CANCELLED,
                                            .status = 503,
                                            .type = "server_error",
                                            .reason = "shutdown",
                                            .message = "the server is shutting down"};

/* The error that ended job j, or that it was cut short although the client is still there. */
static bool job_failed(const sf_job *j, sf_api_error *out) {
    const sf_err *e = sf_request_error(j->req);
    if (e) {
        sf_api_error_from(e, out);
        return true;
    }
    if (j->out_of_memory) {
        (void)sf_api_nomem(out);
        return true;
    }
    if (!j->cancelled) return false;
    *out = shutdown_error;
    return true;
}

bool sf_call_try_end(sf_call *c) {
    if (c->n_done < c->n_submitted || (c->conn && c->stalled)) return false;
    if (c->conn && !c->answered) {
        int status = 200;
        if (c->streaming)
            sf_stream_end(c);
        else
            status = sf_http_json(c->server, c->req, status, sf_form_answer(c));
        sf_log_call(c, status, status == 200 ? "ok" : "out_of_memory");
    } else if (!c->conn && !c->answered) {
        sf_log_call(c, 499, "client_closed");
        evhttp_request_free(c->req); /* evhttp left it to us when the connection went */
    }
    call_free(c);
    return true;
}

static void job_done(sf_call *c, const sf_job *j) {
    sf_api_error err;
    c->n_done++;
    count(c, j);
    if (c->conn && job_failed(j, &err)) refuse(c, &err);
}

void sf_calls_wake(sf_server *s) {
    static const struct timeval soon = {0, 1};
    sf_job *j;
    bool done;
    for (int n = 0; (j = sf_driver_ready(s->driver, &done)); n++) {
        sf_call *c = j->owner;
        if (c->streaming && c->conn && !c->answered) sf_stream_news(c, j);
        if (done) job_done(c, j);
        (void)sf_call_try_end(c);
        /* The driver may be as fast: what has been written has to go out, too. */
        if (n >= TURN && event_add(s->again, &soon) == 0) return;
    }
}

void sf_call_gone(sf_call *c) {
    c->conn = NULL;
    c->stalled = false;
    cancel_all(c);
    if (c->n_done == c->n_submitted) (void)sf_call_try_end(c);
}

void sf_calls_cancel(sf_server *s) {
    for (sf_call *c = s->calls, *next; c; c = next) {
        next = c->next;
        cancel_all(c);
        if (c->n_done < c->n_submitted) continue; /* the end of its jobs is told */
        refuse(c, &shutdown_error);               /* all that held it is a client that reads too slowly */
        call_free(c);
    }
}
