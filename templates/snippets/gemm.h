/* out = epilogue(in * W^T (+ bias)): the body of every CPU GEMM template.
 *
 * W is packed as SF_W_BF16 says: a 64-byte load holds 16 outputs by two consecutive k. Activations of up to
 * SF_CPU_PANEL_ROWS rows are first laid out as panels [k][mr] in the thread's scratch, so that the inner loop
 * reads them in order. A share owns blocks of 16 outputs (pairs of gate and up blocks for swiglu); it never
 * owns part of a sum.
 *
 * Flavours. PINNED: one fp32 accumulator per output, k ascending from 0, every product exact. SPLIT: even and
 * odd k (or, where the machine has vdpbf16ps, pairs of k by turns) have accumulators of their own, so that
 * one or two rows are not bound by the latency of an addition. Only PINNED promises an order. From three rows
 * on there are sums enough to hide it, and vdpbf16ps, at half the rate of two multiply-adds where it was
 * measured (Sapphire Rapids), has nothing to offer: both classes share the PINNED kernels. */
#ifndef SF_SNIPPETS_GEMM_H
#define SF_SNIPPETS_GEMM_H

#include "base/bf16.h"
#include "snippets/math.h"
#include "snippets/part.h"
#include "snippets/vec_bf16.h"

enum { GEMM_STORE, GEMM_ADD, GEMM_SWIGLU };
enum { GEMM_AHEAD = 1024 }; /* bytes of W fetched ahead */
enum { GEMM_PINNED, GEMM_SPLIT };

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

/* Rows of the next register tile when `left` are left: of the widest tile, or 8 or 4, so that few are wasted.
 */
enum { GEMM_MANY = 12 };
V_FN int gemm_next(gemm_shape s, int left) {
    if (s.mr != GEMM_MANY || left > 16 || (left > 8 && left <= 12)) return s.mr;
    return left > 4 ? 8 : 4;
}

/* One tile's panel: fp32 [k_pad][mr], or, for the dot product, pairs of bf16 [k_pad/2][mr]. in [.., k]; rows
 * past the last repeat it (what is made of them is dropped). */
V_FN void gemm_panel(gemm_shape s, const int mr, const uint16_t *in, int rows, uint32_t *panel) {
    const uint16_t *x[16];
    for (int r = 0; r < mr; r++)
        x[r] = in + (size_t)(r < rows ? r : rows - 1) * (size_t)s.k;
    int i = 0;
    for (; i + 2 <= s.k; i += 2) {
        V_UNROLL
        for (int r = 0; r < mr; r++) {
            if (gemm_dots(s)) {
                panel[r] = (uint32_t)x[r][i] | (uint32_t)x[r][i + 1] << 16;
            } else {
                panel[r] = (uint32_t)x[r][i] << 16;
                panel[mr + r] = (uint32_t)x[r][i + 1] << 16;
            }
        }
        panel += gemm_dots(s) ? mr : 2 * mr;
    }
    for (int r = 0; i < s.k && r < mr; r++) { /* an odd k is followed by a zero */
        panel[r] = gemm_dots(s) ? (uint32_t)x[r][i] : (uint32_t)x[r][i] << 16;
        if (!gemm_dots(s)) panel[mr + r] = 0;
    }
}
V_FN size_t gemm_panel_size(gemm_shape s, int mr) {
    return (size_t)((s.k + 1) / 2) * (size_t)mr * (gemm_dots(s) ? 1u : 2u);
}

/* The panels of up to SF_CPU_PANEL_ROWS rows, one after another. */
V_FN void gemm_panels(gemm_shape s, const uint16_t *in, int rows, uint32_t *panel) {
    for (int r = 0, mr; r < rows; r += mr, in += (size_t)mr * (size_t)s.k) {
        mr = gemm_next(s, rows - r);
        if (mr == s.mr)
            gemm_panel(s, s.mr, in, rows - r, panel);
        else if (mr == 8)
            gemm_panel(s, 8, in, rows - r, panel);
        else
            gemm_panel(s, 4, in, rows - r, panel);
        panel += gemm_panel_size(s, mr);
    }
}

