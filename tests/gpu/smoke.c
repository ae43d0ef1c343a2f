/* The CUDA layer on a real GPU: launches by block, chain, cluster and graph are compared with the host's own
 * results, random weights are drawn, every template is compiled, cached and loaded, and errors are provoked;
 * the last of them costs the process its GPU.
 *
 * usage: sf_gpu_smoke ROOT [TEMPLATE...]     TEMPLATE: a name in templates/cuda without .cu
 * Exit: 0 all well, 1 a check fails, 77 no GPU or no NVRTC. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/progress.h"
#include "device/cuda/block.h"
#include "gpu/drawn.h"
#include "gpu/kit.h"
#include "gpu/templates.h"

#define KERNELS "tests/gpu/kernels"
#define LINKS   64
#define VALUES  4096
#define TURNS   31
#define SKIPPED 77

static void *at(CUdeviceptr p) {
    return (void *)(uintptr_t)p;
}

/* A buffer of the GPU, zeroed; a failure ends the program: nothing further could be tested. */
static CUdeviceptr alloc(kit *k, size_t bytes) {
    CUdeviceptr p = 0;
    if (k->cu.cuMemAlloc(&p, bytes) != CUDA_SUCCESS ||
        k->cu.cuMemsetD8Async(p, 0, bytes, k->gpu.stream) != CUDA_SUCCESS) {
        printf("FAIL no GPU memory for the test\n");
        exit(1);
    }
    return p;
}

static sf_code wait(kit *k, sf_err *err) {
    return sf_cu_check(&k->cu, k->cu.cuStreamSynchronize(k->gpu.stream), "cuStreamSynchronize", NULL, SF_SRC,
                       err);
}

static sf_code fetch(kit *k, void *to, CUdeviceptr from, size_t bytes, sf_err *err) {
    SF_TRY(wait(k, err));
    return sf_cu_check(&k->cu, k->cu.cuMemcpyDtoH(to, from, bytes), "cuMemcpyDtoH", NULL, SF_SRC, err);
}

/* ---- what works ---- */

static const sf_plan plan = {
    .model = {.vocab = 1000}, .page_size = 16, .max_rows = 512, .max_logit_rows = 8, .max_context = 1024};

static sf_code launch_rows(kit *k, const sf_pass *pass, float *out, sf_err *err) {
    sf_cuda_block_caps caps;
    sf_cuda_kernel kernel = {0};
    void *host = NULL;
    size_t used = 0;
    SF_TRY(sf_cuda_block_caps_of(&plan, 64, 8, &caps, err));
    SF_TRY(sf_cu_check(&k->cu, k->cu.cuMemHostAlloc(&host, caps.bytes, CU_MEMHOSTALLOC_PORTABLE),
                       "cuMemHostAlloc", NULL, SF_SRC, err));
    const CUdeviceptr block = alloc(k, caps.bytes), result = alloc(k, sizeof(float) * (size_t)pass->rows);
    const sf_cuda_args args = {.block = at(block), .out = at(result)};
    sf_code rc = kit_load(k, KERNELS, "smoke_rows", &kernel, err);
    if (rc == SF_OK) rc = sf_cuda_block_fill(&caps, &plan, 64, pass, host, &used, err);
    if (rc == SF_OK)
        rc = sf_cu_check(&k->cu, k->cu.cuMemcpyHtoDAsync(block, host, used, k->gpu.stream),
                         "cuMemcpyHtoDAsync", NULL, SF_SRC, err);
    if (rc == SF_OK) rc = sf_cuda_kernel_launch(&k->gpu, &kernel, &args, err);
    if (rc == SF_OK) rc = fetch(k, out, result, sizeof(float) * (size_t)pass->rows, err);
    sf_cuda_kernel_unload(&k->gpu, &kernel);
    k->cu.cuMemFree(block);
    k->cu.cuMemFree(result);
    k->cu.cuMemFreeHost(host);
    return rc;
}

static void block_reaches_the_kernel(kit *k) {
    enum { ROWS = 300 };
    int32_t tokens[ROWS], pages[64];
    float out[ROWS];
    sf_err err = {.msg = ""};
    for (int i = 0; i < ROWS; i++)
        tokens[i] = (i * 37) % 1000;
    for (int i = 0; i < 64; i++)
        pages[i] = 63 - i;
    const sf_segment segs[] = {{SF_SEG_DECODE, 0, 1, 700, pages}, {SF_SEG_PREFILL, 1, ROWS - 1, 20, pages}};
    const sf_pass pass = {.cls = SF_CLASS_PINNED, .rows = ROWS, .tokens = tokens, .n_segs = 2, .segs = segs};
    int wrong = launch_rows(k, &pass, out, &err) != SF_OK;
    for (int i = 0; i < ROWS && !err.msg[0]; i++)
        wrong += out[i] != 0.5f * (float)tokens[i] + (float)(i == 0 ? 700 : 19 + i);
    kit_check(k, wrong == 0, "a pass block reaches the kernel", "%d rows, %d wrong %s", ROWS, wrong, err.msg);
}

