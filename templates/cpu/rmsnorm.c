//@ template rmsnorm
//@ op rmsnorm
//@ backend cpu
//@ class both
//@ rows 1..
//@ name
//@ order: squares into 16 lanes by index mod 16, ascending, then a fixed tree; independent of rows and threads
//@ param K      int = 576 in 1..1048576 from op.k
//@ param GATHER int = 0 in 0..1 from op.input_rows
//@ param EPS    float = 1e-5 in 0..1 from model.norm_eps
//@ prelude
#ifndef KERNEL_NAME
#define KERNEL_NAME rmsnorm_default
#endif
enum { K = 576, GATHER = 0 };
static const float EPS = 1e-5f;
//@ end
#include "base/bf16.h"
#include "snippets/math.h"
#include "snippets/part.h"
#include "snippets/vec_bf16.h"

#include <math.h>

/* y = x / sqrt(mean(x^2) + eps) * weight (Zhang and Sennrich, 2019), rounded to a bf16 operand. */
static void norm_row(const float *x, const float *weight, uint16_t *y) {
    v16f sum = v_zero();
    int i = 0;
    for (; i + 16 <= K; i += 16)
        sum = v_add(sum, v_mul(v_load(x + i), v_load(x + i)));
    if (i < K) sum = v_add(sum, v_mul(v_load_n(x + i, K - i), v_load_n(x + i, K - i)));
    const v16f scale = v_set1(1.0f / sqrtf(v_sum(sum) / (float)K + EPS));
    for (i = 0; i + 16 <= K; i += 16)
        v_store_bf16(y + i, v_operand(v_mul(v_mul(v_load(x + i), scale), v_load(weight + i))), 16);
    if (i < K) {
        const v16f v = v_mul(v_mul(v_load_n(x + i, K - i), scale), v_load_n(weight + i, K - i));
        v_store_bf16(y + i, v_operand(v), K - i);
    }
}

SF_CPU_KERNEL(KERNEL_NAME) {
    const int from = share_begin(a->rows, part, parts), to = share_begin(a->rows, part + 1, parts);
    for (int r = from; r < to; r++) {
        const int row = GATHER ? a->gather[r] : r;
        norm_row((const float *)a->in + (size_t)row * K, a->weight, (uint16_t *)a->out + (size_t)r * K);
    }
}
