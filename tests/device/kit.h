/* Small things the device's tests share. */
#ifndef SF_TESTS_DEVICE_KIT_H
#define SF_TESTS_DEVICE_KIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/bf16.h"
#include "base/philox.h"
#include "device/cpu/kernel.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A stream of numbers: same seed, same stream. */
typedef struct kit_random {
    uint32_t seed, at;
} kit_random;

static inline uint32_t kit_word(kit_random *r) {
    const uint32_t counter[4] = {r->at++, 0, 0, 0}, key[2] = {r->seed, 77};
    uint32_t w[4];
    sf_philox4x32(counter, key, w);
    return w[0];
}
/* About N(0, 1). */
static inline float kit_normal(kit_random *r) {
    float s = 0;
    for (int i = 0; i < 4; i++)
        s += (float)(kit_word(r) >> 8) * 0x1p-24f;
    return (s - 2.0f) * 1.7320508f;
}
static inline int kit_below(kit_random *r, int n) {
    return (int)(kit_word(r) % (uint32_t)n);
}

static inline float kit_operand(float f) {
    return sf_bf16_to_f32(sf_bf16_operand(f));
}

/* w [n, k] as SF_W_BF16; with `parts` 2, blocks of 16 of the first half and of the second alternate. */
static inline size_t kit_packed_size(int n, int k, int parts) {
    return (size_t)((n / parts + 15) / 16 * parts) * (size_t)((k + 1) / 2) * 32;
}
static inline size_t kit_packed_at(int n, int k, int parts, int row, int col) {
    const int half = n / parts, part = row / half, in = row % half;
    const size_t block = (size_t)(in / 16 * parts + part);
    return ((block * (size_t)((k + 1) / 2) + (size_t)(col / 2)) * 16 + (size_t)(in % 16)) * 2 +
           (size_t)(col % 2);
}
static inline uint16_t *kit_pack(const float *w, int n, int k, int parts) {
    uint16_t *out = calloc(kit_packed_size(n, k, parts), sizeof *out);
    assert_non_null(out);
    for (int r = 0; r < n; r++)
        for (int c = 0; c < k; c++)
            out[kit_packed_at(n, k, parts, r, c)] = sf_bf16_operand(w[(size_t)r * (size_t)k + (size_t)c]);
    return out;
}

static inline void kit_run(sf_cpu_kernel_fn *fn, const sf_cpu_args *a, int parts) {
    for (int part = parts - 1; part >= 0; part--)
        fn(a, part, parts);
}

static inline void kit_near(float a, float b, float tolerance) {
    if (!(fabsf(a - b) <= tolerance * (1.0f + fabsf(b))))
        fail_msg("%.9g, expected %.9g", (double)a, (double)b);
}

#endif
