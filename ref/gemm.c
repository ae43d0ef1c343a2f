#include "ref.h"

#include <math.h>
#include <stddef.h>

void sf_ref_gemm(const float *in, const float *w, const float *bias, int rows, int n, int k, float *out) {
    for (int r = 0; r < rows; r++) {
        for (int j = 0; j < n; j++) {
            float sum = 0;
            for (int i = 0; i < k; i++)
                sum += in[(size_t)r * (size_t)k + (size_t)i] * w[(size_t)j * (size_t)k + (size_t)i];
            out[(size_t)r * (size_t)n + (size_t)j] = bias ? sum + bias[j] : sum;
        }
    }
}

void sf_ref_swiglu(const float *gate, const float *up, int rows, int n, float *out) {
    for (size_t i = 0; i < (size_t)rows * (size_t)n; i++)
        out[i] = gate[i] / (1.0f + expf(-gate[i])) * up[i];
}
