//@ template embed
//@ op embed
//@ backend cpu
//@ class both
//@ rows 1..
//@ name
//@ order: none, a copy
//@ param DIM int = 576 in 1..1048576 from model.hidden
//@ prelude
#ifndef KERNEL_NAME
#define KERNEL_NAME embed_default
#endif
enum { DIM = 576 };
//@ end
#include "base/bf16.h"
#include "snippets/part.h"

/* Row `token` of the packed matrix [vocab, DIM] as floats. */
static void embed_row(const uint16_t *w, int token, float *x) {
    const uint16_t *block = w + (size_t)(token / 16) * ((DIM + 1) / 2) * 32 + (size_t)(token % 16) * 2;
    for (int i = 0; i < DIM; i++)
        x[i] = sf_bf16_to_f32(block[(size_t)(i / 2) * 32 + (size_t)(i % 2)]);
}

SF_CPU_KERNEL(KERNEL_NAME) {
    const int from = share_begin(a->rows, part, parts), to = share_begin(a->rows, part + 1, parts);
    const int32_t *tokens = a->in;
    for (int r = from; r < to; r++)
        embed_row(a->weight, tokens[r], (float *)a->out + (size_t)r * DIM);
}
