#include "harness.h"

#include <algorithm>
#include <cmath>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <nvrtc.h>
#include <sstream>

int harness_failed = 0;

void harness_check(cudaError_t e, const char *what, const char *file, int line) {
    if (e == cudaSuccess) return;
    printf("%s:%d: %s: %s\n", file, line, what, cudaGetErrorString(e));
    exit(2);
}

void expect(bool ok, const char *format, ...) {
    va_list args;
    va_start(args, format);
    printf("%s  ", ok ? "ok  " : "FAIL");
    vprintf(format, args);
    printf("\n");
    fflush(stdout);
    va_end(args);
    if (!ok) harness_failed++;
}

static std::string read_file(const std::string &path) {
    std::ifstream f(path);
    std::stringstream s;
    if (!f) {
        printf("%s: not found\n", path.c_str());
        exit(2);
    }
    s << f.rdbuf();
    return s.str();
}

/* The prelude with `values` in place of defaults, and the body behind it. */
static std::string expand(const std::string &text, const params &values, std::string *body) {
    std::stringstream in(text);
    std::string line, out;
    bool inside = false, after = false;
    while (std::getline(in, line)) {
        char name[64], type[16], value[64];
        if (sscanf(line.c_str(), "//@ param %63s %15s = %63s", name, type, value) == 3) {
            const auto own = values.find(name);
            const std::string v = own == values.end() ? value : own->second;
            out += strcmp(type, "float") == 0 ? std::string("static const float ") + name + " = " + v + "f;\n"
                                              : std::string("enum { ") + name + " = " + v + " };\n";
        } else if (line.rfind("//@ prelude", 0) == 0) {
            inside = true;
        } else if (inside && line.rfind("//@ end", 0) == 0) {
            inside = false;
            after = true;
        } else if (after) {
            *body += line + "\n";
        }
    }
    return out;
}

static gpu_kernel compile(const std::string &source, const std::string &entry, const std::string &name, bool shaped) {
    static std::vector<std::string> paths, texts;
    if (paths.empty()) {
        FILE *list = popen("ls templates/snippets/*.cuh", "r");
        char buf[256];
        while (list && fgets(buf, sizeof buf, list)) {
            std::string p(buf, strcspn(buf, "\n"));
            paths.push_back(p.substr(strlen("templates/")));
            texts.push_back(read_file(p));
        }
        if (list) pclose(list);
        paths.push_back("device/cuda/pass_block.h");
        texts.push_back(read_file("runtime/device/cuda/pass_block.h"));
    }
    std::vector<const char *> names, contents;
    for (size_t i = 0; i < paths.size(); i++) {
        names.push_back(paths[i].c_str());
        contents.push_back(texts[i].c_str());
    }
    const char *options[] = {"--gpu-architecture=sm_90a", "--std=c++17", "-default-device", "--fmad=false",
                             "--ptxas-options=-v"};
    nvrtcProgram prog;
    nvrtcCreateProgram(&prog, source.c_str(), name.c_str(), (int)names.size(), contents.data(), names.data());
    const nvrtcResult rc = nvrtcCompileProgram(prog, 5, options);
    size_t n = 0;
    nvrtcGetProgramLogSize(prog, &n);
    std::string log(n, 0);
    nvrtcGetProgramLog(prog, log.data());
    if (rc != NVRTC_SUCCESS) {
        printf("%s: %s\n", name.c_str(), log.c_str());
        exit(2);
    }
    gpu_kernel k;
    k.name = name;
    const char *used = strstr(log.c_str(), "Used "), *spill = strstr(log.c_str(), "bytes spill stores");
    if (used) k.registers = atoi(used + 5);
    if (spill) {
        while (spill > log.c_str() && spill[-1] != ',')
            spill--;
        k.spilled = atoi(spill);
    }
    if (log.find("C75") != std::string::npos) printf("%s: %s\n", name.c_str(), log.c_str());
    nvrtcGetCUBINSize(prog, &n);
    std::string cubin(n, 0);
    nvrtcGetCUBIN(prog, cubin.data());
    nvrtcDestroyProgram(&prog);
    if (getenv("COMPILE_ONLY")) {
        printf("%-28s %3d registers, %d bytes spilled\n", name.c_str(), k.registers, k.spilled);
        return k;
    }
    if (getenv("KEEP_CUBINS")) { /* for a disassembler, in the order of compilation */
        static int count = 0;
        std::ofstream(getenv("KEEP_CUBINS") + ("/" + std::to_string(count++)) + ".cubin", std::ios::binary) << cubin;
    }
    cudaLibrary_t lib;
    CUDA(cudaLibraryLoadData(&lib, cubin.data(), nullptr, nullptr, 0, nullptr, nullptr, 0));
    CUDA(cudaLibraryGetKernel(&k.fn, lib, entry.c_str()));
    if (!shaped) return k;
    void *at;
    CUDA(cudaLibraryGetGlobal(&at, &n, lib, (entry + "_launch").c_str()));
    CUDA(cudaMemcpy(&k.launch, at, sizeof k.launch, cudaMemcpyDeviceToHost));
    CUDA(cudaFuncSetAttribute((const void *)k.fn, cudaFuncAttributeMaxDynamicSharedMemorySize, k.launch.shared));
    return k;
}