/* What a pass costs before its first kernel: 256 decode rows at position 4095 with their page ids. */
static void blocks_are_cheap(kit *k) {
    enum { ROWS = 256, FILLS = 200, CONTEXT = 4096 };
    static const sf_plan large = {.model = {.vocab = 1000},
                                  .page_size = 64,
                                  .max_rows = ROWS,
                                  .max_logit_rows = ROWS,
                                  .max_context = CONTEXT};
    static int32_t tokens[ROWS], pages[CONTEXT / 64], logit_row[ROWS];
    static sf_segment segs[ROWS];
    static sf_sample samples[ROWS];
    sf_cuda_block_caps caps = {0};
    sf_err err = {.msg = ""};
    void *host = NULL;
    size_t used = 0;
    for (int i = 0; i < ROWS; i++) {
        segs[i] = (sf_segment){SF_SEG_DECODE, i, 1, CONTEXT - 1, pages};
        samples[i] = (sf_sample){.top_p = 1.0f, .repetition_penalty = 1.0f, .target = -1, .draw = true};
        logit_row[i] = i;
    }
    const sf_pass pass = {.rows = ROWS,
                          .tokens = tokens,
                          .n_segs = ROWS,
                          .segs = segs,
                          .n_logits = ROWS,
                          .logit_row = logit_row,
                          .samples = samples};
    if (sf_cuda_block_caps_of(&large, 64, ROWS, &caps, &err) != SF_OK ||
        k->cu.cuMemHostAlloc(&host, caps.bytes, CU_MEMHOSTALLOC_PORTABLE) != CUDA_SUCCESS) {
        kit_check(k, false, "a block of 256 rows", "%s", err.msg);
        return;
    }
    const CUdeviceptr block = alloc(k, caps.bytes);
    bool ok = true;
    const double start = sf_now_s();
    for (int i = 0; i < FILLS; i++)
        ok = ok && sf_cuda_block_fill(&caps, &large, 64, &pass, host, &used, &err) == SF_OK;
    const double filled = sf_now_s();
    for (int i = 0; i < FILLS; i++)
        ok = ok && k->cu.cuMemcpyHtoDAsync(block, host, used, k->gpu.stream) == CUDA_SUCCESS;
    ok = ok && wait(k, &err) == SF_OK;
    kit_check(k, ok, "a block of 256 rows", "%zu of %zu bytes used; us: fill %.1f, copy %.1f %s", used,
              caps.bytes, (filled - start) * 1e6 / FILLS, (sf_now_s() - filled) * 1e6 / FILLS, err.msg);
    k->cu.cuMemFree(block);
    k->cu.cuMemFreeHost(host);
}

typedef struct chain {
    sf_cuda_kernel kernel, plain; /* plain: without programmatic launch */
    sf_cuda_step steps[LINKS], plain_steps[LINKS];
    CUdeviceptr buf[2];
    float expected[VALUES];
} chain;

static sf_code chain_init(kit *k, chain *c, sf_err *err) {
    SF_TRY(kit_load(k, KERNELS, "smoke_chain", &c->kernel, err));
    c->plain = c->kernel;
    c->plain.launch.pdl = 0;
    for (int i = 0; i < 2; i++)
        c->buf[i] = alloc(k, sizeof(float) * VALUES);
    for (int i = 0; i < LINKS; i++) {
        c->steps[i] = (sf_cuda_step){.kernel = &c->kernel,
                                     .args = {.in = at(c->buf[i % 2]), .out = at(c->buf[(i + 1) % 2])}};
        c->plain_steps[i] = (sf_cuda_step){.kernel = &c->plain, .args = c->steps[i].args};
    }
    for (int i = 0; i < VALUES; i++) {
        c->expected[i] = (float)i;
        for (int j = 0; j < LINKS; j++)
            c->expected[i] = fmaf(c->expected[i], 1.5f, 1.0f);
    }
    return SF_OK;
}

