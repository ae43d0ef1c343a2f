/* Proves the numeric contract on the machine it runs on: whichever way a row of a pinned pass is computed,
 * its K, V and log-probabilities have the same bits. The reference is one prefill of a made-up sequence,
 * chunked as large as the plan allows; every check computes rows of it in another way and compares bits. */
#ifndef SF_ENGINE_SELFTEST_H
#define SF_ENGINE_SELFTEST_H

#include "device/device.h"

typedef struct sf_selftest_line {
    const char *name;        /* "verify windows" */
    const char *what;        /* what was varied */
    int64_t rows, differing; /* rows compared; of them with other bits */
    bool failed;             /* never for the negative control */
    bool control;            /* the fast class: a difference is expected */
    double seconds;
    char first[240]; /* the first difference, or a note; "" if none */
} sf_selftest_line;

typedef struct sf_selftest_config {
    sf_device *device; /* the device under test, idle; its KV pool is overwritten */
    /* Opens a device on the same weights with another instruction set or thread count. NULL: those checks are
     * left out. */
    sf_code (*open)(void *ctx, sf_isa isa, int threads, int n_pages, sf_device **out, sf_err *err);
    void *open_ctx;
    int n_isas; /* instruction sets to compare, best last; the last serves the thread counts */
    sf_isa isas[SF_ISA_COUNT];
    int threads; /* thread counts 1.. up to this and one more are compared */
    /* Other ways in which the device under test may run a pass ("launches one by one"); set_mode(-1) goes
     * back to its own. NULL: none. */
    const char *const *modes;
    int n_modes;
    void (*set_mode)(void *ctx, int mode);
    void *mode_ctx;
    /* Makes the last token's embedding row infinite for the length of a check, or puts it back. NULL: that
     * check is left out. */
    sf_code (*poison)(void *ctx, bool on, sf_err *err);
    void *poison_ctx;
    /* Called for each finished check, in order; may be NULL. */
    void (*report)(void *ctx, const sf_selftest_line *line);
    void *report_ctx;
} sf_selftest_config;

typedef struct sf_selftest_result {
    int checks, failed;
    int64_t rows; /* rows compared, the control's left out */
    bool control_differs;
} sf_selftest_result;

/* KV pages the device under test needs for sf_selftest_run; fewer is SF_INVALID. */
int sf_selftest_pages(const sf_plan *plan);

/* The same for sf_selftest_probe. */
int sf_selftest_probe_pages(const sf_plan *plan);

/* Runs every check, also after one has failed. SF_OK when all ran, passed or not: see out->failed. Errors:
 * SF_NOMEM, SF_DEVICE, what `open` returns. Thread: the device's. */
SF_CHECKED sf_code sf_selftest_run(const sf_selftest_config *cfg, sf_selftest_result *out, sf_err *err);

/* A short form of it for every start (ten rows, three ways). SF_NONDET when bits differ: why says in
 * what (the text for sf_sched_config.refuse_deterministic). Other errors as above. */
SF_CHECKED sf_code sf_selftest_probe(sf_device *d, char *why, size_t why_size, sf_err *err);

#endif
