#include "ref.h"

#include <stddef.h>

void sf_ref_embed(const float *table, const int32_t *tokens, int rows, int dim, float *x) {
    for (int r = 0; r < rows; r++)
        for (int i = 0; i < dim; i++)
            x[(size_t)r * (size_t)dim + (size_t)i] = table[(size_t)tokens[r] * (size_t)dim + (size_t)i];
}
