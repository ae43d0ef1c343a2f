/* bfloat16 <-> float. */
#ifndef SF_BASE_BF16_H
#define SF_BASE_BF16_H

#include <stdint.h>
#include <string.h>

static inline float sf_bf16_to_f32(uint16_t b) {
    uint32_t u = (uint32_t)b << 16;
    float f;
    memcpy(&f, &u, sizeof f);
    return f;
}

/* Round to nearest even; NaN stays NaN (quiet). */
static inline uint16_t sf_bf16_from_f32(float f) {
    uint32_t u;
    memcpy(&u, &f, sizeof u);
    uint32_t nan = (u >> 16) | 0x40u, rounded = (u + 0x7fffu + ((u >> 16) & 1u)) >> 16;
    return (uint16_t)((u & 0x7fffffffu) > 0x7f800000u ? nan : rounded); /* no branch: loops vectorise */
}

/* As above, and magnitudes under 2^-60 become +0: then the product of any two such values is a normal number
 * (>= 2^-120) or zero, hence exact in fp32, and a fused multiply-add equals a multiply and an add. Every bf16
 * operand of a pinned product (weights, activations, K, V, probabilities) is made by this function. */
static inline uint16_t sf_bf16_operand(float f) {
    uint32_t u;
    memcpy(&u, &f, sizeof u);
    uint32_t b = sf_bf16_from_f32(f);
    return (uint16_t)((u & 0x7fffffffu) < 0x21800000u ? 0 : b); /* 2^-60 */
}

#endif
