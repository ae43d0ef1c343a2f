/* The JSON of completions and chats, in OpenAI's forms. */
#include "serve/serve_priv.h"

#include "api/audit.h"
#include "api/json.h"

#include <stdlib.h>

json_t *sf_form_head(const sf_call *c, const char *object) {
    json_t *o = json_object();
    bool ok = o != NULL;
    sf_json_put(o, "id", json_string(c->ticket.id), &ok);
    sf_json_put(o, "object", json_string(object), &ok);
    sf_json_put(o, "created", json_integer(c->created), &ok);
    sf_json_put(o, "model", json_string(c->server->cfg->model), &ok);
    sf_json_put(o, "system_fingerprint", json_string(c->server->model->fingerprint), &ok);
    return sf_json_done(o, ok);
}

json_t *sf_form_usage(const sf_call *c) {
    int64_t prompt = 0, out = 0;
    for (int i = 0; i < c->n_jobs; i++) {
        sf_choice choices[SF_N_MAX];
        sf_api_answer a;
        sf_api_answer_of(c->jobs[i]->req, choices, &a);
        prompt += a.n_prompt;
        for (int k = 0; k < a.n_choices; k++)
            out += a.choices[k].n_tokens;
    }
    return sf_api_usage_json(prompt, out);
}

json_t *sf_form_logprobs(const sf_call *c, const sf_api_answer *a, int i, bool echo, int64_t *chars) {
    const sf_api_model *m = c->server->model;
    if (c->api.logprobs < 0) return json_null();
    if (sf_call_is_chat(c))
        return sf_api_chat_logprobs_json(m, &c->api, a->choices[i].tokens, a->choices[i].n_tokens);
    return sf_api_logprobs_json(m, &c->api, a, i, echo, chars);
}

/* What was asked for of the prompt: a completion's choices have it, a chat's answer as a whole. */
static void put_prompt(const sf_call *c, const sf_api_answer *a, json_t *o, bool *ok) {
    if (c->api.return_token_ids)
        sf_json_put(o, "prompt_token_ids", sf_api_ids_json(a->prompt, a->n_prompt), ok);
    if (c->api.prompt_logprobs >= 0 && a->prompt_logprobs)
        sf_json_put(o, "prompt_logprobs", sf_api_prompt_logprobs_json(c->server->model, &c->api, a), ok);
}

static json_t *choice_json(const sf_call *c, const sf_api_answer *a, int job, int i) {
    const sf_choice *choice = &a->choices[i];
    json_t *o = json_object(), *message = NULL;
    int64_t chars = 0;
    bool ok = o != NULL;
    sf_json_put(o, "index", json_integer(job * a->n_choices + i), &ok);
    if (sf_call_is_chat(c)) {
        message = json_object();
        sf_json_put(message, "role", json_string("assistant"), &ok);
        sf_json_put(message, "content", sf_json_text(choice->text, choice->text_len), &ok);
        sf_json_put(o, "message", message, &ok);
    } else {
        sf_json_put(o, "text",
                    sf_api_text_json(c->server->model, a, choice->text, choice->text_len, c->api.echo), &ok);
    }
    sf_json_put(o, "logprobs", sf_form_logprobs(c, a, i, c->api.echo, &chars), &ok);
    sf_json_put(o, "finish_reason", json_string(sf_api_finish_name(choice->finish)), &ok);
    if (c->api.return_token_ids)
        sf_json_put(o, "token_ids", sf_api_tokens_json(choice->tokens, choice->n_tokens), &ok);
    if (!sf_call_is_chat(c)) put_prompt(c, a, o, &ok);
    return sf_json_done(o, ok);
}

static json_t *audit_json(const sf_call *c) {
    const sf_request **replays = calloc((size_t)c->n_jobs, sizeof *replays);
    json_t *o = NULL;
    sf_api_error ignored;
    for (int i = 0; replays && i < c->n_jobs; i++)
        replays[i] = c->jobs[i]->req;
    if (replays && sf_api_audit_json(c->server->model, &c->api, c->answer, replays, &o, &ignored) != SF_OK)
        o = NULL;
    free(replays);
    return o;
}

json_t *sf_form_answer(sf_call *c) {
    if (c->answer) return audit_json(c);
    const bool chat = sf_call_is_chat(c);
    json_t *o = sf_form_head(c, chat ? "chat.completion" : "text_completion"), *choices = json_array(),
           *det = NULL;
    bool ok = o && choices;
    json_t *all = c->n_jobs > 1 ? json_array() : NULL;
    for (int i = 0; i < c->n_jobs; i++) {
        sf_choice store[SF_N_MAX];
        sf_api_answer a;
        sf_api_answer_of(c->jobs[i]->req, store, &a);
        for (int k = 0; k < a.n_choices; k++)
            sf_json_push(choices, choice_json(c, &a, i, k), &ok);
        if (chat) put_prompt(c, &a, o, &ok);
        det = sf_api_determinism_json(c->server->model, &a);
        if (all) sf_json_push(all, det, &ok);
    }
    sf_json_put(o, "choices", choices, &ok);
    sf_json_put(o, "usage", sf_form_usage(c), &ok);
    sf_json_put(o, "determinism", all ? all : det, &ok);
    return sf_json_done(o, ok);
}
