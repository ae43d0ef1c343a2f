/* Attention over the paged KV: the body of the CPU attention templates.
 *
 * An item is a block of rows of one segment (at most SF_CPU_QUERIES queries) by the query heads of one KV
 * head, so that a key or value is expanded once for all of them. Per query, whatever block it stands in:
 *   scores    q . k, dims ascending, one accumulator; 16 keys are the lanes
 *   maximum   exact, so of no order
 *   weights   exp(score - maximum) rounded to a bf16 operand; their sum in 16 lanes by position mod 16,
 * ascending, then the fixed tree output    sum of weight x value, positions ascending from 0, one
 * accumulator; / sum; rounded Only positions 0 .. own are visited: lanes past it are masked before they are
 * used, and values past it are never read into a sum. The loose flavour keeps apart the sums of even and odd
 * dims and positions, or takes pairs by vdpbf16ps. */
#ifndef SF_SNIPPETS_ATTENTION_H
#define SF_SNIPPETS_ATTENTION_H

#include "base/bf16.h"
#include "snippets/gemm.h"

typedef struct attn_shape {
    int heads, kv_heads, head_dim, page;
    int loose; /* no promise on the order */
} attn_shape;  /* always a compile-time constant */

/* One item. */
typedef struct attn_item {
    int row0, rows; /* of the pass */
    int kv_head;
    int head0, heads; /* query heads; query index is row * heads + head */
    int nq;           /* rows * heads */
    uint32_t *q;      /* panel [head_dim][NQ], fp32 */
    float *s;         /* [key blocks][NQ][16]: scores, then weights */
    float *o;         /* [NQ][dims padded] */
    float sum[SF_CPU_QUERIES];
} attn_item;

/* Even and odd terms apart, where there are too few queries to hide the latency of an addition. */
V_FN int attn_split(attn_shape s, int nq) {
    return s.loose && nq <= 4;
}

V_FN const uint8_t *attn_page(attn_shape s, const sf_cpu_args *a, const attn_item *it, int pos) {
    const uint8_t *page = a->kv + (size_t)a->row[it->row0].pages[pos / s.page] * a->page_stride;
    return page + (size_t)it->kv_head * sf_cpu_kv_head_size(s.page, s.head_dim) * 2;
}

V_FN void attn_queries(attn_shape s, const int nq, const sf_cpu_args *a, const attn_item *it) {
    for (int q = 0; q < nq; q++) {
        const int row = it->row0 + q / it->heads, head = it->head0 + q % it->heads;
        const uint16_t *x =
            (const uint16_t *)a->in + ((size_t)row * (size_t)s.heads + (size_t)head) * (size_t)s.head_dim;
        for (int i = 0; i < s.head_dim; i++)
            it->q[i * nq + q] = q < it->nq ? (uint32_t)x[i] << 16 : 0u;
    }
}

/* Scores of `nb` blocks of 16 keys from block `block`, queries q0 .. q0+qs-1. */
V_FN void attn_score_tile(attn_shape s, const int nq, const int q0, const int qs, const int nb,
                          const sf_cpu_args *a, const attn_item *it, int block) {
    const size_t block_bytes = (size_t)s.head_dim * 32;
    const uint8_t *k[4];
    const uint32_t *x = it->q + q0;
    gemm_acc even, odd;
    memset(&even, 0, sizeof even);
    memset(&odd, 0, sizeof odd);
    V_UNROLL
    for (int b = 0; b < nb; b++) {
        const int pos = (block + b) * 16;
        k[b] = attn_page(s, a, it, pos) + (size_t)(pos % s.page / 16) * block_bytes;
    }
    for (int i = 0; i < s.head_dim / 2; i++, x += 2 * nq) {
        v16u pair[4];
        V_UNROLL
        for (int b = 0; b < nb; b++)
            pair[b] = vu_load(k[b] + (size_t)i * 64);
        V_UNROLL
        for (int q = 0; q < qs; q++) {
            const v16f low = v_set1(f_from_bits(x[q])), high = v_set1(f_from_bits(x[nq + q]));
            V_UNROLL
            for (int b = 0; b < nb; b++) {
                v16f *e = &even.at[q * nb + b], *o = attn_split(s, nq) ? &odd.at[q * nb + b] : e;
                *e = v_madd(v_bf16_low(pair[b]), low, *e);
                *o = v_madd(v_bf16_high(pair[b]), high, *o);
            }
        }
    }
    V_UNROLL
    for (int b = 0; b < nb; b++) {
        V_UNROLL
        for (int q = 0; q < qs; q++) {
            v16f r = even.at[q * nb + b];
            if (attn_split(s, nq)) r = v_add(r, odd.at[q * nb + b]);
            v_store(it->s + ((size_t)(block + b) * (size_t)nq + (size_t)(q0 + q)) * 16, r);
        }
    }
}

