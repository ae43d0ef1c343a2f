/* Fuzz target: any bytes as the body of a request: read as each kind, made into prompts by a real tokenizer
 * and a chat template (from the root of the sources), and into a request of the scheduler, which must find no
 * fault that the reading did not. */
#include "api/audit.h"
#include "api/json.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char TEMPLATE[] =
    "{% for m in messages %}<s>{{ m['role'] }}: {{ m['content'] | trim }}{% if m['tool_calls'] %}{{ "
    "m['tool_calls'] | tojson }}"
    "{% endif %}</s>{% endfor %}{% if tools %}{{ tools | tojson }}{% endif %}{% for d in documents or [] "
    "%}{{ d }}{% endfor %}"
    "{{ strftime_now('%d %b %Y') }}{% if add_generation_prompt %}<s>assistant: {% endif %}";

static sf_api_model model(void) {
    static sf_api_model m;
    sf_tokenizer *t = NULL;
    sf_chat *chat = NULL;
    sf_err err;
    if (m.tokenizer) return m;
    if (sf_tokenizer_open_dir(SF_ROOT_DIR "/tests/golden/checkpoints/llama-default", &t, NULL, &err) !=
            SF_OK ||
        sf_chat_open("chat_template", TEMPLATE, sizeof TEMPLATE - 1, "<s>", "</s>", &chat, &err) != SF_OK)
        __builtin_trap();
    m = (sf_api_model){.tokenizer = t,
                       .chat = chat,
                       .vocab = 320,
                       .max_context = 96,
                       .bos = 0,
                       .add_bos = true,
                       .fingerprint = "sf-fuzz",
                       .date = "2026-03-07"};
    return m;
}

static void require(bool ok) {
    if (!ok) __builtin_trap();
}

/* A fault as a client is told of it. */
static void check_error(const sf_api_error *e) {
    require(e->status >= 400 && e->status < 500 && e->message[0]);
    json_t *o = sf_api_error_json(e);
    require(o != NULL);
    json_decref(o);
}

static void check_prompts(const sf_api_model *m, const sf_api_request *r) {
    require(r->n_prompts > 0);
    for (int i = 0; i < r->n_prompts; i++) {
        require(r->prompts[i].len > 0 && r->prompts[i].len <= (size_t)m->max_context);
        for (size_t k = 0; k < r->prompts[i].len; k++)
            require(r->prompts[i].data[k] >= 0 && r->prompts[i].data[k] < m->vocab);
    }
}

/* answer: what an audit is to replay, or NULL. */
static void check_request(const sf_api_model *m, const sf_api_request *r, const json_t *answer) {
    sf_err err;
    sf_api_error told;
    check_prompts(m, r);
    for (int i = 0; i < r->n_prompts; i++) {
        sf_request *q = NULL;
        require(sf_request_create(&r->params, r->prompts[i].data, (int)r->prompts[i].len, &q, &err) == SF_OK);
        if (answer && sf_api_audit_expect(m, answer, i, q, &told) != SF_OK) check_error(&told);
        sf_request_destroy(q);
    }
}

static void read_as(const sf_api_model *m, unsigned kind, json_t *body) {
    sf_api_request r = {0};
    sf_api_error err;
    if (sf_api_request_read(m, kind, body, &r, &err) == SF_OK && sf_api_request_prompts(m, &r, &err) == SF_OK)
        check_request(m, &r, NULL);
    else
        check_error(&err);
    sf_api_request_fini(&r);
}

static void read_audit(const sf_api_model *m, json_t *body) {
    sf_api_request r = {0};
    sf_api_error err;
    json_t *answer = NULL;
    if (sf_api_audit_read(m, body, &r, &answer, &err) == SF_OK)
        check_request(m, &r, answer);
    else
        check_error(&err);
    json_decref(answer);
    sf_api_request_fini(&r);
}

/* What is written is read again as the same. */
static void check_dump(const json_t *body) {
    json_t *again = NULL;
    sf_api_error err;
    char *text = sf_json_dump(body);
    require(text && sf_json_parse(text, strlen(text), "the dump", &again, &err) == SF_OK);
    require(json_object_size(again) == json_object_size(body));
    json_decref(again);
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const unsigned kinds[] = {SF_API_COMPLETION, SF_API_CHAT, SF_API_RUN};
    const char *text = size ? (const char *)data : "";
    sf_api_model m = model();
    json_t *body = NULL;
    sf_api_error err;
    if (sf_json_parse(text, size, "the body", &body, &err) != SF_OK) {
        check_error(&err);
        json_decref(sf_json_salvage(text, size, "id"));
        return 0;
    }
    for (int strict = 0; strict < 2; strict++) {
        m.strict = strict;
        for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
            read_as(&m, kinds[k], body);
    }
    read_audit(&m, body);
    check_dump(body);
    json_decref(body);
    return 0;
}
