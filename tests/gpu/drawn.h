/* Random weights drawn on the GPU, beside those of the host. */
#ifndef SF_TESTS_GPU_DRAWN_H
#define SF_TESTS_GPU_DRAWN_H

#include "gpu/kit.h"

/* Checks are counted in k. */
void weights_are_drawn_as_on_the_host(kit *k);

#endif
