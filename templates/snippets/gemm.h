/* out = epilogue(in * W^T (+ bias)): the body of every CPU GEMM template.
 *
 * W is packed as SF_W_BF16 says: a 64-byte load holds 16 outputs by two consecutive k. Activations of up to
 * SF_CPU_PANEL_ROWS rows are first laid out as panels [k][mr] in the thread's scratch, so that the inner loop
 * reads them in order. A share owns blocks of 16 outputs (pairs of gate and up blocks for swiglu); it never
 * owns part of a sum.
 *
 * Flavours. PINNED: one fp32 accumulator per output, k ascending from 0, every product exact. SPLIT: even and
 * odd k, and both halves of K, have accumulators of their own, so that one row is not bound by the latency of
 * an addition. WIDE: what the machine's dot product of pairs does (vdpbf16ps) where there is one, else as
 * PINNED. Only PINNED promises an order. */
#ifndef SF_SNIPPETS_GEMM_H
#define SF_SNIPPETS_GEMM_H

#include "base/bf16.h"
#include "snippets/math.h"
#include "snippets/part.h"

enum { GEMM_STORE, GEMM_ADD, GEMM_SWIGLU };
enum { GEMM_AHEAD = 1024 }; /* bytes of W fetched ahead */
enum { GEMM_PINNED, GEMM_SPLIT, GEMM_WIDE };

typedef struct gemm_shape {
    int n, k;     /* n counts gate and up rows for swiglu */
    int epilogue; /* GEMM_STORE: f32; GEMM_ADD: onto f32; GEMM_SWIGLU: bf16 [rows, n/2] */
    int bias;     /* 0 or 1 */
    int mr, nr;   /* register tile: rows by blocks of 16 outputs */
    int flavour;
} gemm_shape; /* always a compile-time constant */

#if defined(__AVX512BF16__)
#define GEMM_HAS_DOT 1
V_FN v16f gemm_dot(v16f acc, v16u w, uint32_t x) {
    acc.p[0] =
        (vf_part)_mm512_dpbf16_ps((__m512)acc.p[0], (__m512bh)w.p[0], (__m512bh)_mm512_set1_epi32((int)x));
    return acc;
}
#else
#define GEMM_HAS_DOT 0
V_FN v16f gemm_dot(v16f acc, v16u w, uint32_t x) {
    (void)w;
    (void)x;
    return acc;
}
#endif

V_FN int gemm_dots(gemm_shape s) {
    return GEMM_HAS_DOT && s.flavour != GEMM_PINNED;
}

/* Rows row0 .. row0+rows-1 of in [.., k] as panels of mr rows, missing rows zero. fp32 [k_pad][mr], or, for
 * the dot product, pairs of bf16 [k_pad/2][mr]. */
V_FN void gemm_panel(gemm_shape s, const uint16_t *in, int rows, void *panel) {
    const int pairs = (s.k + 1) / 2;
    for (int r0 = 0; r0 < rows; r0 += s.mr) {
        for (int r = 0; r < s.mr; r++) {
            const uint16_t *x = in + (size_t)(r0 + r) * (size_t)s.k;
            const int have = r0 + r < rows;
            uint32_t *p = (uint32_t *)panel + (size_t)r;
            for (int i = 0; i < pairs; i++) {
                const uint32_t low = have ? x[2 * i] : 0u;
                const uint32_t high = have && 2 * i + 1 < s.k ? x[2 * i + 1] : 0u;
                if (gemm_dots(s)) {
                    p[(size_t)i * (size_t)s.mr] = low | high << 16;
                } else {
                    p[(size_t)(2 * i) * (size_t)s.mr] = low << 16;
                    p[(size_t)(2 * i + 1) * (size_t)s.mr] = high << 16;
                }
            }
        }
        panel = (uint32_t *)panel + (size_t)pairs * (size_t)s.mr * (gemm_dots(s) ? 1u : 2u);
    }
}

/* The accumulators of one register tile, [mr][nr] of them in use. */
enum { GEMM_TILE = 32 };
typedef struct gemm_acc {
    v16f at[GEMM_TILE];
} gemm_acc;

/* One register tile over pairs [from, to) of k, `step` pairs apart: at[r * nr + b] += panel row r * block b.
 * Consecutive blocks of W are `stride` bytes apart. */
V_FN void gemm_pair(gemm_shape s, const int mr, const int nr, const uint8_t *w, size_t stride,
                    const uint32_t *x, gemm_acc *even, gemm_acc *odd) {
    V_UNROLL
    for (int b = 0; b < nr; b++) {
        const v16u pair = vu_load(w + (size_t)b * stride);
        __builtin_prefetch(w + (size_t)b * stride + GEMM_AHEAD, 0, 3);
        if (gemm_dots(s)) {
            V_UNROLL
            for (int r = 0; r < mr; r++)
                even->at[r * nr + b] = gemm_dot(even->at[r * nr + b], pair, x[r]);
            continue;
        }
        const v16f low = v_bf16_low(pair), high = v_bf16_high(pair);
        V_UNROLL
        for (int r = 0; r < mr; r++)
            even->at[r * nr + b] = v_madd(low, v_set1(f_from_bits(x[r])), even->at[r * nr + b]);
        V_UNROLL
        for (int r = 0; r < mr; r++)
            odd->at[r * nr + b] = v_madd(high, v_set1(f_from_bits(x[mr + r])), odd->at[r * nr + b]);
    }
}

