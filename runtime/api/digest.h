/* The digest of an answer: equal digests mean equal fingerprints, requests, token ids and log-probability
 * bits. */
#ifndef SF_API_DIGEST_H
#define SF_API_DIGEST_H

#include "api/answer.h"

#include <stdbool.h>

/* SHA-256, 64 hex digits, over these bytes (integers and fp32 bit patterns little-endian; str = u64 byte
 * length, then the bytes): str "steadfast digest 1", str fingerprint u32 n_prompt, i32 prompt ids f32
 * temperature, i32 top_k, f32 top_p, f32 min_p, f32 repetition_penalty, f32 frequency_penalty, f32
 * presence_penalty, i64 seed, i32 n, i32 max_tokens, i32 min_tokens, u32 ignore_eos (0 or 1) u32 n_stop, each
 * str; u32 n_stop_ids, i32 ids; u32 n_bias, each i32 token, f32 bias u32 choices, and for each: u32 finish
 * (sf_finish), u32 n_tokens, and for each token: i32 id, f32 logprob, u32 n_top, each i32 id, f32 logprob u32
 * n_prompt or, without prompt log-probabilities, 0; for each prompt token but the first, as for a token What
 * cannot change a bit is left out: whether the request was marked deterministic, windows, rollbacks, ids of
 * requests; text follows from the ids. Returns false when out of memory. */
bool sf_api_digest(const char *fingerprint, const sf_api_answer *a, char out[65]);

#endif
