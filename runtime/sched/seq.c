#include "sched/seq_priv.h"

#include <assert.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

void sf_seq_fini(sf_seq *q) {
    free(q->ids);
    free(q->tokens);
    free(q->pages);
    free(q->expected);
    sf_buf_fini(&q->text);
    sf_buf_fini(&q->shown);
    *q = (sf_seq){0};
}

sf_code sf_seq_reserve(sf_seq *q, int n, sf_err *err) {
    if (n <= q->cap) return SF_OK;
    int cap = q->cap < 16 ? 16 : q->cap;
    while (cap < n)
        cap = cap > INT_MAX / 2 ? n : cap * 2;
    int32_t *ids = realloc(q->ids, (size_t)cap * sizeof *ids);
    if (!ids) return SF_FAIL(err, SF_NOMEM, "%d output ids", cap);
    q->ids = ids;
    sf_token *tokens = realloc(q->tokens, (size_t)cap * sizeof *tokens);
    if (!tokens) return SF_FAIL(err, SF_NOMEM, "%d output tokens", cap);
    q->tokens = tokens;
    q->cap = cap;
    return SF_OK;
}

static bool ends_at(const sf_seq *q, const sf_rules *rules, int32_t token) {
    const sf_params *p = &q->req->params;
    for (int i = 0; i < p->n_stop_ids; i++)
        if (p->stop_ids[i] == token) return true;
    if (p->ignore_eos) return false;
    for (int i = 0; i < rules->model->n_eos; i++)
        if (rules->model->eos[i] == token) return true;
    return false;
}

/* The bytes that a token adds to the text; none for a special token. */
static const char *piece_of(const sf_rules *rules, int32_t token, size_t *len) {
    *len = 0;
    const char *piece = rules->tok ? sf_tokenizer_piece(rules->tok, token, len) : NULL;
    if (*len > 0 && sf_tokenizer_is_special(rules->tok, token)) *len = 0;
    return piece;
}

/* The one way a state moves on by a token, drafted or committed. */
static void advance(const sf_seq *q, const sf_rules *rules, sf_state *st, int32_t token, char *text) {
    const sf_request *r = q->req;
    st->n_tokens++;
    if (ends_at(q, rules, token)) {
        st->finish = SF_FINISH_STOP; /* the id stays in tokens and out of the text */
    } else {
        size_t len;
        const char *piece = piece_of(rules, token, &len);
        bool may_stop = st->n_tokens > r->params.min_tokens;
        if (len > 0 && sf_text_push(&r->stops, may_stop, piece, len, &st->text, text))
            st->finish = SF_FINISH_STOP;
    }
    if (st->finish == SF_FINISH_NONE && st->n_tokens >= q->max_out) st->finish = SF_FINISH_LENGTH;
}

void sf_seq_draft(sf_seq *q, const sf_rules *rules, int32_t token) {
    assert(q->draft.n_tokens < q->cap);
    q->ids[q->draft.n_tokens] = token;
    q->draft.kv_len++;
    advance(q, rules, &q->draft, token, NULL);
}

/* Copies text that has become streamable. Room is there. */
static void publish(sf_seq *q) {
    size_t from = q->shown.len, to = q->committed.text.shown;
    if (!q->shown.data) return; /* no token has had text */
    q->text.len = q->committed.text.len;
    memcpy(q->shown.data + from, q->text.data + from, to - from);
    q->shown.len = to;
    q->shown.data[to] = 0;
}

sf_code sf_seq_commit(sf_seq *q, const sf_rules *rules, const sf_row_out *row, sf_err *err) {
    sf_state *st = &q->committed;
    assert(st->n_tokens < q->cap);
    size_t len;
    (void)piece_of(rules, row->token, &len);
    if (len > 0) {
        /* All that this token can ever add, its ending included, so that what follows can't fail. */
        SF_TRY(sf_buf_reserve(&q->text, st->text.len - q->text.len + sf_text_room(len), err));
        SF_TRY(sf_buf_reserve(&q->shown, st->text.len - q->shown.len + sf_text_room(len), err));
    }
    q->ids[st->n_tokens] = row->token;
    sf_token *t = &q->tokens[st->n_tokens];
    *t = (sf_token){.id = row->token, .logprob = row->logprob, .rank = row->rank};
    if (q->req->params.logprobs > 0) {
        t->n_top = row->n_top < SF_TOP_MAX ? row->n_top : SF_TOP_MAX;
        memcpy(t->top_id, row->top_id, sizeof t->top_id);
        memcpy(t->top_logprob, row->top_logprob, sizeof t->top_logprob);
    }
    advance(q, rules, st, row->token, q->text.data);
    if (st->finish != SF_FINISH_NONE && q->shown.data) sf_text_end(&st->text, q->text.data);
    publish(q);
    return SF_OK;
}

void sf_seq_finish(sf_seq *q, sf_finish finish) {
    q->committed.finish = finish;
    if (q->shown.data) sf_text_end(&q->committed.text, q->text.data);
    publish(q);
    q->draft = q->committed;
}
