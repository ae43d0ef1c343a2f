#include "api/json.h"
#include "api/request.h"
#include "api/values_priv.h"

#include <stdlib.h>
#include <string.h>

#define PROMPTS_MAX 1024

static sf_code from_below(const sf_err *e, sf_api_error *err) {
    if (err) sf_api_error_from(e, err);
    return e->code;
}

static sf_code encode(const sf_api_model *m, const char *text, size_t len, const uint8_t *plain, bool bos,
                      sf_ids *out, sf_api_error *err) {
    sf_err e;
    if (!m->tokenizer) {
        return sf_api_fail(err, "prompt", "no_tokenizer",
                           "prompt is text, but no tokenizer came with the weights: give prompt_ids");
    }
    if (bos && m->bos >= 0 && sf_ids_push(out, m->bos, &e) != SF_OK) return sf_api_nomem(err);
    sf_code rc = sf_tokenizer_encode(m->tokenizer, text, len, plain, out, &e);
    if (rc != SF_OK) return from_below(&e, err);
    return SF_OK;
}

/* Tokens that a prompt may have: one more is to come, unless only the prompt is scored. */
static size_t room_of(const sf_api_model *m, const sf_api_request *r) {
    return (size_t)(m->max_context - (r->params.max_tokens != 0));
}

/* The fault of a prompt of n tokens (known by its bytes alone: at least so many), or SF_OK. */
static sf_code check_length(const sf_api_model *m, const sf_api_request *r, size_t n, bool at_least,
                            sf_api_error *err) {
    size_t room = room_of(m, r);
    if (n <= room) return SF_OK;
    const char *name = r->messages ? "messages" : r->prompt_ids ? "prompt_ids" : "prompt";
    sf_code rc = sf_api_fail(
        err, name, "context_length_exceeded", "%s has %s%zu tokens, %s over the context of %d", name,
        at_least ? "at least " : "", n,
        room < (size_t)m->max_context ? "and with one more to come that is" : "which is", m->max_context);
    if (err) {
        err->n_prompt_tokens = n > INT32_MAX ? INT32_MAX : (int)n;
        err->n_ctx = m->max_context;
        err->at_least = at_least;
    }
    return rc;
}

/* What is far too long is refused before the time is spent on its tokens. */
static sf_code check_bytes(const sf_api_model *m, const sf_api_request *r, const char *text, size_t len,
                           sf_api_error *err) {
    if (!m->tokenizer) return SF_OK; /* encode says so */
    return check_length(m, r, sf_tokenizer_at_least(m->tokenizer, text, len), true, err);
}

static sf_code text_prompt(const sf_api_model *m, const sf_api_request *r, const json_t *text, sf_ids *out,
                           sf_api_error *err) {
    bool bos = m->add_bos && r->add_special_tokens;
    const char *s = json_string_value(text);
    size_t len = json_string_length(text);
    SF_TRY(check_bytes(m, r, s, len, err));
    SF_TRY(encode(m, s, len, NULL, bos, out, err));
    if (out->len > 0 || r->prompt_only) return SF_OK;
    if (m->bos < 0) {
        return sf_api_fail(err, "prompt", "invalid_value",
                           "prompt is empty, and this model has no BOS token to start from");
    }
    sf_err e;
    return sf_ids_push(out, m->bos, &e) == SF_OK ? SF_OK : sf_api_nomem(err);
}

static sf_code ids_prompt(const sf_api_model *m, const char *name, const json_t *ids, sf_ids *out,
                          sf_api_error *err) {
    if (json_array_size(ids) == 0) {
        return sf_api_fail(err, name, "invalid_value", "%s is an empty list, expected at least one token id",
                           name);
    }
    return sf_api_read_ids(m, name, ids, out, err);
}

static sf_code alloc_prompts(sf_api_request *r, size_t n, sf_api_error *err) {
    r->prompts = calloc(n, sizeof *r->prompts);
    if (!r->prompts) return sf_api_nomem(err);
    r->n_prompts = (int)n;
    return SF_OK;
}

