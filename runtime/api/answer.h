/* An answer as a client reads it. */
#ifndef SF_API_ANSWER_H
#define SF_API_ANSWER_H

#include "api/request.h"

/* What of a finished (or running) request an answer is made from; all borrowed. */
typedef struct sf_api_answer {
    const sf_params *params;
    const int32_t *prompt;
    int n_prompt;
    const sf_token *prompt_logprobs; /* [n_prompt], entry 0 unused; NULL: none */
    int n_choices;
    const sf_choice *choices; /* [n_choices] */
    sf_request_stats stats;
} sf_api_answer;

/* store [SF_N_MAX] receives the choices and lives as long as out. */
void sf_api_answer_of(const sf_request *r, sf_choice *store, sf_api_answer *out);

const char *sf_api_finish_name(sf_finish f); /* "stop", "length", "cancelled", "error"; NULL while running */

/* The object of one line of `run --output`: id, text, token_ids, finish_reason, logprobs, prompt_logprobs
 * (those asked for), usage, determinism, system_fingerprint, and prompt_token_ids with return_token_ids. With
 * n > 1 the fields of a choice are in `choices`, each with its `index`; with n = 1 they are the object's own.
 * Owned by the caller. Errors: SF_NOMEM. */
SF_CHECKED sf_code sf_api_answer_json(const sf_api_model *m, const sf_api_request *req,
                                      const sf_api_answer *a, json_t **out, sf_api_error *err);

/* Parts of it, also for other shapes of answer. NULL: out of memory. */
json_t *sf_api_ids_json(const int32_t *ids, int n);
json_t *sf_api_tokens_json(const sf_token *tokens, int n); /* their ids */
/* A part of an answer's text, after the prompt's where that is wanted. */
json_t *sf_api_text_json(const sf_api_model *m, const sf_api_answer *a, const char *part, size_t len,
                         bool with_prompt);
json_t *sf_api_usage_json(int64_t prompt_tokens, int64_t completion_tokens);
/* {class, seed, windows_verified, rollbacks, tokens_rolled_back, digest} */
json_t *sf_api_determinism_json(const sf_api_model *m, const sf_api_answer *a);
/* The same before the end: without the digest. NULL: out of memory. */
json_t *sf_api_progress_json(const sf_params *params, const sf_request_stats *stats);
/* OpenAI's completions form, {tokens, token_logprobs, top_logprobs, text_offset}, and token_ids, for the
 * tokens of choice c (a part of them may stand there), after the prompt's where that is wanted. A token whose
 * bytes are not text is "bytes:\xe2\x82"; where two tokens have the same text, the later one's key is
 * "token_id:N". The chosen token is always among top_logprobs. Offsets count from *chars, the characters
 * before, which moves on. */
json_t *sf_api_logprobs_json(const sf_api_model *m, const sf_api_request *req, const sf_api_answer *a, int c,
                             bool with_prompt, int64_t *chars);
/* OpenAI's chat form: {content: [{token, logprob, bytes, top_logprobs}], refusal}. */
json_t *sf_api_chat_logprobs_json(const sf_api_model *m, const sf_api_request *req, const sf_token *tokens,
                                  int n);
/* vLLM's form: null, then per prompt token {"id": {logprob, rank, decoded_token}}. */
json_t *sf_api_prompt_logprobs_json(const sf_api_model *m, const sf_api_request *req, const sf_api_answer *a);

#endif
