#include "api/answer.h"
#include "api/json.h"
#include "cli/output.h"
#include "cli/setup.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STDIN_MAX ((size_t)64 << 20)

static int print_text(const char *text) {
    sf_output out;
    sf_err err;
    sf_code rc = sf_output_open(&out, "-", &err);
    if (rc == SF_OK) rc = sf_output_line(&out, text, &err);
    return rc == SF_OK ? SF_EXIT_OK : sf_cli_report(&err);
}

static int print(json_t *o, bool ok) {
    char *text = ok ? sf_json_dump(o) : NULL;
    json_decref(o);
    if (!text) return sf_cli_error(SF_EXIT_FAILED, "out of memory");
    int code = print_text(text);
    free(text);
    return code;
}

static int print_ids(const sf_ids *ids) {
    sf_buf text = {0};
    sf_err err;
    sf_code rc = sf_buf_append(&text, "", 0, &err);
    for (size_t i = 0; rc == SF_OK && i < ids->len; i++)
        rc = sf_buf_printf(&text, &err, "%s%d", i ? " " : "", ids->data[i]);
    int code = rc == SF_OK ? print_text(text.data) : sf_cli_report(&err);
    sf_buf_fini(&text);
    return code;
}

static json_t *pieces_json(const sf_tokenizer *t, const sf_ids *ids) {
    json_t *list = json_array();
    bool ok = list != NULL;
    for (size_t i = 0; i < ids->len; i++) {
        size_t len;
        const char *piece = sf_tokenizer_piece(t, ids->data[i], &len);
        json_t *one = json_object();
        sf_json_put(one, "id", json_integer(ids->data[i]), &ok);
        sf_json_put(one, "piece", sf_json_text(piece ? piece : "", piece ? len : 0), &ok);
        sf_json_push(list, one, &ok);
    }
    return sf_json_done(list, ok);
}

static int print_tokens(const sf_api_model *m, const sf_cli_opts *o, const sf_ids *ids) {
    if (o->ids) return print_ids(ids);
    json_t *out = json_object();
    bool ok = out != NULL;
    sf_json_put(out, "tokens",
                o->pieces ? pieces_json(m->tokenizer, ids) : sf_api_ids_json(ids->data, (int)ids->len), &ok);
    sf_json_put(out, "count", json_integer((json_int_t)ids->len), &ok);
    sf_json_put(out, "max_model_len", json_integer(m->max_context), &ok);
    return print(out, ok);
}

static int read_stdin(sf_buf *text) {
    sf_err err;
    char chunk[1 << 14];
    size_t n;
    while ((n = fread(chunk, 1, sizeof chunk, stdin)) > 0) {
        if (text->len + n > STDIN_MAX) return sf_cli_error(SF_EXIT_FAILED, "stdin: more than 64 MiB of text");
        if (sf_buf_append(text, chunk, n, &err) != SF_OK) return sf_cli_report(&err);
    }
    return ferror(stdin) ? sf_cli_error(SF_EXIT_FAILED, "stdin: cannot read") : SF_EXIT_OK;
}

static int encode(const sf_api_model *m, const sf_cli_opts *o, const char *text, size_t len) {
    sf_ids ids = {0};
    sf_err err;
    sf_code rc = SF_OK;
    if (m->add_bos && m->bos >= 0 && o->add_special_tokens) rc = sf_ids_push(&ids, m->bos, &err);
    if (rc == SF_OK) rc = sf_tokenizer_encode(m->tokenizer, text, len, NULL, &ids, &err);
    if (rc == SF_FORMAT) err.user = (sf_loc){o->text ? "--text" : "stdin", 0, 0};
    int code = rc == SF_OK ? print_tokens(m, o, &ids) : sf_cli_report(&err);
    sf_ids_fini(&ids);
    return code;
}

