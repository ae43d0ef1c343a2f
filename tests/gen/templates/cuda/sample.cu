//@ template sample
//@ op sample
//@ backend cuda
//@ class both
//@ rows 1..
//@ name
//@ order: ids ascending
//@ param VOCAB int = 2 in 2..1048576 from model.vocab
//@ prelude
#ifndef KERNEL_NAME
#define KERNEL_NAME   sample_default
#define KERNEL_LAUNCH sample_default_launch
#endif
enum { VOCAB = 2 };
//@ end
#include "device/cuda/args.h"

extern "C" __device__ const sf_cuda_launch KERNEL_LAUNCH = {VOCAB};

extern "C" __global__ void KERNEL_NAME(sf_cuda_args a) {
    (void)a;
}
