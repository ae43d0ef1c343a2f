//@ template attention_fast
//@ op attention
//@ backend cuda
//@ class fast
//@ rows 1..32
//@ name d${HEAD_DIM}m${MT}
//@ order: dims ascending in steps of 16; per tile of 64 keys a running maximum, keys ascending in steps of 16; chunks of as many tiles as the pass's rows and contexts ask for, folded in ascending order (snippets/softmax.cuh)
//@ param HEADS       int = 32 in 1..1024 from model.heads
//@ param KV_HEADS    int = 8 in 1..1024 from model.kv_heads
//@ param HEAD_DIM    int = 128 in 64..128 from model.head_dim
//@ param PAGE        int = 64 in 64..64 from config.kv_page
//@ param CONTEXT     int = 8192 in 1..1048576 from config.context
//@ param MAX_CHUNKS  int = 32 in 1..128
//@ param MT          int = 1 in 1..2
//@ param STAGES      int = 3 in 2..6
//@ param SPLIT_ROWS  int = 32 in 32..256
//@ param TO_ROWS     int = 64 in 1..1048576 from config.few_rows   # longer segments are another kernel's
//@ param GRID        int = 264 in 1..65536
//@ prelude
#ifndef KERNEL_NAME
#define KERNEL_NAME   attention_fast_default
#define KERNEL_LAUNCH attention_fast_default_launch
#endif
enum { HEADS = 32, KV_HEADS = 8, HEAD_DIM = 128, PAGE = 64, CONTEXT = 8192 };
enum { MAX_CHUNKS = 32, MT = 1, STAGES = 3, SPLIT_ROWS = 32, TO_ROWS = 64, GRID = 264 };
//@ end
constexpr int FOLD = 16;
#include "snippets/attention_decode.cuh"

static_assert(MT >= 1 && HEAD_DIM % 8 == 0 && HEADS % KV_HEADS == 0 && CONTEXT >= 1 && STAGES >= 2, "whole tiles");
static_assert(SPLIT_ROWS >= 32, "a place for every row of a pass");

extern "C" __device__ const sf_cuda_launch KERNEL_LAUNCH = {
    GRID, WARPS * 32 + 32, (int)sizeof(shared_t), 1, 0, 0, partials_t::BYTES};

/* So many tiles to a chunk that all blocks work: as many chunks of each row as one turn of the grid holds; where contexts
 * differ and that leaves a long one too whole, an even share of all tiles. */
__device__ __forceinline__ att_cut cut_of(const sf_cuda_block *block) {
    const int lane = (int)(threadIdx.x & 31);
    const sf_cuda_segment *segs = block_segs(block);
    int units = 0, work = 0, longest = 1;
    for (int i = lane; i < block->n_segs; i += 32) {
        const sf_cuda_segment s = segs[i];
        if (s.rows > TO_ROWS) continue;
        const int row_tiles = (s.rows + TILE_ROWS - 1) / TILE_ROWS, kv_tiles = (s.pos0 + s.rows + PAGE - 1) / PAGE;
        units += row_tiles * KV_HEADS;
        work += row_tiles * KV_HEADS * kv_tiles;
        longest = max(longest, kv_tiles);
    }
    units = max(__reduce_add_sync(0xffffffffu, units), 1);
    work = __reduce_add_sync(0xffffffffu, work);
    longest = __reduce_max_sync(0xffffffffu, longest);
    const int chunks = min(max(GRID / units, 1), MAX_CHUNKS), turn = (longest + chunks - 1) / chunks;
    const int share = max((work + GRID - 1) / GRID, (longest + MAX_CHUNKS - 1) / MAX_CHUNKS);
    const int tiles = turn <= 2 * share ? turn : share;
    return {tiles, tiles < longest};
}

extern "C" __global__ void __launch_bounds__(WARPS * 32 + 32, MT * HEAD_DIM <= 128 ? 2 : 1) KERNEL_NAME(sf_cuda_args a) {
    decode(a, cut_of);
}
