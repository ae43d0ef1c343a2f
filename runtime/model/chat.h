/* Chat templates: a Jinja subset, rendered with the bytes that came from the messages marked, so that a
 * special token's spelling inside user text stays plain text. */
#ifndef SF_MODEL_CHAT_H
#define SF_MODEL_CHAT_H

#include "base/buf.h"

#include <jansson.h>
#include <stdbool.h>

typedef struct sf_chat sf_chat;

/* Parses a template. name is for messages ("chat_template"); it must outlive the chat and its error records.
 * Errors (unsupported construct, syntax) carry name:line:column. bos and eos (may be NULL) become the
 * variables bos_token and eos_token. Immutable afterwards. */
SF_CHECKED sf_code sf_chat_open(const char *name, const char *source, size_t len, const char *bos,
                                const char *eos, sf_chat **out, sf_err *err);
void sf_chat_close(sf_chat *c);

typedef struct sf_chat_vars {
    const json_t *messages;          /* array of objects with role, content, ...; borrowed */
    const json_t *tools, *documents; /* NULL: none */
    bool add_generation_prompt;
    const char *date; /* for strftime_now, "YYYY-MM-DD"; NULL makes its use an error: an answer must not
                         depend on today */
} sf_chat_vars;

/* Whether s is a day of the calendar from the year 1000 on, "YYYY-MM-DD". */
bool sf_chat_date_valid(const char *s);

/* Renders; text and plain grow in step: plain->data[i] != 0 where text->data[i] came from the messages, tools
 * or documents. Errors: SF_INVALID with the template's message (raise_exception), SF_FULL past the limits on
 * steps and output (a template can't loop for ever). Any thread. */
SF_CHECKED sf_code sf_chat_render(const sf_chat *c, const sf_chat_vars *vars, sf_buf *text, sf_buf *plain,
                                  sf_err *err);

#endif
