/* Reference twins of embed and rmsnorm: one thread a row. Compiled with the template's prelude in front. */
#include "snippets/block.cuh"
#include "snippets/math.cuh"

#ifdef REF_EMBED
/* a.weight row-major [vocab][DIM] bf16. One thread a block, grid = rows. */
extern "C" __global__ void ref_embed(sf_cuda_args a) {
    const int row = (int)blockIdx.x, token = block_ints(a.block, a.block->tokens)[row];
    for (int k = 0; k < DIM; k++)
        ((float *)a.out)[(size_t)row * DIM + k] =
            bf16_float(((const unsigned short *)a.weight)[(size_t)token * DIM + k]);
}
#else
/* a.out: fp32. One thread a block, grid = rows. */
extern "C" __global__ void ref_rmsnorm(sf_cuda_args a) {
    const int row = (int)blockIdx.x;
    const int from = GATHER ? block_ints(a.block, a.block->logit_rows)[row] : row;
    const float *x = (const float *)a.in + (size_t)from * K;
    double sum = 0.0;
    for (int k = 0; k < K; k++)
        sum += (double)x[k] * (double)x[k];
    const double scale = 1.0 / sqrt(sum / K + (double)EPS);
    for (int k = 0; k < K; k++)
        ((float *)a.out)[(size_t)row * K + k] = (float)((double)x[k] * scale * (double)((const float *)a.weight)[k]);
}
#endif
