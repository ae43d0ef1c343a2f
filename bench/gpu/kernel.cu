#include "kernel.h"

#include <cuda.h>
#include <nvrtc.h>
#include <sys/stat.h>
#include <fstream>
#include <map>
#include <sstream>
#include <vector>

places the_places;

static std::string read_file(const std::string &path) {
    std::ifstream f(path, std::ios::binary);
    std::stringstream s;
    s << f.rdbuf();
    return f ? s.str() : std::string();
}

/* FNV-1a: names a file, guards nothing. */
static unsigned long long hash_add(unsigned long long h, const std::string &s) {
    for (unsigned char c : s) h = (h ^ c) * 1099511628211ull;
    return h;
}

/* Over the source and whatever it includes. */
static unsigned long long hash_of(unsigned long long h, const std::string &source) {
    h = hash_add(h, source);
    const std::string mark = "#include \"";
    for (size_t at = source.find(mark); at != std::string::npos; at = source.find(mark, at + 1)) {
        const size_t from = at + mark.size();
        const std::string name = source.substr(from, source.find('"', from) - from);
        for (const char *folder : {"/templates/", "/runtime/"}) {
            const std::string text = read_file(the_places.root + folder + name);
            if (!text.empty()) h = hash_of(h, text);
        }
    }
    return h;
}

static void check_log(const std::string &name, const std::string &log) {
    const bool spills = log.find("bytes spill") != std::string::npos &&
                        log.find(" 0 bytes spill stores, 0 bytes spill loads") == std::string::npos;
    if (!spills && log.find("(C75") == std::string::npos) return;
    std::fprintf(stderr, "%s: %s\n", name.c_str(), log.c_str());
    std::exit(1);
}

static std::string nvrtc_build(const std::string &name, const std::string &source) {
    nvrtcProgram p;
    nvrtcCreateProgram(&p, source.c_str(), (name + ".cu").c_str(), 0, nullptr, nullptr);
    const std::string runtime = "-I" + the_places.root + "/runtime", templates = "-I" + the_places.root + "/templates";
    const char *options[] = {"--gpu-architecture=sm_90a", "--std=c++17",  "-default-device",  "--fmad=false",
                             "--ptxas-options=-v",        runtime.c_str(), templates.c_str()};
    const nvrtcResult rc = nvrtcCompileProgram(p, (int)(sizeof options / sizeof *options), options);
    size_t n = 0;
    nvrtcGetProgramLogSize(p, &n);
    std::string log(n, 0);
    nvrtcGetProgramLog(p, &log[0]);
    if (rc != NVRTC_SUCCESS) {
        std::fprintf(stderr, "%s: %s\n%s\n", name.c_str(), nvrtcGetErrorString(rc), log.c_str());
        std::exit(1);
    }
    check_log(source.substr(source.find("#define KERNEL_NAME"), 400), log);
    nvrtcGetCUBINSize(p, &n);
    std::string cubin(n, 0);
    nvrtcGetCUBIN(p, &cubin[0]);
    nvrtcDestroyProgram(&p);
    return cubin;
}

std::string kernel_compile(const std::string &name, const std::string &prelude) {
    std::string source = read_file(the_places.root + "/templates/cuda/" + name + ".cu");
    if (source.empty()) source = read_file(the_places.root + "/bench/gpu/" + name + ".cu"); /* pack */
    const size_t from = source.find("//@ prelude"), to = source.find("//@ end");
    if (from == std::string::npos || to == std::string::npos) {
        std::fprintf(stderr, "%s: no template with a prelude\n", name.c_str());
        std::exit(1);
    }
    source = source.substr(0, from) + "#define KERNEL_NAME " + name + "\n#define KERNEL_LAUNCH " + name + "_launch\n" + prelude + source.substr(to);
    char file[64];
    std::snprintf(file, sizeof file, "/%016llx.cubin", hash_of(14695981039346656037ull, source));
    const std::string kept = read_file(the_places.cache + file);
    if (!kept.empty()) return kept;
    std::fprintf(stderr, "compiling %s\n", name.c_str());
    const std::string cubin = nvrtc_build(name, source);
    mkdir(the_places.cache.c_str(), 0777);
    std::ofstream(the_places.cache + file, std::ios::binary) << cubin;
    return cubin;
}

