/* The tensor maps through which the matrix products read activations (tensor_maps.h). */
#ifndef SF_DEVICE_CUDA_MAPS_H
#define SF_DEVICE_CUDA_MAPS_H

#include "device/cuda/cu_api.h"
#include "device/cuda/tensor_maps.h"

/* Maps of one buffer: bf16 [rows, k] row-major at a device address; they are to be copied to device memory,
 * 128-byte aligned, for sf_cuda_args.extra. Errors: SF_INVALID: rows or k under 1, k not a multiple of 8, or
 * the address not of 16; those of sf_cu_check. */
SF_CHECKED sf_code sf_cuda_maps_make(sf_cu *cu, CUdeviceptr at, int rows, int k,
                                     CUtensorMap out[SF_CUDA_MAPS], sf_err *err);

#endif
