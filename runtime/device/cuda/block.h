/* Fills the pass block (pass_block.h) from a pass. Pure C: it writes to any memory, pinned where a copy
 * follows. */
#ifndef SF_DEVICE_CUDA_BLOCK_H
#define SF_DEVICE_CUDA_BLOCK_H

#include "device/cuda/pass_block.h"
#include "device/device.h"

/* What one block holds at most; its size never changes while a graph that points to it lives. */
typedef struct sf_cuda_block_caps {
    int rows, segs, logits, fresh;
    int pool;     /* words: page ids, histories, banned ids, biases */
    size_t bytes; /* of the whole block, a multiple of 16 */
} sf_cuda_block_caps;

/* Capacities for the plan's limits, n_pages pages in the KV pool and max_seqs sequences: every row a segment
 * of its own, all fresh, and a pool for each sequence's pages, its history (prompt and output, once) and
 * SF_BIAS_MAX biases. Errors: SF_INVALID: it would pass 2 GiB. */
SF_CHECKED sf_code sf_cuda_block_caps_of(const sf_plan *plan, int n_pages, int max_seqs,
                                         sf_cuda_block_caps *out, sf_err *err);

/* Checks the pass (pass_check.h) and writes its block to mem (16-byte aligned, caps->bytes long); *used is
 * what to copy. What the kernels will not read is not copied: histories of a row without penalties, arrays
 * that rows of one request share twice. Errors: SF_INVALID: the pass is wrong, or its histories and biases
 * exceed the pool; mem is untouched then. */
SF_CHECKED sf_code sf_cuda_block_fill(const sf_cuda_block_caps *caps, const sf_plan *plan, int n_pages,
                                      const sf_pass *pass, void *mem, size_t *used, sf_err *err);

#endif
