//@ template rmsnorm
//@ op rmsnorm
//@ backend cuda
//@ class both
//@ rows 1..
//@ name
//@ order: one sum
//@ param GATHER int = 0 in 0..1 from op.input_rows
//@ param SMS    int = 1 in 1..1024 from config.sms
//@ prelude
#ifndef KERNEL_NAME
#define KERNEL_NAME   rmsnorm_default
#define KERNEL_LAUNCH rmsnorm_default_launch
#endif
enum { GATHER = 0, SMS = 1 };
//@ end
#include "device/cuda/args.h"

extern "C" __device__ const sf_cuda_launch KERNEL_LAUNCH = {GATHER + SMS};

extern "C" __global__ void KERNEL_NAME(sf_cuda_args a) {
    (void)a;
}
