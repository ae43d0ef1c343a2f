//@ template rope_append_cuda
//@ op rope_append
//@ backend cuda
//@ class both
//@ rows 1..
//@ name d${HEAD_DIM}
//@ order: element by element; a norm's squares, of dims 8 i .. 8 i + 7 and their partners, in pairs and in a fixed tree, then over i in a fixed tree; independent of rows and grid
//@ param HEADS    int = 32 in 1..1024 from model.heads
//@ param KV_HEADS int = 8 in 1..1024 from model.kv_heads
//@ param HEAD_DIM int = 128 in 64..128 from model.head_dim
//@ param PAGE     int = 64 in 64..64 from config.kv_page
//@ param QK_NORM  int = 0 in 0..1 from model.qk_norm
//@ param EPS      float = 1e-5 in 0..1 from model.norm_eps
//@ param GRID     int = 660 in 1..65536
//@ prelude
#ifndef KERNEL_NAME
#define KERNEL_NAME   rope_append_cuda_default
#define KERNEL_LAUNCH rope_append_cuda_default_launch
#endif
enum { HEADS = 32, KV_HEADS = 8, HEAD_DIM = 128, PAGE = 64, QK_NORM = 0, GRID = 660 };
static const float EPS = 1e-5f;
//@ end
#include "snippets/block.cuh"
#include "snippets/kv.cuh"
#include "snippets/math.cuh"

/* a.in fp32 [rows, (HEADS + 2 KV_HEADS) HEAD_DIM] -> queries (a.out, bf16, rotated and scaled by 1 / sqrt(HEAD_DIM)),
 * keys (rotated) and values (a.kv). a.extra: fp32 [context][HEAD_DIM / 2][2], cos and sin. A thread of a block of 256
 * takes eight dims and their partners of one head, HEAD_DIM / 2 further (Su et al., 2021), grid-strided. QK_NORM: heads
 * of queries and keys are normed first; a.weight: fp32 [2][HEAD_DIM], of queries and of keys. */
enum { HALF = HEAD_DIM / 2, ALL = HEADS + 2 * KV_HEADS, CHUNKS = HALF / 8, ROW_ITEMS = ALL * CHUNKS };

__device__ __forceinline__ uint4 pack(const float *v) {
    return make_uint4(bf16_pair(v[0], v[1]), bf16_pair(v[2], v[3]), bf16_pair(v[4], v[5]), bf16_pair(v[6], v[7]));
}
__device__ __forceinline__ void load8(const float *from, float *v) {
    const float4 a = *(const float4 *)from, b = *(const float4 *)(from + 4);
    v[0] = a.x, v[1] = a.y, v[2] = a.z, v[3] = a.w;
    v[4] = b.x, v[5] = b.y, v[6] = b.z, v[7] = b.w;
}

/* (u, v) / sqrt(mean over the head of their squares + eps) * weight (Zhang and Sennrich, 2019), in fp32 throughout. The
 * CHUNKS threads of a head stand side by side in a warp and take this way together. */
static_assert(32 % CHUNKS == 0 && 256 % CHUNKS == 0, "a head's threads are neighbours in one warp");

__device__ __forceinline__ void norm(const float *weight, float *u, float *v) {
    float s[8], w[8];
#pragma unroll
    for (int i = 0; i < 8; i++)
        s[i] = __fmaf_rn(v[i], v[i], __fmul_rn(u[i], u[i]));
#pragma unroll
    for (int d = 4; d > 0; d /= 2)
#pragma unroll
        for (int i = 0; i < d; i++)
            s[i] = __fadd_rn(s[i], s[i + d]);
    const unsigned mask = ((1u << CHUNKS) - 1u) << (threadIdx.x % 32 / CHUNKS * CHUNKS);
#pragma unroll
    for (int d = 1; d < CHUNKS; d *= 2)
        s[0] = __fadd_rn(s[0], __shfl_xor_sync(mask, s[0], d));
    const float mean = __fdiv_rn(s[0], (float)HEAD_DIM);
    const float scale = __fdiv_rn(1.0f, __fsqrt_rn(__fadd_rn(mean, EPS)));
    load8(weight, w);
#pragma unroll
    for (int i = 0; i < 8; i++)
        u[i] = __fmul_rn(__fmul_rn(u[i], scale), w[i]);
    load8(weight + HALF, w);
#pragma unroll
    for (int i = 0; i < 8; i++)
        v[i] = __fmul_rn(__fmul_rn(v[i], scale), w[i]);
}

