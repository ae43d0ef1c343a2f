/* gemm compile|check|check-fast|time|all|fast|sweep|sweep-compile|shapes|shapes-compile [--root DIR] [--cache DIR] [--json FILE] [--share I/N]: the pinned matrix products on this GPU. */
#include <cstring>
#include <fstream>
#include "gemm_check.h"
#include "gemm_fast.h"
#include "gemm_time.h"

static int check_all(int (*check)(const gemm_op &)) {
    int failures = 0;
    for (const gemm_op &op : gemm_variants()) failures += check(op);
    for (const gemm_model *m : {&smollm2_135m(), &llama_8b()}) {
        failures += check(m->head);
        for (auto op = m->layer.rbegin(); op != m->layer.rend(); ++op) failures += check(*op);
    }
    std::printf("%s: %d failures\n", failures ? "FAILED" : "passed", failures);
    return failures;
}

static void time_all(const cudaDeviceProp &gpu, const char *file, void (*time)(const gemm_model &, std::string *)) {
    int driver = 0;
    CUDA_OK(cudaDriverGetVersion(&driver));
    std::string json = "{\n  \"gpu\": \"" + std::string(gpu.name) + "\",\n  \"driver_cuda\": " + std::to_string(driver) +
                       ",\n  \"results\": [\n";
    for (const gemm_model *m : {&llama_8b(), &smollm2_135m()}) time(*m, &json);
    json.erase(json.rfind(','), 1);
    json += "  ]\n}\n";
    if (file) std::ofstream(file) << json;
}

int main(int argc, char **argv) {
    const char *verb = argc > 1 ? argv[1] : "all", *file = nullptr;
    for (int i = 2; i + 1 < argc; i += 2) {
        if (!std::strcmp(argv[i], "--root")) the_places.root = argv[i + 1];
        else if (!std::strcmp(argv[i], "--cache")) the_places.cache = argv[i + 1];
        else if (!std::strcmp(argv[i], "--json")) file = argv[i + 1];
        else if (!std::strcmp(argv[i], "--share")) std::sscanf(argv[i + 1], "%d/%d", &the_places.share, &the_places.shares);
    }
    const bool all = !std::strcmp(verb, "all");
    if (!std::strcmp(verb, "compile")) {
        gemm_compile_all();
        return 0;
    }
    if (!std::strcmp(verb, "sweep-compile")) {
        for (const gemm_model *m : {&smollm2_135m(), &llama_8b()}) gemm_sweep_compile(*m);
        return 0;
    }
    if (!std::strcmp(verb, "shapes-compile")) {
        gemm_shapes_compile(llama_8b());
        return 0;
    }
    if (!std::strcmp(verb, "between-compile")) {
        gemm_between_compile(llama_8b());
        return 0;
    }
    cudaDeviceProp gpu;
    CUDA_OK(cudaGetDeviceProperties(&gpu, 0));
    int failures = 0;
    if (all || !std::strcmp(verb, "check")) failures = check_all(gemm_check);
    if (!std::strcmp(verb, "check-fast")) failures = check_all(gemm_check_fast);
    if (all || !std::strcmp(verb, "time")) time_all(gpu, file, gemm_time);
    if (!std::strcmp(verb, "fast")) time_all(gpu, file, gemm_fast);
    if (!std::strcmp(verb, "sweep"))
        for (const gemm_model *m : {&smollm2_135m(), &llama_8b()}) gemm_sweep(*m);
    if (!std::strcmp(verb, "shapes")) gemm_shapes(llama_8b());
    if (!std::strcmp(verb, "between")) gemm_between(llama_8b());
    return failures != 0;
}
