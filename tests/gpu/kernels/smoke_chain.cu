/* out[i] = in[i] * 1.5 + 1 for 4096 values: one link of a chain, so that a link that does not wait shows. */
#include "snippets/block.cuh"

enum { BLOCKS = 16, THREADS = 256 };

extern "C" __device__ const sf_cuda_launch smoke_chain_launch = {BLOCKS, THREADS, 0, 1, 0};

extern "C" __global__ void __launch_bounds__(THREADS) smoke_chain(sf_cuda_args a) {
    const int i = (int)(blockIdx.x * THREADS + threadIdx.x);
    pass_release();
    pass_wait();
    ((float *)a.out)[i] = __fmaf_rn(((const float *)a.in)[i], 1.5f, 1.0f);
}
