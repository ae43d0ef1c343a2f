/* What the compiler says about a kernel, read from its log. */
#ifndef SF_DEVICE_CUDA_REPORT_H
#define SF_DEVICE_CUDA_REPORT_H

#include "base/err.h"

#define SF_CUDA_ENTRIES_MAX 4

/* One kernel of a source. All per thread, but `shared`: static shared memory of a thread block. Bytes. */
typedef struct sf_cuda_entry {
    char name[128];
    int registers, barriers, shared, stack, spill_stores, spill_loads;
} sf_cuda_entry;

typedef struct sf_cuda_report {
    int n_entries; /* those past SF_CUDA_ENTRIES_MAX are counted in the last one's maxima */
    sf_cuda_entry entries[SF_CUDA_ENTRIES_MAX];
    int notes;      /* ptxas notes C7500..C7599: serialised or repaired wgmma, ignored setmaxnreg */
    char note[200]; /* the first */
    int warnings;
    char warning[200]; /* the first */
} sf_cuda_report;

/* Reads a program log of NVRTC with ptxas's verbose report. Unknown lines are passed over. */
void sf_cuda_report_parse(sf_cuda_report *r, const char *log);
/* Refuses what costs speed unseen: spills, local memory, notes; and a log without a report. Errors:
 * SF_UNSUPPORTED, in words; kernel names it. */
SF_CHECKED sf_code sf_cuda_report_check(const sf_cuda_report *r, const char *kernel, sf_err *err);

#endif
