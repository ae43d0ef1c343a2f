/* Rotary tables from sines and cosines of our own, so that no libm reaches a bit. */
#ifndef SF_DEVICE_CPU_ROPE_H
#define SF_DEVICE_CPU_ROPE_H

#include "device/plan.h"

/* Frequency of pair i: theta^(-2 i / head_dim) (Su et al., 2021), within a few units in the last place. */
double sf_rope_frequency(double theta, int i, int head_dim);
/* Frequency of pair i of a model: the same, for rope_kind llama3 scaled by wavelength as the Llama 3.1
 * reference does (meta-llama/llama-models, models/llama3/model.py, apply_scaling; also Hugging Face's
 * rope_type llama3): waves longer than original_context / low_freq by 1 / factor, those shorter than
 * original_context / high_freq not, between them by a linear blend. */
double sf_rope_model_frequency(const sf_model_desc *m, int i);
/* Sine and cosine of 0 <= x < 2^20, absolute error under 1e-15. */
void sf_rope_sincos(double x, double *s, double *c);
/* One position: out [head_dim/2][2], cos and sin. freq [head_dim/2]. */
void sf_rope_row(const double *freq, int head_dim, int pos, float *out);

#endif