/* Starts the chain anew, runs it one way, and counts the values that are wrong. */
static sf_code chain_run(kit *k, const chain *c, const sf_cuda_graph *graph, int *wrong, sf_err *err) {
    static float values[VALUES];
    for (int i = 0; i < VALUES; i++)
        values[i] = (float)i;
    SF_TRY(sf_cu_check(&k->cu, k->cu.cuMemcpyHtoD(c->buf[0], values, sizeof values), "cuMemcpyHtoD", NULL,
                       SF_SRC, err));
    if (graph)
        SF_TRY(sf_cuda_graph_launch(&k->gpu, graph, err));
    else
        SF_TRY(sf_cuda_steps_launch(&k->gpu, c->steps, LINKS, err));
    SF_TRY(fetch(k, values, c->buf[0], sizeof values, err));
    *wrong = 0;
    for (int i = 0; i < VALUES; i++)
        *wrong += memcmp(values + i, c->expected + i, sizeof *values) != 0;
    return SF_OK;
}

static void chains_agree(kit *k) {
    static chain c;
    sf_cuda_graph graph = {0}, plain = {0};
    sf_cuda_graph_times t = {0}, tp = {0};
    sf_err err = {.msg = ""};
    int wrong[3] = {-1, -1, -1};
    bool ok = chain_init(k, &c, &err) == SF_OK && chain_run(k, &c, NULL, wrong, &err) == SF_OK &&
              sf_cuda_graph_capture(&k->gpu, c.steps, LINKS, &graph, &err) == SF_OK &&
              chain_run(k, &c, &graph, wrong + 1, &err) == SF_OK &&
              chain_run(k, &c, &graph, wrong + 2, &err) == SF_OK;
    ok = ok && wrong[0] == 0 && wrong[1] == 0 && wrong[2] == 0;
    kit_check(k, ok, "a chain eagerly, by graph, by graph again", "%d nodes, wrong %d %d %d %s",
              (int)graph.nodes, wrong[0], wrong[1], wrong[2], err.msg);
    ok = sf_cuda_graph_time(&k->gpu, &graph, c.steps, LINKS, TURNS, &t, &err) == SF_OK &&
         sf_cuda_graph_capture(&k->gpu, c.plain_steps, LINKS, &plain, &err) == SF_OK &&
         sf_cuda_graph_time(&k->gpu, &plain, c.plain_steps, LINKS, TURNS, &tp, &err) == SF_OK;
    kit_check(k, ok, "times of a chain of 64",
              "us: graph %.1f, eager %.1f; without programmatic launch: graph %.1f, eager %.1f %s",
              t.graph_us, t.eager_us, tp.graph_us, tp.eager_us, err.msg);
    sf_cuda_graph_fini(&k->gpu, &graph);
    sf_cuda_graph_fini(&k->gpu, &plain);
    sf_cuda_kernel_unload(&k->gpu, &c.kernel);
}

static void clusters_and_shared_memory(kit *k) {
    sf_cuda_kernel kernel = {0};
    sf_err err = {.msg = ""};
    int out[8] = {0}, wrong = 0;
    const CUdeviceptr result = alloc(k, sizeof out);
    const sf_cuda_args args = {.out = at(result)};
    const bool ok = kit_load(k, KERNELS, "smoke_cluster", &kernel, &err) == SF_OK &&
                    sf_cuda_kernel_launch(&k->gpu, &kernel, &args, &err) == SF_OK &&
                    fetch(k, out, result, sizeof out, &err) == SF_OK;
    for (int i = 0; i < 8; i++)
        wrong += out[i] != 2000 + i % 2 + i * 10;
    kit_check(k, ok && wrong == 0, "clusters of 2 with 200 KB of shared memory", "%d wrong %s", wrong,
              err.msg);
    sf_cuda_kernel_unload(&k->gpu, &kernel);
    k->cu.cuMemFree(result);
}

/* ---- errors ---- */

