#include "api/error.h"

#include "api/fields.h"
#include "api/json.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

sf_code sf_api_fail(sf_api_error *e, const char *param, const char *reason, const char *fmt, ...) {
    if (!e) return SF_INVALID;
    *e = (sf_api_error){.code = SF_INVALID, .status = 400, .type = "invalid_request_error", .reason = reason};
    snprintf(e->param, sizeof e->param, "%s", param ? param : "");
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(e->message, sizeof e->message, fmt, ap);
    va_end(ap);
    return SF_INVALID;
}

sf_code sf_api_nomem(sf_api_error *e) {
    if (e)
        *e = (sf_api_error){.code = SF_NOMEM,
                            .status = 500,
                            .type = "server_error",
                            .reason = "out_of_memory",
                            .message = "out of memory"};
    return SF_NOMEM;
}

typedef struct mapping {
    sf_code code;
    int status;
    const char *type, *reason;
} mapping;

static const mapping mappings[] = {
    {SF_INVALID, 400, "invalid_request_error", "invalid_value"},
    {SF_FORMAT, 400, "invalid_request_error", "invalid_value"},
    {SF_UNSUPPORTED, 400, "invalid_request_error", "unsupported"},
    {SF_NOT_FOUND, 404, "invalid_request_error", "not_found"},
    {SF_NONDET, 400, "invalid_request_error", "determinism_unavailable"},
    {SF_FULL, 429, "overloaded_error", "queue_full"},
    {SF_CANCELLED, 499, "cancelled", "cancelled"},
    {SF_NOMEM, 500, "server_error", "out_of_memory"},
    {SF_DEVICE, 500, "server_error", "device"},
};

static void find_param(const char *message, char out[64]) {
    size_t len = strcspn(message, " :[");
    out[0] = 0;
    if (len == 0 || len >= 64) return;
    char word[64];
    memcpy(word, message, len);
    word[len] = 0;
    if (sf_api_field_find(word)) memcpy(out, word, len + 1);
}

void sf_api_error_from(const sf_err *err, sf_api_error *out) {
    *out = (sf_api_error){.code = err->code, .status = 500, .type = "server_error"};
    for (size_t i = 0; i < sizeof mappings / sizeof *mappings; i++) {
        if (mappings[i].code != err->code) continue;
        out->status = mappings[i].status;
        out->type = mappings[i].type;
        out->reason = mappings[i].reason;
    }
    sf_err_format(err, out->message, sizeof out->message);
    if (out->status == 400) find_param(err->msg, out->param);
}

json_t *sf_api_error_json(const sf_api_error *e) {
    json_t *o = json_object();
    bool ok = o != NULL;
    sf_json_put(o, "message", sf_json_text(e->message, strlen(e->message)), &ok);
    sf_json_put(o, "type", json_string(e->type), &ok);
    sf_json_put(o, "param", e->param[0] ? sf_json_text(e->param, strlen(e->param)) : json_null(), &ok);
    sf_json_put(o, "code", e->reason ? json_string(e->reason) : json_null(), &ok);
    if (e->n_ctx > 0) {
        sf_json_put(o, "n_prompt_tokens", json_integer(e->n_prompt_tokens), &ok);
        sf_json_put(o, "n_ctx", json_integer(e->n_ctx), &ok);
    }
    return sf_json_done(o, ok);
}
