#include "gemm_chain.h"

#include <algorithm>

timed_graph::timed_graph(const std::function<void(cudaStream_t)> &work) {
    cudaGraph_t graph;
    CUDA_OK(cudaStreamCreate(&stream));
    CUDA_OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    work(stream);
    CUDA_OK(cudaStreamEndCapture(stream, &graph));
    CUDA_OK(cudaGraphInstantiate(&exec, graph, 0));
    CUDA_OK(cudaGraphDestroy(graph));
    CUDA_OK(cudaEventCreate(&from));
    CUDA_OK(cudaEventCreate(&to));
}
timed_graph::~timed_graph() {
    cudaGraphExecDestroy(exec);
    cudaEventDestroy(from);
    cudaEventDestroy(to);
    cudaStreamDestroy(stream);
}
double timed_graph::us(int times) {
    float ms;
    CUDA_OK(cudaEventRecord(from, stream));
    for (int i = 0; i < times; i++) CUDA_OK(cudaGraphLaunch(exec, stream));
    CUDA_OK(cudaEventRecord(to, stream));
    CUDA_OK(cudaEventSynchronize(to));
    CUDA_OK(cudaEventElapsedTime(&ms, from, to));
    return ms * 1000.0 / times;
}

double median(std::vector<double> v) {
    std::sort(v.begin(), v.end());
    return v[v.size() / 2];
}

double graph_us(const std::function<void(cudaStream_t)> &work, bool slow) {
    timed_graph g(work);
    std::vector<double> us;
    g.us(slow ? 1 : 3);
    for (int r = 0; r < (slow ? 3 : 7); r++) us.push_back(g.us(slow ? 1 : 4));
    return median(us);
}

chain_model::chain_model(const gemm_model &model) : m(model), ops(model.layer), block(4096) {
    ops.push_back(m.head);
    for (size_t i = 0; i < ops.size(); i++) {
        const gemm_op &op = ops[i];
        weights.emplace_back();
        for (int l = 0; l < (i < 4 ? m.layers : 1); l++) {
            const size_t size = op.matrix_bytes() + (size_t)16 * op.blocks() * 2048; /* whole groups of any T */
            weights[i].push_back(allocate(size));
            fill_random(weights[i].back(), size / 2, (unsigned)(l * 8) + (unsigned)i, 0.02f);
            bytes += (double)op.matrix_bytes();
        }
        in.push_back(allocate((size_t)MAX_ROWS * op.k * 2));
        fill_random(in.back(), (size_t)MAX_ROWS * op.k, (unsigned)i + 99, 1.0f);
        maps.push_back(tensor_maps(in.back(), MAX_ROWS, op.k));
        out.push_back(allocate((size_t)MAX_ROWS * op.n * 4)); /* cuBLASLt writes gates and ups apart */
        CUDA_OK(cudaMemset(out.back(), 0, op.out_bytes(MAX_ROWS)));
    }
}

chain_model::~chain_model() {
    for (void *p : owned) cudaFree(p);
    for (void *p : maps) cudaFree(p);
}

void *chain_model::allocate(size_t size) {
    void *p;
    CUDA_OK(cudaMalloc(&p, size));
    owned.push_back(p);
    return p;
}

std::function<void(cudaStream_t)> chain_model::ours(size_t op, const gemm_kernel &g, int rows) {
    const kernel k = kernel_load(g.name, g.prelude, true);
    block_write(block.at, rows);
    return [this, op, k](cudaStream_t s) {
        for (int l = 0; l < (int)weights[op].size(); l++) kernel_launch(k, args(op, l), 0, true, s);
    };
}

double chain_model::ours_us(size_t op, const gemm_kernel &g, int rows) {
    return graph_us(ours(op, g, rows), rows > 512) / (double)weights[op].size();
}

double chain_model::chain_us(const std::vector<gemm_kernel> &g, int rows, bool pdl) {
    std::vector<kernel> k;
    for (const gemm_kernel &of : g) k.push_back(kernel_load(of.name, of.prelude, true));
    block_write(block.at, rows);
    return graph_us([&](cudaStream_t s) {
        for (int l = 0; l < m.layers; l++)
            for (size_t i = 0; i < 4; i++) kernel_launch(k[i], args(i, l), 0, pdl, s);
        kernel_launch(k[4], args(4, 0), 0, pdl, s);
    }, rows > 512);
}
