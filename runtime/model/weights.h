/* Weights in the plan's packed layout, read from a checkpoint once. */
#ifndef SF_MODEL_WEIGHTS_H
#define SF_MODEL_WEIGHTS_H

#include "base/pool.h"
#include "base/progress.h"
#include "device/plan.h"
#include "model/gguf.h"

typedef struct sf_weights sf_weights;

/* Loads every weight slot of the plan: matrices rounded to bf16 (nearest even, sf_bf16_operand) and packed as
 * SF_W_BF16 says, vectors as fp32. GGUF of this family stores each head's q and k rows with rotary pairs
 * interleaved (row 2i, 2i+1 are a pair): they are put back to halves (pair i, i + head_dim/2).
 * Every shape is checked against the plan before anything is allocated; the error names file and tensor, what
 * was found and expected. The work runs on the pool, with a progress bar of bytes when `progress`. Memory:
 * the packed size only. The checkpoint's mapping may be closed afterwards. Also checks the metadata that the
 * plan fixes (general.architecture, heads, rope theta, norm eps, ...). Refused by name: a tensor that the
 * plan has no place for, a key of the architecture that isn't understood (rope scaling, experts, sliding
 * window), a type that cannot be read, a value that is not finite in its packed format. */
SF_CHECKED sf_code sf_weights_load(const sf_plan *plan, const sf_gguf *g, sf_pool *pool, bool progress,
                                   sf_weights **out, sf_err *err);
/* Random weights of sensible scale, by Philox keyed by (seed, slot, layer, row, column): matrices N(0, 1/k),
 * an embedding that isn't also the head N(0, 1), norms 1 + N(0, 0.1^2), biases N(0, 1/16^2). Same seed, same
 * bits everywhere. */
SF_CHECKED sf_code sf_weights_random(const sf_plan *plan, uint64_t seed, sf_pool *pool, sf_weights **out,
                                     sf_err *err);
void sf_weights_destroy(sf_weights *w);

/* The data of weight slot `slot` (index into plan->weights) for `layer` (0 for slots that are not per layer):
 * 64-byte aligned; const uint16_t[n_pad/16][k_pad/2][16][2] for SF_W_BF16, const float[k] for SF_W_F32. */
const void *sf_weights_get(const sf_weights *w, int slot, int layer);
uint64_t sf_weights_bytes(const sf_weights *w);
/* SHA-256 over the names and packed bytes of every slot in order (as digests of pieces of about 512 KiB,
 * whose cut depends on the plan alone): part of the numerics fingerprint. */
const char *sf_weights_hash(const sf_weights *w);

#endif
