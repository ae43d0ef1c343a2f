/* The server that is measured. */
#ifndef SF_BENCH_TARGET_H
#define SF_BENCH_TARGET_H

#include "base/err.h"

#include <stdbool.h>

#define SF_BENCH_KEY_MAX 8192 /* bytes */

typedef struct sf_bench_target {
    bool tls;
    char host[256];   /* without brackets */
    char address[64]; /* numeric, once sf_bench_target_reach has found one that answers */
    int port;
    char prefix[512];    /* of every path, without a slash at its end */
    const char *api_key; /* borrowed; NULL: none */
    bool insecure;       /* take any certificate */
    int timeout_s;       /* for a whole answer */
} sf_bench_target;

/* http://host[:port][/prefix], or https://. A prefix that ends in /v1, as clients of OpenAI's write it, loses
 * that. Sets tls, host, port and prefix. Errors: SF_INVALID. */
SF_CHECKED sf_code sf_bench_target_parse(sf_bench_target *t, const char *url, sf_err *err);
/* Finds the first of the host's addresses that takes a connection. Blocks, at most timeout_s for each.
 * stopped (may be NULL) ends the wait when it returns nonzero. Errors: SF_IO names host, port and reason. */
SF_CHECKED sf_code sf_bench_target_reach(sf_bench_target *t, int timeout_s, int (*stopped)(void),
                                         sf_err *err);

#endif