static sf_code completion_prompts(const sf_api_model *m, sf_api_request *r, sf_api_error *err) {
    const json_t *p = r->prompt;
    const json_t *first = json_array_get(p, 0);
    bool list = json_is_string(first) || json_is_array(first);
    if (!json_is_array(p) || !list) {
        SF_TRY(alloc_prompts(r, 1, err));
        if (json_is_string(p)) return text_prompt(m, r, p, &r->prompts[0], err);
        return ids_prompt(m, "prompt", p, &r->prompts[0], err);
    }
    size_t n = json_array_size(p);
    if (n > PROMPTS_MAX) {
        return sf_api_fail(err, "prompt", "invalid_value", "prompt lists %zu prompts, expected at most %d", n,
                           PROMPTS_MAX);
    }
    SF_TRY(alloc_prompts(r, n, err));
    for (size_t i = 0; i < n; i++) {
        const json_t *one = json_array_get(p, i);
        if (json_typeof(one) != json_typeof(first)) {
            char was[96];
            return sf_api_fail(err, "prompt", "invalid_type",
                               "prompt[%zu] is %s, expected the kind of prompt[0]", i,
                               sf_json_describe(one, was, sizeof was));
        }
        sf_ids *ids = &r->prompts[i];
        SF_TRY(json_is_string(one) ? text_prompt(m, r, one, ids, err)
                                   : ids_prompt(m, "prompt", one, ids, err));
    }
    return SF_OK;
}

/* The text of a message's content parts, one after another. Appends to out. */
static sf_code join_parts(const json_t *parts, size_t index, sf_buf *out, sf_api_error *err) {
    for (size_t i = 0; i < json_array_size(parts); i++) {
        const json_t *part = json_array_get(parts, i), *text = json_object_get(part, "text");
        const char *type = json_string_value(json_object_get(part, "type"));
        if (!type || strcmp(type, "text") != 0 || !json_is_string(text)) {
            return sf_api_fail(err, "messages", "unsupported",
                               "messages[%zu].content[%zu] is of type \"%.40s\", expected text", index, i,
                               type ? type : "");
        }
        sf_err e;
        if (sf_buf_append(out, json_string_value(text), json_string_length(text), &e) != SF_OK)
            return sf_api_nomem(err);
    }
    return SF_OK;
}

/* A template may drop a message of a role that it does not know, without a word. */
static sf_code check_role(const json_t *role, size_t index, sf_api_error *err) {
    static const char *const roles[] = {"system", "user", "assistant", "tool", "developer"};
    for (size_t i = 0; i < sizeof roles / sizeof *roles; i++)
        if (strcmp(json_string_value(role), roles[i]) == 0) return SF_OK;
    return sf_api_fail(err, "messages", "invalid_value",
                       "messages[%zu].role is \"%.40s\", expected system, user, assistant, tool or developer",
                       index, json_string_value(role));
}

/* A copy of the message whose content, if it is a list of text parts, is one string. */
static sf_code flatten_message(const json_t *message, size_t index, json_t **out, sf_api_error *err) {
    const json_t *content = json_object_get(message, "content");
    if (!json_is_object(message) || !json_is_string(json_object_get(message, "role"))) {
        char was[96];
        return sf_api_fail(err, "messages", "invalid_type",
                           "messages[%zu] is %s, expected an object with a role (a string) and a content",
                           index, sf_json_describe(message, was, sizeof was));
    }
    SF_TRY(check_role(json_object_get(message, "role"), index, err));
    /* A call of tools may stand for it, as OpenAI's clients send it. */
    if ((!content || json_is_null(content)) && !json_object_get(message, "tool_calls")) {
        return sf_api_fail(err, "messages", "missing_field",
                           "messages[%zu].content is %s, expected a string or a list of text parts", index,
                           content ? "null" : "missing");
    }
    if (content && !json_is_string(content) && !json_is_array(content) && !json_is_null(content)) {
        char was[96];
        return sf_api_fail(err, "messages", "invalid_type",
                           "messages[%zu].content is %s, expected a string or a list of text parts", index,
                           sf_json_describe(content, was, sizeof was));
    }
    json_t *copy = json_copy((json_t *)(uintptr_t)message);
    if (!copy) return sf_api_nomem(err);
    sf_code rc = SF_OK;
    if (json_is_array(content)) {
        sf_buf text = {0};
        bool ok = true;
        rc = join_parts(content, index, &text, err);
        if (rc == SF_OK)
            sf_json_put(copy, "content", json_stringn(text.data ? text.data : "", text.len), &ok);
        if (!ok) rc = sf_api_nomem(err);
        sf_buf_fini(&text);
    }
    if (rc != SF_OK) {
        json_decref(copy);
        return rc;
    }
    *out = copy;
    return SF_OK;
}

