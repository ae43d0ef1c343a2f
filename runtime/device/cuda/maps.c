#include "device/cuda/maps.h"

#include <string.h>

#define BOX_K    64 /* 128 bytes of a row: one swizzle atom */
#define BOX_ROWS 8  /* of the first map; each next one has twice as many */
#define ALIGN    16 /* bytes: of the buffer and of its rows */

_Static_assert(sizeof(CUtensorMap) == SF_CUDA_MAP_BYTES, "maps stand one after another");

sf_code sf_cuda_maps_make(sf_cu *cu, CUdeviceptr at, int rows, int k, CUtensorMap out[SF_CUDA_MAPS],
                          sf_err *err) {
    if (rows < 1 || k < 1 || k * 2 % ALIGN != 0 || at % ALIGN != 0)
        return SF_FAIL(
            err, SF_INVALID,
            "activations of %d rows of %d values at %#llx, expected a multiple of 8 values and an address "
            "of %d bytes",
            rows, k, (unsigned long long)at, ALIGN);
    const uint64_t dims[2] = {(uint64_t)k, (uint64_t)rows}, strides[1] = {(uint64_t)k * 2};
    const uint32_t steps[2] = {1, 1};
    CUtensorMap maps[SF_CUDA_MAPS];
    for (int i = 0; i < SF_CUDA_MAPS; i++) {
        const uint32_t box[2] = {BOX_K, (uint32_t)BOX_ROWS << i};
        const CUresult r = cu->cuTensorMapEncodeTiled(
            maps + i, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 2, (void *)(uintptr_t)at, dims, strides, box, steps,
            CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
            CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
        SF_TRY(sf_cu_check(cu, r, "cuTensorMapEncodeTiled", NULL, SF_SRC, err));
    }
    memcpy(out, maps, sizeof maps);
    return SF_OK;
}