gpu_kernel kernel_build(const std::string &file, const params &values, bool shaped) {
    std::string body;
    const std::string prelude = expand(read_file("templates/" + file), values, &body);
    const char *names = "#define KERNEL_NAME the_kernel\n#define KERNEL_LAUNCH the_kernel_launch\n";
    gpu_kernel k = compile(names + prelude + body, "the_kernel", file, shaped);
    expect(k.spilled == 0, "%s: %d registers, %d bytes spilled", file.c_str(), k.registers, k.spilled);
    return k;
}

gpu_kernel kernel_build_ref(const std::string &file, const std::string &entry, const std::string &template_file,
                            const params &values, const std::string &defines) {
    std::string body;
    const std::string prelude = expand(read_file("templates/" + template_file), values, &body);
    return compile(defines + prelude + read_file("ref/cuda/" + file), entry, file, false);
}

static void launch(const gpu_kernel &k, cudaLaunchConfig_t *c, const sf_cuda_args &a) {
    sf_cuda_args copy = a;
    void *args[] = {&copy};
    CUDA(cudaLaunchKernelExC(c, (const void *)k.fn, args));
}
void kernel_launch(const gpu_kernel &k, const sf_cuda_args &a, cudaStream_t stream) {
    cudaLaunchConfig_t c = {};
    cudaLaunchAttribute at = {};
    at.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    at.val.programmaticStreamSerializationAllowed = k.launch.pdl;
    c.gridDim = dim3((unsigned)k.launch.grid);
    c.blockDim = dim3((unsigned)k.launch.threads);
    c.dynamicSmemBytes = (size_t)k.launch.shared;
    c.stream = stream;
    c.attrs = &at;
    c.numAttrs = 1;
    launch(k, &c, a);
}
void kernel_launch_as(const gpu_kernel &k, dim3 grid, int threads, const sf_cuda_args &a) {
    cudaLaunchConfig_t c = {};
    c.gridDim = grid;
    c.blockDim = dim3((unsigned)threads);
    launch(k, &c, a);
}

void pass_image::add_segment(int rows, int pos0, const std::vector<int> &pages) {
    const sf_cuda_segment s = {(int)positions.size(), rows, pos0, (int)pool.size()};
    for (int i = 0; i < rows; i++) {
        positions.push_back(pos0 + i);
        row_segs.push_back((int)segs.size());
        tokens.push_back(0);
    }
    segs.push_back(s);
    pool.insert(pool.end(), pages.begin(), pages.end());
}

template <typename T> static int put(std::vector<char> *image, const std::vector<T> &v) {
    const size_t at = (image->size() + 15) / 16 * 16;
    image->resize(at + v.size() * sizeof(T));
    memcpy(image->data() + at, v.data(), v.size() * sizeof(T));
    return (int)at;
}

sf_cuda_block *pass_image::upload(sf_cuda_block *reuse) const {
    const size_t most = 4 << 20;
    std::vector<char> image(sizeof(sf_cuda_block));
    sf_cuda_block h = {};
    h.rows = (int)positions.size();
    h.n_segs = (int)segs.size();
    h.n_logits = (int)samples.size();
    h.n_fresh = (int)fresh.size();
    h.tokens = put(&image, tokens);
    h.positions = put(&image, positions);
    h.row_segs = put(&image, row_segs);
    h.segs = put(&image, segs);
    h.logit_rows = put(&image, logit_rows);
    h.samples = put(&image, samples);
    h.fresh = put(&image, fresh);
    h.pool = put(&image, pool);
    memcpy(image.data(), &h, sizeof h);
    if (image.size() > most) {
        printf("a pass block of %zu bytes\n", image.size());
        exit(2);
    }
    if (!reuse) CUDA(cudaMalloc((void **)&reuse, most));
    CUDA(cudaMemcpy(reuse, image.data(), image.size(), cudaMemcpyHostToDevice));
    return reuse;
}

