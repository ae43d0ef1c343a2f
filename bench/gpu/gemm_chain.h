/* A model's matrix products with random weights, timed as replayed graphs: one of them over all layers, or a
 * step's chain. */
#ifndef SF_BENCH_GPU_GEMM_CHAIN_H
#define SF_BENCH_GPU_GEMM_CHAIN_H

#include <functional>
#include "gemm_device.h"
#include "gemm_ops.h"

enum { MAX_ROWS = 4096 };

/* A graph that work queues. */
struct timed_graph {
    explicit timed_graph(const std::function<void(cudaStream_t)> &work);
    timed_graph(const timed_graph &) = delete;
    ~timed_graph();
    double us(int times); /* microseconds of one of so many replays */

  private:
    cudaStream_t stream;
    cudaGraphExec_t exec;
    cudaEvent_t from, to;
};

double median(std::vector<double> v);
/* Median of several replays of a graph that work queues, in microseconds. */
double graph_us(const std::function<void(cudaStream_t)> &work, bool slow);

struct chain_model {
    const gemm_model &m;
    std::vector<gemm_op> ops;                 /* layer ops, head */
    std::vector<std::vector<void *>> weights; /* [op][layer] */
    std::vector<void *> in, maps, out;
    device_memory block;
    double bytes = 0; /* of weights in a step */

    explicit chain_model(const gemm_model &model);
    chain_model(const chain_model &) = delete;
    ~chain_model();
    sf_cuda_args args(size_t op, int layer) const {
        return {(const sf_cuda_block *)block.at,
                in[op],
                out[op],
                weights[op][(size_t)layer],
                nullptr,
                nullptr,
                maps[op]};
    }
    /* One product of every layer in turn, as work of a graph; the number of rows holds until the next call.
     */
    std::function<void(cudaStream_t)> ours(size_t op, const gemm_kernel &g, int rows);
    /* One of them. */
    double ours_us(size_t op, const gemm_kernel &g, int rows);
    /* A step, one kernel an op: four products a layer, then the head. */
    double chain_us(const std::vector<gemm_kernel> &g, int rows, bool pdl);

  private:
    std::vector<void *> owned;
    void *allocate(size_t size);
};

#endif
