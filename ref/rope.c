#include "ref.h"

#include <math.h>

void sf_ref_rope(float *x, int dim, int pos, double theta) {
    for (int i = 0; i < dim / 2; i++) {
        const double angle = pos * pow(theta, -2.0 * i / dim);
        const float c = (float)cos(angle), s = (float)sin(angle), u = x[i], v = x[i + dim / 2];
        x[i] = u * c - v * s;
        x[i + dim / 2] = v * c + u * s;
    }
}
