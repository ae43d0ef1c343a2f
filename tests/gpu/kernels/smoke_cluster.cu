/* Block b of 8, in clusters of 2, writes cluster size * 1000 + its rank + a word that it kept at the end of 200 KB of dynamic
 * shared memory: int [8]. */
#include "snippets/block.cuh"

enum { SHARED = 200 * 1024 };

extern "C" __device__ const sf_cuda_launch smoke_cluster_launch = {8, 32, SHARED, 0, 2};

extern "C" __global__ void __launch_bounds__(32) smoke_cluster(sf_cuda_args a) {
    extern __shared__ int words[];
    unsigned size, rank;
    asm volatile("mov.u32 %0, %%cluster_nctaid.x;" : "=r"(size));
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    words[SHARED / 4 - 32 + (int)threadIdx.x] = (int)blockIdx.x * 10;
    __syncwarp();
    if (threadIdx.x == 0) ((int *)a.out)[blockIdx.x] = (int)(size * 1000 + rank) + words[SHARED / 4 - 1];
}
