/* What a run tells of its lines on stderr: each thing once. */
#ifndef SF_CLI_WARN_H
#define SF_CLI_WARN_H

#include "api/request.h"

#include <stdbool.h>
#include <stddef.h>

enum { SF_WARN_NAMES = 16 };

/* Zeroed: nothing told yet. */
typedef struct sf_warned {
    char names[SF_WARN_NAMES][64]; /* unknown fields told of, cut to fit */
    int n_names;
    bool more;     /* told that there are further ones */
    bool clamped;  /* told of a max_tokens that the context cuts */
    int64_t lines; /* that hold an unknown field */
} sf_warned;

/* Unknown fields and a max_tokens above the room of r, a request that was read and has one prompt. source and
 * line say where it stands; source NULL: on the command line. */
void sf_cli_warn_request(sf_warned *w, const sf_api_model *m, const sf_api_request *r, const char *source,
                         int64_t line);
/* At the end of the run: how many lines held unknown fields. */
void sf_cli_warn_total(const sf_warned *w);
/* Variables that look like ours and are none: a typing error must not go unseen, where it is of a key. */
void sf_cli_warn_env(void);
/* "s", or "" after one thing. */
const char *sf_cli_s(int64_t n);

#endif
