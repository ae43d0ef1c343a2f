#include "cuda/fake_driver.h"

#include "model/weights_draw.h"

#include <stdlib.h>
#include <string.h>

fake_driver fake;

/* Every allocation begins with its size. */
typedef struct block {
    size_t bytes;
    _Alignas(256) char data[];
} block;

static void *host(CUdeviceptr p) {
    return (void *)(uintptr_t)p;
}
static block *block_of(void *data) {
    return (block *)(void *)((char *)data - offsetof(block, data));
}

static CUresult name_of(CUresult r, const char **text) {
    (void)r;
    *text = "CUDA_ERROR_NAME";
    return CUDA_SUCCESS;
}
static CUresult mem_info(size_t *free_bytes, size_t *total) {
    *free_bytes = fake.memory - fake.taken;
    *total = fake.memory;
    return CUDA_SUCCESS;
}
static CUresult mem_alloc(CUdeviceptr *p, size_t bytes) {
    if (bytes > fake.memory - fake.taken) return CUDA_ERROR_OUT_OF_MEMORY;
    block *b = aligned_alloc(256, (sizeof(block) + bytes + 255) / 256 * 256);
    if (!b) return CUDA_ERROR_OUT_OF_MEMORY;
    b->bytes = bytes;
    memset(b->data, 0xee, bytes);
    fake.taken += bytes;
    fake.allocs++;
    *p = (CUdeviceptr)(uintptr_t)b->data;
    return CUDA_SUCCESS;
}
static CUresult mem_free(CUdeviceptr p) {
    block *b = block_of(host(p));
    fake.taken -= b->bytes;
    fake.allocs--;
    free(b);
    return CUDA_SUCCESS;
}
static CUresult host_alloc(void **p, size_t bytes, unsigned flags) {
    (void)flags;
    fake.host_allocs++;
    *p = malloc(bytes);
    return *p ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}
static CUresult host_free(void *p) {
    fake.host_allocs--;
    free(p);
    return CUDA_SUCCESS;
}
static CUresult to_device(CUdeviceptr to, const void *from, size_t bytes) {
    memcpy(host(to), from, bytes);
    return CUDA_SUCCESS;
}
static CUresult to_host(void *to, CUdeviceptr from, size_t bytes) {
    memcpy(to, host(from), bytes);
    return CUDA_SUCCESS;
}
static CUresult to_device_async(CUdeviceptr to, const void *from, size_t bytes, CUstream s) {
    (void)s;
    return to_device(to, from, bytes);
}
static CUresult to_host_async(void *to, CUdeviceptr from, size_t bytes, CUstream s) {
    (void)s;
    return to_host(to, from, bytes);
}
static CUresult on_device_async(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream s) {
    (void)s;
    memcpy(host(to), host(from), bytes);
    return CUDA_SUCCESS;
}
static CUresult memset_async(CUdeviceptr p, unsigned char value, size_t n, CUstream s) {
    (void)s;
    memset(host(p), value, n);
    return CUDA_SUCCESS;
}
static CUresult nothing(void) {
    return CUDA_SUCCESS;
}
static CUresult stream_create(CUstream *s, unsigned flags) {
    (void)flags;
    fake.streams++;
    *s = (CUstream)(uintptr_t)&fake.streams;
    return CUDA_SUCCESS;
}
static CUresult stream_destroy(CUstream s) {
    (void)s;
    fake.streams--;
    return CUDA_SUCCESS;
}
static CUresult stream_wait(CUstream s) {
    (void)s;
    return fake.wait;
}
static CUresult set_current(CUcontext c) {
    (void)c;
    return CUDA_SUCCESS;
}
static CUresult release(CUdevice dev) {
    (void)dev;
    return CUDA_SUCCESS;
}
static CUresult event_create(CUevent *e, unsigned flags) {
    (void)flags;
    fake.events++;
    *e = (CUevent)(uintptr_t)&fake.events;
    return CUDA_SUCCESS;
}
static CUresult event_destroy(CUevent e) {
    (void)e;
    fake.events--;
    return CUDA_SUCCESS;
}
static CUresult event_record(CUevent e, CUstream s) {
    (void)e, (void)s;
    return CUDA_SUCCESS;
}
static CUresult event_wait(CUevent e) {
    (void)e;
    return fake.wait;
}
static CUresult event_time(float *ms, CUevent from, CUevent to) {
    (void)from, (void)to;
    *ms = (float)(fake.last_was_graph ? fake.graph_ms : fake.eager_ms);
    return CUDA_SUCCESS;
}
/* What device/cuda/draw.cu does. */
static CUresult draw(const CUlaunchConfig *c, void **args) {
    unsigned long long first, count, to;
    memcpy(&first, args[1], sizeof first);
    memcpy(&count, args[2], sizeof count);
    memcpy(&to, args[3], sizeof to);
    if ((unsigned long long)c->gridDimX * c->blockDimX < count) return CUDA_ERROR_INVALID_VALUE;
    for (unsigned long long i = 0; i < count; i++)
        sf_wdraw_lane(args[0], first + i, (uint32_t *)host(to) + 4 * i);
    __atomic_fetch_add(&fake.drawn, 16 * count, __ATOMIC_RELAXED); /* several threads */
    return CUDA_SUCCESS;
}
static CUresult launch(const CUlaunchConfig *c, CUfunction f, void **args, void **extra) {
    (void)extra;
    if (f == FAKE_DRAW) return draw(c, args);
    const int at = fake.launches + fake.captured;
    if (at < FAKE_LAUNCHES_MAX) fake.grids[at] = c->gridDimX;
    *(fake.capturing ? &fake.captured : &fake.launches) += 1;
    fake.last_was_graph = false;
    return CUDA_SUCCESS;
}
static CUresult encode(CUtensorMap *map, int type, uint32_t rank, void *address, const uint64_t *dims,
                       const uint64_t *strides, const uint32_t *box, const uint32_t *steps, int interleave,
                       int swizzle, int l2, int fill) {
    (void)type, (void)rank, (void)address, (void)dims, (void)strides, (void)box, (void)steps;
    (void)interleave, (void)swizzle, (void)l2, (void)fill;
    memset(map, 0, sizeof *map);
    return CUDA_SUCCESS;
}
static CUresult begin_capture(CUstream s, int mode) {
    (void)s, (void)mode;
    fake.capturing = true;
    return CUDA_SUCCESS;
}
static CUresult end_capture(CUstream s, CUgraph *g) {
    (void)s;
    fake.capturing = false;
    *g = (CUgraph)(uintptr_t)&fake;
    return CUDA_SUCCESS;
}
static CUresult graph_nodes(CUgraph g, CUgraphNode *nodes, size_t *n) {
    (void)g, (void)nodes;
    *n = 1;
    return CUDA_SUCCESS;
}
static CUresult instantiate(CUgraphExec *e, CUgraph g, unsigned long long flags) {
    (void)g, (void)flags;
    fake.graphs++;
    *e = (CUgraphExec)(uintptr_t)&fake;
    return CUDA_SUCCESS;
}
static CUresult upload(CUgraphExec e, CUstream s) {
    (void)e, (void)s;
    return CUDA_SUCCESS;
}
static CUresult graph_launch(CUgraphExec e, CUstream s) {
    (void)e, (void)s;
    fake.graph_launches++;
    fake.last_was_graph = true;
    return CUDA_SUCCESS;
}
static CUresult exec_destroy(CUgraphExec e) {
    (void)e;
    fake.graphs--;
    return CUDA_SUCCESS;
}
static CUresult graph_destroy(CUgraph g) {
    (void)g;
    return CUDA_SUCCESS;
}
static CUresult unload(CUlibrary lib) {
    (void)lib;
    return CUDA_SUCCESS;
}

