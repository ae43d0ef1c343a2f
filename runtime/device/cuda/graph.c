#include "device/cuda/graph.h"

#include <assert.h>
#include <stdbool.h>
#include <stdlib.h>

#define TURNS_MAX 64

sf_code sf_cuda_steps_launch(const sf_gpu *gpu, const sf_cuda_step *steps, int n, sf_err *err) {
    for (int i = 0; i < n; i++) {
        if (steps[i].product)
            SF_TRY(sf_product_run(steps[i].product, steps[i].rows, &steps[i].made, gpu->stream, err));
        if (!steps[i].kernel) continue;
        sf_cuda_kernel k = *steps[i].kernel;
        if (steps[i].grid > 0) k.launch.grid = steps[i].grid;
        SF_TRY(sf_cuda_kernel_launch(gpu, &k, &steps[i].args, err));
    }
    return SF_OK;
}

static sf_code instantiate(const sf_gpu *gpu, CUgraph graph, sf_cuda_graph *out, sf_err *err) {
    sf_cu *cu = gpu->cu;
    sf_cuda_graph g = {0};
    SF_TRY(sf_cu_check(cu, cu->cuGraphGetNodes(graph, NULL, &g.nodes), "cuGraphGetNodes", NULL, SF_SRC, err));
    SF_TRY(
        sf_cu_check(cu, cu->cuGraphInstantiate(&g.exec, graph, 0), "cuGraphInstantiate", NULL, SF_SRC, err));
    const sf_code rc =
        sf_cu_check(cu, cu->cuGraphUpload(g.exec, gpu->stream), "cuGraphUpload", NULL, SF_SRC, err);
    if (rc != SF_OK) {
        cu->cuGraphExecDestroy(g.exec);
        return rc;
    }
    *out = g;
    return SF_OK;
}

sf_code sf_cuda_graph_capture(const sf_gpu *gpu, const sf_cuda_step *steps, int n, sf_cuda_graph *out,
                              sf_err *err) {
    sf_cu *cu = gpu->cu;
    CUgraph graph = NULL;
    SF_TRY(sf_cu_check(cu, cu->cuStreamBeginCapture(gpu->stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL),
                       "cuStreamBeginCapture", NULL, SF_SRC, err));
    sf_code rc = sf_cuda_steps_launch(gpu, steps, n, err);
    /* The stream must leave its capture also when a launch failed; that launch's error is the one to tell. */
    const CUresult ended = cu->cuStreamEndCapture(gpu->stream, &graph);
    if (rc == SF_OK) rc = sf_cu_check(cu, ended, "cuStreamEndCapture", NULL, SF_SRC, err);
    if (rc == SF_OK) rc = instantiate(gpu, graph, out, err);
    if (graph) cu->cuGraphDestroy(graph);
    return rc;
}

sf_code sf_cuda_graph_launch(const sf_gpu *gpu, const sf_cuda_graph *g, sf_err *err) {
    return sf_cu_check(gpu->cu, gpu->cu->cuGraphLaunch(g->exec, gpu->stream), "cuGraphLaunch", NULL, SF_SRC,
                       err);
}

void sf_cuda_graph_fini(const sf_gpu *gpu, sf_cuda_graph *g) {
    if (g->exec) gpu->cu->cuGraphExecDestroy(g->exec);
    *g = (sf_cuda_graph){0};
}

/* ---- timing ---- */

typedef struct timer {
    const sf_gpu *gpu;
    CUevent from, to;
    const sf_cuda_graph *graph;
    const sf_cuda_step *steps;
    int n;
} timer;

static sf_code time_once(const timer *t, bool graph, double *us, sf_err *err) {
    sf_cu *cu = t->gpu->cu;
    float ms = 0;
    SF_TRY(sf_cu_check(cu, cu->cuEventRecord(t->from, t->gpu->stream), "cuEventRecord", NULL, SF_SRC, err));
    if (graph)
        SF_TRY(sf_cuda_graph_launch(t->gpu, t->graph, err));
    else
        SF_TRY(sf_cuda_steps_launch(t->gpu, t->steps, t->n, err));
    SF_TRY(sf_cu_check(cu, cu->cuEventRecord(t->to, t->gpu->stream), "cuEventRecord", NULL, SF_SRC, err));
    SF_TRY(sf_cu_check(cu, cu->cuEventSynchronize(t->to), "cuEventSynchronize", NULL, SF_SRC, err));
    SF_TRY(sf_cu_check(cu, cu->cuEventElapsedTime(&ms, t->from, t->to), "cuEventElapsedTime", NULL, SF_SRC,
                       err));
    *us = (double)ms * 1e3;
    return SF_OK;
}

static int by_value(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static sf_code time_turns(const timer *t, int turns, sf_cuda_graph_times *out, sf_err *err) {
    double graph[TURNS_MAX + 1], eager[TURNS_MAX + 1];
    for (int i = 0; i <= turns; i++) { /* turn 0 warms up; its place is not looked at */
        const int at = i == 0 ? turns : i - 1;
        SF_TRY(time_once(t, true, graph + at, err));
        SF_TRY(time_once(t, false, eager + at, err));
    }
    qsort(graph, (size_t)turns, sizeof *graph, by_value);
    qsort(eager, (size_t)turns, sizeof *eager, by_value);
    *out = (sf_cuda_graph_times){graph[turns / 2], eager[turns / 2]};
    return SF_OK;
}

sf_code sf_cuda_graph_time(const sf_gpu *gpu, const sf_cuda_graph *g, const sf_cuda_step *steps, int n,
                           int turns, sf_cuda_graph_times *out, sf_err *err) {
    assert(turns >= 1 && turns <= TURNS_MAX);
    sf_cu *cu = gpu->cu;
    timer t = {gpu, NULL, NULL, g, steps, n};
    sf_code rc =
        sf_cu_check(cu, cu->cuEventCreate(&t.from, CU_EVENT_DEFAULT), "cuEventCreate", NULL, SF_SRC, err);
    if (rc == SF_OK)
        rc = sf_cu_check(cu, cu->cuEventCreate(&t.to, CU_EVENT_DEFAULT), "cuEventCreate", NULL, SF_SRC, err);
    if (rc == SF_OK) rc = time_turns(&t, turns, out, err);
    if (t.from) cu->cuEventDestroy(t.from);
    if (t.to) cu->cuEventDestroy(t.to);
    return rc;
}
