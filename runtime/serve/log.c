/* One line for each request, text or JSON, on stderr. Prompts and answers are in it only where asked for.
 * Text of clients passes sf_utf8_one_line, so that it makes no line of its own. */
#include "serve/http_priv.h"
#include "serve/serve_priv.h"

#include "api/answer.h"
#include "api/json.h"
#include "base/progress.h"
#include "base/utf8.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static const char *now_text(char buf[40]) {
    struct timespec t;
    struct tm tm;
    char head[24];
    clock_gettime(CLOCK_REALTIME, &t);
    gmtime_r(&t.tv_sec, &tm);
    strftime(head, sizeof head, "%Y-%m-%dT%H:%M:%S", &tm);
    snprintf(buf, 40, "%s.%03ldZ", head, t.tv_nsec / 1000000);
    return buf;
}

/* Takes o. */
static void print_json(json_t *o) {
    char *text = o ? sf_json_dump(o) : NULL;
    if (text) fprintf(stderr, "%s\n", text);
    free(text);
    json_decref(o);
}

void sf_log_event(const sf_server *s, const char *fmt, ...) {
    char text[400], when[40];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    if (!s->cfg->log_json) {
        fprintf(stderr, "%s %s\n", now_text(when), sf_utf8_one_line(text));
        return;
    }
    json_t *o = json_object();
    bool ok = o != NULL;
    sf_json_put(o, "time", json_string(now_text(when)), &ok);
    sf_json_put(o, "message", sf_json_text(text, strlen(text)), &ok);
    print_json(o);
}

typedef struct figures {
    int prompt, output;
    int64_t rollbacks;
    double first_s; /* < 0: none */
} figures;

static figures figures_of(const sf_call *c) {
    figures f = {.first_s = -1};
    for (int i = 0; i < c->n_done && c->n_done == c->n_submitted; i++) {
        sf_choice store[SF_N_MAX];
        sf_api_answer a;
        sf_api_answer_of(c->jobs[i]->req, store, &a);
        f.prompt += a.n_prompt;
        f.rollbacks += a.stats.rollbacks;
        for (int k = 0; k < a.n_choices; k++)
            f.output += a.choices[k].n_tokens;
        const double first = c->jobs[i]->first_s - c->ticket.arrived_s;
        if (c->jobs[i]->first_s > 0 && (f.first_s < 0 || first < f.first_s)) f.first_s = first;
    }
    return f;
}

static void put_ticket(json_t *o, const sf_ticket *t, bool *ok) {
    sf_json_put(o, "id", json_string(t->id), ok);
    if (*t->client_id) sf_json_put(o, "client_id", json_string(t->client_id), ok);
}

static void log_json(const sf_call *c, int status, const char *outcome, const figures *f, double whole) {
    char when[40];
    json_t *o = json_object();
    bool ok = o != NULL;
    sf_json_put(o, "time", json_string(now_text(when)), &ok);
    put_ticket(o, &c->ticket, &ok);
    sf_json_put(o, "kind",
                json_string(c->kind == SF_CALL_AUDIT ? "audit"
                            : sf_call_is_chat(c)     ? "chat"
                                                     : "completion"),
                &ok);
    sf_json_put(o, "status", json_integer(status), &ok);
    sf_json_put(o, "outcome", json_string(outcome), &ok);
    sf_json_put(o, "stream", json_boolean(c->api.stream), &ok);
    sf_json_put(o, "deterministic", json_boolean(c->api.params.deterministic), &ok);
    sf_json_put(o, "prompt_tokens", json_integer(f->prompt), &ok);
    sf_json_put(o, "completion_tokens", json_integer(f->output), &ok);
    sf_json_put(o, "rollbacks", json_integer(f->rollbacks), &ok);
    sf_json_put(o, "first_token_s", f->first_s < 0 ? json_null() : json_real(f->first_s), &ok);
    sf_json_put(o, "seconds", json_real(whole), &ok);
    if (c->server->cfg->log_prompts && c->api.body) sf_json_put(o, "body", json_incref(c->api.body), &ok);
    print_json(o);
}

void sf_log_call(const sf_call *c, int status, const char *outcome) {
    const figures f = figures_of(c);
    const double whole = sf_now_s() - c->ticket.arrived_s;
    char when[40];
    if (c->server->cfg->log_json) {
        log_json(c, status, outcome, &f, whole);
        return;
    }
    char *body = c->server->cfg->log_prompts && c->api.body ? sf_json_dump(c->api.body) : NULL;
    char first[32] = "";
    if (f.first_s >= 0) snprintf(first, sizeof first, " first %.3f s", f.first_s);
    fprintf(stderr, "%s %s %d %s%s%s prompt %d output %d rollbacks %lld%s whole %.3f s%s%s%s%s\n",
            now_text(when), c->ticket.id, status, outcome, c->api.stream ? " stream" : "",
            c->api.params.deterministic ? " deterministic" : "", f.prompt, f.output, (long long)f.rollbacks,
            first, whole, *c->ticket.client_id ? " client-id " : "", c->ticket.client_id, body ? " " : "",
            body ? body : "");
    free(body);
}

void sf_log_request(const sf_server *s, const sf_ticket *t, struct evhttp_request *req, int status,
                    const char *outcome) {
    static const sf_ticket unknown = {.id = "-"};
    const struct evhttp_uri *uri = req ? evhttp_request_get_evhttp_uri(req) : NULL;
    const char *path = uri ? evhttp_uri_get_path(uri) : NULL, *method = req ? sf_http_method(req) : "-";
    char shown[200], when[40];
    t = t ? t : &unknown;
    snprintf(shown, sizeof shown, "%s", path ? path : "-");
    sf_utf8_one_line(shown);
    const double whole = t->arrived_s > 0 ? sf_now_s() - t->arrived_s : 0;
    if (!s->cfg->log_json) {
        fprintf(stderr, "%s %s %d %s %s %s whole %.3f s%s%s\n", now_text(when), t->id, status, outcome,
                method, shown, whole, *t->client_id ? " client-id " : "", t->client_id);
        return;
    }
    json_t *o = json_object();
    bool ok = o != NULL;
    sf_json_put(o, "time", json_string(now_text(when)), &ok);
    put_ticket(o, t, &ok);
    sf_json_put(o, "method", json_string(method), &ok);
    sf_json_put(o, "path", json_string(shown), &ok);
    sf_json_put(o, "status", json_integer(status), &ok);
    sf_json_put(o, "outcome", json_string(outcome), &ok);
    sf_json_put(o, "seconds", json_real(whole), &ok);
    print_json(o);
}
