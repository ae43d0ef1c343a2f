/* An error as a client sees it: OpenAI's error object, with an HTTP status. */
#ifndef SF_API_ERROR_H
#define SF_API_ERROR_H

#include "base/err.h"

#include <jansson.h>
#include <stdbool.h>

typedef struct sf_api_error {
    sf_code code;
    int status;          /* HTTP */
    const char *type;    /* "invalid_request_error", "server_error", "overloaded_error", "cancelled" */
    const char *reason;  /* the object's "code": a word for programs, or NULL */
    char param[64];      /* the field at fault, "" if none */
    char message[480];   /* what was found, what was expected */
    int n_prompt_tokens; /* with n_ctx, when a prompt does not fit the context; otherwise 0 */
    int n_ctx;
    bool at_least; /* n_prompt_tokens was not counted to the end */
} sf_api_error;

/* Fills e (may be NULL) as a fault of the request's field `param` (NULL: none) and returns SF_INVALID. */
sf_code sf_api_fail(sf_api_error *e, const char *param, const char *reason, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
/* The client's view of an error from below; a message that begins with a field's name gives param. */
void sf_api_error_from(const sf_err *err, sf_api_error *out);
sf_code sf_api_nomem(sf_api_error *e);

/* {"message", "type", "param", "code"} and, where set, "n_prompt_tokens" and "n_ctx". NULL: out of memory. */
json_t *sf_api_error_json(const sf_api_error *e);

#endif
