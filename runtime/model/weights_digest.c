/* XXH3 with the instructions that this file is compiled for: once plainly, and once for AVX2. The digest is
 * the same. */
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "model/weights_priv.h"

#include <string.h>

#ifdef SF_WDIGEST_AVX2
#define NAME sf_wdigest_avx2
#else
#define NAME sf_wdigest_plain
#endif

void NAME(const void *data, size_t len, uint8_t out[16]) {
    XXH128_canonical_t c;
    XXH128_canonicalFromHash(&c, XXH3_128bits(data, len));
    memcpy(out, c.digest, sizeof c.digest);
}
