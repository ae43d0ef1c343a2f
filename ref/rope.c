#include "ref.h"

#include <math.h>

void sf_ref_rope(float *x, int dim, int pos, const double *freq, double attention) {
    for (int i = 0; i < dim / 2; i++) {
        const double angle = pos * freq[i];
        const float c = (float)(cos(angle) * attention), s = (float)(sin(angle) * attention), u = x[i],
                    v = x[i + dim / 2];
        x[i] = u * c - v * s;
        x[i + dim / 2] = v * c + u * s;
    }
}
