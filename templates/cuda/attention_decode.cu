//@ template attention_decode
//@ op attention
//@ backend cuda
//@ class both
//@ rows 1..
//@ name d${HEAD_DIM}m${MT}
//@ order: dims ascending in steps of 16; per tile of 64 keys a running maximum, keys ascending in steps of 16; chunks of CHUNK_TILES tiles from position 0 folded in ascending order (snippets/softmax.cuh)
//@ param HEADS       int = 32 in 1..1024 from model.heads
//@ param KV_HEADS    int = 8 in 1..1024 from model.kv_heads
//@ param HEAD_DIM    int = 128 in 64..128 from model.head_dim
//@ param PAGE        int = 64 in 64..64 from config.kv_page
//@ param CONTEXT     int = 8192 in 1..1048576 from config.context
//@ param CHUNK_TILES int = 4 in 1..64
//@ param MT          int = 1 in 1..2
//@ param STAGES      int = 3 in 2..6
//@ param SPLIT_ROWS  int = 32 in 1..256
//@ param TO_ROWS     int = 64 in 1..1048576 from config.few_rows   # longer segments are another kernel's
//@ param GRID        int = 264 in 1..65536
//@ prelude
#ifndef KERNEL_NAME
#define KERNEL_NAME   attention_decode_default
#define KERNEL_LAUNCH attention_decode_default_launch
#endif
enum { HEADS = 32, KV_HEADS = 8, HEAD_DIM = 128, PAGE = 64, CONTEXT = 8192 };
enum { CHUNK_TILES = 4, MT = 1, STAGES = 3, SPLIT_ROWS = 32, TO_ROWS = 64, GRID = 264 };
//@ end
constexpr int MAX_CHUNKS = (CONTEXT + CHUNK_TILES * PAGE - 1) / (CHUNK_TILES * PAGE), FOLD = 8;
#include "snippets/attention_decode.cuh"

static_assert(MT >= 1 && HEAD_DIM % 8 == 0 && HEADS % KV_HEADS == 0 && STAGES >= 2 && TO_ROWS >= 1, "whole tiles");

extern "C" __device__ const sf_cuda_launch KERNEL_LAUNCH = {
    GRID, WARPS * 32 + 32, (int)sizeof(shared_t), 1, 0, 0, partials_t::BYTES};

/* Up to SPLIT_ROWS rows chunks stand apart, but only while whole tiles would leave half the blocks idle. */
__device__ __forceinline__ att_cut cut_of(const sf_cuda_block *block) {
    const int rows = block->rows;
    return {CHUNK_TILES, rows <= SPLIT_ROWS && rows * KV_HEADS * 2 <= GRID};
}

extern "C" __global__ void __launch_bounds__(WARPS * 32 + 32, MT * HEAD_DIM <= 128 ? 2 : 1) KERNEL_NAME(sf_cuda_args a) {
    decode(a, cut_of);
}
