/* Packed weights, one layout for every kernel of the family: tiles of 16 output features by 16 k, in the order of
 * the A fragment of m16n8k16 (a lane's 16 bytes: features l / 4 and l / 4 + 8, k 2 (l % 4) and 8 more, low k
 * first), stored
 *     [group of T tiles][k / 16][T][32 lanes][16 bytes].
 * Whatever run of k a stage holds is one contiguous block of a group. Features are padded with zeros to a whole
 * group, k to whole blocks of 64, four at least. A SwiGLU weight's tile holds 8 gate rows (features l / 4) and their 8 up rows (l / 4 + 8), so
 * that one thread holds both sums.
 *
 * A further format is a further struct here: how many bytes a 16 x 16 step takes, and how a lane's bf16 fragment
 * comes out of them. */
#ifndef SF_SNIPPETS_GEMM_WEIGHT_CUH
#define SF_SNIPPETS_GEMM_WEIGHT_CUH

#include "snippets/matrix_step.cuh"

struct weight_bf16 {
    static constexpr int STEP = 512; /* bytes of a tile's 16 k */
    static __device__ __forceinline__ uint4 from_shared(unsigned step, int lane) {
        return shared_load16(step + lane * 16);
    }
    static __device__ __forceinline__ uint4 from_global(const char *step, int lane) {
        return global_load16(step + lane * 16);
    }
};

/* Blocks of 64 k: kernels load some ahead of what they multiply, and of fewer than four there would be no ahead. */
constexpr int blocks_of_k(int k) {
    return k > 192 ? (k + 63) / 64 : 4;
}

constexpr int blocks_of_copy(int blocks, int block, int most) {
    int best = 1;
    for (int b = 1; b <= blocks; b++)
        if (blocks % b == 0 && b * block <= most) best = b;
    return best;
}

/* The sizes of a weight [n, k] in groups of T tiles. */
template <class FORMAT, int N, int K, int T> struct weight_shape {
    static constexpr int TILES = (N + 15) / 16;
    static constexpr int GROUPS = (TILES + T - 1) / T;
    static constexpr int BLOCKS = blocks_of_k(K);
    static constexpr int BLOCK = T * 4 * FORMAT::STEP;

    /* The k blocks of one copy: as many as divide BLOCKS and make at most 16 KiB, at least one. */
    static constexpr int copy_blocks() { return blocks_of_copy(BLOCKS, BLOCK, 16384); }
};

/* The same weight cut in PARTS along k: part p of group g is group g * PARTS + p; copies of at most COPY bytes. */
template <class SHAPE, int PARTS, int COPY> struct weight_part {
    static_assert(SHAPE::BLOCKS % PARTS == 0, "even parts");
    static constexpr int GROUPS = SHAPE::GROUPS * PARTS;
    static constexpr int BLOCKS = SHAPE::BLOCKS / PARTS;
    static constexpr int BLOCK = SHAPE::BLOCK;
    static constexpr int copy_blocks() { return blocks_of_copy(BLOCKS, BLOCK, COPY); }
};

#endif
