/* What was seen of one request: its times, its text, what its answer says of determinism.
 *
 * Times are vLLM's (benchmarks/lib/endpoint_request_func.py): a chunk is an event with a choice in it,
 * whatever its text. TTFT is from the start to the first chunk, an ITL from one chunk to the next, the
 * latency from the start to the last chunk; so latency = TTFT + the sum of the ITLs. */
#ifndef SF_BENCH_RECORD_H
#define SF_BENCH_RECORD_H

#include "base/buf.h"
#include "bench/stats.h"

#define SF_BENCH_DIGEST_MAX 128

typedef struct sf_bench_record { /* zero-initialise; sf_bench_record_fini frees */
    double start_s, last_s;      /* sf_now_s: when it was sent, and its last chunk */
    double ttft_s, latency_s;
    double queue_s;    /* from when it should have been sent until then: --max-concurrency held it */
    sf_bench_list itl; /* seconds */
    int64_t chunks;
    int64_t input_tokens, output_tokens; /* as the answer's usage counts them; output: else the chunks */
    sf_buf text;
    bool has_determinism, pinned;     /* the answer's determinism object, and its class */
    char digest[SF_BENCH_DIGEST_MAX]; /* "": none, or one that does not fit */
    int64_t windows, rollbacks, tokens_rolled_back;
    bool ended; /* [DONE], or a finish_reason */
    bool success;
    bool cut; /* the run ended before it */
    char error[400];
} sf_bench_record;

void sf_bench_record_fini(sf_bench_record *r);
/* One event of the stream, of time now_s. Errors: SF_FORMAT (no JSON object), SF_DEVICE (an error object: the
 * message is the server's), SF_NOMEM. */
SF_CHECKED sf_code sf_bench_record_event(sf_bench_record *r, const char *data, size_t len, double now_s,
                                         sf_err *err);
/* Sets error to the text as one line for a terminal: it may be the server's. */
void sf_bench_record_fail(sf_bench_record *r, const char *text);
/* The stream is over: sets success, or error. */
void sf_bench_record_end(sf_bench_record *r);
/* The message of an error answer: {"error": {"message"}}, {"error": "..."}, {"message"}, {"detail"}, or the
 * text's first 200 bytes, as one line for a terminal. Returns buf. */
const char *sf_bench_error_text(const char *body, size_t len, char *buf, size_t size);

#endif
