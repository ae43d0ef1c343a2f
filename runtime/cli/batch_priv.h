/* One line on its way from request to answer. */
#ifndef SF_CLI_BATCH_PRIV_H
#define SF_CLI_BATCH_PRIV_H

#include "cli/batch.h"

/* Bytes of a line, borrowed. */
typedef struct sf_text {
    const char *data;
    size_t len;
} sf_text;

typedef struct batch_item {
    int64_t line;
    json_t *id; /* owned, or NULL */
    sf_api_request api;
    json_t *answer;  /* an audit: what is replayed; owned, or NULL */
    sf_request *req; /* NULL: finished (or never begun) */
    char *text;      /* the answer's line, once finished */
    bool failed;
    int n_prompt, n_output;
    struct batch_item *next;
} batch_item;

/* Reads one line into a request to submit; answer: the line of --answers with it, or NULL. Where a line is
 * bad, the item that comes back is finished already, with an error object. Errors: SF_NOMEM. */
SF_CHECKED sf_code batch_item_create(const sf_api_model *m, const sf_cli_opts *o, int64_t line, sf_text text,
                                     const sf_text *answer, batch_item **out, sf_err *err);
/* For a line that could not even be kept. */
SF_CHECKED sf_code batch_item_reject(int64_t line, const char *message, batch_item **out, sf_err *err);
/* full: the queue is at its limit, try again after a step. */
SF_CHECKED sf_code batch_item_submit(sf_engine *e, batch_item *it, bool *full, sf_err *err);
/* Turns a request that is done into its line. */
SF_CHECKED sf_code batch_item_finish(const sf_api_model *m, batch_item *it, sf_err *err);
void batch_item_destroy(batch_item *it);

#endif
