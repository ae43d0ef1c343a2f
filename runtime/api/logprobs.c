#include "api/answer.h"
#include "api/json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BYTES_MAX 64 /* bytes of a token shown as \xNN */

static const char *piece_of(const sf_api_model *m, int32_t id, size_t *len) {
    const char *piece = m->tokenizer ? sf_tokenizer_piece(m->tokenizer, id, len) : NULL;
    if (!piece) *len = 0;
    return piece;
}

/* The token's text, "bytes:\xe2\x82" where its bytes are no text, "token_id:N" without a tokenizer. */
static json_t *token_text(const sf_api_model *m, int32_t id) {
    size_t len;
    const char *piece = piece_of(m, id, &len);
    char buf[8 + 4 * BYTES_MAX];
    if (!piece) {
        snprintf(buf, sizeof buf, "token_id:%d", id);
        return json_string(buf);
    }
    json_t *j = json_stringn(piece, len);
    if (j) return j;
    size_t at = (size_t)snprintf(buf, sizeof buf, "bytes:");
    for (size_t i = 0; i < len && i < BYTES_MAX; i++)
        at += (size_t)snprintf(buf + at, sizeof buf - at, "\\x%02x", (unsigned char)piece[i]);
    return json_string(buf);
}

/* top[text of id] = logprob, under "token_id:N" where another token has that text already. */
static void put_top(const sf_api_model *m, json_t *top, int32_t id, float logprob, bool *ok) {
    json_t *text = token_text(m, id);
    char by_id[24];
    snprintf(by_id, sizeof by_id, "token_id:%d", id);
    const char *key = text ? json_string_value(text) : by_id;
    bool taken = json_object_get(top, key) != NULL || (text && strlen(key) != json_string_length(text));
    sf_json_put(top, taken ? by_id : key, sf_json_logprob(logprob), ok);
    json_decref(text);
}

static json_t *top_json(const sf_api_model *m, const sf_token *t, int n) {
    json_t *top = json_object();
    bool ok = top != NULL, chosen = false;
    for (int i = 0; i < t->n_top && i < n; i++) {
        put_top(m, top, t->top_id[i], t->top_logprob[i], &ok);
        chosen = chosen || t->top_id[i] == t->id;
    }
    if (!chosen) put_top(m, top, t->id, t->logprob, &ok);
    return sf_json_done(top, ok);
}

typedef struct list_writer {
    const sf_api_model *m;
    int n_top;
    json_t *tokens, *logprobs, *tops, *offsets, *ids;
    int64_t chars; /* characters begun before the next token */
    bool ok;
} list_writer;

/* A character's first byte is any byte but 10xxxxxx; a token that goes on with a character starts where that
 * character does. */
static int64_t token_offset(list_writer *w, int32_t id) {
    size_t len;
    const char *piece = piece_of(w->m, id, &len);
    if (!piece || sf_tokenizer_is_special(w->m->tokenizer, id)) return w->chars;
    bool inside = len > 0 && ((unsigned char)piece[0] & 0xc0) == 0x80 && w->chars > 0;
    int64_t offset = w->chars - (inside ? 1 : 0);
    for (size_t i = 0; i < len; i++)
        w->chars += ((unsigned char)piece[i] & 0xc0) != 0x80;
    return offset;
}

static void write_token(list_writer *w, int32_t id, const sf_token *t) {
    sf_json_push(w->tokens, token_text(w->m, id), &w->ok);
    sf_json_push(w->ids, json_integer(id), &w->ok);
    sf_json_push(w->logprobs, t ? sf_json_logprob(t->logprob) : json_null(), &w->ok);
    sf_json_push(w->tops, t ? top_json(w->m, t, w->n_top) : json_null(), &w->ok);
    sf_json_push(w->offsets, json_integer(token_offset(w, id)), &w->ok);
}

