#include "gemm_time.h"

#include <algorithm>
#include <cublasLt.h>
#include <functional>
#include "gemm_device.h"

static const double READ_CEILING = 4.63e12; /* bytes a second, measured */
static const int MAX_ROWS = 4096, ROW_COUNTS[] = {1, 8, 16, 32, 64, 128, 256, 512, 4096};

/* Median of several replays of a graph that work queues, in microseconds. */
static double graph_us(const std::function<void(cudaStream_t)> &work, bool slow) {
    cudaStream_t stream;
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    cudaEvent_t from, to;
    CUDA_OK(cudaStreamCreate(&stream));
    CUDA_OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    work(stream);
    CUDA_OK(cudaStreamEndCapture(stream, &graph));
    CUDA_OK(cudaGraphInstantiate(&exec, graph, 0));
    CUDA_OK(cudaEventCreate(&from));
    CUDA_OK(cudaEventCreate(&to));
    const int each = slow ? 1 : 4;
    for (int i = 0; i < (slow ? 1 : 3); i++) CUDA_OK(cudaGraphLaunch(exec, stream));
    std::vector<double> us;
    for (int r = 0; r < (slow ? 3 : 7); r++) {
        CUDA_OK(cudaEventRecord(from, stream));
        for (int i = 0; i < each; i++) CUDA_OK(cudaGraphLaunch(exec, stream));
        CUDA_OK(cudaEventRecord(to, stream));
        CUDA_OK(cudaEventSynchronize(to));
        float ms;
        CUDA_OK(cudaEventElapsedTime(&ms, from, to));
        us.push_back(ms * 1000.0 / each);
    }
    std::sort(us.begin(), us.end());
    cudaGraphExecDestroy(exec);
    cudaGraphDestroy(graph);
    cudaEventDestroy(from);
    cudaEventDestroy(to);
    cudaStreamDestroy(stream);
    return us[us.size() / 2];
}

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

struct timed_model {
    const gemm_model &m;
    std::vector<gemm_op> ops;                /* layer ops, head */
    std::vector<std::vector<void *>> weights; /* [op][layer] */
    std::vector<void *> in, maps, out;
    device_memory block, space;
    static constexpr size_t SPACE = 64 << 20;
    cublasLtHandle_t lt;
    double bytes = 0;

    explicit timed_model(const gemm_model &model) : m(model), ops(model.layer), block(4096), space(SPACE) {
        ops.push_back(m.head);
        cublasLtCreate(&lt);
        for (size_t i = 0; i < ops.size(); i++) {
            const gemm_op &op = ops[i];
            weights.emplace_back();
            for (int l = 0; l < (i < 4 ? m.layers : 1); l++) {
                const size_t size = op.matrix_bytes() + (size_t)16 * op.blocks() * 2048; /* whole groups of any T */
                weights[i].push_back(allocate(size));
                fill_random(weights[i].back(), size / 2, (unsigned)(l * 8 + i), 0.02f);
                bytes += (double)op.matrix_bytes();
            }
            in.push_back(allocate((size_t)MAX_ROWS * op.k * 2));
            fill_random(in.back(), (size_t)MAX_ROWS * op.k, (unsigned)i + 99, 1.0f);
            maps.push_back(tensor_maps(in.back(), MAX_ROWS, op.k));
            out.push_back(allocate(op.out_bytes(MAX_ROWS)));
            CUDA_OK(cudaMemset(out.back(), 0, op.out_bytes(MAX_ROWS)));
        }
    }
    ~timed_model() {
        cublasLtDestroy(lt);
        for (void *p : owned) cudaFree(p);
        for (void *p : maps) cudaFree(p);
    }
    sf_cuda_args args(size_t op, int layer) const {
        return {(const sf_cuda_block *)block.at, in[op], out[op], weights[op][layer], nullptr, nullptr, maps[op]};
    }
    double ours_us(size_t op, const gemm_kernel &g, int rows) {
        const kernel k = kernel_load(g.name, g.prelude, true);
        const int times = (int)weights[op].size();
        block_write(block.at, rows);
        return graph_us([&](cudaStream_t s) {
                   for (int l = 0; l < times; l++) kernel_launch(k, args(op, l), 0, true, s);
               }, rows > 512) / times;
    }
    double theirs_us(size_t op, int rows) {
        const lt_gemm g(lt, ops[op], rows, SPACE);
        const int times = (int)weights[op].size();
        if (!g.ok) return 0;
        return graph_us([&](cudaStream_t s) {
                   for (int l = 0; l < times; l++) g.run(lt, weights[op][l], in[op], out[op], space.at, SPACE, s);
               }, rows > 512) / times;
    }
    /* A step: four products a layer, then the head. */
    double chain_us(int rows, bool pdl) {
        std::vector<kernel> k;
        for (const gemm_op &op : ops) {
            const gemm_kernel g = gemm_pick(op, rows);
            k.push_back(kernel_load(g.name, g.prelude, true));
        }
        block_write(block.at, rows);
        return graph_us([&](cudaStream_t s) {
            for (int l = 0; l < m.layers; l++)
                for (size_t i = 0; i < 4; i++) kernel_launch(k[i], args(i, l), 0, pdl, s);
            kernel_launch(k[4], args(4, 0), 0, pdl, s);
        }, rows > 512);
    }

  private:
    std::vector<void *> owned;
    void *allocate(size_t size) {
        void *p;
        CUDA_OK(cudaMalloc(&p, size));
        owned.push_back(p);
        return p;
    }
};

/* Other kernels than the picked one, to see whether the pick is right. */
static void time_variants(timed_model &t, size_t op, int rows) {
    const gemm_op &o = t.ops[op];
    std::vector<gemm_kernel> others;
    if (rows > 32 && rows <= 128) others = {wgmma_kernel(o, rows, 2)};
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
        const double pdl = t.chain_us(rows, true), plain = t.chain_us(rows, false);
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
