#include "ref.h"

#include <math.h>
#include <stddef.h>

void sf_ref_rmsnorm(const float *x, const float *weight, int rows, int k, float eps, float *y) {
    for (int r = 0; r < rows; r++) {
        const float *row = x + (size_t)r * (size_t)k;
        float sum = 0;
        for (int i = 0; i < k; i++)
            sum += row[i] * row[i];
        for (int i = 0; i < k; i++)
            y[(size_t)r * (size_t)k + (size_t)i] = row[i] / sqrtf(sum / (float)k + eps) * weight[i];
    }
}
