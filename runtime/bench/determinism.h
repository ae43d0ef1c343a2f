/* Whether copies of a prompt got one answer, and what determinism cost. */
#ifndef SF_BENCH_DETERMINISM_H
#define SF_BENCH_DETERMINISM_H

#include "bench/metrics.h"
#include "bench/scrape.h"

typedef struct sf_bench_copies {
    int prompts; /* with two answers or more */
    int same;    /* of those, with one output */
    int most;    /* outputs of one prompt, at most */
} sf_bench_copies;

typedef struct sf_bench_determinism {
    int copies; /* of each prompt */
    /* A request is deterministic when it was marked so, or, unmarked, when its answer says so. Outputs are
     * compared by the answers' digests (token ids and log-probability bits), where there is none by text. */
    sf_bench_copies deterministic, ordinary;
    bool by_digest; /* all that were compared */
    int answers;    /* deterministic ones that say what they cost: the sums below are of those */
    int64_t windows, rollbacks, tokens_rolled_back, tokens;
    double recompute_ratio;     /* (tokens + tokens rolled back) / tokens */
    sf_bench_counters counters; /* how far the server's rose during the run, whoever caused it */
} sf_bench_determinism;

/* copies: requests of each of the r->n / copies prompts. Errors: SF_NOMEM. */
SF_CHECKED sf_code sf_bench_compare(const sf_bench_results *r, int copies, const sf_bench_counters *before,
                                    const sf_bench_counters *after, sf_bench_determinism *out, sf_err *err);

#endif
