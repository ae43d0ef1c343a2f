#include "odd.h"

/* Only those that the build holds. */
extern const odd_set odd_set_generic, odd_set_avx2, odd_set_avx512, odd_set_avx512bf16;
static const odd_set *const all[] = {
#if SF_HAVE_generic
    &odd_set_generic,
#endif
#if SF_HAVE_avx2
    &odd_set_avx2,
#endif
#if SF_HAVE_avx512
    &odd_set_avx512,
#endif
#if SF_HAVE_avx512bf16
    &odd_set_avx512bf16,
#endif
};

int odd_sets(const odd_set *out[SF_ISA_COUNT]) {
    int n = 0;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (sf_cpu_isa_here(all[i]->isa)) out[n++] = all[i];
    return n;
}
