//@ template attention_long
//@ op attention_long
//@ backend cuda
//@ class both
//@ rows 65..
//@ name
//@ order: positions ascending
//@ param FEW_ROWS int = 1 in 1..1024 from config.few_rows
//@ prelude
#ifndef KERNEL_NAME
#define KERNEL_NAME   attention_long_default
#define KERNEL_LAUNCH attention_long_default_launch
#endif
enum { FEW_ROWS = 1 };
//@ end
#include "device/cuda/args.h"

extern "C" __device__ const sf_cuda_launch KERNEL_LAUNCH = {FEW_ROWS};

extern "C" __global__ void KERNEL_NAME(sf_cuda_args a) {
    (void)a;
}
