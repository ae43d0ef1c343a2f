/* out[row] = scale * token + position, read from the pass block: fp32 [rows]. */
#include "snippets/block.cuh"

extern "C" __device__ const sf_cuda_launch smoke_rows_launch = {4, 64, 0, 1, 0};

extern "C" __global__ void __launch_bounds__(64) smoke_rows(sf_cuda_args a) {
    const int *tokens = block_ints(a.block, a.block->tokens);
    const int *positions = block_ints(a.block, a.block->positions);
    pass_release();
    pass_wait();
    for (int row = (int)(blockIdx.x * 64 + threadIdx.x); row < a.block->rows; row += 4 * 64)
        ((float *)a.out)[row] = __fmaf_rn(0.5f, (float)tokens[row], (float)positions[row]);
}
