/* A device whose rows are hashes of the tokens before them: exactly the pinned contract, in microseconds.
 * Faults break it in one way each. */
#ifndef SF_TESTS_ENGINE_FAKE_DEVICE_H
#define SF_TESTS_ENGINE_FAKE_DEVICE_H

#include "device/device.h"

typedef enum fake_fault {
    FAKE_NONE,
    FAKE_ROWS,      /* a log-probability depends on the pass having more than 8 rows */
    FAKE_ROW_INDEX, /* K depends on the row's index in the pass (past a tile of 8) */
    FAKE_NEIGHBOUR, /* K depends on the previous row of the pass, whosever it is */
    FAKE_SAMPLING,  /* the drawn token depends on another row's temperature */
    FAKE_STALE,     /* K depends on what stands behind the position */
    FAKE_FRESH,     /* pages are not zeroed, and a page's last position is felt */
    FAKE_CHUNK,     /* V depends on where the segment begins */
    FAKE_FAR,       /* V depends on the segment's length, past position 128 */
    FAKE_ISA,       /* everything differs on avx2 */
    FAKE_THREADS,   /* everything differs with 3 threads */
    FAKE_BROKEN     /* launch fails */
} fake_fault;

extern const sf_plan fake_plan;

sf_device *fake_device(fake_fault fault, int n_pages, sf_isa isa, int threads);
/* For sf_selftest_config.open; ctx is a fake_fault *. */
sf_code fake_open(void *ctx, sf_isa isa, int threads, int n_pages, sf_device **out, sf_err *err);

#endif
