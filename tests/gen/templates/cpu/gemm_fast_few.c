//@ template gemm_fast_few
//@ op gemm
//@ backend cpu
//@ class fast
//@ rows 1..4
//@ name r${MR}
//@ order: free
//@ param N        int = 8 in 1..1048576 from op.n
//@ param K        int = 8 in 1..1048576 from op.k
//@ param EPILOGUE enum store|add|swiglu = store from op.epilogue
//@ param BIAS     int = 0 in 0..1 from op.has_bias
//@ param MR       int = 2 in 1..16
//@ prelude
#define KERNEL_NAME gemm_fast_few_default
enum { N = 8, K = 8, BIAS = 0, MR = 2 };
enum { EPILOGUE_store, EPILOGUE_add, EPILOGUE_swiglu, EPILOGUE = EPILOGUE_store };
//@ end
#include "snippets/loose.h"
//@ list LANES 0 1 2 3
void KERNEL_NAME(const float *in, const float *w, float *out) {
    float sum[MR + 4] = {BIAS};
    for (int n = 0; n < N; n++)
        for (int k = 0; k < K; k++) {
//@ for L in LANES
//@|            sum[${L}] += in[k] * w[n * ${K} + k]; /* lane ${L} */
//@ end
        }
//@ if EPILOGUE == add
    out[0] += sum[0];
//@ else
    out[0] = EPILOGUE == EPILOGUE_swiglu ? sum[1] : sum[0];
//@ end
}
