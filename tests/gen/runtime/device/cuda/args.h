/* The launch of a kernel of tests/gen/templates. */
#ifndef ARGS_H
#define ARGS_H

typedef struct sf_cuda_args {
    const void *in;
} sf_cuda_args;

typedef struct sf_cuda_launch {
    int a, b, c;
} sf_cuda_launch;

#endif