/* The accumulators of one register tile, [mr][nr] of them in use. */
enum { GEMM_TILE = 32, GEMM_BLOCKS = 16 };
typedef struct gemm_acc {
    v16f at[GEMM_TILE];
} gemm_acc;

/* One pair of k: at[r * nr + b] += panel row r * block b, even k into one set of accumulators and odd k into
 * another (the same one where an order is promised). Consecutive blocks of W are `stride` bytes apart. A
 * row's value is spread once for all blocks: the blocks' values and the sums fill the registers. */
V_FN void gemm_pair(gemm_shape s, const int mr, const int nr, const uint8_t *w, size_t stride,
                    const uint32_t *x, gemm_acc *even, gemm_acc *odd) {
    v16u pair[GEMM_BLOCKS];
    V_UNROLL
    for (int b = 0; b < nr; b++) {
        pair[b] = vu_load(w + (size_t)b * stride);
        __builtin_prefetch(w + (size_t)b * stride + GEMM_AHEAD, 0, 3);
    }
    V_UNROLL
    for (int r = 0; r < mr; r++) {
        const v16f value = v_set1(f_from_bits(x[r]));
        V_UNROLL
        for (int b = 0; b < nr; b++) {
            v16f *acc = &even->at[r * nr + b];
            *acc = gemm_dots(s) ? gemm_dot(*acc, pair[b], x[r]) : v_madd(v_bf16_low(pair[b]), value, *acc);
        }
    }
    if (gemm_dots(s)) return;
    V_UNROLL
    for (int r = 0; r < mr; r++) {
        const v16f value = v_set1(f_from_bits(x[mr + r]));
        V_UNROLL
        for (int b = 0; b < nr; b++)
            odd->at[r * nr + b] = v_madd(v_bf16_high(pair[b]), value, odd->at[r * nr + b]);
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

/* Blocks [from, from+nr) of one register tile of rows. */
V_FN void gemm_rows(gemm_shape s, const int mr, const int nr, const sf_cpu_args *a, int row0, int rows,
                    int from, const uint32_t *panel) {
    const size_t stride = (size_t)((s.k + 1) / 2) * 64;
    float sums[GEMM_TILE * 16] __attribute__((aligned(64)));
    const int n = rows < mr ? rows : mr;
    gemm_tile(s, mr, nr, (const uint8_t *)a->weight + (size_t)from * stride, stride, panel, sums);
    for (int r = 0; r < n; r++)
        for (int b = 0; b < nr; b += s.epilogue == GEMM_SWIGLU ? 2 : 1)
            gemm_write(s, a, row0 + r, from + b, sums + (r * nr + b) * 16);
}

/* Blocks [from, from+nr) of every row of the panels. */
V_FN void gemm_blocks(gemm_shape s, const int nr, const sf_cpu_args *a, int row0, int rows, int from,
                      const uint32_t *panel) {
    for (int r = 0, mr; r < rows; r += mr) {
        mr = gemm_next(s, rows - r);
        if (mr == s.mr)
            gemm_rows(s, s.mr, nr, a, row0 + r, rows - r, from, panel);
        else if (mr == 8)
            gemm_rows(s, 8, nr, a, row0 + r, rows - r, from, panel);
        else
            gemm_rows(s, 4, nr, a, row0 + r, rows - r, from, panel);
        panel += gemm_panel_size(s, mr);
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
        gemm_panels(s, (const uint16_t *)a->in + (size_t)row0 * (size_t)s.k, rows, panel);
        for (; b + s.nr <= to; b += s.nr)
            gemm_blocks(s, s.nr, a, row0, rows, b, panel);
        for (; b < to; b += unit)
            gemm_blocks(s, unit, a, row0, rows, b, panel);
    }
}

#endif