static void soft_errors_say_what_happened(kit *k) {
    sf_cubin cubin = {0};
    sf_cuda_kernel kernel = {0};
    sf_err err = {0};
    CUdeviceptr p = 0;
    sf_code rc = sf_cu_check(&k->cu, k->cu.cuMemAlloc(&p, (size_t)1 << 42), "cuMemAlloc", NULL, SF_SRC, &err);
    kit_expect(k, rc, &err, SF_NOMEM, "CUDA_ERROR_OUT_OF_MEMORY", "4 TiB of memory");
    kit_expect(k, kit_load(k, KERNELS, "smoke_mute", &kernel, &err), &err, SF_INVALID, "smoke_mute_launch",
               "no launch constant");
    kit_expect(k, kit_load(k, KERNELS, "smoke_greedy", &kernel, &err), &err, SF_INVALID, "16777216",
               "too much shared memory");
    rc = kit_compile(k, KERNELS, "smoke_mute", "sm_80", &cubin, &err);
    if (rc == SF_OK) rc = sf_cuda_kernel_load(&k->gpu, "smoke_mute", cubin.code.data, &kernel, &err);
    kit_expect(k, rc, &err, SF_UNSUPPORTED, "CUDA_ERROR_NO_BINARY_FOR_GPU",
               "a cubin of another architecture");
    sf_cubin_fini(&cubin);
    static const char garbage[4096] = "this is no image of a kernel";
    kit_expect(k, sf_cuda_kernel_load(&k->gpu, "smoke_mute", garbage, &kernel, &err), &err, SF_DEVICE,
               "CUDA_ERROR_INVALID", "garbage for a cubin");
    rc = kit_compile(k, KERNELS, "smoke_rows", k->gpu.arch, &cubin, &err);
    if (rc == SF_OK) rc = sf_cuda_kernel_load(&k->gpu, "nosuch", cubin.code.data, &kernel, &err);
    kit_expect(k, rc, &err, SF_DEVICE, "of kernel nosuch", "a kernel that is not in the cubin");
    sf_cubin_fini(&cubin);
}

static void a_bad_launch_leaves_the_gpu_usable(kit *k) {
    sf_cuda_kernel kernel = {0};
    sf_cuda_graph graph = {0};
    sf_err err = {0};
    sf_code rc = kit_load(k, KERNELS, "smoke_chain", &kernel, &err);
    kernel.launch.threads = 1024; /* past its launch bound of 256 */
    const sf_cuda_step step = {.kernel = &kernel};
    if (rc == SF_OK) rc = sf_cuda_kernel_launch(&k->gpu, &kernel, &step.args, &err);
    kit_expect(k, rc, &err, SF_DEVICE, "cuLaunchKernelEx of kernel smoke_chain", "a launch past its bound");
    rc = sf_cuda_graph_capture(&k->gpu, &step, 1, &graph, &err);
    kit_expect(k, rc, &err, SF_DEVICE, "smoke_chain", "a capture with that launch");
    kit_check(k, wait(k, &err) == SF_OK && !k->cu.dead, "the GPU is usable after both", "dead %d",
              k->cu.dead);
    sf_cuda_kernel_unload(&k->gpu, &kernel);
}

/* Last: there is no GPU for this process afterwards. */
static void a_fault_loses_the_gpu(kit *k) {
    sf_cuda_kernel kernel = {0};
    sf_err err = {0};
    CUdeviceptr p = 0;
    const sf_cuda_args args = {0};
    sf_code rc = kit_load(k, KERNELS, "smoke_fault", &kernel, &err);
    if (rc == SF_OK) rc = sf_cuda_kernel_launch(&k->gpu, &kernel, &args, &err);
    if (rc == SF_OK) rc = wait(k, &err);
    kit_expect(k, rc, &err, SF_DEVICE, "CUDA_ERROR_ILLEGAL_ADDRESS", "a write where no memory is");
    rc = sf_cu_check(&k->cu, k->cu.cuMemAlloc(&p, 1 << 20), "cuMemAlloc", NULL, SF_SRC, &err);
    kit_expect(k, rc, &err, SF_DEVICE, "the GPU is lost since cuStreamSynchronize", "any call after it");
    kit_check(k, k->cu.dead, "the device is known to be dead", "%s", k->cu.why);
}

int main(int argc, char **argv) {
    static kit k;
    sf_err err = {0};
    if (argc < 2) {
        fprintf(stderr, "usage: %s ROOT [TEMPLATE...]\n", argv[0]);
        return 2;
    }
    if (kit_open(&k, argv[1], &err) != SF_OK) {
        printf("skipped: %s\n", err.msg);
        return SKIPPED;
    }
    printf("%s, %d SMs, %s, %zu MiB, driver CUDA %d.%d, NVRTC %s\n", k.gpu.name, k.gpu.sms, k.gpu.arch,
           k.gpu.memory >> 20, k.cu.version / 1000, k.cu.version % 1000 / 10, k.nvrtc.build);
    block_reaches_the_kernel(&k);
    blocks_are_cheap(&k);
    chains_agree(&k);
    clusters_and_shared_memory(&k);
    weights_are_drawn_as_on_the_host(&k);
    templates_work(&k, argv + 2, argc - 2);
    soft_errors_say_what_happened(&k);
    a_bad_launch_leaves_the_gpu_usable(&k);
    a_fault_loses_the_gpu(&k);
    kit_close(&k);
    printf("%d passed, %d failed\n", k.passed, k.failed);
    return k.failed > 0;
}
