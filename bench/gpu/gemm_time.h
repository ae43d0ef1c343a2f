#ifndef SF_BENCH_GPU_GEMM_TIME_H
#define SF_BENCH_GPU_GEMM_TIME_H

#include "gemm_ops.h"

/* Each product alone at each row count, ours and cuBLASLt in turn in one process, then the whole chain of a
 * step as one graph. Adds JSON objects to json. */
void gemm_time(const gemm_model &m, std::string *json);

#endif
