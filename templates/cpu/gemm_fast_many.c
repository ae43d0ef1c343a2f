//@ template gemm_fast_many
//@ op gemm
//@ backend cpu
//@ class fast
//@ rows 9..
//@ name r${MR}n${NR}
//@ order: free: one accumulator per output; pairs of k by vdpbf16ps where there is one
//@ param N        int = 576 in 1..1048576 from op.n
//@ param K        int = 576 in 1..1048576 from op.k
//@ param EPILOGUE enum store|add|swiglu = store from op.epilogue
//@ param HAS_BIAS int = 0 in 0..1 from op.has_bias
//@ param MR       int = 14 in 1..16
//@ param NR       int = 2 in 2..16
//@ prelude
#ifndef KERNEL_NAME
#define KERNEL_NAME gemm_fast_many_default
#endif
enum { N = 576, K = 576, HAS_BIAS = 0, MR = 14, NR = 2 };
enum { EPILOGUE_store, EPILOGUE_add, EPILOGUE_swiglu, EPILOGUE = EPILOGUE_store };
//@ end
#include "snippets/gemm.h"

SF_CPU_KERNEL(KERNEL_NAME) {
    const gemm_shape shape = {.n = N,
                              .k = K,
                              .epilogue = EPILOGUE,
                              .bias = HAS_BIAS,
                              .mr = MR,
                              .nr = NR,
                              .flavour = GEMM_WIDE};
    gemm_run(shape, a, part, parts);
}
