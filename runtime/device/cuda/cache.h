/* A disk cache of compiled kernels, shared by all processes of a user. A file is named by the hash of
 * everything that went into it and holds the hash of everything that stands in it, so a stale or damaged one
 * is never used. */
#ifndef SF_DEVICE_CUDA_CACHE_H
#define SF_DEVICE_CUDA_CACHE_H

#include "device/cuda/nvrtc.h"

typedef struct sf_cubin_cache sf_cubin_cache;

typedef struct sf_cubin_cache_stats {
    int hits, misses;
    int damaged;   /* of the misses: a file was there and its hash did not fit */
    int unwritten; /* results that could not be kept */
} sf_cubin_cache_stats;

/* root NULL: ${XDG_CACHE_HOME:-~/.cache}/steadfast/cubin; otherwise that directory. It is made when missing;
 * one that cannot be made or written is no error (sf_cubin_cache_note says so). Errors: SF_NOMEM. */
SF_CHECKED sf_code sf_cubin_cache_create(const char *root, sf_cubin_cache **out, sf_err *err);
void sf_cubin_cache_destroy(sf_cubin_cache *c); /* NULL is fine */

/* Name of a compile's result: SHA-256 over the source, all headers, the options, the architecture and the
 * compiler's build. Errors: SF_NOMEM. */
SF_CHECKED sf_code sf_cubin_key(const sf_nvrtc *n, const char *arch, const sf_cuda_source *source,
                                const sf_cuda_header *headers, int n_headers, char key[65], sf_err *err);

/* Any thread, several at once. */
/* True when the file was there and whole; fills the zero-initialised *out (its report is read from the log).
 */
bool sf_cubin_cache_find(sf_cubin_cache *c, const char *key, sf_cubin *out);
/* Keeps a result; a reader in any process sees the old file, none, or the whole new one. */
void sf_cubin_cache_put(sf_cubin_cache *c, const char *key, const sf_cubin *cubin);

sf_cubin_cache_stats sf_cubin_cache_stats_get(sf_cubin_cache *c);
/* What a person should know about the cache, once: NULL when there is nothing, or when it was taken already.
 * Lives as long as the cache. */
const char *sf_cubin_cache_note_take(sf_cubin_cache *c);

#endif
