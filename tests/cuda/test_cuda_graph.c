/* Loading, launching and capturing over a driver that records what it is told. */
#include "cuda/cuda_test.h"

#include <stdbool.h>

#include "device/cuda/graph.h"

/* What the driver has seen, and what it answers. */
static struct driver {
    sf_cuda_launch exported; /* the launch constant in the cubin */
    size_t exported_size;    /* 0: there is none */
    CUresult kernel, launch, end, instantiate;
    int loaded, unloaded, launches, captures, graphs, execs, events, shared;
    bool capturing;
    CUlaunchConfig config;
    CUlaunchAttribute attrs[2];
    sf_cuda_args args;
    float ms;
} seen;

static CUresult name_of(CUresult r, const char **text) {
    (void)r;
    *text = "CUDA_ERROR_NAME";
    return CUDA_SUCCESS;
}
static CUresult library_load(CUlibrary *lib, const void *code, void *jit, void **values, unsigned n,
                             void *options, void **option_values, unsigned n_options) {
    (void)code, (void)jit, (void)values, (void)options, (void)option_values;
    assert_true(n == 0 && n_options == 0);
    *lib = (CUlibrary)(uintptr_t)&seen;
    seen.loaded++;
    return CUDA_SUCCESS;
}
static CUresult library_unload(CUlibrary lib) {
    assert_ptr_equal(lib, &seen);
    seen.unloaded++;
    return CUDA_SUCCESS;
}
static CUresult library_kernel(CUkernel *k, CUlibrary lib, const char *name) {
    (void)lib;
    assert_string_equal(name, "gemm_x");
    *k = (CUkernel)(uintptr_t)&seen;
    return seen.kernel;
}
static CUresult library_global(CUdeviceptr *p, size_t *bytes, CUlibrary lib, const char *name) {
    (void)lib;
    assert_string_equal(name, "gemm_x_launch");
    *p = 4096;
    *bytes = seen.exported_size;
    return seen.exported_size ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}
