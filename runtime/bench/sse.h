/* Server-sent events (HTML Living Standard, section 9.2.6), cut out of bytes that come in any pieces. */
#ifndef SF_BENCH_SSE_H
#define SF_BENCH_SSE_H

#include "base/buf.h"

#include <stdbool.h>

#define SF_BENCH_EVENT_MAX ((size_t)64 << 20) /* bytes of one event */

/* data: the event's, NUL-terminated, valid during the call. False: no more is wanted. */
typedef bool sf_bench_event_fn(void *ctx, const char *data, size_t len);

typedef struct sf_bench_sse { /* zero-initialise; sf_bench_sse_fini frees */
    sf_buf line, data;
    bool begun, after_cr, has_data;
} sf_bench_sse;

void sf_bench_sse_fini(sf_bench_sse *s);
/* Calls fn for each event that ends in these bytes. Comments and fields other than data are passed over.
 * Errors: SF_FULL (an event over SF_BENCH_EVENT_MAX), SF_NOMEM, SF_CANCELLED (fn said so). */
SF_CHECKED sf_code sf_bench_sse_feed(sf_bench_sse *s, const char *bytes, size_t len, sf_bench_event_fn *fn,
                                     void *ctx, sf_err *err);
/* The bytes are over: an event that no blank line ended counts too, as other clients take it. */
SF_CHECKED sf_code sf_bench_sse_end(sf_bench_sse *s, sf_bench_event_fn *fn, void *ctx, sf_err *err);

#endif
