/* The KV pool and the workspace of attention as the host sees them; templates/snippets/kv.cuh and
 * attention.cuh are the kernels' side. A layer's pool is [pages][kv_heads][K, V][64 positions, head_dim]
 * bf16, zeroed once when it is made: every V written later is finite, so pages need no zeroing when they
 * change hands. */
#ifndef SF_DEVICE_CUDA_KV_LAYOUT_H
#define SF_DEVICE_CUDA_KV_LAYOUT_H

#include <stddef.h>

#define SF_CUDA_KV_PAGE 64 /* positions */

/* Bytes of a page in one layer. */
static inline size_t sf_cuda_kv_page_bytes(int kv_heads, int head_dim) {
    return (size_t)kv_heads * 2 * SF_CUDA_KV_PAGE * (size_t)head_dim * 2;
}

/* Index, in bf16 values from the page's beginning, of element d of K (value 0) or V (value 1) at an offset in
 * the page: per 64 dims a block [64 positions][64 dims], the eights of a row exchanged by offset mod 8. */
static inline size_t sf_cuda_kv_at(int head_dim, int kv_head, int value, int offset, int d) {
    const int part = (kv_head * 2 + value) * SF_CUDA_KV_PAGE * head_dim;
    const int eight = (d % 64 / 8) ^ (offset % 8);
    return (size_t)(part + d / 64 * SF_CUDA_KV_PAGE * 64 + offset * 64 + eight * 8 + d % 8);
}

/* Bytes of attention's workspace (sf_cuda_args.extra), zeroed once: 256 counts per KV head, then for
 * split_rows rows and all chunks of a context two words and head_dim fp32 per head. One for all kernels of a
 * stream. */
static inline size_t sf_cuda_attention_bytes(int heads, int kv_heads, int head_dim, int context,
                                             int chunk_tiles, int split_rows) {
    const int chunk = chunk_tiles * SF_CUDA_KV_PAGE;
    const size_t parts = (size_t)split_rows * (size_t)heads * (size_t)((context + chunk - 1) / chunk);
    return 256 * 4 * (size_t)kv_heads + (parts + 1) / 2 * 2 * 8 + parts * (size_t)head_dim * 4;
}

#endif
