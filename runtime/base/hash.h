/* SHA-256 (FIPS 180-4) through OpenSSL's libcrypto. */
#ifndef SF_BASE_HASH_H
#define SF_BASE_HASH_H

#include "base/err.h"

typedef struct sf_sha256 sf_sha256;

sf_sha256 *sf_sha256_create(void); /* NULL when out of memory */
void sf_sha256_destroy(sf_sha256 *h);
void sf_sha256_add(sf_sha256 *h, const void *data, size_t len);
/* Length-prefixed text, so that ("ab","c") and ("a","bc") differ. NULL counts as empty. */
void sf_sha256_add_str(sf_sha256 *h, const char *s);
/* Writes 64 hex digits and a NUL, and resets h for a new message. */
void sf_sha256_hex(sf_sha256 *h, char out[65]);
/* One call over one buffer. Returns false when out of memory. */
int sf_sha256_of(const void *data, size_t len, char out[65]);

#endif
