#include "gemm_chain.h"

#include <algorithm>

double graph_us(const std::function<void(cudaStream_t)> &work, bool slow) {
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

double chain_model::ours_us(size_t op, const gemm_kernel &g, int rows) {
    const kernel k = kernel_load(g.name, g.prelude, true);
    const int times = (int)weights[op].size();
    block_write(block.at, rows);
    return graph_us([&](cudaStream_t s) {
               for (int l = 0; l < times; l++) kernel_launch(k, args(op, l), 0, true, s);
           }, rows > 512) / times;
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
