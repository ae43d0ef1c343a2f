/* RoPE as a GGUF file says it (ggml's docs/gguf.md, llama.cpp's llama_model_loader): keys rope.*, and for
 * Llama 3.1 and later the tensor rope_freqs.weight, by which each pair's frequency is divided. */
#ifndef SF_MODEL_GGUF_ROPE_H
#define SF_MODEL_GGUF_ROPE_H

#include "device/plan.h"
#include "model/gguf.h"

#define SF_GGUF_ROPE_FREQS "rope_freqs.weight"

/* Fills m's rope_* from a file of m->family; m->context and m->head_dim are known. Kinds: none (default),
 * linear, yarn; a file with rope_freqs.weight says no figures of llama3, so such are looked for as give its
 * factors: low_freq_factor 1 (only ratios count), and the others to that. Errors name the key or tensor:
 * SF_FORMAT, or SF_UNSUPPORTED for another kind, and for factors that no figures of llama3 give. */
SF_CHECKED sf_code sf_gguf_rope_read(const sf_gguf *g, sf_model_desc *m, sf_err *err);
/* Compares the file's RoPE with the model's: what the keys say with its figures, rope_freqs.weight with the
 * factors that its figures give (within 1e-4, since fp32 went into the file). A file of a llama3 model that
 * names no scaling at all is fine: older conversions left it out. */
SF_CHECKED sf_code sf_gguf_rope_check(const sf_gguf *g, const sf_model_desc *m, sf_err *err);
/* Whether "<family>.<key>" is one of the keys that these two understand. */
bool sf_gguf_rope_knows(const char *key, size_t len);

#endif
