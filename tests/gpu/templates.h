/* The CUDA templates as they stand: compiled through the disk cache, found again in it, and loaded. */
#ifndef SF_TESTS_GPU_TEMPLATES_H
#define SF_TESTS_GPU_TEMPLATES_H

#include "gpu/kit.h"

/* names [n]: files of templates/cuda without their ending. Checks are counted in k. */
void templates_work(kit *k, char **names, int n);

#endif
