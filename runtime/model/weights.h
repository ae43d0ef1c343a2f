/* Weights in the plan's packed layout, read from a checkpoint once. */
#ifndef SF_MODEL_WEIGHTS_H
#define SF_MODEL_WEIGHTS_H

#include "base/pool.h"
#include "base/progress.h"
#include "device/plan.h"
#include "model/gguf.h"
#include "model/hf_config.h"
#include "model/safetensors.h"
#include "model/weights_draw.h"

typedef struct sf_weights sf_weights;

/* Where the packed weights go when that isn't host memory. ctx is the caller's, borrowed until loading ends.
 */
typedef struct sf_weights_sink {
    void *ctx;
    /* Called once, before anything else: the size of all weights together, and whether draw will be called.
     */
    SF_CHECKED sf_code (*begin)(void *ctx, size_t bytes, bool draws, sf_err *err);
    /* `bytes` bytes at `offset`, both multiples of 64; every byte of the memory comes exactly once (by put or
     * draw), in no particular order, mostly 1 to 2 MB at a time. Thread: any of the pool's, several at once,
     * each with its own part (0..threads-1). `data` (64-byte aligned) may be overwritten after the return. */
    SF_CHECKED sf_code (*put)(void *ctx, int part, size_t offset, const void *data, size_t bytes,
                              sf_err *err);
    /* NULL, or instead of put for random weights in SF_W_BF16_MMA: writes what sf_wdraw_lane gives for bytes
     * first .. first + bytes - 1 of `what` (multiples of 512) to the same bytes of memory as put would, and
     * lets *data point to a copy, the sink's, until the part's next call. */
    SF_CHECKED sf_code (*draw)(void *ctx, int part, size_t offset, const sf_wdraw *what, size_t first,
                               size_t bytes, const void **data, sf_err *err);
} sf_weights_sink;

/* Loads every weight slot of the plan: matrices rounded to bf16 (nearest even, sf_bf16_operand) and packed as
 * sf_wformat says, vectors as fp32. GGUF of this family stores each head's q and k rows with rotary pairs
 * interleaved (row 2i, 2i+1 are a pair): they are put back to halves (pair i, i + head_dim/2).
 * Every shape is checked against the plan before anything is allocated; the error names file and tensor, what
 * was found and expected. The work runs on the pool, with a progress bar of bytes when `progress`. Memory:
 * the packed size only, or, with a sink (NULL: none), one piece a thread. An error of the sink ends loading
 * and is returned as it is. The plan is borrowed and outlives the weights; the checkpoint may be closed
 * afterwards. Also checks the metadata that the plan fixes (general.architecture, heads, rope theta, norm
 * eps, ...). Refused by name: a tensor that the plan has no place for, a key of the architecture that isn't
 * understood (rope scaling, experts, sliding window), a type that cannot be read, a value that is not finite
 * in its packed format. */
SF_CHECKED sf_code sf_weights_load(const sf_plan *plan, const sf_gguf *g, sf_pool *pool, bool progress,
                                   const sf_weights_sink *sink, sf_weights **out, sf_err *err);
/* The same of a safetensors checkpoint, whose tensors are named as Hugging Face does and whose config.json is
 * compared with the plan. A head that is there although the model ties it must equal the embedding; one that
 * the model doesn't tie must be there. The same values give the same packed bytes and hash by either route.
 */
SF_CHECKED sf_code sf_weights_load_st(const sf_plan *plan, const sf_safetensors *st,
                                      const sf_hf_config *config, sf_pool *pool, bool progress,
                                      const sf_weights_sink *sink, sf_weights **out, sf_err *err);
/* What sf_weights_load checks of the metadata, alone: against plan->model: errors name file, key, found and
 * expected. What the engine doesn't compute (rope scaling, experts, an unknown key of the architecture) is
 * SF_UNSUPPORTED. */
SF_CHECKED sf_code sf_weights_check_metadata(const sf_plan *plan, const sf_gguf *g, sf_err *err);
/* Random weights of sensible scale, by Philox keyed by (seed, slot, layer, row, column): matrices N(0, 1/k),
 * an embedding that isn't also the head N(0, 1), norms 1 + N(0, 0.1^2), biases N(0, 1/16^2). Same seed, same
 * values everywhere and in every format. */
SF_CHECKED sf_code sf_weights_random(const sf_plan *plan, uint64_t seed, sf_pool *pool, bool progress,
                                     const sf_weights_sink *sink, sf_weights **out, sf_err *err);
void sf_weights_destroy(sf_weights *w);

/* The data of weight slot `slot` (index into plan->weights) for `layer` (0 for slots that are not per layer):
 * 64-byte aligned; laid out as sf_wformat says, const float[k] for SF_W_F32. Not for weights that went to a
 * sink. */
const void *sf_weights_get(const sf_weights *w, int slot, int layer);
/* The same as bytes from the beginning of all weights: in a sink's memory a multiple of 256. */
size_t sf_weights_offset(const sf_weights *w, int slot, int layer);
uint64_t sf_weights_bytes(const sf_weights *w);
/* SHA-256 over the names of every slot in order and XXH3's 128-bit digests of pieces of about 512 KiB of its
 * packed bytes (2 MiB in SF_W_BF16_MMA; the cut depends on the plan alone): part of the numerics fingerprint.
 * It tells weights apart; it is no defence against who makes weights to collide. */
const char *sf_weights_hash(const sf_weights *w);

#endif
