/* What an audit shares between its sources. */
#ifndef SF_API_AUDIT_PRIV_H
#define SF_API_AUDIT_PRIV_H

#include "api/answer.h"

/* One choice as it was answered, all borrowed; a member that the answer lacks is NULL. */
typedef struct audit_said {
    const json_t *choice;
    const json_t *prompt_logprobs; /* the choice's own, or the whole answer's */
    const json_t *seed;            /* as reported beside the digest */
} audit_said;

/* The mismatch object of choice k of the replay, owned by the caller. NULL: it is exactly what this engine
 * would have said, or memory is short and *ok cleared. */
json_t *audit_compare(const sf_api_model *m, const sf_api_request *req, const audit_said *said,
                      const sf_api_answer *replay, int k, bool *ok);

#endif
