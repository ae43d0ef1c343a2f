//@ template attention
//@ op attention
//@ backend cuda
//@ class both
//@ rows 1..
//@ name
//@ order: positions ascending
//@ param TO_ROWS int = 1 in 1..1024 from config.few_rows
//@ prelude
#ifndef KERNEL_NAME
#define KERNEL_NAME   attention_default
#define KERNEL_LAUNCH attention_default_launch
#endif
enum { TO_ROWS = 1 };
//@ end
#include "device/cuda/args.h"

extern "C" __device__ const sf_cuda_launch KERNEL_LAUNCH = {TO_ROWS};

extern "C" __global__ void KERNEL_NAME(sf_cuda_args a) {
    (void)a;
}
