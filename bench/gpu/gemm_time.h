#ifndef SF_BENCH_GPU_GEMM_TIME_H
#define SF_BENCH_GPU_GEMM_TIME_H

#include "gemm_ops.h"

/* Each product alone at each row count, ours and cuBLASLt in turn in one process, then the whole chain of a
 * step as one graph. Adds JSON objects to json. */
void gemm_time(const gemm_model &m, std::string *json);
/* Every shape of the wgmma kernels that is worth a try at 128 rows and more, fastest first, beside the one
 * that is picked and cuBLASLt. */
void gemm_shapes(const gemm_model &m);
/* Compiles what it runs; needs no GPU. */
void gemm_shapes_compile(const gemm_model &m);
/* The picked kernels of a layer, their neighbours and cuBLASLt in turn, at 300 to 3000 rows. */
void gemm_between(const gemm_model &m);
void gemm_between_compile(const gemm_model &m);

#endif
