/* A comment before the head stays. */
//@ template rmsnorm
//@ op rmsnorm
//@ backend cpu
//@ class both
//@ rows 1..
//@ order: index ascending,
//@ order: one accumulator
//@ param K      int = 8 in 1..65536 from op.k
//@ param GATHER int = 0 in 0..1 from op.input_rows
//@ param EPS    float = 1e-6 in 0..1 from model.norm_eps
//@ prelude
#define KERNEL_NAME rmsnorm_default
enum { K = 8, GATHER = 0 };
static const float EPS = 1e-6f;
//@ end
#include "snippets/outer.h"

void KERNEL_NAME(const float *in, const int *rows, float *out) {
    float sum = EPS;
    for (int i = 0; i < K; i++)
        sum += in[i] * in[i];
    out[GATHER ? rows[0] : 0] = scale(sum, 2.0f);
}
