//@ template gemm_r4
//@ op gemm
//@ backend cpu
//@ class both
//@ rows 3..4
//@ name r${MR}n${NR}
//@ order: k ascending from 0, one fp32 accumulator per output, exact products, no split
//@ param N        int = 576 in 1..1048576 from op.n
//@ param K        int = 576 in 1..1048576 from op.k
//@ param EPILOGUE enum store|add|swiglu = store from op.epilogue
//@ param HAS_BIAS int = 0 in 0..1 from op.has_bias
//@ param MR       int = 4 in 1..16
//@ param NR       int = 6 in 2..16
//@ prelude
#ifndef KERNEL_NAME
#define KERNEL_NAME gemm_r4_default
#endif
enum { N = 576, K = 576, HAS_BIAS = 0, MR = 4, NR = 6 };
enum { EPILOGUE_store, EPILOGUE_add, EPILOGUE_swiglu, EPILOGUE = EPILOGUE_store };
//@ end
#include "snippets/gemm.h"

_Static_assert(MR * NR <= GEMM_TILE && NR % 2 == 0, "a tile's sums are in registers; gate and up stand together");

SF_CPU_KERNEL(KERNEL_NAME) {
    const gemm_shape shape = {.n = N,
                              .k = K,
                              .epilogue = EPILOGUE,
                              .bias = HAS_BIAS,
                              .mr = MR,
                              .nr = NR,
                              .flavour = GEMM_PINNED};
    gemm_run(shape, a, part, parts);
}
