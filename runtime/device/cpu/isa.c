#include "device/cpu/cpu.h"

#include <stdio.h>
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

enum { ANY, HERE, BUILT };

/* Writes the names of the sets that exist, that this machine runs or that the plan has, a space before each.
 */
static const char *list(const sf_plan *plan, int which, char out[80]) {
    size_t len = 0;
    out[0] = '\0';
    for (int i = 0; i < SF_ISA_COUNT; i++) {
        const bool has =
            which == ANY || (which == HERE ? sf_cpu_isa_here((sf_isa)i) : built(plan, (sf_isa)i));
        const int n = has ? snprintf(out + len, 80 - len, " %s", names[i]) : 0;
        if (n > 0 && (size_t)n < 80 - len) len += (size_t)n;
    }
    return out;
}

sf_code sf_cpu_isa_pick(const sf_plan *plan, const char *name, sf_isa *out, sf_err *err) {
    char a[80], b[80];
    sf_isa isa = sf_cpu_isa_best(plan);
    const bool named = name && strcmp(name, "auto") != 0;
    if (named && !sf_isa_find(name, &isa))
        return SF_FAIL(err, SF_INVALID, "isa is %s, expected auto or one of%s", name, list(plan, ANY, a));
    if (!sf_cpu_isa_here(isa) || !built(plan, isa))
        return SF_FAIL(err, SF_UNSUPPORTED, "no kernels for %s: this machine runs%s, this build holds%s",
                       names[isa], list(plan, HERE, a), list(plan, BUILT, b));
    *out = isa;
    return SF_OK;
}
