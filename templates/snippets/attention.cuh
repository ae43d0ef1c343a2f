/* The work of an attention kernel: items in a fixed order, found from the pass block, that a fixed grid walks. An item
 * is a tile of TILE_ROWS rows of one segment with one KV head, and either all KV chunks or one of them. */
#ifndef SF_SNIPPETS_ATTENTION_CUH
#define SF_SNIPPETS_ATTENTION_CUH

#include "snippets/block.cuh"
#include "snippets/kv.cuh"

enum { GROUP = HEADS / KV_HEADS };
static_assert(HEADS % KV_HEADS == 0, "query heads share KV heads evenly");

struct att_work {
    int row;               /* of the pass: the tile's first */
    int rows;              /* 1..TILE_ROWS */
    int pos;               /* of the first row */
    int kv_head;
    int chunk, end_chunk;  /* this item's */
    int chunks;            /* the tile's */
    int chunk_tiles;       /* of KV in a chunk */
    const int *pages;
    __device__ __forceinline__ int keys(void) const { return pos + rows; }
    /* KV tiles first_tile() .. end_tile()-1 */
    __device__ __forceinline__ int first_tile(void) const { return chunk * chunk_tiles; }
    __device__ __forceinline__ int end_tile(void) const {
        return min(end_chunk * chunk_tiles, (keys() + PAGE - 1) / PAGE);
    }
};

/* How KV is cut: tiles of a chunk, and whether each chunk is an item of its own. */
struct att_cut {
    int tiles;
    bool split;
    __device__ __forceinline__ int chunks(int keys) const { return (keys + tiles * PAGE - 1) / (tiles * PAGE); }
};

/* Walks items in ascending order; a whole warp holds one, all its lanes alike. */
template <int TILE_ROWS, int FROM_ROWS, int TO_ROWS> struct att_cursor {
    const sf_cuda_block *block;
    const sf_cuda_segment *segs;
    int n_segs, seg, base; /* segs[seg]'s first item is base */
    att_cut cut;

    __device__ __forceinline__ att_cursor(const sf_cuda_block *b, att_cut c)
        : block(b), segs(block_segs(b)), n_segs(b->n_segs), seg(0), base(0), cut(c) {}

    __device__ __forceinline__ int items(const sf_cuda_segment &s) const {
        if (s.rows < FROM_ROWS || s.rows > TO_ROWS) return 0;
        const int tiles = (s.rows + TILE_ROWS - 1) / TILE_ROWS;
        return tiles * KV_HEADS * (cut.split ? cut.chunks(s.pos0 + s.rows) : 1);
    }

    /* The segment of an item (not before the last one sought); false: there are no more items. */
    __device__ __forceinline__ bool seek(int item) {
        const int lane = (int)(threadIdx.x & 31);
        for (; seg < n_segs; seg += 32) {
            const int own = seg + lane < n_segs ? items(segs[seg + lane]) : 0;
            int end = own;
            for (int d = 1; d < 32; d *= 2) {
                const int other = __shfl_up_sync(0xffffffffu, end, d);
                if (lane >= d) end += other;
            }
            const unsigned after = __ballot_sync(0xffffffffu, base + end > item);
            if (after != 0) {
                const int found = __ffs((int)after) - 1;
                base += __shfl_sync(0xffffffffu, end - own, found);
                seg += found;
                return true;
            }
            base += __shfl_sync(0xffffffffu, end, 31);
        }
        return false;
    }

    /* The sought item; false: its chunk lies beyond its tile, there is nothing to do. Late tiles, the longest, come
     * first, with all their heads; where chunks are items, tiles that read the same KV are neighbours. */
    __device__ __forceinline__ bool work(int item, att_work *w) const {
        const sf_cuda_segment s = segs[seg];
        const int tiles = (s.rows + TILE_ROWS - 1) / TILE_ROWS, i = item - base;
        const int tile = tiles - 1 - (cut.split ? i % tiles : i / KV_HEADS);
        const int rest = cut.split ? i / tiles : i % KV_HEADS;
        const int spread = cut.split ? cut.chunks(s.pos0 + s.rows) : 1;
        w->row = s.first_row + tile * TILE_ROWS;
        w->rows = min(TILE_ROWS, s.rows - tile * TILE_ROWS);
        w->pos = s.pos0 + tile * TILE_ROWS;
        w->kv_head = rest / spread;
        w->chunks = cut.chunks(w->keys());
        w->chunk_tiles = cut.tiles;
        w->chunk = cut.split ? rest % spread : 0;
        w->end_chunk = cut.split ? w->chunk + 1 : w->chunks;
        w->pages = block_ints(block, block->pool) + s.pages;
        return w->chunk < w->chunks;
    }
};

/* The item of a block's turn: to and fro over the grid, so that the block with the longest items of a turn gets the
 * shortest of the next. */
__device__ __forceinline__ int att_item(int turn) {
    const int grid = (int)gridDim.x, block = (int)blockIdx.x;
    return turn * grid + (turn % 2 == 0 ? block : grid - 1 - block);
}

/* Where the split form leaves its chunks (a.extra): arrivals [256][KV_HEADS], zeroed once by the host and zero between
 * launches; then (max, sum) [SPLIT_ROWS * HEADS][MAX_CHUNKS]; then values [SPLIT_ROWS * HEADS][MAX_CHUNKS][HEAD_DIM]
 * fp32. Kernels that differ in either may share it. */
template <int SPLIT_ROWS, int MAX_CHUNKS> struct att_partials {
    enum { COUNT_ROWS = 256, COUNTS = COUNT_ROWS * KV_HEADS };
    static_assert(SPLIT_ROWS <= COUNT_ROWS, "a count for each row");
    void *extra;
    __device__ __forceinline__ unsigned *arrivals(int row, int kv_head) const {
        return (unsigned *)extra + row * KV_HEADS + kv_head;
    }
    __device__ __forceinline__ size_t index(int row, int head, int chunk) const {
        return ((size_t)row * HEADS + head) * MAX_CHUNKS + chunk;
    }
    __device__ __forceinline__ float2 *stats(size_t i) const { return (float2 *)((unsigned *)extra + COUNTS) + i; }
    static constexpr size_t ALL = ((size_t)SPLIT_ROWS * HEADS * MAX_CHUNKS + 1) / 2 * 2; /* 16-byte aligned */
    static constexpr size_t BYTES = COUNTS * 4 + ALL * 8 + (size_t)SPLIT_ROWS * HEADS * MAX_CHUNKS * HEAD_DIM * 4;
    __device__ __forceinline__ float *values(size_t i) const { return (float *)(stats(0) + ALL) + i * HEAD_DIM; }
};

#endif
