/* The matrix products of two models, and which kernel serves how many rows of each. */
#ifndef SF_BENCH_GPU_GEMM_OPS_H
#define SF_BENCH_GPU_GEMM_OPS_H

#include <string>
#include <vector>
#include "kernel.h"

enum epilogue { STORE, ADD, SWIGLU };

struct gemm_op {
    const char *name;
    int n, k; /* n: weight rows, gate and up together */
    epilogue ep;
    int t; /* tiles of a group: the packing */
    bool bias = false, stores_bf16 = false;

    bool out_bf16() const { return ep == SWIGLU || stores_bf16; }
    int tiles() const { return ep == SWIGLU ? (n / 2 + 7) / 8 : (n + 15) / 16; }
    int groups() const { return (tiles() + t - 1) / t; }
    int blocks() const { return k > 192 ? (k + 63) / 64 : 4; }
    size_t packed_bytes() const { return (size_t)groups() * blocks() * t * 2048; }
    size_t matrix_bytes() const { return (size_t)n * k * 2; }
    int columns() const { return ep == SWIGLU ? n / 2 : n; }
    size_t out_bytes(int rows) const { return (size_t)rows * columns() * (out_bf16() ? 2 : 4); }
};

struct gemm_model {
    const char *name;
    int layers;
    std::vector<gemm_op> layer; /* qkv, o, gate_up, down */
    gemm_op head;
};

/* A kernel of the family: template and prelude. */
struct gemm_kernel {
    std::string name, prelude, label;
    int rows; /* of its tile */
};

gemm_kernel mma_kernel(const gemm_op &op, int rows);
/* Parameters of gemm_fast_rows; 0: as the template chooses. */
struct fast_shape {
    int tiles, shares, split, ctas, copy_kib;
};
gemm_kernel fast_kernel(const gemm_op &op, int rows, fast_shape s);
/* pair: what two CTAs share: chosen (by the template), none, rows or weights; features of a CTA and shares of
 * the rows, 0: as it chooses */
gemm_kernel wgmma_kernel(const gemm_op &op, int rows, const char *pair, int features = 0, int row_blocks = 0);
/* features 0: as the template chooses */
gemm_kernel wide_kernel(const gemm_op &op, int features, int rows, int cluster);
/* The one that the family offers for so many rows. */
gemm_kernel gemm_pick(const gemm_op &op, int rows);
/* The same in the fast class, whose own kernel serves up to FAST_ROWS rows. */
enum { FAST_ROWS = 32 };
gemm_kernel gemm_pick_fast(const gemm_op &op, int rows);
std::string pack_prelude(const gemm_op &op);

/* Products with biases (Qwen2.5's and others), and those that store bf16: checked, not timed. */
const std::vector<gemm_op> &gemm_variants();
const gemm_model &llama_8b();
const gemm_model &smollm2_135m();

#endif
