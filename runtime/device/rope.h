/* Rotary tables from functions of our own, so that no libm reaches a bit: frequencies and factors in double
 * precision, once, for every backend. */
#ifndef SF_DEVICE_ROPE_H
#define SF_DEVICE_ROPE_H

#include "device/plan.h"

#define SF_ROPE_PAIRS_MAX 256 /* a head has at most 512 values */

/* What yarn's keys mean where a checkpoint has none. */
#define SF_YARN_BETA_FAST 32.0
#define SF_YARN_BETA_SLOW 1.0

/* What a model's rotary table is made of. */
typedef struct sf_rope {
    int pairs;                      /* head_dim / 2 */
    double attention;               /* factor of every cosine and sine; 1 but for yarn */
    double freq[SF_ROPE_PAIRS_MAX]; /* [pairs] */
} sf_rope;

/* By m->rope_kind, as Hugging Face's transformers does (5.24, modeling_rope_utils.py); plain is the frequency
 * of sf_rope_frequency:
 *   default  plain (Su et al., 2021)
 *   linear   plain / factor
 *   llama3   plain scaled by wavelength (meta-llama/llama-models, models/llama3/model.py, apply_scaling):
 *            waves longer than original_context / low_freq by 1 / factor, those shorter than
 *            original_context / high_freq not, between them by a linear blend
 *   yarn     a linear blend of plain and plain / factor over pairs, between the pair that turns beta_fast
 *            times in original_context and the one that turns beta_slow times (Peng et al., 2023, as in
 *            _compute_yarn_parameters); rounded outward to whole pairs unless rope_exact_range
 * yarn's attention factor: rope_attention_factor if given (> 0); else, with mscale and mscale_all_dim both
 * given, their ratio (0.1 mscale ln factor + 1) / (0.1 mscale_all_dim ln factor + 1); else
 * 0.1 ln factor + 1. head_dim is even, 2..2 SF_ROPE_PAIRS_MAX. */
void sf_rope_init(const sf_model_desc *m, sf_rope *out);
/* One position: out [pairs][2], cos and sin times the attention factor. */
void sf_rope_row(const sf_rope *r, int pos, float *out);

/* Frequency of pair i: theta^(-2 i / head_dim), within a few units in the last place. */
double sf_rope_frequency(double theta, int i, int head_dim);
/* Sine and cosine of 0 <= x < 2^20, absolute error under 1e-15. */
void sf_rope_sincos(double x, double *s, double *c);

#endif
