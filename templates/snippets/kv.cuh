/* KV of one layer: [n_pages][kv_heads][K, V][PAGE][HEAD_DIM] bf16, so that a page's head is one contiguous block. Inside,
 * K and V are [HEAD_DIM / 64][PAGE][64] with the 16-byte chunks of each 128-byte row exchanged by position mod 8: the
 * 128-byte swizzle of wgmma, free of bank conflicts for ldmatrix too. V is finite in every position ever written (a
 * fresh page is zeros), so that a masked weight of 0 adds an exact 0. */
#ifndef SF_SNIPPETS_KV_CUH
#define SF_SNIPPETS_KV_CUH

enum { KV_HALF_BYTES = PAGE * 128, KV_TILE_BYTES = PAGE * HEAD_DIM * 2, KV_HEAD_BYTES = 2 * KV_TILE_BYTES };

static_assert(PAGE == 64, "a KV tile is a page of 64 positions");
static_assert(HEAD_DIM % 64 == 0, "rows of 128 bytes");

/* Byte of 16-byte chunk `chunk` (dims 8 chunk ..) of a position in its K or V. */
__device__ __forceinline__ int kv_chunk(int offset, int chunk) {
    return chunk / 8 * KV_HALF_BYTES + offset * 128 + (((chunk & 7) ^ (offset & 7)) << 4);
}
/* K of a page's head; V follows after KV_TILE_BYTES. */
__device__ __forceinline__ char *kv_head_at(void *kv, int page, int head) {
    return (char *)kv + ((size_t)page * KV_HEADS + head) * KV_HEAD_BYTES;
}

#endif