void kernel_prepare(const std::string &name, const std::string &prelude) {
    static int turn = 0;
    if (turn++ % the_places.shares == the_places.share) kernel_compile(name, prelude);
}

kernel kernel_load(const std::string &name, const std::string &prelude, bool sized) {
    static std::map<std::string, kernel> loaded;
    if (loaded.count(name + prelude)) return loaded[name + prelude];
    const std::string cubin = kernel_compile(name, prelude);
    kernel k;
    cudaLibrary_t library;
    CUDA_OK(cudaLibraryLoadData(&library, cubin.data(), nullptr, nullptr, 0, nullptr, nullptr, 0));
    CUDA_OK(cudaLibraryGetKernel(&k.function, library, name.c_str()));
    loaded[name + prelude] = k;
    if (!sized) return k;
    void *at;
    size_t bytes;
    CUDA_OK(cudaLibraryGetGlobal(&at, &bytes, library, (name + "_launch").c_str()));
    CUDA_OK(cudaMemcpy(&k.launch, at, sizeof k.launch, cudaMemcpyDeviceToHost));
    CUDA_OK(cudaFuncSetAttribute((const void *)k.function, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                 k.launch.shared));
    loaded[name + prelude] = k;
    return k;
}

void kernel_launch(const kernel &k, const sf_cuda_args &a, int grid, bool pdl, cudaStream_t stream) {
    const int cluster = k.launch.cluster ? k.launch.cluster : 1;
    cudaLaunchAttribute attributes[2] = {};
    attributes[0].id = cudaLaunchAttributeClusterDimension;
    attributes[0].val.clusterDim = {(unsigned)cluster, 1, 1};
    attributes[1].id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attributes[1].val.programmaticStreamSerializationAllowed = 1;
    cudaLaunchConfig_t c = {};
    c.gridDim = dim3((unsigned)(grid ? grid : k.launch.grid));
    c.blockDim = dim3((unsigned)k.launch.threads);
    c.dynamicSmemBytes = (size_t)k.launch.shared;
    c.stream = stream;
    c.attrs = attributes;
    c.numAttrs = pdl ? 2 : 1;
    void *arguments[] = {(void *)&a};
    CUDA_OK(cudaLaunchKernelExC(&c, (const void *)k.function, arguments));
}

void *tensor_maps(const void *buffer, int rows, int k) {
    void *entry = nullptr;
    cudaDriverEntryPointQueryResult found;
    CUDA_OK(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &entry, 12000, cudaEnableDefault, &found));
    CUtensorMap maps[SF_CUDA_MAPS];
    for (int i = 0; i < SF_CUDA_MAPS; i++) {
        const cuuint64_t size[2] = {(cuuint64_t)k, (cuuint64_t)rows}, stride[1] = {(cuuint64_t)k * 2};
        const cuuint32_t box[2] = {64, 8u << i}, steps[2] = {1, 1};
        const CUresult rc = ((decltype(&cuTensorMapEncodeTiled))entry)(
            &maps[i], CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 2, (void *)buffer, size, stride, box, steps,
            CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
            CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
        if (rc != CUDA_SUCCESS) {
            std::fprintf(stderr, "tensor map of [%d, %d]: error %d\n", rows, k, (int)rc);
            std::exit(1);
        }
    }
    void *device;
    CUDA_OK(cudaMalloc(&device, sizeof maps));
    CUDA_OK(cudaMemcpy(device, maps, sizeof maps, cudaMemcpyHostToDevice));
    return device;
}