static int encode_chat(const sf_api_model *m, const sf_cli_opts *o) {
    json_t *body = json_object();
    bool ok = body != NULL;
    sf_json_put(body, "messages", sf_cli_messages(o), &ok);
    if (!ok) {
        json_decref(body);
        return sf_cli_error(SF_EXIT_USAGE, "--chat and --system must be valid UTF-8");
    }
    sf_api_request r;
    sf_api_error e;
    sf_code rc = sf_api_request_read(m, SF_API_CHAT, body, &r, &e);
    json_decref(body);
    if (rc == SF_OK) rc = sf_api_request_prompts(m, &r, &e);
    int code =
        rc == SF_OK ? print_tokens(m, o, &r.prompts[0]) : sf_cli_error(SF_EXIT_FAILED, "%s", e.message);
    sf_api_request_fini(&r);
    return code;
}

static const char *skip_blanks(const char *s) {
    return s + strspn(s, " \t\r\n");
}

/* One id and the comma or blanks after it. NULL: no id of the vocabulary stands there. */
static const char *read_id(const char *s, int vocab, int32_t *out) {
    char *end;
    errno = 0;
    long id = strtol(s, &end, 10);
    const char *next = skip_blanks(end);
    bool bounded = next > end || *end == 0 || *end == ',' || *end == ']';
    if (*s < '0' || *s > '9' || !bounded || errno || id >= vocab) return NULL;
    *out = (int32_t)id;
    return *next == ',' ? skip_blanks(next + 1) : next;
}

/* Ids separated by commas or blanks, in brackets or not. */
static int read_ids(const char *text, int vocab, sf_ids *out) {
    sf_err err;
    const char *s = skip_blanks(text);
    const bool list = *s == '[';
    if (list) s = skip_blanks(s + 1);
    while (*s && !(list && *s == ']')) {
        int32_t id;
        const char *next = read_id(s, vocab, &id);
        if (!next)
            return sf_cli_error(SF_EXIT_USAGE, "--decode has \"%.40s\", expected token ids in 0..%d", s,
                                vocab - 1);
        if (sf_ids_push(out, id, &err) != SF_OK) return sf_cli_report(&err);
        s = next;
    }
    if (list && (*s != ']' || *skip_blanks(s + 1)))
        return sf_cli_error(SF_EXIT_USAGE, "--decode has \"%.40s\", expected the list to end with ]", text);
    return SF_EXIT_OK;
}

static int decode(const sf_api_model *m, const sf_cli_opts *o) {
    sf_ids ids = {0};
    sf_buf text = {0};
    sf_err err;
    int code = read_ids(o->decode, m->vocab, &ids);
    if (code == SF_EXIT_OK) {
        sf_code rc = sf_tokenizer_decode(m->tokenizer, ids.data, ids.len, true, &text, &err);
        json_t *out = json_object();
        bool ok = out != NULL && rc == SF_OK;
        if (ok) sf_json_put(out, "text", sf_json_text(text.data ? text.data : "", text.len), &ok);
        if (rc != SF_OK) {
            json_decref(out);
            code = sf_cli_report(&err);
        } else {
            code = print(out, ok);
        }
    }
    sf_ids_fini(&ids);
    sf_buf_fini(&text);
    return code;
}

static int tokenize(const sf_api_model *m, const sf_cli_opts *o) {
    if (o->decode) return decode(m, o);
    if (o->chat) return encode_chat(m, o);
    if (o->text) return encode(m, o, o->text, strlen(o->text));
    sf_buf text = {0};
    int code = read_stdin(&text);
    if (code == SF_EXIT_OK) code = encode(m, o, text.data ? text.data : "", text.len);
    sf_buf_fini(&text);
    return code;
}

int sf_verb_tokenize(const sf_plan *plan, const sf_cli_opts *o) {
    if ((o->text != NULL) + (o->chat != NULL) + (o->decode != NULL) > 1)
        return sf_cli_error(SF_EXIT_USAGE, "tokenize needs only one of --text, --chat and --decode");
    int code = sf_cli_check_chat(o);
    if (code != SF_EXIT_OK) return code;
    sf_engine_config c;
    sf_cli_engine_config(o, &c);
    c.text_only = true;
    sf_engine *e = NULL;
    code = sf_cli_engine_open(plan, &c, &e);
    if (code != SF_EXIT_OK) return code;
    sf_api_model m;
    sf_cli_api_model(plan, e, o, &m);
    code = tokenize(&m, o);
    sf_engine_close(e);
    return code;
}
