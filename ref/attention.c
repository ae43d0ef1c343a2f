#include "ref.h"

#include <math.h>
#include <stddef.h>

static float dot(const float *a, const float *b, int n) {
    float sum = 0;
    for (int i = 0; i < n; i++)
        sum += a[i] * b[i];
    return sum;
}

void sf_ref_attention(const float *q, const float *k, const float *v, int positions, int dim, float *out) {
    float max = -INFINITY, sum = 0;
    for (int p = 0; p < positions; p++)
        max = fmaxf(max, dot(q, k + (size_t)p * (size_t)dim, dim));
    for (int i = 0; i < dim; i++)
        out[i] = 0;
    for (int p = 0; p < positions; p++) {
        const float weight = expf(dot(q, k + (size_t)p * (size_t)dim, dim) - max);
        sum += weight;
        for (int i = 0; i < dim; i++)
            out[i] += weight * v[(size_t)p * (size_t)dim + (size_t)i];
    }
    for (int i = 0; i < dim; i++)
        out[i] /= sum;
}
