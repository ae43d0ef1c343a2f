#include "gemm_time.h"

#include <cublasLt.h>
#include "gemm_chain.h"

static const double READ_CEILING = 4.63e12; /* bytes a second, measured */
static const int ROW_COUNTS[] = {1, 8, 16, 32, 64, 128, 256, 512, 4096};

/* cuBLASLt's own choice: bf16 [rows, k] x bf16 [n, k] -> bf16 [rows, n]. */
struct lt_gemm {
    cublasLtMatmulDesc_t desc;
    cublasLtMatrixLayout_t w, x, y;
    cublasLtMatmulHeuristicResult_t best;
    bool ok;

    lt_gemm(cublasLtHandle_t lt, const gemm_op &op, int rows, size_t space) {
        const cublasOperation_t transposed = CUBLAS_OP_T;
        cublasLtMatmulDescCreate(&desc, CUBLAS_COMPUTE_32F, CUDA_R_32F);
        cublasLtMatmulDescSetAttribute(desc, CUBLASLT_MATMUL_DESC_TRANSA, &transposed, sizeof transposed);
        cublasLtMatrixLayoutCreate(&w, CUDA_R_16BF, (uint64_t)op.k, (uint64_t)op.n, op.k);
        cublasLtMatrixLayoutCreate(&x, CUDA_R_16BF, (uint64_t)op.k, (uint64_t)rows, op.k);
        cublasLtMatrixLayoutCreate(&y, CUDA_R_16BF, (uint64_t)op.n, (uint64_t)rows, op.n);
        cublasLtMatmulPreference_t preference;
        cublasLtMatmulPreferenceCreate(&preference);
        cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &space, sizeof space);
        int found = 0;
        cublasLtMatmulAlgoGetHeuristic(lt, desc, w, x, y, y, preference, 1, &best, &found);
        cublasLtMatmulPreferenceDestroy(preference);
        ok = found > 0;
    }
    ~lt_gemm() {
        cublasLtMatmulDescDestroy(desc);
        for (cublasLtMatrixLayout_t l : {w, x, y}) cublasLtMatrixLayoutDestroy(l);
    }
    void run(cublasLtHandle_t lt, const void *weight, const void *in, void *out, void *space, size_t bytes,
             cudaStream_t s) const {
        const float one = 1.0f, zero = 0.0f;
        if (cublasLtMatmul(lt, desc, &one, weight, w, in, x, &zero, out, y, out, y, &best.algo, space, bytes, s) !=
            CUBLAS_STATUS_SUCCESS) {
            std::fprintf(stderr, "cublasLtMatmul failed\n");
            std::exit(1);
        }
    }
};

struct timed_model : chain_model {
    device_memory space;
    static constexpr size_t SPACE = 64 << 20;
    cublasLtHandle_t lt;

    explicit timed_model(const gemm_model &model) : chain_model(model), space(SPACE) { cublasLtCreate(&lt); }
    ~timed_model() { cublasLtDestroy(lt); }
    double theirs_us(size_t op, int rows) {
        const lt_gemm g(lt, ops[op], rows, SPACE);
        const int times = (int)weights[op].size();
        if (!g.ok) return 0;
        return graph_us([&](cudaStream_t s) {
                   for (int l = 0; l < times; l++) g.run(lt, weights[op][l], in[op], out[op], space.at, SPACE, s);
               }, rows > 512) / times;
    }
};

/* Other kernels than the picked one, to see whether the pick is right. */
static void time_variants(timed_model &t, size_t op, int rows) {
    const gemm_op &o = t.ops[op];
    std::vector<gemm_kernel> others;
    if (rows == 128)
        for (const char *pair : {"none", "rows"}) others.push_back(wgmma_kernel(o, rows, pair));
    /* the same kernel on another packing: any sizes are read from the same random bytes */
    for (int tiles : {2, 4}) {
        gemm_op other = o;
        other.t = tiles;
        const bool fits = tiles * 2 >= o.t && tiles <= o.t * 2 && tiles != o.t;
        if (rows >= 8 && rows <= 128 && o.k > 2048 && fits) {
            others.push_back(gemm_pick(other, rows));
            others.back().label += "t" + std::to_string(tiles);
        }
    }
    for (const gemm_kernel &g : others) std::printf("  %s %.1f", g.label.c_str(), t.ours_us(op, g, rows));
}

void gemm_time(const gemm_model &m, std::string *json) {
    timed_model t(m);
    char line[256];
    for (int rows : ROW_COUNTS) {
        std::vector<gemm_kernel> g;
        for (const gemm_op &op : t.ops) g.push_back(gemm_pick(op, rows));
        const double pdl = t.chain_us(g, rows, true), plain = t.chain_us(g, rows, false);
        std::printf("%s step, all products, rows %4d: %.3f ms (plain launches %.3f), floor %.3f, %.0f TFLOP/s\n", m.name,
                    rows, pdl / 1e3, plain / 1e3, t.bytes / READ_CEILING * 1e3, t.bytes * rows / pdl / 1e6);
        std::fflush(stdout);
        std::snprintf(line, sizeof line,
                      "    {\"model\": \"%s\", \"op\": \"step\", \"rows\": %d, \"us\": %.1f, \"plain_us\": %.1f},\n",
                      m.name, rows, pdl, plain);
        *json += line;
    }
    for (size_t i = 0; i < t.ops.size(); i++)
        for (int rows : ROW_COUNTS) {
            const gemm_op &op = t.ops[i];
            const gemm_kernel g = gemm_pick(op, rows);
            const double ours = t.ours_us(i, g, rows), theirs = t.theirs_us(i, rows);
            const double tera = 2e-6 * op.n * op.k * rows / ours, share = (double)op.matrix_bytes() / READ_CEILING / ours * 1e8;
            std::printf("%-8s rows %4d  %-16s %8.1f us  cuBLASLt %8.1f  %5.0f TFLOP/s  %3.0f%% of read ceiling", op.name,
                        rows, g.label.c_str(), ours, theirs, tera, share);
            time_variants(t, i, rows);
            std::printf("\n");
            std::fflush(stdout);
            std::snprintf(line, sizeof line,
                          "    {\"model\": \"%s\", \"op\": \"%s\", \"rows\": %d, \"kernel\": \"%s\", \"us\": %.2f, "
                          "\"cublaslt_us\": %.2f},\n", m.name, op.name, rows, g.label.c_str(), ours, theirs);
            *json += line;
        }
}
