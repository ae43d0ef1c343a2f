/* What the GPU checks share: a template becomes a kernel as the runtime does it (prelude replaced, NVRTC,
 * include-free), pass blocks, launches with programmatic dependence, timing by replayed graphs. C++17,
 * runtime API; any failure ends the program with a message. */
#ifndef BENCH_GPU_HARNESS_H
#define BENCH_GPU_HARNESS_H

#include "device/cuda/pass_block.h"

#include <cuda_runtime.h>
#include <functional>
#include <map>
#include <string>
#include <vector>

#define CUDA(x) harness_check((x), #x, __FILE__, __LINE__)
void harness_check(cudaError_t e, const char *what, const char *file, int line);

using params = std::map<std::string, std::string>;

struct gpu_kernel {
    std::string name;
    cudaKernel_t fn = nullptr;
    sf_cuda_launch launch = {};
    int registers = 0, spilled = 0;
};

/* template_file: under templates/; its parameters but for `values` keep their defaults. COMPILE_ONLY in the
 * environment: no GPU is touched. shaped: it exports its launch shape. */
gpu_kernel kernel_build(const std::string &template_file, const params &values, bool shaped = true);
/* A file under ref/cuda/ behind the prelude of a template. */
gpu_kernel kernel_build_ref(const std::string &ref_file, const std::string &entry,
                            const std::string &template_file, const params &values,
                            const std::string &defines = "");

/* With the launch shape that the kernel exports; or (references) with this one. */
void kernel_launch(const gpu_kernel &k, const sf_cuda_args &a, cudaStream_t stream = 0);
void kernel_launch_as(const gpu_kernel &k, dim3 grid, int threads, const sf_cuda_args &a);

/* Host image of a pass block. */
struct pass_image {
    std::vector<int> tokens, positions, row_segs, logit_rows, fresh, pool;
    std::vector<sf_cuda_segment> segs;
    std::vector<sf_cuda_sample> samples;
    void add_segment(int rows, int pos0, const std::vector<int> &pages);
    sf_cuda_block *upload(sf_cuda_block *reuse = nullptr) const; /* device memory of at most 4 MiB */
};

/* Median microseconds of one of n launches that `body` queues, in a replayed graph. */
double graph_us(int n, const std::function<void(cudaStream_t, int)> &body);

void *device_alloc(size_t bytes, int fill = 0xff);
/* Random normal values with a seed: bf16 or fp32. */
void fill_bf16(void *p, size_t n, unsigned seed, float scale);
void fill_f32(void *p, size_t n, unsigned seed, float scale);
/* Elements of 2 or 4 bytes that differ. */
size_t count_different(const void *a, const void *b, size_t bytes);
/* |a - b| / |b| over the first n; a bf16 or fp32, b fp32. NaN in a counts as 1e9. */
double relative_error(const void *a, bool a_bf16, const float *b, size_t n);

extern int harness_failed;
void expect(bool ok, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
