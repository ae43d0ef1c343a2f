#include "gemm_time.h"

#include <algorithm>
#include <cublasLt.h>
#include <memory>
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
    std::function<void(cudaStream_t)> theirs(const lt_gemm &g, size_t op) {
        return [this, &g, op](cudaStream_t s) {
            for (void *w : weights[op]) g.run(lt, w, in[op], out[op], space.at, SPACE, s);
        };
    }
    double theirs_us(size_t op, int rows) {
        const lt_gemm g(lt, ops[op], rows, SPACE);
        return g.ok ? graph_us(theirs(g, op), rows > 512) / (double)weights[op].size() : 0;
    }
};

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
            std::printf("%-8s rows %4d  %-16s %8.1f us  cuBLASLt %8.1f  %5.0f TFLOP/s  %3.0f%% of read ceiling\n", op.name,
                        rows, g.label.c_str(), ours, theirs, tera, share);
            std::fflush(stdout);
            std::snprintf(line, sizeof line,
                          "    {\"model\": \"%s\", \"op\": \"%s\", \"rows\": %d, \"kernel\": \"%s\", \"us\": %.2f, "
                          "\"cublaslt_us\": %.2f},\n", m.name, op.name, rows, g.label.c_str(), ours, theirs);
            *json += line;
        }
}

static const int SHAPE_ROWS[] = {128, 256, 512, 4096};
/* Of a model's layers: passes that are no whole number of large tiles. */
static const int BETWEEN_ROWS[] = {300, 384, 540, 640, 700, 768, 900, 1024, 1300, 1500, 2048, 3000};

/* Beside the picked one. */
static std::vector<gemm_kernel> between(const gemm_op &op, int rows) {
    std::vector<gemm_kernel> all = {wide_kernel(op, 0, 256, 2)};
    for (int most : {512, 1536})
        if (most > 512 || rows <= most) all.push_back(wgmma_kernel(op, most, "chosen"));
    return all;
}

static std::vector<gemm_kernel> shapes(const gemm_op &op, int rows) {
    std::vector<gemm_kernel> all;
    for (const char *pair : {"none", "rows", "weights"})
        for (int features : {0, 128, 192})
            for (int blocks : {1, 2}) {
                const bool weights = pair[0] == 'w', large = rows / 2 / blocks > 128;
                if (rows > 512 || (rows == 512 && !weights) || features / 16 % op.t) continue;
                if ((blocks == 2 && (!weights || rows < 256)) || (features == 192 && (!weights || large))) continue;
                all.push_back(wgmma_kernel(op, rows, pair, features, blocks));
            }
    for (int features : {64, 128})
        for (int tile : {64, 128, 256})
            for (int cluster : {1, 2})
                if (tile <= rows && (rows < 4096 || tile > 64))
                    all.push_back(wide_kernel(op, features, tile, cluster));
    return all;
}

void gemm_shapes_compile(const gemm_model &m) {
    for (size_t i = 0; i <= m.layer.size(); i++)
        for (int rows : SHAPE_ROWS)
            for (const gemm_kernel &g : shapes(i < m.layer.size() ? m.layer[i] : m.head, rows))
                kernel_prepare(g.name, g.prelude);
}

void gemm_between_compile(const gemm_model &m) {
    for (const gemm_op &op : m.layer)
        for (int rows : {512, 513}) {
            kernel_prepare(gemm_pick(op, rows).name, gemm_pick(op, rows).prelude);
            for (const gemm_kernel &g : between(op, rows)) kernel_prepare(g.name, g.prelude);
        }
}

/* A GPU at its power limit is slower after heavy work: all shapes take turns, and the order turns too. */
static std::vector<double> take_turns(const std::vector<std::unique_ptr<timed_graph>> &all, int rows, int turns) {
    std::vector<std::vector<double>> us(all.size());
    std::vector<double> medians;
    for (int turn = 0; turn < turns; turn++)
        for (size_t i = 0; i < all.size(); i++) {
            const size_t at = turn % 2 ? all.size() - 1 - i : i;
            us[at].push_back(all[at]->us(rows > 512 ? 1 : 4));
        }
    for (std::vector<double> &u : us) medians.push_back(median(std::vector<double>(u.begin() + 2, u.end())));
    return medians;
}

/* One line: the picked kernel, cuBLASLt and the fastest of the others. */
static void time_in_turn(timed_model &t, size_t op, int rows, std::vector<gemm_kernel> kernels, int turns, size_t shown) {
    const lt_gemm theirs(t.lt, t.ops[op], rows, t.SPACE);
    kernels.insert(kernels.begin(), gemm_pick(t.ops[op], rows));
    std::vector<std::unique_ptr<timed_graph>> graphs;
    for (const gemm_kernel &g : kernels) graphs.emplace_back(new timed_graph(t.ours(op, g, rows)));
    graphs.emplace_back(new timed_graph(t.theirs(theirs, op)));
    std::vector<double> us = take_turns(graphs, rows, turns);
    for (double &u : us) u /= (double)t.weights[op].size();
    std::printf("%-8s rows %4d  cuBLASLt %.1f  %s %.1f:", t.ops[op].name, rows, us.back(), kernels[0].label.c_str(), us[0]);
    std::vector<std::pair<double, std::string>> tried;
    for (size_t j = 1; j < kernels.size(); j++) tried.emplace_back(us[j], kernels[j].label);
    std::sort(tried.begin(), tried.end());
    for (size_t j = 0; j < tried.size() && j < shown; j++) std::printf(" %s %.1f;", tried[j].second.c_str(), tried[j].first);
    std::printf("\n");
    std::fflush(stdout);
}

void gemm_shapes(const gemm_model &m) {
    timed_model t(m);
    for (size_t i = 0; i < t.ops.size(); i++)
        for (int rows : SHAPE_ROWS) time_in_turn(t, i, rows, shapes(t.ops[i], rows), 12, 7);
}

void gemm_between(const gemm_model &m) {
    timed_model t(m);
    for (size_t i = 0; i < m.layer.size(); i++)
        for (int rows : BETWEEN_ROWS) time_in_turn(t, i, rows, between(t.ops[i], rows), 8, 7);
}
