/* A driver whose GPU is host memory: copies are done, kernels are only counted but for the one that draws
 * weights, and any call can be made to fail. */
#ifndef SF_TESTS_CUDA_FAKE_DRIVER_H
#define SF_TESTS_CUDA_FAKE_DRIVER_H

#include "device/cuda/cu_api.h"

#define FAKE_LAUNCHES_MAX 4096

typedef struct fake_driver {
    size_t memory;                            /* bytes that the GPU has; what is over fails */
    size_t taken;                             /* bytes allocated now */
    int allocs, host_allocs, events, streams; /* alive now */
    int launches, captured, graph_launches, graphs;
    bool capturing;
    unsigned grids[FAKE_LAUNCHES_MAX]; /* of launches and captured launches */
    double graph_ms, eager_ms;         /* what a timed run is said to take */
    bool last_was_graph;
    size_t drawn;  /* bytes by FAKE_DRAW */
    CUresult wait; /* what waiting for an event answers */
} fake_driver;

extern fake_driver fake;

/* The function whose launches draw weights on the host: the parameters of device/cuda/draw.cu. */
#define FAKE_DRAW ((CUfunction)(uintptr_t)&fake.drawn)

/* Clears `fake` and fills the functions that the device uses. */
void fake_driver_init(sf_cu *cu, size_t memory);

#endif
