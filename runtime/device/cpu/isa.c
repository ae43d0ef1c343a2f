#include "device/cpu/cpu.h"

#include <string.h>

static const char *const names[SF_ISA_COUNT] = {"generic", "avx2", "avx512", "avx512bf16"};

const char *sf_isa_name(sf_isa isa) {
    return names[isa];
}

bool sf_isa_find(const char *name, sf_isa *out) {
    for (int i = 0; i < SF_ISA_COUNT; i++) {
        if (strcmp(name, names[i]) != 0) continue;
        *out = (sf_isa)i;
        return true;
    }
    return false;
}

bool sf_cpu_isa_here(sf_isa isa) {
#if defined(__x86_64__)
    const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    const bool avx512 = avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
    switch (isa) {
    case SF_ISA_GENERIC:
        return true;
    case SF_ISA_AVX2:
        return avx2;
    case SF_ISA_AVX512:
        return avx512;
    case SF_ISA_AVX512BF16:
        return avx512 && __builtin_cpu_supports("avx512bf16");
    default:
        return false;
    }
#else
    return isa == SF_ISA_GENERIC;
#endif
}

static bool built(const sf_plan *plan, sf_isa isa) {
    for (int i = 0; i < plan->n_kernels; i++)
        if (!plan->kernels[i].cpu[isa]) return false;
    return true;
}

sf_isa sf_cpu_isa_best(const sf_plan *plan) {
    for (int i = SF_ISA_COUNT - 1; i > 0; i--)
        if (sf_cpu_isa_here((sf_isa)i) && built(plan, (sf_isa)i)) return (sf_isa)i;
    return SF_ISA_GENERIC;
}
