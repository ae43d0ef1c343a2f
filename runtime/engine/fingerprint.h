/* The numerics fingerprint: a hash of everything that can change a committed bit. */
#ifndef SF_ENGINE_FINGERPRINT_H
#define SF_ENGINE_FINGERPRINT_H

#include "base/err.h"

/* Raised when the sampler or the draws' keys change what is drawn from the same logits. */
#define SF_SAMPLER_VERSION 1

#define SF_FINGERPRINT_SIZE 36 /* "sf-", 32 hex digits, NUL */

typedef struct sf_fingerprint_parts {
    const char *pinned_hash;     /* kernels and schedule, from the plan */
    const char *weights_hash;    /* packed weights */
    const char *tokenizer_hash;  /* NULL: none */
    const char *chat_hash;       /* SHA-256 of the chat template's text; NULL: none */
    const char *device_identity; /* kernels compiled at start; NULL: those of the build alone */
} sf_fingerprint_parts;

/* SHA-256, cut to 128 bits, over length-prefixed texts: the layout's name, pinned_hash, compiler, its flags,
 * architecture family, weights_hash, tokenizer_hash, chat_hash, sampler version, device_identity, and the
 * sources outside the kernels that reach a committed bit (SF_NUMERIC_SOURCES, hashed when the build is
 * configured). Threads, instruction set, window and batch sizes are left out: they change no committed bit.
 * Errors: SF_NOMEM. */
SF_CHECKED sf_code sf_fingerprint_make(const sf_fingerprint_parts *parts, char out[SF_FINGERPRINT_SIZE],
                                       sf_err *err);

const char *sf_fingerprint_compiler(void); /* "gcc 12.2.0" */
const char *sf_fingerprint_arch(void);     /* "x86_64" */

#endif
