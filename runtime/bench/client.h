/* An HTTP client: many exchanges at once over libevent, in one thread. A connection is used again while the
 * server keeps it open, as vLLM's client does. */
#ifndef SF_BENCH_CLIENT_H
#define SF_BENCH_CLIENT_H

#include "base/buf.h"
#include "bench/target.h"

struct event_base;
typedef struct sf_bench_client sf_bench_client;

typedef struct sf_bench_exchange {
    const char *path; /* after the target's prefix; borrowed until done */
    const char *body; /* POST; NULL: GET. Borrowed until done */
    size_t body_len;
    int limit_s; /* for the whole answer; 0: the target's */
    /* Bytes of the answer's body as they come. False: the rest is not wanted, and done is told nothing of an
     * error. */
    bool (*bytes)(void *ctx, int status, const char *data, size_t len);
    /* Once, unless starting failed. status 0: there is no answer. error NULL: the answer is whole. */
    void (*done)(void *ctx, int status, const char *error);
    void *ctx;
} sf_bench_exchange;

/* t is borrowed, and has an address. Errors: SF_NOMEM, SF_IO (TLS). */
SF_CHECKED sf_code sf_bench_client_create(const sf_bench_target *t, sf_bench_client **out, sf_err *err);
void sf_bench_client_destroy(sf_bench_client *c); /* open exchanges end without done */
struct event_base *sf_bench_client_base(sf_bench_client *c);
/* Never blocks. Errors: SF_NOMEM. */
SF_CHECKED sf_code sf_bench_client_start(sf_bench_client *c, const sf_bench_exchange *x, sf_err *err);
/* Ends what is open: done gets "interrupted". */
void sf_bench_client_abort(sf_bench_client *c);

/* GET path, the body appended to *body (at most 16 MiB). Blocks: runs the loop, limit_s at most. stopped: see
 * target.h. Errors: SF_NOT_FOUND (a status that asking again will not change: 4xx but 408, 425 and 429),
 * SF_IO with the reason, also for any other status than 200. */
SF_CHECKED sf_code sf_bench_client_get(sf_bench_client *c, const char *path, int limit_s,
                                       int (*stopped)(void), sf_buf *body, sf_err *err);

#endif