/* The whole of K for one register tile; the sums are in out [mr * nr][16]. */
V_FN void gemm_tile(gemm_shape s, const int mr, const int nr, const uint8_t *w, size_t stride,
                    const uint32_t *x, float *out) {
    const int pairs = (s.k + 1) / 2, step = mr * (gemm_dots(s) ? 1 : 2);
    gemm_acc acc, more;
    int i = 0;
    memset(&acc, 0, sizeof acc);
    memset(&more, 0, sizeof more);
    if (s.flavour == GEMM_SPLIT) {
        for (; i + 1 < pairs; i += 2, w += 128, x += 2 * step) {
            gemm_pair(s, mr, nr, w, stride, x, &acc, &more);
            gemm_pair(s, mr, nr, w + 64, stride, x + step, gemm_dots(s) ? &more : &acc, &more);
        }
    }
    for (; i < pairs; i++, w += 64, x += step)
        gemm_pair(s, mr, nr, w, stride, x, &acc, &acc);
    V_UNROLL
    for (int j = 0; j < mr * nr; j++)
        v_store(out + j * 16, s.flavour == GEMM_SPLIT ? v_add(acc.at[j], more.at[j]) : acc.at[j]);
}

/* Writes one block of 16 outputs of one row; for swiglu the up block's sums follow the gate's. */
V_FN void gemm_write(gemm_shape s, const sf_cpu_args *a, int row, int block, const float *sums) {
    const int width = s.epilogue == GEMM_SWIGLU ? s.n / 2 : s.n;
    const int col = (s.epilogue == GEMM_SWIGLU ? block / 2 : block) * 16;
    const int n = width - col < 16 ? width - col : 16;
    const size_t at = (size_t)row * (size_t)width + (size_t)col;
    v16f sum = v_load(sums);
    if (s.epilogue == GEMM_SWIGLU) {
        v_store_bf16((uint16_t *)a->out + at, v_operand(v_swiglu(sum, v_load(sums + 16))), n);
        return;
    }
    float *out = (float *)a->out + at;
    if (s.bias) sum = v_add(sum, n == 16 ? v_load(a->bias + col) : v_load_n(a->bias + col, n));
    if (n == 16) {
        v_store(out, s.epilogue == GEMM_ADD ? v_add(v_load(out), sum) : sum);
    } else {
        v_store_n(out, s.epilogue == GEMM_ADD ? v_add(v_load_n(out, n), sum) : sum, n);
    }
}

/* Blocks [from, from+nr) of every row of the panels. */
V_FN void gemm_blocks(gemm_shape s, const int mr, const int nr, const sf_cpu_args *a, int row0, int rows,
                      int from, const uint32_t *panel) {
    const size_t stride = (size_t)((s.k + 1) / 2) * 64;
    const size_t panel_step = (size_t)((s.k + 1) / 2) * (size_t)mr * (gemm_dots(s) ? 1u : 2u);
    const uint8_t *w = (const uint8_t *)a->weight + (size_t)from * stride;
    for (int r0 = 0; r0 < rows; r0 += mr, panel += panel_step) {
        float sums[GEMM_TILE * 16] __attribute__((aligned(64)));
        const int n = rows - r0 < mr ? rows - r0 : mr;
        gemm_tile(s, mr, nr, w, stride, panel, sums);
        for (int r = 0; r < n; r++)
            for (int b = 0; b < nr; b += s.epilogue == GEMM_SWIGLU ? 2 : 1)
                gemm_write(s, a, row0 + r0 + r, from + b, sums + (r * nr + b) * 16);
    }
}

/* The plan's tile is for 32 registers of 16 lanes; elsewhere it is cut to what the registers hold. */
V_FN gemm_shape gemm_fit(gemm_shape s) {
    const int least = s.epilogue == GEMM_SWIGLU ? 2 : 1, room = 12 / V_PARTS; /* accumulators that fit */
    if (V_WIDE) return s;
    if (s.mr > room / least) s.mr = room / least > 4 ? 4 : room / least;
    if (s.mr < 1) s.mr = 1;
    if (s.nr > room / s.mr) s.nr = room / s.mr / least * least;
    if (s.nr < least) s.nr = least;
    return s;
}

/* A whole kernel. */
V_FN void gemm_run(gemm_shape tile, const sf_cpu_args *a, int part, int parts) {
    const gemm_shape s = gemm_fit(tile);
    const int unit = s.epilogue == GEMM_SWIGLU ? 2 : 1;
    const int blocks = s.epilogue == GEMM_SWIGLU ? (s.n / 2 + 15) / 16 : (s.n + 15) / 16;
    const int from = share_begin(blocks, part, parts) * unit,
              to = share_begin(blocks, part + 1, parts) * unit;
    uint32_t *panel = part_scratch(a, part);
    if (from == to) return;
    for (int row0 = 0; row0 < a->rows; row0 += SF_CPU_PANEL_ROWS) {
        const int left = a->rows - row0, rows = left < SF_CPU_PANEL_ROWS ? left : SF_CPU_PANEL_ROWS;
        int b = from;
        gemm_panel(s, (const uint16_t *)a->in + (size_t)row0 * (size_t)s.k, rows, panel);
        for (; b + s.nr <= to; b += s.nr)
            gemm_blocks(s, s.mr, s.nr, a, row0, rows, b, panel);
        for (; b < to; b += unit)
            gemm_blocks(s, s.mr, unit, a, row0, rows, b, panel);
    }
}

#endif
