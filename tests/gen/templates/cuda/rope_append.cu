//@ template rope_append
//@ op rope_append
//@ backend cuda
//@ class both
//@ rows 1..
//@ name
//@ order: element by element
//@ param PAGE int = 64 in 64..64 from config.kv_page
//@ prelude
#ifndef KERNEL_NAME
#define KERNEL_NAME   rope_append_default
#define KERNEL_LAUNCH rope_append_default_launch
#endif
enum { PAGE = 64 };
//@ end
#include "device/cuda/args.h"

extern "C" __device__ const sf_cuda_launch KERNEL_LAUNCH = {PAGE};

extern "C" __global__ void KERNEL_NAME(sf_cuda_args a) {
    (void)a;
}
