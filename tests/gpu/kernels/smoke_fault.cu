/* Writes where no memory is. */
#include "snippets/block.cuh"

extern "C" __device__ const sf_cuda_launch smoke_fault_launch = {1, 32, 0, 0, 0};

extern "C" __global__ void __launch_bounds__(32) smoke_fault(sf_cuda_args a) {
    *(volatile int *)0x10 = a.block == nullptr;
}
