/* A list of launches, run one by one or as a captured graph. */
#ifndef SF_DEVICE_CUDA_GRAPH_H
#define SF_DEVICE_CUDA_GRAPH_H

#include "device/cuda/module.h"
#include "device/cuda/product.h"

/* One launch; the arguments hold nothing that changes between passes. */
typedef struct sf_cuda_step {
    const sf_cuda_kernel *kernel; /* NULL: the product is all */
    sf_cuda_args args;
    int grid;                  /* thread blocks; 0: as many as the kernel asks for */
    const sf_product *product; /* not NULL: cuBLASLt makes it from `made`, before the kernel */
    sf_cuda_args made;
    int rows; /* of the product */
} sf_cuda_step;

typedef struct sf_cuda_graph {
    CUgraphExec exec;
    size_t nodes;
} sf_cuda_graph; /* zero: none */

/* Queues the steps in the GPU's stream. Errors: those of sf_cuda_kernel_launch, the first step's that fails.
 */
SF_CHECKED sf_code sf_cuda_steps_launch(const sf_gpu *gpu, const sf_cuda_step *steps, int n, sf_err *err);

/* Captures the same launches (programmatic edges included), and uploads the graph. Nothing runs. Errors:
 * those of sf_cu_check. */
SF_CHECKED sf_code sf_cuda_graph_capture(const sf_gpu *gpu, const sf_cuda_step *steps, int n,
                                         sf_cuda_graph *out, sf_err *err);
SF_CHECKED sf_code sf_cuda_graph_launch(const sf_gpu *gpu, const sf_cuda_graph *g, sf_err *err);
void sf_cuda_graph_fini(const sf_gpu *gpu, sf_cuda_graph *g); /* a zeroed one is fine */

/* What one run of the steps takes, in microseconds on the GPU's clock: medians of `turns` (1..64) runs each
 * way, taken by turns. It runs the steps 2 * (turns + 1) times. Errors: those of sf_cu_check. */
typedef struct sf_cuda_graph_times {
    double graph_us, eager_us;
} sf_cuda_graph_times;
SF_CHECKED sf_code sf_cuda_graph_time(const sf_gpu *gpu, const sf_cuda_graph *g, const sf_cuda_step *steps,
                                      int n, int turns, sf_cuda_graph_times *out, sf_err *err);

#endif
