/* The pass block's arrays, and programmatic dependent launch. The block is written before a pass's first kernel
 * begins, so it may be read before pass_wait(). */
#ifndef SF_SNIPPETS_BLOCK_CUH
#define SF_SNIPPETS_BLOCK_CUH

#include "device/cuda/pass_block.h"

__device__ __forceinline__ const void *block_at(const sf_cuda_block *b, int offset) {
    return (const char *)b + offset;
}
__device__ __forceinline__ const int *block_ints(const sf_cuda_block *b, int offset) {
    return (const int *)block_at(b, offset);
}
__device__ __forceinline__ const sf_cuda_segment *block_segs(const sf_cuda_block *b) {
    return (const sf_cuda_segment *)block_at(b, b->segs);
}
__device__ __forceinline__ const sf_cuda_sample *block_samples(const sf_cuda_block *b) {
    return (const sf_cuda_sample *)block_at(b, b->samples);
}

/* Lets the next kernel's blocks start: it waits itself before it reads what this one writes. */
__device__ __forceinline__ void pass_release(void) {
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
}
/* Returns once all that earlier kernels wrote is visible. */
__device__ __forceinline__ void pass_wait(void) {
    asm volatile("griddepcontrol.wait;" ::: "memory");
}

#endif