V_FN void attn_scores(attn_shape s, const int nq, const sf_cpu_args *a, const attn_item *it, int blocks) {
    const int qs = V_WIDE || nq <= 4 ? nq : 4; /* queries that the registers hold */
    const int nb = !V_WIDE ? 1 : nq <= 3 ? 4 : nq <= 8 ? 2 : 1;
    for (int q0 = 0; q0 < nq; q0 += qs) {
        int b = 0;
        for (; b + nb <= blocks; b += nb)
            attn_score_tile(s, nq, q0, qs, nb, a, it, b);
        for (; b < blocks; b++)
            attn_score_tile(s, nq, q0, qs, 1, a, it, b);
    }
}

/* Scores of one query over n keys become weights. */
V_FN void attn_weights(const int nq, attn_item *it, int q, int n) {
    const size_t step = (size_t)nq * 16;
    const int whole = n / 16, tail = n % 16;
    const v16u mask = vu_first(tail);
    const v16f none = v_set1(-__builtin_inff());
    float *p = it->s + (size_t)q * 16;
    v16f top = none, sum = v_zero();
    for (int b = 0; b < whole; b++)
        top = v_max(v_load(p + (size_t)b * step), top);
    if (tail) top = v_max(v_sel(mask, v_load(p + (size_t)whole * step), none), top);
    top = v_set1(v_max_lane(top));
    for (int b = 0; b < (n + 15) / 16; b++) {
        v16f e = v_operand(v_exp(v_sub(v_load(p + (size_t)b * step), top)));
        if (b == whole) e = v_sel(mask, e, v_zero());
        sum = v_add(sum, e);
        v_store(p + (size_t)b * step, e);
    }
    it->sum[q] = v_sum(sum);
}

/* Sums over positions 0 .. 2 pairs - 1 for `nd` vectors of dims from vector d0, queries q0 .. q0+qs-1. */
V_FN void attn_value_tile(attn_shape s, const int nq, const int q0, const int qs, const int nd,
                          const sf_cpu_args *a, const attn_item *it, int d0, int pairs) {
    const size_t dim_bytes = (size_t)(s.page / 2) * 64, dims = (size_t)sf_cpu_kv_dims_pad(s.head_dim);
    gemm_acc even, odd;
    memset(&even, 0, sizeof even);
    memset(&odd, 0, sizeof odd);
    for (int block = 0; block * 8 < pairs; block++) {
        const int pos = block * 16, end = pairs - block * 8 < 8 ? pairs - block * 8 : 8;
        const uint8_t *v = attn_page(s, a, it, pos) + sf_cpu_kv_k_size(s.page, s.head_dim) * 2 +
                           (size_t)d0 * dim_bytes + (size_t)(pos % s.page / 2) * 64;
        const float *p = it->s + ((size_t)block * (size_t)nq + (size_t)q0) * 16;
        for (int i = 0; i < end; i++, v += 64) {
            v16u pair[4];
            V_UNROLL
            for (int d = 0; d < nd; d++)
                pair[d] = vu_load(v + (size_t)d * dim_bytes);
            V_UNROLL
            for (int q = 0; q < qs; q++) {
                const v16f low = v_set1(p[q * 16 + 2 * i]), high = v_set1(p[q * 16 + 2 * i + 1]);
                V_UNROLL
                for (int d = 0; d < nd; d++) {
                    v16f *e = &even.at[q * nd + d], *o = attn_split(s, nq) ? &odd.at[q * nd + d] : e;
                    *e = v_madd(v_bf16_low(pair[d]), low, *e);
                    *o = v_madd(v_bf16_high(pair[d]), high, *o);
                }
            }
        }
    }
    V_UNROLL
    for (int d = 0; d < nd; d++) {
        V_UNROLL
        for (int q = 0; q < qs; q++) {
            v16f r = even.at[q * nd + d];
            if (attn_split(s, nq)) r = v_add(r, odd.at[q * nd + d]);
            v_store(it->o + (size_t)(q0 + q) * dims + (size_t)(d0 + d) * 16, r);
        }
    }
}

/* Positions from .. n-1 of one query, one by one: those that the block's rows do not share. */
V_FN void attn_value_tail(attn_shape s, const int nq, const sf_cpu_args *a, const attn_item *it, int q,
                          int from, int n) {
    const int dims = sf_cpu_kv_dims_pad(s.head_dim);
    float *o = it->o + (size_t)q * (size_t)dims;
    for (int pos = from; pos < n; pos++) {
        const uint8_t *v = attn_page(s, a, it, pos) + sf_cpu_kv_k_size(s.page, s.head_dim) * 2;
        const float *p = it->s + ((size_t)(pos / 16) * (size_t)nq + (size_t)q) * 16;
        const float w = p[pos % 16];
        for (int d = 0; d < dims / 16; d++) {
            const v16u pair =
                vu_load(v + ((size_t)d * (size_t)(s.page / 2) + (size_t)(pos % s.page / 2)) * 64);
            const v16f value = pos % 2 ? v_bf16_high(pair) : v_bf16_low(pair);
            v_store(o + d * 16, v_madd(value, v_set1(w), v_load(o + d * 16)));
        }
    }
}