static CUresult copy_back(void *to, CUdeviceptr from, size_t bytes) {
    assert_true(from == 4096 && bytes == sizeof seen.exported);
    memcpy(to, &seen.exported, bytes);
    return CUDA_SUCCESS;
}
static CUresult kernel_function(CUfunction *f, CUkernel k) {
    *f = (CUfunction)(uintptr_t)k;
    return CUDA_SUCCESS;
}
static CUresult kernel_attribute(int *value, CUfunction_attribute a, CUkernel k, CUdevice dev) {
    (void)k, (void)dev;
    *value = a == CU_FUNC_ATTRIBUTE_NUM_REGS ? 99 : 1024;
    return CUDA_SUCCESS;
}
static CUresult kernel_set(CUfunction_attribute a, int value, CUkernel k, CUdevice dev) {
    (void)k, (void)dev;
    assert_int_equal(a, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
    seen.shared = value;
    return CUDA_SUCCESS;
}
static CUresult launch(const CUlaunchConfig *c, CUfunction f, void **args, void **extra) {
    assert_true(f && !extra);
    seen.launches++;
    seen.config = *c;
    memcpy(seen.attrs, c->attrs, c->numAttrs * sizeof *c->attrs);
    memcpy(&seen.args, args[0], sizeof seen.args);
    return seen.launch;
}
static CUresult begin(CUstream s, int mode) {
    assert_true(s && mode == CU_STREAM_CAPTURE_MODE_THREAD_LOCAL && !seen.capturing);
    seen.capturing = true;
    seen.captures++;
    return CUDA_SUCCESS;
}
static CUresult end(CUstream s, CUgraph *g) {
    assert_true(s && seen.capturing);
    seen.capturing = false;
    if (seen.end != CUDA_SUCCESS) return seen.end;
    *g = (CUgraph)(uintptr_t)&seen;
    seen.graphs++;
    return CUDA_SUCCESS;
}
static CUresult graph_nodes(CUgraph g, CUgraphNode *nodes, size_t *n) {
    assert_true(g && !nodes);
    *n = (size_t)seen.launches;
    return CUDA_SUCCESS;
}
static CUresult graph_destroy(CUgraph g) {
    assert_ptr_equal(g, &seen);
    seen.graphs--;
    return CUDA_SUCCESS;
}
static CUresult instantiate(CUgraphExec *e, CUgraph g, unsigned long long flags) {
    assert_true(g && flags == 0);
    if (seen.instantiate != CUDA_SUCCESS) return seen.instantiate;
    *e = (CUgraphExec)(uintptr_t)&seen;
    seen.execs++;
    return CUDA_SUCCESS;
}
static CUresult exec_call(CUgraphExec e, CUstream s) {
    assert_true(e && s);
    return CUDA_SUCCESS;
}
static CUresult exec_destroy(CUgraphExec e) {
    assert_ptr_equal(e, &seen);
    seen.execs--;
    return CUDA_SUCCESS;
}
static CUresult event_create(CUevent *e, unsigned flags) {
    assert_int_equal(flags, CU_EVENT_DEFAULT);
    *e = (CUevent)(uintptr_t)&seen;
    seen.events++;
    return CUDA_SUCCESS;
}
static CUresult event_destroy(CUevent e) {
    assert_ptr_equal(e, &seen);
    seen.events--;
    return CUDA_SUCCESS;
}
static CUresult event_record(CUevent e, CUstream s) {
    assert_true(e && s);
    return CUDA_SUCCESS;
}
static CUresult event_wait(CUevent e) {
    assert_non_null(e);
    return CUDA_SUCCESS;
}
/* Each time is a microsecond longer than the one before. */
static CUresult event_time(float *ms, CUevent from, CUevent to) {
    assert_true(from && to);
    *ms = seen.ms += 0.001f;
    return CUDA_SUCCESS;
}

static sf_cu cu;
static sf_gpu gpu;

static int setup(void **state) {
    (void)state;
    cu = (sf_cu){.cuGetErrorName = name_of,
                 .cuGetErrorString = name_of,
                 .cuLibraryLoadData = library_load,
                 .cuLibraryUnload = library_unload,
                 .cuLibraryGetKernel = library_kernel,
                 .cuLibraryGetGlobal = library_global,
                 .cuMemcpyDtoH = copy_back,
                 .cuKernelGetFunction = kernel_function,
                 .cuKernelGetAttribute = kernel_attribute,
                 .cuKernelSetAttribute = kernel_set,
                 .cuLaunchKernelEx = launch,
                 .cuStreamBeginCapture = begin,
                 .cuStreamEndCapture = end,
                 .cuGraphGetNodes = graph_nodes,
                 .cuGraphDestroy = graph_destroy,
                 .cuGraphInstantiate = instantiate,
                 .cuGraphUpload = exec_call,
                 .cuGraphLaunch = exec_call,
                 .cuGraphExecDestroy = exec_destroy,
                 .cuEventCreate = event_create,
                 .cuEventDestroy = event_destroy,
                 .cuEventRecord = event_record,
                 .cuEventSynchronize = event_wait,
                 .cuEventElapsedTime = event_time};
    gpu = (sf_gpu){.cu = &cu, .stream = (CUstream)(uintptr_t)&seen, .shared_max = 232448};
    seen = (struct driver){.exported = {132, 384, 200000, 1, 2, 0, 0}, .exported_size = sizeof seen.exported};
    return 0;
}

static void a_kernel_is_loaded_with_its_launch(void **state) {
    (void)state;
    sf_cuda_kernel k = {0};
    sf_err err;
    assert_int_equal(sf_cuda_kernel_load(&gpu, "gemm_x", "code", &k, &err), SF_OK);
    assert_true(k.registers == 99 && k.shared == 1024 && seen.shared == 200000);
    assert_memory_equal(&k.launch, &seen.exported, sizeof k.launch);
    sf_cuda_kernel_unload(&gpu, &k);
    sf_cuda_kernel_unload(&gpu, &k);
    assert_true(seen.loaded == 1 && seen.unloaded == 1);
}

static void refuse(sf_code code, const char *words) {
    sf_cuda_kernel k = {.registers = 7};
    sf_err err;
    seen.loaded = seen.unloaded = 0;
    assert_fails(sf_cuda_kernel_load(&gpu, "gemm_x", "code", &k, &err), &err, code, words);
    assert_true(k.registers == 7 && seen.loaded == 1 &&
                seen.unloaded == 1); /* untouched, and nothing stays loaded */
}

static void a_launch_that_cannot_be_is_refused(void **state) {
    (void)state;
    seen.exported.shared = 232448 - 1024;
    sf_cuda_kernel k = {0};
    assert_int_equal(sf_cuda_kernel_load(&gpu, "gemm_x", "code", &k, NULL), SF_OK); /* the most there is */
    seen.exported.shared++;
    refuse(SF_INVALID, "asks for 231425 bytes of shared memory on top of 1024, the GPU has 232448");
    seen.exported = (sf_cuda_launch){132, 384, -1, 1, 0, 0, 0};
    refuse(SF_INVALID, "asks for -1 bytes");
    seen.exported = (sf_cuda_launch){0, 384, 0, 1, 0, 0, 0};
    refuse(SF_INVALID, "asks for 0 thread blocks");
    seen.exported = (sf_cuda_launch){1, 1025, 0, 1, 0, 0, 0};
    refuse(SF_INVALID, "of 1025, expected");
    seen.exported = (sf_cuda_launch){131, 32, 0, 1, 2, 0, 0};
    refuse(SF_INVALID, "131 thread blocks in clusters of 2, expected a divisor");
    seen.exported_size = 16;
    refuse(SF_INVALID, "has 16 bytes, expected 32");
    seen.exported_size = 0;
    refuse(SF_INVALID, "does not export its launch constant gemm_x_launch");
    seen.kernel = CUDA_ERROR_NO_BINARY_FOR_GPU;
    refuse(SF_UNSUPPORTED, "cuLibraryGetKernel of kernel gemm_x: CUDA_ERROR_NAME (209)");
}

static void a_launch_carries_grid_attributes_and_arguments(void **state) {
    (void)state;
    sf_cuda_kernel k = {
        .name = "gemm_x", .fn = (CUfunction)(uintptr_t)&seen, .launch = {132, 384, 200000, 1, 2, 0, 0}};
    const sf_cuda_args args = {.kv = &cu};
    assert_int_equal(sf_cuda_kernel_launch(&gpu, &k, &args, NULL), SF_OK);
    assert_true(seen.config.gridDimX == 132 && seen.config.gridDimY == 1 && seen.config.gridDimZ == 1);
    assert_true(seen.config.blockDimX == 384 && seen.config.blockDimY == 1 && seen.config.blockDimZ == 1);
    assert_true(seen.config.sharedMemBytes == 200000 && seen.config.hStream == gpu.stream);
    assert_int_equal(seen.config.numAttrs, 2);
    assert_int_equal(seen.attrs[0].id, CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION);
    assert_int_equal(seen.attrs[0].value.programmaticStreamSerializationAllowed, 1);
    assert_int_equal(seen.attrs[1].id, CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION);
    assert_true(seen.attrs[1].value.clusterDim.x == 2 && seen.attrs[1].value.clusterDim.y == 1 &&
                seen.attrs[1].value.clusterDim.z == 1);
    assert_ptr_equal(seen.args.kv, &cu);
    k.launch.pdl = k.launch.cluster = 0;
    assert_int_equal(sf_cuda_kernel_launch(&gpu, &k, &args, NULL), SF_OK);
    assert_int_equal(seen.config.numAttrs, 0);
}

static const sf_cuda_kernel kernel = {
    .name = "gemm_x", .fn = (CUfunction)&seen, .launch = {1, 32, 0, 1, 0, 0, 0}};
static const sf_cuda_step steps[] = {{.kernel = &kernel}, {.kernel = &kernel}, {.kernel = &kernel}};

static void steps_are_captured_once_and_nothing_leaks(void **state) {
    (void)state;
    sf_cuda_graph g = {0};
    sf_cuda_graph_times t;
    sf_err err;
    assert_int_equal(sf_cuda_graph_capture(&gpu, steps, 3, &g, &err), SF_OK);
    assert_true(g.nodes == 3 && seen.captures == 1 && !seen.capturing && seen.graphs == 0 && seen.execs == 1);
    assert_int_equal(sf_cuda_graph_launch(&gpu, &g, &err), SF_OK);
    assert_int_equal(sf_cuda_graph_time(&gpu, &g, steps, 3, 5, &t, &err), SF_OK);
    /* 12 times in turns; the first of each way is not counted: graph 3 5 7 9 11, eager 4 6 8 10 12 */
    assert_true(t.graph_us > 6.9 && t.graph_us < 7.1 && t.eager_us > 7.9 && t.eager_us < 8.1);
    assert_true(seen.launches == 3 + 6 * 3 && seen.events == 0);
    sf_cuda_graph_fini(&gpu, &g);
    sf_cuda_graph_fini(&gpu, &g);
    assert_int_equal(seen.execs, 0);
}

static void a_failed_capture_leaves_the_stream(void **state) {
    (void)state;
    sf_cuda_graph g = {.nodes = 7};
    sf_err err;
    seen.launch = CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
    assert_fails(sf_cuda_graph_capture(&gpu, steps, 3, &g, &err), &err, SF_DEVICE,
                 "cuLaunchKernelEx of kernel gemm_x");
    assert_true(!seen.capturing && seen.launches == 1 && seen.graphs == 0);
    seen.launch = CUDA_SUCCESS;
    seen.end = CUDA_ERROR_UNKNOWN;
    assert_fails(sf_cuda_graph_capture(&gpu, steps, 3, &g, &err), &err, SF_DEVICE, "cuStreamEndCapture");
    assert_true(!seen.capturing && seen.graphs == 0);
    cu.dead = false;
    seen.end = CUDA_SUCCESS;
    seen.instantiate = CUDA_ERROR_OUT_OF_MEMORY;
    assert_fails(sf_cuda_graph_capture(&gpu, steps, 3, &g, &err), &err, SF_NOMEM, "cuGraphInstantiate");
    assert_true(!seen.capturing && seen.graphs == 0 && seen.execs == 0 && g.nodes == 7);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_kernel_is_loaded_with_its_launch, setup),
        cmocka_unit_test_setup(a_launch_that_cannot_be_is_refused, setup),
        cmocka_unit_test_setup(a_launch_carries_grid_attributes_and_arguments, setup),
        cmocka_unit_test_setup(steps_are_captured_once_and_nothing_leaks, setup),
        cmocka_unit_test_setup(a_failed_capture_leaves_the_stream, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
