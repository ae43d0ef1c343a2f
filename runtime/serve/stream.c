/* Server-sent events. A client that reads slowly gets fewer, longer events: what it has not taken waits in
 * the job, which holds no more than an answer. */
#include "serve/http_priv.h"
#include "serve/serve_priv.h"

#include "api/answer.h"
#include "api/json.h"
#include "base/progress.h"

#include <event2/buffer.h>
#include <event2/http_struct.h>
#include <stdlib.h>
#include <string.h>

#define UNSENT_MAX (64 << 10) /* bytes queued for a client before its news wait */

static void on_drained(struct evhttp_connection *evcon, void *ctx);

static void send_bytes(sf_call *c, const char *head, const char *text, const char *tail) {
    struct evbuffer *buf = evbuffer_new();
    if (!buf) return; /* the usage and the end tell how much was lost, if ever memory is that short */
    evbuffer_add_printf(buf, "%s%s%s", head, text, tail);
    evhttp_send_reply_chunk_with_cb(c->req, buf, on_drained, c);
    evbuffer_free(buf);
}

/* Takes o. */
static void send_event(sf_call *c, json_t *o) {
    char *text = o ? sf_json_dump(o) : NULL;
    json_decref(o);
    send_bytes(c, "data: ", text ? text : sf_http_nomem, "\n\n");
    free(text);
}

static bool wants(const sf_call *c, const char *option) {
    return json_is_true(json_object_get(c->api.stream_options, option));
}

static json_t *chunk_of(sf_call *c, json_t *choice) {
    json_t *o = sf_form_head(c, sf_call_is_chat(c) ? "chat.completion.chunk" : "text_completion"),
           *choices = json_array();
    bool ok = o && choices;
    if (choice) sf_json_push(choices, choice, &ok);
    sf_json_put(o, "choices", choices, &ok);
    if (wants(c, "include_usage")) sf_json_put(o, "usage", json_null(), &ok);
    return sf_json_done(o, ok);
}

/* The answer as far as news n of choice i goes: what the forms of log-probabilities are made from. */
static void answer_of_news(const sf_job *j, const sf_news *n, sf_choice *store, sf_api_answer *out) {
    *out = (sf_api_answer){.params = sf_request_params(j->req), .n_choices = 1, .choices = store};
    out->prompt = sf_request_prompt(j->req, &out->n_prompt);
    *store = (sf_choice){.tokens = n->tokens, .n_tokens = n->n_tokens, .finish = n->finish};
}

static json_t *delta_json(const char *role, const char *text, size_t len) {
    json_t *o = json_object();
    bool ok = o != NULL;
    if (role) sf_json_put(o, "role", json_string(role), &ok);
    if (role || len > 0) sf_json_put(o, "content", sf_json_text(text, len), &ok);
    return sf_json_done(o, ok);
}

static json_t *choice_json(sf_call *c, const sf_job *j, int index, const sf_news *n) {
    sf_told *told = &c->told[index];
    const char *finish = sf_api_finish_name(n->finish), *text = n->text.data ? n->text.data : "";
    const bool first = !told->begun, echo = first && c->api.echo;
    sf_choice store;
    sf_api_answer a;
    answer_of_news(j, n, &store, &a);
    if (echo) a.prompt_logprobs = sf_request_prompt_logprobs(j->req);
    json_t *o = json_object();
    bool ok = o != NULL;
    sf_json_put(o, "index", json_integer(index), &ok);
    if (sf_call_is_chat(c))
        sf_json_put(o, "delta", delta_json(first ? "assistant" : NULL, text, n->text.len), &ok);
    else
        sf_json_put(o, "text", sf_api_text_json(c->server->model, &a, text, n->text.len, echo), &ok);
    const bool silent = n->n_tokens == 0 && !echo; /* news of text or of the end alone */
    sf_json_put(o, "logprobs", silent ? json_null() : sf_form_logprobs(c, &a, 0, echo, &told->chars), &ok);
    sf_json_put(o, "finish_reason", finish ? json_string(finish) : json_null(), &ok);
    if (c->api.return_token_ids) {
        sf_json_put(o, "token_ids", sf_api_tokens_json(n->tokens, n->n_tokens), &ok);
        if (first) sf_json_put(o, "prompt_token_ids", sf_api_ids_json(a.prompt, a.n_prompt), &ok);
    }
    told->begun = true;
    return sf_json_done(o, ok);
}

