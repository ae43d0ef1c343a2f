/* References: what each operation means, in fp32 and straight loops, slow and obvious. Kernels are tested
 * against them. All matrices are row-major. */
#ifndef SF_REF_REF_H
#define SF_REF_REF_H

#include "device/device.h"

#include <stdint.h>

/* x [rows, dim] = table [vocab, dim] at tokens [rows]. */
void sf_ref_embed(const float *table, const int32_t *tokens, int rows, int dim, float *x);
/* y [rows, k] = x / sqrt(mean(x^2) + eps) * weight [k] (Zhang and Sennrich, 2019). */
void sf_ref_rmsnorm(const float *x, const float *weight, int rows, int k, float eps, float *y);
/* out [rows, n] = in [rows, k] * w [n, k]^T + bias [n] (or NULL). */
void sf_ref_gemm(const float *in, const float *w, const float *bias, int rows, int n, int k, float *out);
/* out [rows, n] = silu(gate) * up, both [rows, n]. */
void sf_ref_swiglu(const float *gate, const float *up, int rows, int n, float *out);
/* Rotates one head x [dim] at a position (Su et al., 2021): pair i is i and i + dim/2, its angle pos * freq
 * [i]; attention multiplies its cosine and sine. */
void sf_ref_rope(float *x, int dim, int pos, const double *freq, double attention);
/* One query q [dim] over keys and values [positions, dim]: out [dim] = softmax(q . k) v. q is already scaled.
 */
void sf_ref_attention(const float *q, const float *k, const float *v, int positions, int dim, float *out);
/* lp [n] = log-softmax of x [n]. */
void sf_ref_log_softmax(const float *x, int n, float *lp);
/* z [n] = x [n] after bias, bans and penalties. */
void sf_ref_adjust(const sf_sample *s, const float *x, int n, float *z);
/* kept [n]: 1 where top_k, top_p and min_p leave the token; z [n] are adjusted logits, temperature > 0. Ties
 * at the k-th are kept; ties at top_p go to the lower ids. Returns how many are kept; 0 when out of memory.
 */
int sf_ref_filter(const sf_sample *s, const float *z, int n, unsigned char *kept);
/* The token that Gumbel-max draws from kept tokens, or the arg max at temperature 0. */
int32_t sf_ref_draw(const sf_sample *s, const float *z, int n, const unsigned char *kept);

#endif
