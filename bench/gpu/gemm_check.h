#ifndef SF_BENCH_GPU_GEMM_CHECK_H
#define SF_BENCH_GPU_GEMM_CHECK_H

#include "gemm_ops.h"

/* Every kernel of the family on this op: packing and its inverse, tolerance against the reference, bits
 * across kernels, row counts, places and neighbours. Prints one line; returns the number of failures. */
int gemm_check(const gemm_op &op);
/* Compiles what gemm_check and gemm_time use; needs no GPU. */
void gemm_compile_all();

/* The fast kernels alone: within a tolerance of the pinned ones, whose distance from the reference is
 * printed. */
int gemm_check_fast(const gemm_op &op);

#endif
