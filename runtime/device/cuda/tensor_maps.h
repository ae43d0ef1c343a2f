/* Activations enter the matrix products through tensor maps: their sf_cuda_args.extra points to SF_CUDA_MAPS
 * of them in device memory, made once for the op's `in` buffer: bf16 [rows the buffer holds, k] row-major
 * (row stride k * 2 bytes, a multiple of 16), map i with box [8 << i rows, 64 k], 128-byte swizzle, elements
 * out of range zero. */
#ifndef SF_DEVICE_CUDA_TENSOR_MAPS_H
#define SF_DEVICE_CUDA_TENSOR_MAPS_H

#define SF_CUDA_MAPS      6
#define SF_CUDA_MAP_BYTES 128

#ifdef __CUDACC__
/* Byte offset of the map whose box has so many rows. */
constexpr int sf_cuda_map_at(int box_rows) {
    int i = 0;
    while (8 << i < box_rows)
        i++;
    return i * SF_CUDA_MAP_BYTES;
}
#endif

#endif
