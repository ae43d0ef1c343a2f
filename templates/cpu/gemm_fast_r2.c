//@ template gemm_fast_r2
//@ op gemm
//@ backend cpu
//@ class fast
//@ rows 2..2
//@ name r${MR}n${NR}
//@ order: free: two accumulators per output by turns; pairs of k by vdpbf16ps where there is one
//@ param N        int = 576 in 1..1048576 from op.n
//@ param K        int = 576 in 1..1048576 from op.k
//@ param EPILOGUE enum store|add|swiglu = store from op.epilogue
//@ param HAS_BIAS int = 0 in 0..1 from op.has_bias
//@ param MR       int = 2 in 1..16
//@ param NR       int = 6 in 2..16
//@ prelude
#ifndef KERNEL_NAME
#define KERNEL_NAME gemm_fast_r2_default
#endif
enum { N = 576, K = 576, HAS_BIAS = 0, MR = 2, NR = 6 };
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
                              .flavour = GEMM_SPLIT};
    gemm_run(shape, a, part, parts);
}