void fake_driver_init(sf_cu *cu, size_t memory) {
    fake = (fake_driver){.memory = memory, .graph_ms = 1, .eager_ms = 2};
    *cu = (sf_cu){.cuGetErrorName = name_of,
                  .cuGetErrorString = name_of,
                  .cuCtxSetCurrent = set_current,
                  .cuCtxSynchronize = nothing,
                  .cuDevicePrimaryCtxRelease = release,
                  .cuMemGetInfo = mem_info,
                  .cuMemAlloc = mem_alloc,
                  .cuMemFree = mem_free,
                  .cuMemHostAlloc = host_alloc,
                  .cuMemFreeHost = host_free,
                  .cuMemcpyHtoD = to_device,
                  .cuMemcpyDtoH = to_host,
                  .cuMemcpyHtoDAsync = to_device_async,
                  .cuMemcpyDtoHAsync = to_host_async,
                  .cuMemcpyDtoDAsync = on_device_async,
                  .cuMemsetD8Async = memset_async,
                  .cuStreamCreate = stream_create,
                  .cuStreamDestroy = stream_destroy,
                  .cuStreamSynchronize = stream_wait,
                  .cuEventCreate = event_create,
                  .cuEventDestroy = event_destroy,
                  .cuEventRecord = event_record,
                  .cuEventSynchronize = event_wait,
                  .cuEventElapsedTime = event_time,
                  .cuLaunchKernelEx = launch,
                  .cuTensorMapEncodeTiled = encode,
                  .cuStreamBeginCapture = begin_capture,
                  .cuStreamEndCapture = end_capture,
                  .cuGraphGetNodes = graph_nodes,
                  .cuGraphInstantiate = instantiate,
                  .cuGraphUpload = upload,
                  .cuGraphLaunch = graph_launch,
                  .cuGraphExecDestroy = exec_destroy,
                  .cuGraphDestroy = graph_destroy,
                  .cuLibraryUnload = unload};
}
