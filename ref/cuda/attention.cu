/* Reference twins of rope_append and the attention kernels: slow, obvious, one thread a result; sums of attention in fp64.
 * Compiled with rope_append's prelude in front (HEADS, KV_HEADS, HEAD_DIM, PAGE, QK_NORM, EPS). */
#include "snippets/block.cuh"
#include "snippets/kv.cuh"
#include "snippets/math.cuh"

__device__ unsigned short to_bf16(float v) {
    return (unsigned short)(bf16_pair(v, 0.0f) & 0xffffu);
}
__device__ unsigned short *kv_element(void *kv, int page, int head, int value, int offset, int d) {
    return (unsigned short *)(kv_head_at(kv, page, head) + value * KV_TILE_BYTES + kv_chunk(offset, d / 8)) + d % 8;
}

/* What a head's norm multiplies it by, summed in the order that rope_append states, so that bits can be compared. */
__device__ float head_scale(const float *x) {
    enum { HALF = HEAD_DIM / 2, CHUNKS = HALF / 8 };
    float sums[CHUNKS];
    for (int c = 0; c < CHUNKS; c++) {
        float s[8];
        for (int i = 0; i < 8; i++) {
            const float u = x[c * 8 + i], v = x[c * 8 + i + HALF];
            s[i] = __fmaf_rn(v, v, __fmul_rn(u, u));
        }
        sums[c] = __fadd_rn(__fadd_rn(__fadd_rn(s[0], s[4]), __fadd_rn(s[2], s[6])),
                            __fadd_rn(__fadd_rn(s[1], s[5]), __fadd_rn(s[3], s[7])));
    }
    for (int d = 1; d < CHUNKS; d *= 2)
        for (int c = 0; c < CHUNKS; c += 2 * d)
            sums[c] = __fadd_rn(sums[c], sums[c + d]);
    return __fdiv_rn(1.0f, __fsqrt_rn(__fadd_rn(__fdiv_rn(sums[0], (float)HEAD_DIM), EPS)));
}

/* Grid (rows, HEADS + 2 KV_HEADS), HEAD_DIM threads. */
extern "C" __global__ void ref_rope_append(sf_cuda_args a) {
    const sf_cuda_block *b = a.block;
    const int row = (int)blockIdx.x, head = (int)blockIdx.y, d = (int)threadIdx.x, half = HEAD_DIM / 2;
    const int pos = block_ints(b, b->positions)[row], seg = block_ints(b, b->row_segs)[row];
    const float *x = (const float *)a.in + ((size_t)row * (HEADS + 2 * KV_HEADS) + head) * HEAD_DIM;
    const float *t = (const float *)a.extra + ((size_t)pos * half + d % half) * 2;
    const int partner = d < half ? d + half : d - half;
    float own = x[d], other = x[partner];
    if (QK_NORM && head < HEADS + KV_HEADS) {
        const float *w = (const float *)a.weight + (head < HEADS ? 0 : HEAD_DIM), scale = head_scale(x);
        own = __fmul_rn(__fmul_rn(own, scale), w[d]);
        other = __fmul_rn(__fmul_rn(other, scale), w[partner]);
    }
    const float turned = __fadd_rn(__fmul_rn(own, t[0]), __fmul_rn(d < half ? -other : other, t[1]));
    if (head < HEADS) {
        const float scale = (float)(1.0 / sqrt((double)HEAD_DIM));
        ((unsigned short *)a.out)[((size_t)row * HEADS + head) * HEAD_DIM + d] = to_bf16(__fmul_rn(turned, scale));
        return;
    }
    const int value = head >= HEADS + KV_HEADS;
    const int page = block_ints(b, b->pool)[block_segs(b)[seg].pages + pos / PAGE];
    float v = value ? x[d] : turned;
    if (value && !(fabsf(v) < SF_INF)) v = v > 0.0f ? 3.38953139e38f : -3.38953139e38f;
    *kv_element(a.kv, page, (head - HEADS) % KV_HEADS, value, pos % PAGE, d) = to_bf16(v);
}

/* Grid (rows, HEADS), HEAD_DIM threads; two passes over the keys. a.out: fp32 [rows, HEADS * HEAD_DIM]. */
extern "C" __global__ void ref_attention(sf_cuda_args a) {
    const sf_cuda_block *b = a.block;
    const int row = (int)blockIdx.x, head = (int)blockIdx.y, kv_head = head / (HEADS / KV_HEADS), d = (int)threadIdx.x;
    const int pos = block_ints(b, b->positions)[row];
    const int *pages = block_ints(b, b->pool) + block_segs(b)[block_ints(b, b->row_segs)[row]].pages;
    const unsigned short *q = (const unsigned short *)a.in + ((size_t)row * HEADS + head) * HEAD_DIM;
    __shared__ double scores[HEAD_DIM];
    double max = -1e300, sum = 0.0, out = 0.0;
    for (int pass = 0; pass < 2; pass++)
        for (int first = 0; first <= pos; first += HEAD_DIM) {
            double s = 0.0;
            const int key = first + d;
            if (key <= pos)
                for (int i = 0; i < HEAD_DIM; i++)
                    s += (double)bf16_float(q[i]) *
                         (double)bf16_float(*kv_element(a.kv, pages[key / PAGE], kv_head, 0, key % PAGE, i));
            __syncthreads();
            scores[d] = s;
            __syncthreads();
            for (int i = 0; i < HEAD_DIM && first + i <= pos; i++) {
                const int k = first + i;
                if (pass == 0) {
                    max = scores[i] > max ? scores[i] : max;
                    continue;
                }
                const double p = exp(scores[i] - max);
                sum += p;
                out += p * (double)bf16_float(*kv_element(a.kv, pages[k / PAGE], kv_head, 1, k % PAGE, d));
            }
        }
    ((float *)a.out)[((size_t)row * HEADS + head) * HEAD_DIM + d] = (float)(out / sum);
}
