#include "device/rope.h"

#include <stdint.h>
#include <string.h>

#define TWO_PI 6.283185307179586

static double double_of_bits(uint64_t u) {
    double d;
    memcpy(&d, &u, sizeof d);
    return d;
}

/* ln 2 as a sum; the first piece has 32 bits, so that small multiples of it are exact. */
static const double ln2_high = 0x1.62e42feep-1, ln2_low = 0x1.a39ef35793c76p-33;

/* x = 2^e m with m in [sqrt 1/2, sqrt 2); log m = 2 atanh((m - 1) / (m + 1)), the series to the 21st power.
 */
static double log_of(double x) {
    uint64_t u;
    memcpy(&u, &x, sizeof u);
    int e = (int)(u >> 52) - 1023;
    double m = double_of_bits((u & 0xfffffffffffffull) | 0x3ff0000000000000ull);
    if (m > 1.4142135623730951) {
        m = m * 0.5;
        e++;
    }
    const double t = (m - 1.0) / (m + 1.0), square = t * t;
    double sum = 0.0;
    for (int k = 21; k >= 1; k -= 2)
        sum = sum * square + 1.0 / (double)k;
    return (double)e * ln2_high + (2.0 * t * sum + (double)e * ln2_low);
}

/* exp of -700 .. 700: Taylor's series to the 14th power after reduction by ln 2. */
static double exp_of(double x) {
    const double scaled = x * 1.4426950408889634;
    const int n = (int)(scaled < 0.0 ? scaled - 0.5 : scaled + 0.5);
    const double r = (x - (double)n * ln2_high) - (double)n * ln2_low;
    double sum = 1.0;
    for (int k = 14; k >= 1; k--)
        sum = 1.0 + sum * r / (double)k;
    return sum * double_of_bits((uint64_t)(n + 1023) << 52);
}

double sf_rope_frequency(double theta, int i, int head_dim) {
    return exp_of(-2.0 * (double)i / (double)head_dim * log_of(theta));
}

static double llama3_frequency(const sf_model_desc *m, double plain) {
    const double turns = (double)m->rope_original_context * plain / TWO_PI; /* in the original context */
    if (turns > m->rope_high_freq) return plain;
    if (turns < m->rope_low_freq) return plain / m->rope_factor;
    const double smooth = (turns - m->rope_low_freq) / (m->rope_high_freq - m->rope_low_freq);
    return (1.0 - smooth) * (plain / m->rope_factor) + smooth * plain;
}

static double floor_of(double x) {
    const double whole = (double)(int64_t)x;
    return whole > x ? whole - 1.0 : whole;
}

/* The pairs, as fractions too, from which and up to which frequencies are blended. */
typedef struct yarn_range {
    double low, high;
} yarn_range;

/* The pair that turns so often in the original context. */
static double yarn_pair(const sf_model_desc *m, double turns) {
    const double context = (double)m->rope_original_context;
    return (double)m->head_dim * log_of(context / (turns * TWO_PI)) / (2.0 * log_of(m->rope_theta));
}

static yarn_range yarn_range_of(const sf_model_desc *m) {
    yarn_range r = {yarn_pair(m, m->rope_beta_fast), yarn_pair(m, m->rope_beta_slow)};
    if (!m->rope_exact_range) r = (yarn_range){floor_of(r.low), -floor_of(-r.high)};
    if (r.low < 0.0) r.low = 0.0;
    if (r.high > (double)(m->head_dim - 1)) r.high = (double)(m->head_dim - 1);
    if (r.low == r.high) r.high += 0.001; /* no division by 0 */
    return r;
}

static double yarn_frequency(const sf_model_desc *m, yarn_range r, int i, double plain) {
    const double at = ((double)i - r.low) / (r.high - r.low), ramp = at < 0.0 ? 0.0 : at > 1.0 ? 1.0 : at;
    return plain / m->rope_factor * ramp + plain * (1.0 - ramp);
}

static double yarn_mscale(const sf_model_desc *m, double mscale) {
    return m->rope_factor <= 1.0 ? 1.0 : 0.1 * mscale * log_of(m->rope_factor) + 1.0;
}

static double yarn_attention(const sf_model_desc *m) {
    if (m->rope_attention_factor > 0.0) return m->rope_attention_factor;
    if (m->rope_mscale > 0.0 && m->rope_mscale_all_dim > 0.0)
        return yarn_mscale(m, m->rope_mscale) / yarn_mscale(m, m->rope_mscale_all_dim);
    return yarn_mscale(m, 1.0);
}

void sf_rope_init(const sf_model_desc *m, sf_rope *out) {
    const char *kind = m->rope_kind ? m->rope_kind : "default";
    const bool linear = strcmp(kind, "linear") == 0, llama3 = strcmp(kind, "llama3") == 0,
               yarn = strcmp(kind, "yarn") == 0;
    const yarn_range range = yarn ? yarn_range_of(m) : (yarn_range){0.0, 1.0};
    *out = (sf_rope){.pairs = m->head_dim / 2, .attention = yarn ? yarn_attention(m) : 1.0};
    for (int i = 0; i < out->pairs; i++) {
        const double plain = sf_rope_frequency(m->rope_theta, i, m->head_dim);
        out->freq[i] = linear   ? plain / m->rope_factor
                       : llama3 ? llama3_frequency(m, plain)
                       : yarn   ? yarn_frequency(m, range, i, plain)
                                : plain;
    }
}

/* pi/2 in three pieces of 33, 33 and 53 bits: their products with n < 2^20 are exact but for the last. */
static const double half_pi_1 = 0x1.921fb544p+0, half_pi_2 = 0x1.0b4611a6p-34,
                    half_pi_3 = 0x1.3198a2e037073p-69;

void sf_rope_sincos(double x, double *s, double *c) {
    const int n = (int)(x * 0.63661977236758134 + 0.5);
    const double r = ((x - (double)n * half_pi_1) - (double)n * half_pi_2) - (double)n * half_pi_3;
    const double square = r * r;
    double sine = 1.0, cosine = 1.0; /* Taylor, |r| <= pi/4 */
    for (int k = 18; k >= 2; k -= 2) {
        sine = 1.0 - sine * square / (double)(k * (k + 1));
        cosine = 1.0 - cosine * square / (double)(k * (k - 1));
    }
    const double at[2] = {sine * r, cosine}; /* quarter turns swap them and change signs */
    const int quarter = n & 3;
    *s = quarter >= 2 ? -at[quarter & 1] : at[quarter & 1];
    *c = quarter == 1 || quarter == 2 ? -at[1 - (quarter & 1)] : at[1 - (quarter & 1)];
}

void sf_rope_row(const sf_rope *r, int pos, float *out) {
    for (int i = 0; i < r->pairs; i++) {
        double s, c;
        sf_rope_sincos((double)pos * r->freq[i], &s, &c);
        out[2 * i] = (float)(c * r->attention);
        out[2 * i + 1] = (float)(s * r->attention);
    }
}
