/* Counters and histograms for Prometheus, with the suffixes of vLLM's names. Any thread. */
#ifndef SF_SERVE_METRICS_H
#define SF_SERVE_METRICS_H

#include "base/buf.h"
#include "sched/sched.h"

typedef struct sf_metrics sf_metrics;

/* One request that has ended; times in seconds, < 0: it never got there. */
typedef struct sf_request_times {
    sf_finish finish;
    int prompt_tokens, generated_tokens;
    double queued, first_token, per_token, whole;
} sf_request_times;

SF_CHECKED sf_code sf_metrics_create(sf_metrics **out, sf_err *err);
void sf_metrics_destroy(sf_metrics *m);

void sf_metrics_pass(sf_metrics *m, sf_class cls, int rows, double seconds);
void sf_metrics_request(sf_metrics *m, const sf_request_times *t);

/* Appends the text exposition format, version 0.0.4; s are the scheduler's figures, model the label. */
SF_CHECKED sf_code sf_metrics_text(sf_metrics *m, const sf_sched_stats *s, const char *model, sf_buf *out,
                                   sf_err *err);

#endif