/* Rotates pairs (u, v) by the table's angles and scales. */
__device__ __forceinline__ void rotate(const float *table, float scale, float *u, float *v) {
    float t[16];
    load8(table, t);
    load8(table + 8, t + 8);
#pragma unroll
    for (int i = 0; i < 8; i++) {
        const float c = t[2 * i], s = t[2 * i + 1];
        const float x = __fsub_rn(__fmul_rn(u[i], c), __fmul_rn(v[i], s));
        const float y = __fadd_rn(__fmul_rn(v[i], c), __fmul_rn(u[i], s));
        u[i] = __fmul_rn(x, scale);
        v[i] = __fmul_rn(y, scale);
    }
}

/* A value must stay finite as bf16: keys carry a NaN onward, and a value of weight 0 must add 0. */
__device__ __forceinline__ void saturate(float *v) {
    const float most = 3.38953139e38f;
#pragma unroll
    for (int i = 0; i < 8; i++)
        v[i] = fminf(fmaxf(v[i], -most), most); /* NaN: -most */
}

extern "C" __device__ const sf_cuda_launch KERNEL_LAUNCH = {GRID, 256, 0, 1, 0, (ROW_ITEMS + 255) / 256, 0};

extern "C" __global__ void __launch_bounds__(256) KERNEL_NAME(sf_cuda_args a) {
    const sf_cuda_block *b = a.block;
    const int *positions = block_ints(b, b->positions), *row_segs = block_ints(b, b->row_segs);
    const int *pool = block_ints(b, b->pool);
    const int items = b->rows * ROW_ITEMS;
    pass_release();
    pass_wait();
    for (int i = (int)(blockIdx.x * blockDim.x + threadIdx.x); i < items; i += (int)(gridDim.x * blockDim.x)) {
        const int row = i / ROW_ITEMS, head = i % ROW_ITEMS / CHUNKS, chunk = i % CHUNKS;
        const float *x = (const float *)a.in + ((size_t)row * ALL + head) * HEAD_DIM + chunk * 8;
        const int pos = positions[row];
        const float *table = (const float *)a.extra + (size_t)pos * HEAD_DIM + chunk * 16;
        float u[8], v[8];
        load8(x, u);
        load8(x + HALF, v);
        if constexpr (QK_NORM == 1)
            if (head < HEADS + KV_HEADS)
                norm((const float *)a.weight + (head < HEADS ? 0 : HEAD_DIM) + chunk * 8, u, v);
        if (head < HEADS) {
            uint4 *q = (uint4 *)a.out + ((size_t)row * HEADS + head) * (HEAD_DIM / 8) + chunk;
            rotate(table, __fdiv_rn(1.0f, __fsqrt_rn((float)HEAD_DIM)), u, v);
            q[0] = pack(u);
            q[CHUNKS] = pack(v);
            continue;
        }
        const int page = pool[block_segs(b)[row_segs[row]].pages + pos / PAGE];
        char *kv = kv_head_at(a.kv, page, (head - HEADS) % KV_HEADS);
        if (head < HEADS + KV_HEADS) {
            rotate(table, 1.0f, u, v);
        } else {
            saturate(u);
            saturate(v);
            kv += KV_TILE_BYTES;
        }
        *(uint4 *)(kv + kv_chunk(pos % PAGE, chunk)) = pack(u);
        *(uint4 *)(kv + kv_chunk(pos % PAGE, chunk + CHUNKS)) = pack(v);
    }
}
