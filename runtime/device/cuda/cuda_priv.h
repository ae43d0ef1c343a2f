/* The CUDA device's fields, shared by cuda.c, memory.c, kernels.c, shapes.c and sink.c. */
#ifndef SF_DEVICE_CUDA_CUDA_PRIV_H
#define SF_DEVICE_CUDA_CUDA_PRIV_H

#include "device/cuda/block.h"
#include "device/cuda/cublaslt.h"
#include "device/cuda/cuda.h"
#include "device/cuda/nvrtc.h"

#define SF_CUDA_ALLOCS_MAX 64
#define SF_CUDA_PARTS_MAX  256
#define SF_CUDA_FLIGHTS    2

/* A class, a row bucket and a logit-row bucket: the launches that make such a pass. */
typedef struct sf_cuda_shape {
    sf_cuda_shape_info info;
    sf_cuda_step *steps;  /* [info.kernels] */
    sf_cuda_step *served; /* the same, some of them by a library, launched one by one; NULL: none */
    int finishing;        /* kernels of served that finish a library's product: launches over info.kernels */
    int *ops;             /* [info.kernels]: the plan's op that a step runs */
    sf_cuda_graph graph;  /* of steps: a graph would hold the row count that a library is asked for */
} sf_cuda_shape;

/* An op that cuBLASLt may serve: its weight's copy in rows, and where it was faster. */
typedef struct sf_cuda_offer {
    int op;
    sf_product product;
    CUdeviceptr copy; /* [layers][layer_bytes]; 0: never used, not kept */
    size_t layer_bytes;
    CUdeviceptr scratch;         /* bf16 [max_rows, n], what a kernel finishes; 0: none */
    sf_cuda_library_info *found; /* [n_found], by row bucket */
    int n_found;
    bool failed; /* not for want of speed */
} sf_cuda_offer;

#define SF_CUDA_OFFERS_MAX 16

typedef struct sf_cuda_library {
    sf_cublaslt lt;
    cublasLtHandle handle;
    CUdeviceptr workspace;
    sf_cuda_offer offers[SF_CUDA_OFFERS_MAX];
    int n;
    sf_err why;  /* the first offer's that failed */
    bool unused; /* switched off by sf_cuda_library_use */
} sf_cuda_library;

/* One thread's way of weights to the GPU: pinned memory, filled while the copy before is under way. */
typedef struct sf_cuda_stage {
    CUstream stream;
    CUevent done[2];
    void *mem[2]; /* pinned, STAGE_BYTES each */
    int next;
} sf_cuda_stage;

/* A pass on its way: what the copies in the stream read and write. */
typedef struct sf_cuda_flight {
    void *block;         /* pinned [caps.bytes] */
    sf_row_out *results; /* pinned [max_logit_rows] */
    CUevent from, to;
    const sf_pass *pass;
} sf_cuda_flight;

typedef struct sf_cuda {
    sf_device base;
    sf_cuda_config cfg;
    sf_cu cu;
    sf_gpu gpu;
    sf_nvrtc nvrtc;
    sf_cuda_kernel *kernels; /* [plan->n_kernels] */
    char identity[65];
    sf_cuda_start start;
    sf_cuda_counts counts;

    CUdeviceptr allocs[SF_CUDA_ALLOCS_MAX]; /* everything below, to be freed */
    int n_allocs;
    CUdeviceptr buf[SF_BUF_COUNT];
    CUdeviceptr maps[SF_BUF_COUNT]; /* tensor maps of bf16 buffers; 0: none */
    CUdeviceptr rope, workspace, weights, kv, block, results, drawn;
    size_t kv_layer_bytes, kv_page_bytes; /* of a layer's pool; of a page in it */
    const sf_weights *loaded;             /* during sf_cuda_ready: where weights lie */
    sf_cuda_stage stages[SF_CUDA_PARTS_MAX];
    sf_cuda_kernel drawing; /* of random weights, while they are loaded */

    sf_cuda_block_caps caps;
    sf_cuda_flight flights[SF_CUDA_FLIGHTS];
    int first_flight, n_flights; /* those in flight, in the order they were queued */

    sf_cuda_shape *shapes;
    int n_shapes;
    bool force_eager;
    sf_cuda_library library;

    uint16_t *kv_cache; /* [layers][a page of a layer]: the page that was read last */
    int kv_cache_page;  /* -1: none */
} sf_cuda;

extern const sf_device_ops sf_cuda_ops;

/* Device memory for the device's life. what names it in errors. Errors: SF_NOMEM with the size. */
SF_CHECKED sf_code sf_cuda_get(sf_cuda *d, const char *what, size_t bytes, bool zero, CUdeviceptr *out,
                               sf_err *err);
/* All but the weights: KV, activations and their tensor maps, the pass block, results. */
SF_CHECKED sf_code sf_cuda_memory_open(sf_cuda *d, sf_err *err);
void sf_cuda_memory_close(sf_cuda *d);

SF_CHECKED sf_code sf_cuda_kernels_open(sf_cuda *d, sf_err *err);
void sf_cuda_kernels_close(sf_cuda *d);
/* The kernel that draws random weights; it enters no fingerprint: the weights' hash tells what it drew. */
SF_CHECKED sf_code sf_cuda_drawing_open(sf_cuda *d, sf_err *err);

SF_CHECKED sf_code sf_cuda_shapes_open(sf_cuda *d, sf_err *err);
void sf_cuda_shapes_close(sf_cuda *d);
/* The shape that serves such a pass; never NULL for a pass that sf_pass_check let through. */
sf_cuda_shape *sf_cuda_shape_find(sf_cuda *d, sf_class cls, int rows, int logits);
SF_CHECKED sf_code sf_cuda_shape_launch(sf_cuda *d, sf_cuda_shape *s, int rows, sf_err *err);
/* The steps of such a pass of `rows` rows if they are launched one by one. */
const sf_cuda_step *sf_cuda_shape_steps(const sf_cuda *d, sf_cuda_shape *s, int rows);

/* Finds out which ops a library serves faster, with the shapes' graphs captured. What is not there, or too
 * large, is no error. Errors: SF_DEVICE, when the GPU is lost. */
SF_CHECKED sf_code sf_cuda_library_open(sf_cuda *d, sf_err *err);
/* Once it is known which shapes are served: keeps what they use, and fills in the start's record. */
void sf_cuda_library_keep(sf_cuda *d);
void sf_cuda_library_close(sf_cuda *d);
/* The offer that serves op in passes of that row bucket, or NULL. */
const sf_cuda_offer *sf_cuda_offer_find(const sf_cuda *d, int op, int bucket);
/* A step of the op's product by the library; own: the step whose place it takes. */
sf_cuda_step sf_cuda_offer_step(const sf_cuda *d, const sf_cuda_offer *o, const sf_cuda_step *own, int layer,
                                int rows);

void sf_cuda_stages_close(sf_cuda *d);

#endif