json_t *sf_api_logprobs_json(const sf_api_model *m, const sf_api_request *req, const sf_api_answer *a, int c,
                             bool with_prompt, int64_t *chars) {
    list_writer w = {.m = m,
                     .chars = *chars,
                     .n_top = req->logprobs,
                     .tokens = json_array(),
                     .logprobs = json_array(),
                     .tops = json_array(),
                     .offsets = json_array(),
                     .ids = json_array(),
                     .ok = true};
    for (int i = 0; with_prompt && i < a->n_prompt; i++)
        write_token(&w, a->prompt[i], i > 0 && a->prompt_logprobs ? &a->prompt_logprobs[i] : NULL);
    for (int i = 0; i < a->choices[c].n_tokens; i++)
        write_token(&w, a->choices[c].tokens[i].id, &a->choices[c].tokens[i]);
    *chars = w.chars;
    json_t *o = json_object();
    sf_json_put(o, "tokens", w.tokens, &w.ok);
    sf_json_put(o, "token_logprobs", w.logprobs, &w.ok);
    sf_json_put(o, "top_logprobs", w.tops, &w.ok);
    sf_json_put(o, "text_offset", w.offsets, &w.ok);
    sf_json_put(o, "token_ids", w.ids, &w.ok);
    return sf_json_done(o, w.ok);
}

/* {token, logprob, bytes} of one token. */
static json_t *chat_token(const sf_api_model *m, int32_t id, float logprob, bool *ok) {
    size_t len;
    const char *piece = piece_of(m, id, &len);
    json_t *o = json_object(), *bytes = piece ? json_array() : json_null();
    for (size_t i = 0; piece && i < len; i++)
        sf_json_push(bytes, json_integer((unsigned char)piece[i]), ok);
    sf_json_put(o, "token", token_text(m, id), ok);
    sf_json_put(o, "logprob", sf_json_logprob(logprob), ok);
    sf_json_put(o, "bytes", bytes, ok);
    return o;
}

json_t *sf_api_chat_logprobs_json(const sf_api_model *m, const sf_api_request *req, const sf_token *tokens,
                                  int n) {
    json_t *content = json_array(), *o = json_object();
    bool ok = content && o;
    for (int i = 0; i < n; i++) {
        const sf_token *t = &tokens[i];
        json_t *one = chat_token(m, t->id, t->logprob, &ok), *top = json_array();
        for (int k = 0; k < t->n_top && k < req->top_logprobs; k++)
            sf_json_push(top, chat_token(m, t->top_id[k], t->top_logprob[k], &ok), &ok);
        sf_json_put(one, "top_logprobs", top, &ok);
        sf_json_push(content, one, &ok);
    }
    sf_json_put(o, "content", content, &ok);
    sf_json_put(o, "refusal", json_null(), &ok);
    return sf_json_done(o, ok);
}

static void put_ranked(const sf_api_model *m, json_t *o, int32_t id, float logprob, int rank, bool *ok) {
    json_t *one = json_object();
    sf_json_put(one, "logprob", sf_json_logprob(logprob), ok);
    sf_json_put(one, "rank", json_integer(rank), ok);
    sf_json_put(one, "decoded_token", token_text(m, id), ok);
    char key[16];
    snprintf(key, sizeof key, "%d", id);
    sf_json_put(o, key, one, ok);
}

json_t *sf_api_prompt_logprobs_json(const sf_api_model *m, const sf_api_request *req,
                                    const sf_api_answer *a) {
    json_t *list = json_array();
    bool ok = list != NULL;
    if (a->n_prompt > 0) sf_json_push(list, json_null(), &ok);
    for (int i = 1; i < a->n_prompt; i++) {
        const sf_token *t = &a->prompt_logprobs[i];
        json_t *o = json_object();
        for (int k = 0; k < t->n_top && k < req->prompt_logprobs; k++)
            put_ranked(m, o, t->top_id[k], t->top_logprob[k], k + 1, &ok);
        put_ranked(m, o, t->id, t->logprob, t->rank,
                   &ok); /* the same values where it is among the top ones */
        sf_json_push(list, o, &ok);
    }
    return sf_json_done(list, ok);
}