double graph_us(int n, const std::function<void(cudaStream_t, int)> &body) {
    cudaStream_t st;
    cudaGraph_t g;
    cudaGraphExec_t e;
    cudaEvent_t from, to;
    CUDA(cudaStreamCreate(&st));
    CUDA(cudaStreamBeginCapture(st, cudaStreamCaptureModeGlobal));
    for (int i = 0; i < n; i++)
        body(st, i);
    CUDA(cudaStreamEndCapture(st, &g));
    CUDA(cudaGraphInstantiate(&e, g, 0));
    CUDA(cudaEventCreate(&from));
    CUDA(cudaEventCreate(&to));
    std::vector<float> ms(9);
    for (int i = 0; i < 3; i++)
        CUDA(cudaGraphLaunch(e, st));
    for (float &t : ms) {
        CUDA(cudaEventRecord(from, st));
        CUDA(cudaGraphLaunch(e, st));
        CUDA(cudaEventRecord(to, st));
        CUDA(cudaEventSynchronize(to));
        CUDA(cudaEventElapsedTime(&t, from, to));
    }
    std::sort(ms.begin(), ms.end());
    CUDA(cudaGraphExecDestroy(e));
    CUDA(cudaGraphDestroy(g));
    CUDA(cudaStreamDestroy(st));
    return ms[ms.size() / 2] * 1000.0 / n;
}

void *device_alloc(size_t bytes, int fill) {
    void *p;
    CUDA(cudaMalloc(&p, bytes));
    CUDA(cudaMemset(p, fill, bytes));
    return p;
}

/* Two uniform halves of a hash, Box-Muller. */
static __device__ float random_normal(size_t i, unsigned seed) {
    unsigned long long x = (i + 1) * 0x9E3779B97F4A7C15ull + ((unsigned long long)seed << 32);
    x ^= x >> 30;
    x *= 0xBF58476D1CE4E5B9ull;
    x ^= x >> 27;
    x *= 0x94D049BB133111EBull;
    x ^= x >> 31;
    const float u = ((unsigned)x + 0.5f) * 0x1p-32f, v = (unsigned)(x >> 32) * 0x1p-32f;
    return sqrtf(-2.0f * logf(fminf(u, 1.0f - 0x1p-24f))) * cosf(6.2831853f * v);
}
static __global__ void fill_kernel(void *p, size_t n, unsigned seed, float scale, bool bf16) {
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n; i += (size_t)gridDim.x * blockDim.x) {
        const float v = random_normal(i, seed) * scale;
        if (bf16)
            ((unsigned short *)p)[i] = (unsigned short)((__float_as_uint(v) + 0x8000u) >> 16);
        else
            ((float *)p)[i] = v;
    }
}
void fill_bf16(void *p, size_t n, unsigned seed, float scale) {
    fill_kernel<<<1024, 256>>>(p, n, seed, scale, true);
    CUDA(cudaGetLastError());
}
void fill_f32(void *p, size_t n, unsigned seed, float scale) {
    fill_kernel<<<1024, 256>>>(p, n, seed, scale, false);
    CUDA(cudaGetLastError());
}

static __global__ void different_kernel(const unsigned short *a, const unsigned short *b, size_t n,
                                        unsigned long long *count) {
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n; i += (size_t)gridDim.x * blockDim.x)
        if (a[i] != b[i]) atomicAdd(count, 1ull);
}
size_t count_different(const void *a, const void *b, size_t bytes) {
    static unsigned long long *count = nullptr;
    unsigned long long n = 0;
    if (!count) CUDA(cudaMalloc((void **)&count, sizeof *count));
    CUDA(cudaMemset(count, 0, sizeof *count));
    different_kernel<<<512, 256>>>((const unsigned short *)a, (const unsigned short *)b, bytes / 2, count);
    CUDA(cudaMemcpy(&n, count, sizeof n, cudaMemcpyDeviceToHost));
    return (size_t)n;
}

double relative_error(const void *a, bool a_bf16, const float *b, size_t n) {
    std::vector<float> y(n), r(n);
    CUDA(cudaMemcpy(r.data(), b, n * 4, cudaMemcpyDeviceToHost));
    if (a_bf16) {
        std::vector<unsigned short> h(n);
        CUDA(cudaMemcpy(h.data(), a, n * 2, cudaMemcpyDeviceToHost));
        for (size_t i = 0; i < n; i++) {
            const unsigned u = (unsigned)h[i] << 16;
            memcpy(&y[i], &u, 4);
        }
    } else {
        CUDA(cudaMemcpy(y.data(), a, n * 4, cudaMemcpyDeviceToHost));
    }
    double d = 0, s = 0;
    for (size_t i = 0; i < n; i++) {
        if (!(std::fabs(y[i]) < 1e38f)) return 1e9;
        d += ((double)y[i] - r[i]) * ((double)y[i] - r[i]);
        s += (double)r[i] * r[i];
    }
    return std::sqrt(d / s);
}
