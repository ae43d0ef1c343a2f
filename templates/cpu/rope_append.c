//@ template rope_append
//@ op rope_append
//@ backend cpu
//@ class both
//@ rows 1..
//@ name d${HEAD_DIM}
//@ order: element by element; a norm's squares into 16 lanes by index mod 16, ascending, then a fixed tree; independent of rows and threads
//@ param HEADS    int = 9 in 1..1024 from model.heads
//@ param KV_HEADS int = 3 in 1..1024 from model.kv_heads
//@ param HEAD_DIM int = 64 in 2..1024 from model.head_dim
//@ param PAGE     int = 16 in 16..4096 from config.kv_page
//@ param QK_NORM  int = 0 in 0..1 from model.qk_norm
//@ param EPS      float = 1e-5 in 0..1 from model.norm_eps
//@ prelude
#ifndef KERNEL_NAME
#define KERNEL_NAME rope_append_default
#endif
enum { HEADS = 9, KV_HEADS = 3, HEAD_DIM = 64, PAGE = 16, QK_NORM = 0 };
static const float EPS = 1e-5f;
//@ end
#include "base/bf16.h"
#include "snippets/math.h"
#include "snippets/part.h"

#include <math.h>

_Static_assert(HEAD_DIM % 2 == 0, "rotary pairs need an even head_dim");
_Static_assert(PAGE % 16 == 0, "a page holds whole vectors of keys");

enum { HALF = HEAD_DIM / 2, WIDTH = (HEADS + 2 * KV_HEADS) * HEAD_DIM };

/* y = x / sqrt(mean(x^2) + eps) * weight over a head (Zhang and Sennrich, 2019), in fp32 throughout: only what the
 * rotation makes of it is rounded to bf16. */
static void norm(const float *x, const float *weight, float *y) {
    v16f sum = v_zero();
    for (int i = 0; i < HEAD_DIM; i += 16) {
        const v16f v = v_load_n(x + i, HEAD_DIM - i < 16 ? HEAD_DIM - i : 16);
        sum = v_add(sum, v_mul(v, v));
    }
    const float scale = 1.0f / sqrtf(v_sum(sum) / (float)HEAD_DIM + EPS);
    for (int i = 0; i < HEAD_DIM; i++) {
        const float v = x[i] * scale;
        y[i] = v * weight[i];
    }
}

/* Rotates one head (Su et al., 2021; pair i is i and i + HALF) and scales it. */
static void rotate(const float *x, const float *table, float scale, float *y) {
    for (int i = 0; i < HALF; i++) {
        const float c = table[2 * i], s = table[2 * i + 1], u = x[i], v = x[i + HALF];
        const float uc = u * c, vs = v * s, vc = v * c, us = u * s;
        y[i] = (uc - vs) * scale;
        y[i + HALF] = (vc + us) * scale;
    }
}

static void append_k(const float *k, uint16_t *page, int offset) {
    for (int d = 0; d < HEAD_DIM; d++)
        page[sf_cpu_kv_k_at(HEAD_DIM, offset, d)] = sf_bf16_operand(k[d]);
}

static void append_v(const float *v, uint16_t *page, int offset) {
    page += sf_cpu_kv_k_size(PAGE, HEAD_DIM);
    for (int d = 0; d < HEAD_DIM; d++)
        page[sf_cpu_kv_v_at(PAGE, offset, d)] = sf_bf16_operand(v[d]);
}

/* Heads 0 .. HEADS-1 of a row are queries, then keys, then values. */
static void append_head(const sf_cpu_args *a, int r, int head) {
    const sf_cpu_row *row = a->row + r;
    const float *x = (const float *)a->in + (size_t)r * WIDTH + (size_t)head * HEAD_DIM;
    const float *table = a->rope + (size_t)row->pos * HEAD_DIM;
    float y[HEAD_DIM], normed[HEAD_DIM];
    if (QK_NORM && head < HEADS + KV_HEADS) {
        norm(x, (const float *)a->weight + (head < HEADS ? 0 : HEAD_DIM), normed);
        x = normed;
    }
    if (head < HEADS) {
        uint16_t *q = (uint16_t *)a->out + ((size_t)r * HEADS + (size_t)head) * HEAD_DIM;
        rotate(x, table, 1.0f / sqrtf((float)HEAD_DIM), y);
        for (int d = 0; d < HEAD_DIM; d++)
            q[d] = sf_bf16_operand(y[d]);
        return;
    }
    const int kv_head = (head - HEADS) % KV_HEADS, offset = row->pos % PAGE;
    uint16_t *page = (uint16_t *)(a->kv + (size_t)row->pages[row->pos / PAGE] * a->page_stride) +
                     (size_t)kv_head * sf_cpu_kv_head_size(PAGE, HEAD_DIM);
    if (head < HEADS + KV_HEADS) {
        rotate(x, table, 1.0f, y);
        append_k(y, page, offset);
    } else {
        append_v(x, page, offset);
    }
}

SF_CPU_KERNEL(KERNEL_NAME) {
    enum { ALL = HEADS + 2 * KV_HEADS };
    const int items = a->rows * ALL;
    const int from = share_begin(items, part, parts), to = share_begin(items, part + 1, parts);
    for (int i = from; i < to; i++)
        append_head(a, i / ALL, i % ALL);
}
