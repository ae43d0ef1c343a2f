/* Device buffers and the small kernels around the measured ones. */
#ifndef SF_BENCH_GPU_GEMM_DEVICE_H
#define SF_BENCH_GPU_GEMM_DEVICE_H

#include "kernel.h"

/* Device memory of a scope. */
struct device_memory {
    void *at = nullptr;
    explicit device_memory(size_t bytes) { CUDA_OK(cudaMalloc(&at, bytes)); }
    device_memory(const device_memory &) = delete;
    ~device_memory() { cudaFree(at); }
};

/* count bf16 values, uniform in [-scale, scale]. */
void fill_random(void *to, size_t count, unsigned seed, float scale);
/* A pass block of so many rows, in device memory; rows serve as logit rows too. */
void block_write(void *block, int rows);

/* Rows of in (bf16, k wide): row i is probe (i * step + shift) % n_probes, or poison where kept is 1 and i %
 * 2 is not parity: infinities and NaNs in turn. Rows from rows to capacity are NaN. */
struct row_mix {
    int n_probes, step, shift, kept, parity;
    __host__ __device__ int probe(int i) const { return (i * step + shift) % n_probes; }
    __host__ __device__ bool sound(int i) const { return !kept || i % 2 == parity; }
};
void mix_rows(void *in, const void *probes, row_mix m, int rows, int capacity, int k);
/* Output rows before the product: start[probe] (residual), or a pattern that no product gives where start is
 * NULL; rows past `rows` always hold the pattern. row_bytes: of one output row. */
void mix_out(void *out, const void *start, row_mix m, int rows, int capacity, size_t row_bytes);
/* Rows whose bytes are not those of gold[probe], and rows past `rows` that lost the pattern. */
struct mix_result {
    int sound, wrong, spilt;
};
mix_result compare_out(const void *out, const void *gold, row_mix m, int rows, int capacity,
                       size_t row_bytes);

#endif
