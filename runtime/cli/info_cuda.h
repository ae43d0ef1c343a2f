/* What `info` says of a CUDA device. */
#ifndef SF_CLI_INFO_CUDA_H
#define SF_CLI_INFO_CUDA_H

#include "device/cuda/cuda.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

/* Start times, memory, and every shape of pass: {"kernels": ..., "graphs": [{"class", "rows", ...}]}. The
 * caller's; NULL: out of memory. */
json_t *sf_info_cuda_json(const sf_device *cuda);
/* The same for a person; the table of shapes only when asked for. */
void sf_info_cuda_print(const sf_device *cuda, bool shapes);
/* One line for a person at the start: which products a library was to make and does not, and why; nothing
 * where none failed. */
void sf_info_cuda_library_note(const sf_cuda_start *s, FILE *to);

#endif