static sf_code flatten(const sf_api_request *r, json_t **out, sf_api_error *err) {
    json_t *list = json_array();
    if (!list) return sf_api_nomem(err);
    for (size_t i = 0; i < json_array_size(r->messages); i++) {
        json_t *one = NULL;
        sf_code rc = flatten_message(json_array_get(r->messages, i), i, &one, err);
        if (rc == SF_OK && json_array_append_new(list, one) != 0) rc = sf_api_nomem(err);
        if (rc != SF_OK) {
            json_decref(list);
            return rc;
        }
    }
    *out = list;
    return SF_OK;
}

/* Without text in it, what stands before belongs to another message, or is the role. */
static bool can_stay_open(const json_t *messages) {
    size_t n = json_array_size(messages);
    const char *text = json_string_value(json_object_get(json_array_get(messages, n - 1), "content"));
    return text && text[strspn(text, " \t\r\n")];
}

/* An open last message ends where its own text ends, before what the template puts after it. */
static size_t open_end(const sf_buf *plain) {
    size_t len = plain->len;
    while (len > 0 && !plain->data[len - 1])
        len--;
    return len;
}

static sf_code render(const sf_api_model *m, const sf_api_request *r, const json_t *messages, sf_ids *out,
                      sf_api_error *err) {
    sf_chat_vars vars = {.messages = messages,
                         .tools = r->tools,
                         .documents = r->documents,
                         .add_generation_prompt = r->add_generation_prompt,
                         .date = r->date ? r->date : m->date};
    sf_buf text = {0}, plain = {0};
    sf_err e;
    sf_code rc = sf_chat_render(m->chat, &vars, &text, &plain, &e);
    if (rc != SF_OK) {
        rc = from_below(&e, err);
        if (err && err->param[0] == 0) memcpy(err->param, "messages", sizeof "messages");
        goto done;
    }
    size_t len = r->continue_final_message ? open_end(&plain) : text.len;
    const char *s = text.data ? text.data : "";
    rc = check_bytes(m, r, s, len, err);
    if (rc == SF_OK) rc = encode(m, s, len, (const uint8_t *)plain.data, false, out, err);
    if (rc != SF_OK || !m->add_bos || m->bos < 0 || (out->len > 0 && out->data[0] == m->bos)) goto done;
    sf_ids_fini(out); /* the template writes no BOS and the model wants one */
    rc = encode(m, s, len, (const uint8_t *)plain.data, true, out, err);
done:
    sf_buf_fini(&text);
    sf_buf_fini(&plain);
    return rc;
}

static sf_code chat_prompt(const sf_api_model *m, sf_api_request *r, sf_api_error *err) {
    if (r->date && !sf_chat_date_valid(r->date))
        return sf_api_fail(err, "date", "invalid_value", "date is \"%.40s\", expected YYYY-MM-DD", r->date);
    if (!m->chat) {
        return sf_api_fail(err, "messages", "no_chat_template", "messages need a chat template: %.300s",
                           m->chat_missing ? m->chat_missing : "none");
    }
    if (json_array_size(r->messages) == 0) {
        return sf_api_fail(err, "messages", "invalid_value",
                           "messages is an empty list, expected at least one");
    }
    json_t *messages = NULL;
    SF_TRY(flatten(r, &messages, err));
    sf_code rc = alloc_prompts(r, 1, err);
    if (rc == SF_OK && r->continue_final_message && !can_stay_open(messages))
        rc = sf_api_fail(err, "continue_final_message", "invalid_value",
                         "continue_final_message is true and the last message has no text to continue");
    if (rc == SF_OK) rc = render(m, r, messages, &r->prompts[0], err);
    json_decref(messages);
    if (rc == SF_OK && r->prompts[0].len == 0)
        rc = sf_api_fail(err, "messages", "invalid_value", "messages render to an empty prompt");
    return rc;
}

static sf_code check_context(const sf_api_model *m, const sf_api_request *r, sf_api_error *err) {
    for (int i = 0; i < r->n_prompts; i++)
        SF_TRY(check_length(m, r, r->prompts[i].len, false, err));
    return SF_OK;
}

sf_code sf_api_request_prompts(const sf_api_model *m, sf_api_request *r, sf_api_error *err) {
    if (r->messages) {
        SF_TRY(chat_prompt(m, r, err));
    } else if (r->prompt_ids) {
        SF_TRY(alloc_prompts(r, 1, err));
        SF_TRY(ids_prompt(m, "prompt_ids", r->prompt_ids, &r->prompts[0], err));
    } else {
        SF_TRY(completion_prompts(m, r, err));
    }
    return check_context(m, r, err);
}
