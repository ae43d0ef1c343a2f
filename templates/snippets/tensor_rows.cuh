/* Boxes of activations with any multiple of 8 rows, put together of those that have maps (device/cuda/tensor_maps.h). */
#ifndef SF_SNIPPETS_TENSOR_ROWS_CUH
#define SF_SNIPPETS_TENSOR_ROWS_CUH

#include "device/cuda/tensor_maps.h"
#include "snippets/hopper.cuh"

/* The maps that so many rows need. */
__device__ __forceinline__ void tensor_rows_acquire(const char *maps, int rows) {
#pragma unroll 1
    for (int left = rows; left > 0;) {
        const int i = 31 - __clz(left);
        tensor_map_acquire(maps + (i - 3) * SF_CUDA_MAP_BYTES);
        left -= 1 << i;
    }
    fence_async();
}

/* One thread: 64 k from x on of so many rows from y on, to every CTA of the cluster. Large boxes first: each lies at whole
 * swizzle groups. */
template <int CLUSTER>
__device__ __forceinline__ void tensor_load_rows(unsigned to, const char *maps, int x, int y, int rows, unsigned bar) {
#pragma unroll 1
    for (int left = rows; left > 0;) {
        const int i = 31 - __clz(left), box = 1 << i;
        const char *map = maps + (i - 3) * SF_CUDA_MAP_BYTES;
        if (CLUSTER == 1) tensor_load(to, map, x, y, bar);
        else tensor_load_to(to, map, x, y, bar, (1u << CLUSTER) - 1);
        to += box * 128;
        y += box;
        left -= box;
    }
}

#endif
