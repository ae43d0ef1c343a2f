/* The CUDA device: the plan's kernels compiled at start, one graph per class, row bucket and logit-row
 * bucket, passes queued in one stream. Opened in three steps, since packed weights go straight to the GPU:
 * sf_cuda_open, loading with sf_cuda_sink, sf_cuda_ready. */
#ifndef SF_DEVICE_CUDA_CUDA_H
#define SF_DEVICE_CUDA_CUDA_H

#include "device/cuda/graph.h"
#include "device/device.h"
#include "model/weights.h"

typedef struct sf_cuda_config {
    int ordinal;       /* GPU, from 0 */
    int n_pages;       /* KV pages of the pool */
    int max_seqs;      /* sequences whose pages, histories and biases one pass can hold */
    int threads;       /* to compile with, and of the pool that loads the weights; 1..256 */
    const char *cache; /* directory of compiled kernels; NULL: the default (cache.h) */
} sf_cuda_config;

/* What the start took, and what it found. */
typedef struct sf_cuda_start {
    int kernels, cached, graphs;
    double compile_s, graphs_s;
    size_t weight_bytes, kv_bytes, buffer_bytes; /* on the GPU */
    char note[240];                              /* about the cache of compiled kernels; "" for none */
    size_t library_bytes;   /* on the GPU: copies of weights, and what its products work in */
    size_t library_version; /* cuBLASLt's: 10000 * major + 100 * minor + patch; 0: none is used */
    double library_s;
    char library_note[240]; /* ops that failed with the plan's library, and the first reason: "o, down: ...";
                               the others it may serve. "" for none: slower is no failure */
} sf_cuda_start;

/* One shape of pass: how it is launched and why. */
typedef struct sf_cuda_shape_info {
    sf_class cls;
    int rows, logits; /* the buckets; logits 0: no logit rows */
    int kernels;      /* launches of a pass by our own kernels alone */
    int library; /* of these by a library, where the shape is not launched as a graph; some are finished by
                    a kernel, which is one launch more */
    bool graph;  /* false: launched one by one, which was faster */
    bool timed;  /* graph_us and eager_us were measured; other shapes follow the nearest that was */
    double graph_us, eager_us;
} sf_cuda_shape_info;

/* Opens the GPU, compiles and loads the plan's kernels, takes the memory for KV and activations. Thread: the
 * one that will launch. Errors: SF_UNSUPPORTED (no driver, no NVRTC, another architecture, not a cuda plan),
 * SF_NOMEM with the sizes, SF_FORMAT (a kernel does not compile), SF_DEVICE. */
SF_CHECKED sf_code sf_cuda_open(const sf_plan *plan, const sf_cuda_config *cfg, sf_device **out, sf_err *err);

/* Takes packed weights: a loader's sink, for at most cfg.threads parts. Valid while the device is. */
sf_weights_sink sf_cuda_sink(sf_device *d);

/* After the weights have been loaded through the sink: builds, captures and times the graphs. w is only read
 * here. Errors: SF_NOMEM, SF_DEVICE. */
SF_CHECKED sf_code sf_cuda_ready(sf_device *d, const sf_weights *w, sf_err *err);

/* Everything of this machine that may change a pinned bit, for the fingerprint: SHA-256 (hex) over the
 * compiled kernels of the pinned class, the compiler's build and the architecture. */
const char *sf_cuda_identity(const sf_device *d);
sf_cuda_start sf_cuda_start_get(const sf_device *d);
/* Shape i of those the device holds; false past the last. */
bool sf_cuda_shape_get(const sf_device *d, int i, sf_cuda_shape_info *out);

/* What was measured of an op that a library may serve in the fast class, in one row bucket. */
typedef struct sf_cuda_library_info {
    const char *library, *op;
    int rows;                  /* the bucket */
    double own_us, library_us; /* one launch */
    bool used;                 /* faster, and so were the bucket's passes than their graphs */
} sf_cuda_library_info;
/* Measurement i; false past the last. */
bool sf_cuda_library_get(const sf_device *d, int i, sf_cuda_library_info *out);
/* Own kernels alone from now on, or libraries where the start chose them. Benches: both in one process. */
void sf_cuda_library_use(sf_device *d, bool use);

/* What one op of a pass takes: its kernels of all layers queued back to back in a graph of their own, median
 * of `turns` (1..64) runs. op is an index into the plan's ops; the pass is filled in as if it were launched,
 * and its KV is overwritten. */
typedef struct sf_cuda_op_time {
    const char *op, *kernel; /* kernel NULL: none at so few rows */
    int launches;
    double us; /* one launch */
} sf_cuda_op_time;
SF_CHECKED sf_code sf_cuda_op_time_get(sf_device *d, const sf_pass *pass, int op, int turns,
                                       sf_cuda_op_time *out, sf_err *err);

/* Launches one by one from now on, or as the start chose. Selftest: the bits must be the same. */
void sf_cuda_force_eager(sf_device *d, bool eager);
/* What passes cost the host since the device was ready: launches (a graph is one; a library's product and
 * the kernel that finishes it are two), copies queued, waits for the GPU, and memory taken. */
typedef struct sf_cuda_counts {
    int64_t passes, launches, copies, waits, allocations;
    int64_t library; /* launches that a library made */
} sf_cuda_counts;
sf_cuda_counts sf_cuda_counts_get(const sf_device *d);
/* Reads or writes bytes of the packed weights on the GPU. Selftest: a poisoned neighbour. Errors: SF_DEVICE.
 */
SF_CHECKED sf_code sf_cuda_weights_read(sf_device *d, size_t offset, void *to, size_t bytes, sf_err *err);
SF_CHECKED sf_code sf_cuda_weights_write(sf_device *d, size_t offset, const void *from, size_t bytes,
                                         sf_err *err);

#endif
