/* Rotary tables from sines and cosines of our own, so that no libm reaches a bit. */
#ifndef SF_DEVICE_CPU_ROPE_H
#define SF_DEVICE_CPU_ROPE_H

/* Frequency of pair i: theta^(-2 i / head_dim) (Su et al., 2021), within a few units in the last place. */
double sf_rope_frequency(double theta, int i, int head_dim);
/* Sine and cosine of 0 <= x < 2^20, absolute error under 1e-15. */
void sf_rope_sincos(double x, double *s, double *c);
/* One position: out [head_dim/2][2], cos and sin. freq [head_dim/2]. */
void sf_rope_row(const double *freq, int head_dim, int pos, float *out);

#endif