/* Whether news without text are worth an event: their tokens may be all that was asked for. */
static bool worth_telling(const sf_call *c, const sf_news *n) {
    const bool tokens = n->n_tokens > 0 && (c->api.logprobs >= 0 || c->api.return_token_ids);
    return n->text.len > 0 || n->finish != SF_FINISH_NONE || tokens;
}

static void put_progress(const sf_call *c, const sf_job *j, const sf_request_stats *stats, json_t *chunk) {
    bool ok = chunk != NULL;
    if (wants(c, "include_determinism"))
        sf_json_put(chunk, "determinism", sf_api_progress_json(sf_request_params(j->req), stats), &ok);
}

static void put_last(sf_call *c, const sf_job *j, json_t *chunk) {
    sf_choice store[SF_N_MAX];
    sf_api_answer a;
    bool ok = chunk != NULL;
    sf_api_answer_of(j->req, store, &a);
    sf_json_put(chunk, "determinism", sf_api_determinism_json(c->server->model, &a), &ok);
    if (c->api.prompt_logprobs >= 0 && a.prompt_logprobs)
        sf_json_put(chunk, "prompt_logprobs", sf_api_prompt_logprobs_json(c->server->model, &c->api, &a),
                    &ok);
}

static int job_index(const sf_call *c, const sf_job *j) {
    int i = 0;
    while (c->jobs[i] != j)
        i++;
    return i;
}

/* ---- what the rest of the server calls ---- */

void sf_stream_begin(sf_call *c) {
    struct evkeyvalq *h = evhttp_request_get_output_headers(c->req);
    sf_http_headers(c->server, c->req);
    evhttp_add_header(h, "Content-Type", "text/event-stream; charset=utf-8");
    evhttp_add_header(h, "Cache-Control", "no-store");
    evhttp_add_header(h, "X-Accel-Buffering", "no");
    /* Before HTTP/1.1 there are no chunks: the end of the connection ends the answer, or evhttp would promise
     * none of it (Content-Length: 0). */
    if (c->req->major < 1 || (c->req->major == 1 && c->req->minor < 1))
        evhttp_remove_header(evhttp_request_get_input_headers(c->req), "Connection");
    evhttp_send_reply_start(c->req, 200, "OK");
}

void sf_stream_news(sf_call *c, sf_job *j) {
    const int n = c->api.params.n, at = job_index(c, j) * n;
    sf_news news[SF_N_MAX];
    sf_request_stats stats;
    json_t *last = NULL; /* an event behind, so that the last one can carry the end */
    bool done;
    if (sf_conn_unsent(c->conn) > UNSENT_MAX) {
        c->stalled = true;
        return;
    }
    sf_driver_take(c->server->driver, j, news, &stats, &done);
    for (int i = 0; i < n; i++) {
        /* An error, or being cancelled, is told by an event of its own. */
        if (worth_telling(c, &news[i]) && news[i].finish < SF_FINISH_CANCELLED) {
            if (last) send_event(c, last);
            last = chunk_of(c, choice_json(c, j, at + i, &news[i]));
            put_progress(c, j, &stats, last);
        }
        sf_news_fini(&news[i]);
    }
    if (last && done) put_last(c, j, last);
    if (last) send_event(c, last);
}

void sf_stream_error(sf_call *c, const sf_api_error *e) {
    json_t *o = json_object();
    bool ok = o != NULL;
    sf_json_put(o, "error", sf_api_error_json(e), &ok);
    send_event(c, o);
    send_bytes(c, "data: ", "[DONE]", "\n\n");
    evhttp_send_reply_end(c->req);
}

void sf_stream_end(sf_call *c) {
    if (wants(c, "include_usage")) {
        json_t *o = chunk_of(c, NULL);
        bool ok = o != NULL;
        sf_json_put(o, "usage", sf_form_usage(c), &ok);
        send_event(c, o);
    }
    send_bytes(c, "data: ", "[DONE]", "\n\n");
    evhttp_send_reply_end(c->req);
}

static void on_drained(struct evhttp_connection *evcon, void *ctx) {
    sf_call *c = ctx;
    (void)evcon;
    if (!c->stalled) return;
    c->stalled = false;
    for (int i = 0; i < c->n_jobs && !c->stalled; i++)
        sf_stream_news(c, c->jobs[i]);
    if (!c->stalled) (void)sf_call_try_end(c);
}

void sf_calls_ping(sf_server *s) {
    for (sf_call *c = s->calls; c; c = c->next)
        if (c->streaming && c->conn && !c->answered && sf_conn_unsent(c->conn) == 0)
            send_bytes(c, ": ", "ping", "\n\n");
}
