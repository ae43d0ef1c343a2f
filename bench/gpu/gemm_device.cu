#include "gemm_device.h"

static const unsigned PATTERN = 0xffffdeadu; /* a NaN as fp32 and as two bf16 */

__device__ static unsigned mixed(unsigned x) {
    x *= 2654435761u;
    x ^= x >> 15;
    x *= 0x85ebca6bu;
    return x ^ x >> 13;
}

__global__ static void random_kernel(unsigned short *to, size_t count, unsigned seed, float scale) {
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < count; i += (size_t)gridDim.x * blockDim.x) {
        const unsigned h = mixed((unsigned)i + mixed(seed + (unsigned)(i >> 32)));
        const float v = ((float)(h >> 8) / 8388608.0f - 1.0f) * scale;
        to[i] = (unsigned short)((unsigned)__float_as_int(v) >> 16);
    }
}
void fill_random(void *to, size_t count, unsigned seed, float scale) {
    random_kernel<<<2048, 256>>>((unsigned short *)to, count, seed, scale);
    CUDA_OK(cudaGetLastError());
}

void block_write(void *block, int rows) {
    sf_cuda_block b = {};
    b.rows = b.n_logits = rows;
    CUDA_OK(cudaMemcpy(block, &b, sizeof b, cudaMemcpyHostToDevice));
}

__global__ static void mix_rows_kernel(unsigned short *in, const unsigned short *probes, row_mix m, int rows, int k) {
    const int i = (int)blockIdx.x;
    const unsigned short poison[4] = {0x7f80, 0x7fc0, 0xff80, 0xffc0};
    for (int c = (int)threadIdx.x; c < k; c += (int)blockDim.x)
        in[(size_t)i * k + c] = i >= rows       ? (unsigned short)0x7fc0
                                : m.sound(i) ? probes[(size_t)m.probe(i) * k + c]
                                             : poison[(i + c) % 4];
}
void mix_rows(void *in, const void *probes, row_mix m, int rows, int capacity, int k) {
    mix_rows_kernel<<<(unsigned)capacity, 256>>>((unsigned short *)in, (const unsigned short *)probes, m, rows, k);
    CUDA_OK(cudaGetLastError());
}

__global__ static void mix_out_kernel(unsigned *out, const unsigned *start, row_mix m, int rows, size_t words) {
    const int i = (int)blockIdx.x;
    for (size_t c = threadIdx.x; c < words; c += blockDim.x)
        out[(size_t)i * words + c] = i < rows && start ? start[(size_t)m.probe(i) * words + c] : PATTERN;
}
void mix_out(void *out, const void *start, row_mix m, int rows, int capacity, size_t row_bytes) {
    mix_out_kernel<<<(unsigned)capacity, 256>>>((unsigned *)out, (const unsigned *)start, m, rows, row_bytes / 4);
    CUDA_OK(cudaGetLastError());
}

__global__ static void compare_kernel(const unsigned *out, const unsigned *gold, row_mix m, int rows, size_t words,
                                      mix_result *result) {
    const int i = (int)blockIdx.x;
    if (i < rows && !m.sound(i)) return;
    int differs = 0;
    for (size_t c = threadIdx.x; c < words; c += blockDim.x)
        differs |= out[(size_t)i * words + c] != (i < rows ? gold[(size_t)m.probe(i) * words + c] : PATTERN);
    differs = __syncthreads_or(differs);
    if (threadIdx.x == 0) {
        if (i < rows) atomicAdd(&result->sound, 1);
        if (differs) atomicAdd(i < rows ? &result->wrong : &result->spilt, 1);
    }
}
mix_result compare_out(const void *out, const void *gold, row_mix m, int rows, int capacity, size_t row_bytes) {
    device_memory device(sizeof(mix_result));
    CUDA_OK(cudaMemset(device.at, 0, sizeof(mix_result)));
    compare_kernel<<<(unsigned)capacity, 256>>>((const unsigned *)out, (const unsigned *)gold, m, rows, row_bytes / 4,
                                                (mix_result *)device.at);
    CUDA_OK(cudaGetLastError());
    mix_result r;
    CUDA_OK(cudaMemcpy(&r, device.at, sizeof r, cudaMemcpyDeviceToHost));
    return r;
}
