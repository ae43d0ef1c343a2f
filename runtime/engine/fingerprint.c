#include "engine/fingerprint.h"

#include "base/hash.h"

#include <stdio.h>

#ifndef SF_BUILD_FLAGS
#define SF_BUILD_FLAGS "unknown"
#endif
#ifndef SF_NUMERIC_SOURCES
#define SF_NUMERIC_SOURCES "unknown"
#endif

const char *sf_fingerprint_compiler(void) {
#if defined(__clang__)
    return "clang " __clang_version__;
#elif defined(__GNUC__)
    return "gcc " __VERSION__;
#else
    return "unknown";
#endif
}

const char *sf_fingerprint_arch(void) {
#if defined(__x86_64__)
    return "x86_64";
#elif defined(__aarch64__)
    return "aarch64";
#else
    return "other";
#endif
}

sf_code sf_fingerprint_make(const sf_fingerprint_parts *parts, char out[SF_FINGERPRINT_SIZE], sf_err *err) {
    sf_sha256 *h = sf_sha256_create();
    if (!h) return SF_FAIL(err, SF_NOMEM, "out of memory for a hash");
    char sampler[16], hex[65];
    snprintf(sampler, sizeof sampler, "%d", SF_SAMPLER_VERSION);
    const char *const texts[] = {"steadfast fingerprint 3", parts->pinned_hash,
                                 sf_fingerprint_compiler(), SF_BUILD_FLAGS,
                                 SF_NUMERIC_SOURCES,        sf_fingerprint_arch(),
                                 parts->weights_hash,       parts->tokenizer_hash,
                                 parts->chat_hash,          sampler,
                                 parts->device_identity};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        sf_sha256_add_str(h, texts[i]);
    sf_sha256_hex(h, hex);
    sf_sha256_destroy(h);
    snprintf(out, SF_FINGERPRINT_SIZE, "sf-%.32s", hex);
    return SF_OK;
}
