/* Reads a kernel's exported launch constant from a cubin, on a machine without a GPU. */
#ifndef SF_TESTS_NVRTC_LAUNCH_H
#define SF_TESTS_NVRTC_LAUNCH_H

#include <stdbool.h>
#include <stddef.h>

#include "device/cuda/pass_block.h"

/* False where the image holds no symbol `<kernel>_launch` of that size. */
bool launch_of(const void *image, size_t size, const char *kernel, sf_cuda_launch *out);

#endif
