//@ template embed
//@ op embed
//@ backend cuda
//@ class both
//@ rows 1..
//@ name
//@ order: none, a copy
//@ param T int = 1 in 1..8 from op.tile
//@ prelude
#ifndef KERNEL_NAME
#define KERNEL_NAME   embed_default
#define KERNEL_LAUNCH embed_default_launch
#endif
enum { T = 1 };
//@ end
#include "device/cuda/args.h"

extern "C" __device__ const sf_cuda_launch KERNEL_LAUNCH = {T};

extern "C" __global__ void KERNEL_NAME(sf_cuda_args a) {
    (void)a;
}
