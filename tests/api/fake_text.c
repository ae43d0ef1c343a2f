#include "fake_text.h"

#include "api/json.h"

#include <stdlib.h>
#include <string.h>

size_t fake_encoded;
bool fake_chat_bos;

struct sf_tokenizer {
    int unused;
};
struct sf_chat {
    int unused;
};
static const sf_tokenizer tokenizer = {0};
static const sf_chat chat = {0};

const sf_api_model fake_model = {.tokenizer = &tokenizer,
                                 .chat = &chat,
                                 .chat_missing = "",
                                 .vocab = FAKE_VOCAB,
                                 .max_context = 32,
                                 .bos = FAKE_BOS,
                                 .add_bos = true,
                                 .fingerprint = "sf-test",
                                 .seed = 77};

void sf_ids_fini(sf_ids *ids) {
    free(ids->data);
    *ids = (sf_ids){0};
}

sf_code sf_ids_push(sf_ids *ids, int32_t id, sf_err *err) {
    if (ids->len == ids->cap) {
        size_t cap = ids->cap ? 2 * ids->cap : 8;
        int32_t *data = realloc(ids->data, cap * sizeof *data);
        if (!data) return SF_FAIL(err, SF_NOMEM, "out of memory");
        ids->data = data;
        ids->cap = cap;
    }
    ids->data[ids->len++] = id;
    return SF_OK;
}

bool sf_tokenizer_is_special(const sf_tokenizer *t, int32_t id) {
    (void)t;
    return id == FAKE_BOS || id == FAKE_END;
}

const char *sf_tokenizer_piece(const sf_tokenizer *t, int32_t id, size_t *len) {
    static char bytes[256][2];
    static const char *const more[] = {"<s>", "<end>", "a", "\xe2\x82", "\xac"};
    (void)t;
    if (id < 0 || id >= FAKE_VOCAB) return NULL;
    if (id >= 256) {
        *len = strlen(more[id - 256]);
        return more[id - 256];
    }
    bytes[id][0] = (char)id;
    *len = 1;
    return bytes[id];
}

sf_code sf_tokenizer_encode(const sf_tokenizer *t, const char *text, size_t len, const uint8_t *plain,
                            sf_ids *out, sf_err *err) {
    (void)t;
    fake_encoded++;
    for (size_t i = 0; i < len; i++) {
        bool bos = plain && !plain[i] && len - i >= 3 && memcmp(text + i, "<s>", 3) == 0;
        bool end = plain && !plain[i] && len - i >= 5 && memcmp(text + i, "<end>", 5) == 0;
        sf_code rc = sf_ids_push(out, bos ? FAKE_BOS : end ? FAKE_END : (uint8_t)text[i], err);
        if (rc != SF_OK) return rc;
        i += bos ? 2 : end ? 4 : 0;
    }
    return SF_OK;
}

size_t sf_tokenizer_at_least(const sf_tokenizer *t, const char *text, size_t len) {
    (void)t;
    (void)text;
    return (len + FAKE_LONGEST - 1) / FAKE_LONGEST;
}

sf_code sf_tokenizer_decode(const sf_tokenizer *t, const int32_t *ids, size_t n, bool special, sf_buf *out,
                            sf_err *err) {
    for (size_t i = 0; i < n; i++) {
        size_t len = 0;
        const char *piece = sf_tokenizer_piece(t, ids[i], &len);
        if (!special && sf_tokenizer_is_special(t, ids[i])) continue;
        sf_code rc = sf_buf_append(out, piece, len, err);
        if (rc != SF_OK) return rc;
    }
    return SF_OK;
}

/* Appends text to both buffers, marked plain or not. */
static sf_code put(sf_buf *text, sf_buf *plain, const char *s, bool is_plain, sf_err *err) {
    for (; *s; s++) {
        char mark = is_plain;
        sf_code rc = sf_buf_append(text, s, 1, err);
        if (rc == SF_OK) rc = sf_buf_append(plain, &mark, 1, err);
        if (rc != SF_OK) return rc;
    }
    return SF_OK;
}

sf_code sf_chat_render(const sf_chat *c, const sf_chat_vars *vars, sf_buf *text, sf_buf *plain, sf_err *err) {
    (void)c;
    size_t i;
    json_t *m;
    if (fake_chat_bos && put(text, plain, "<s>", false, err) != SF_OK) return SF_NOMEM;
    if (vars->date && put(text, plain, vars->date, false, err) != SF_OK) return SF_NOMEM;
    json_array_foreach(vars->messages, i, m) {
        const char *role = json_string_value(json_object_get(m, "role"));
        const char *content = json_string_value(json_object_get(m, "content"));
        if (strcmp(role, "tool") == 0) return SF_FAIL(err, SF_INVALID, "roles must alternate");
        sf_code rc = put(text, plain, role, true, err);
        if (rc == SF_OK) rc = put(text, plain, ":", false, err);
        if (rc == SF_OK && content) rc = put(text, plain, content, true, err);
        if (rc == SF_OK) rc = put(text, plain, "<end>", false, err);
        if (rc != SF_OK) return rc;
    }
    return vars->add_generation_prompt ? put(text, plain, "A:", false, err) : SF_OK;
}

bool sf_chat_date_valid(const char *s) {
    return strlen(s) == 10;
}

sf_code fake_read(const sf_api_model *m, unsigned kind, const char *json, sf_api_request *out,
                  sf_api_error *err) {
    json_t *body;
    *out = (sf_api_request){0};
    sf_code rc = sf_json_parse(json, strlen(json), "the body", &body, err);
    if (rc != SF_OK) return rc;
    rc = sf_api_request_read(m, kind, body, out, err);
    json_decref(body);
    return rc;
}