V_FN void attn_values(attn_shape s, const int nq, const sf_cpu_args *a, const attn_item *it) {
    const int qs = V_WIDE || nq <= 4 ? nq : 4;
    const int vectors = sf_cpu_kv_dims_pad(s.head_dim) / 16;
    const int nd = !V_WIDE ? 1 : nq <= 3 ? 4 : 2;
    const int shared = a->row[it->row0].pos + 1; /* positions of the block's first row */
    for (int q0 = 0; q0 < nq; q0 += qs) {
        int d = 0;
        for (; d + nd <= vectors; d += nd)
            attn_value_tile(s, nq, q0, qs, nd, a, it, d, shared / 2);
        for (; d < vectors; d++)
            attn_value_tile(s, nq, q0, qs, 1, a, it, d, shared / 2);
    }
    for (int q = 0; q < it->nq; q++)
        attn_value_tail(s, nq, a, it, q, shared / 2 * 2, a->row[it->row0 + q / it->heads].pos + 1);
}

V_FN void attn_write(attn_shape s, const sf_cpu_args *a, const attn_item *it) {
    const int dims = sf_cpu_kv_dims_pad(s.head_dim);
    for (int q = 0; q < it->nq; q++) {
        const int row = it->row0 + q / it->heads, head = it->head0 + q % it->heads;
        uint16_t *out =
            (uint16_t *)a->out + ((size_t)row * (size_t)s.heads + (size_t)head) * (size_t)s.head_dim;
        for (int d = 0; d < s.head_dim; d += 16) {
            const v16f o = v_load(it->o + (size_t)q * (size_t)dims + (size_t)d);
            const int n = s.head_dim - d < 16 ? s.head_dim - d : 16;
            v_store_bf16(out + d, v_operand(v_div(o, v_set1(it->sum[q]))), n);
        }
    }
}

/* One item with its queries padded to nq. */
V_FN void attn_item_run(attn_shape s, const int nq, const sf_cpu_args *a, attn_item *it) {
    const int last = a->row[it->row0 + it->rows - 1].pos;
    attn_queries(s, nq, a, it);
    attn_scores(s, nq, a, it, last / 16 + 1);
    for (int q = 0; q < nq; q++) /* a padding query's weights are read, never used */
        attn_weights(nq, it, q, q < it->nq ? a->row[it->row0 + q / it->heads].pos + 1 : last + 1);
    attn_values(s, nq, a, it);
    attn_write(s, a, it);
}

V_FN void attn_item_any(attn_shape s, const sf_cpu_args *a, attn_item *it, uint8_t *scratch) {
    it->q = (uint32_t *)(void *)scratch;
    it->o = (float *)(void *)(it->q + SF_CPU_QUERIES * s.head_dim);
    it->s = it->o + SF_CPU_QUERIES * sf_cpu_kv_dims_pad(s.head_dim);
    it->nq = it->rows * it->heads;
    if (it->nq <= 1)
        attn_item_run(s, 1, a, it);
    else if (it->nq <= 3)
        attn_item_run(s, 3, a, it);
    else if (it->nq <= 4)
        attn_item_run(s, 4, a, it);
    else if (it->nq <= 8)
        attn_item_run(s, 8, a, it);
    else
        attn_item_run(s, SF_CPU_QUERIES, a, it);
}

/* A whole kernel. */
V_FN void attn_run(attn_shape s, const sf_cpu_args *a, int part, int parts) {
    const int group = s.heads / s.kv_heads;
    const int heads = group < SF_CPU_QUERIES ? group : SF_CPU_QUERIES, rows = SF_CPU_QUERIES / heads;
    int item = 0;
    for (int r = 0; r < a->rows;) {
        int n = 1;
        while (n < rows && r + n < a->rows && a->row[r + n].seg == a->row[r].seg)
            n++;
        for (int h = 0; h < s.kv_heads; h++) {
            for (int h0 = 0; h0 < group; h0 += heads) {
                if (item++ % parts != part) continue;
                attn_item it = {.row0 = r, .rows = n, .kv_head = h, .head0 = h * group + h0};
                it.heads = group - h0 < heads ? group - h0 : heads;
                attn_item_any(s, a, &it, part_scratch(a, part));
            }
        }
        r += n;
    }
}

#endif
