#ifndef SF_BENCH_GPU_GEMM_FAST_H
#define SF_BENCH_GPU_GEMM_FAST_H

#include "gemm_ops.h"

/* The fast kernels beside the pinned ones, up to FAST_ROWS rows: each alone, then a step with one of a kind;
 * in one process. Adds JSON objects to json. */
void gemm_fast(const gemm_model &m, std::string *json);
/* Every shape of the fast kernel that is worth a try, in the chain of a step: prints each op's best ones. */
void gemm_sweep(const gemm_model &m);
/* Compiles what gemm_sweep runs. */
void gemm_sweep_compile(const gemm_model &m);

#endif
