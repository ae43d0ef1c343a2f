/* Auditing an answer: whether this engine would have given exactly that to that request. */
#ifndef SF_API_AUDIT_H
#define SF_API_AUDIT_H

#include "api/answer.h"

/* Reads {"request": a request as it was sent, "answer": what was answered}. The request is read as
 * deterministic, with its prompts; where it gives no seed, the seed is the answer's `determinism.seed`, or
 * else m's. sf_api_request_fini frees it, also after a failure. The answer (owned, set on success) is what
 * the server or `run` gave: its choices (or, of one choice, itself) with token_ids. Errors: SF_INVALID with
 * the field at fault, SF_NOMEM. */
SF_CHECKED sf_code sf_api_audit_read(const sf_api_model *m, json_t *body, sf_api_request *out,
                                     json_t **answer, sf_api_error *err);

/* Makes r, the request of that prompt, replay the answer. */
SF_CHECKED sf_code sf_api_audit_expect(const sf_api_model *m, const json_t *answer, int prompt, sf_request *r,
                                       sf_api_error *err);

/* {object: "audit", match, system_fingerprint, fingerprint_match, digest, digest_match, choices: [{index,
 * match, tokens, mismatch}], usage}: replays [n_prompts] are done. match: this engine would have said exactly
 * that: token_ids, and, where the answer has them, the text (or message.content), the members of logprobs,
 * prompt_logprobs, finish_reason, and determinism's seed and digest. Not compared: ids, times, usage, what
 * verifying cost, and the fingerprint, which fingerprint_match is about. mismatch is null, or what was found
 * first: {position, what, answer, replay}, the position being the token's (of prompt_logprobs the prompt
 * token's; before 0: in an echoed prompt). Of a list of prompts digest and digest_match are lists. A digest
 * is over the fingerprint too, so that another build's decides nothing. Owned by the caller. Errors:
 * SF_NOMEM. */
SF_CHECKED sf_code sf_api_audit_json(const sf_api_model *m, const sf_api_request *req, const json_t *answer,
                                     const sf_request *const *replays, json_t **out, sf_api_error *err);

#endif
