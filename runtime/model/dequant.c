/* Dequantisation of ggml's types. Every operation is one IEEE fp32 operation in the order of the formula, so
 * the result has the same bits everywhere. An infinite or NaN scale is not an error here: it gives what the
 * arithmetic gives (the weights loader refuses values that are not finite). */
#include "model/gguf.h"
#include "model/gguf_priv.h"

#include <string.h>

#define BLOCK_MAX 256 /* elements of the longest block that is readable */

typedef void dequant_fn(const uint8_t *p, size_t blocks, float *out);

static float from_bits(uint32_t u) {
    float f;
    memcpy(&f, &u, sizeof f);
    return f;
}

static uint32_t to_bits(float f) {
    uint32_t u;
    memcpy(&u, &f, sizeof u);
    return u;
}

/* binary16 -> binary32, exact. The exponent is re-biased by a multiplication, which normalises subnormals
 * too. */
static float half(const uint8_t *p) {
    uint32_t h = sf_load_u16(p), magnitude = h & 0x7fffu;
    uint32_t u = to_bits(from_bits(magnitude << 13) * 0x1p112f);
    uint32_t special = magnitude >= 0x7c00u ? 0x7f800000u : 0;
    return from_bits(u | special | (h & 0x8000u) << 16);
}

static void dequant_f32(const uint8_t *p, size_t blocks, float *out) {
    for (size_t i = 0; i < blocks; i++)
        out[i] = from_bits(sf_load_u32(p + 4 * i));
}

static void dequant_f16(const uint8_t *p, size_t blocks, float *out) {
    for (size_t i = 0; i < blocks; i++)
        out[i] = half(p + 2 * i);
}

static void dequant_bf16(const uint8_t *p, size_t blocks, float *out) {
    for (size_t i = 0; i < blocks; i++)
        out[i] = from_bits((uint32_t)sf_load_u16(p + 2 * i) << 16);
}

/* d, 32 x int8 */
static void dequant_q8_0(const uint8_t *p, size_t blocks, float *out) {
    for (size_t b = 0; b < blocks; b++, p += 34, out += 32) {
        float d = half(p);
        for (int i = 0; i < 32; i++)
            out[i] = d * (float)(int8_t)p[2 + i];
    }
}

/* d, 16 bytes: low nibbles are elements 0..15, high ones 16..31 */
static void dequant_q4_0(const uint8_t *p, size_t blocks, float *out) {
    for (size_t b = 0; b < blocks; b++, p += 18, out += 32) {
        float d = half(p);
        for (int i = 0; i < 16; i++) {
            out[i] = d * (float)((p[2 + i] & 15) - 8);
            out[16 + i] = d * (float)((p[2 + i] >> 4) - 8);
        }
    }
}

/* d, m, 16 bytes as above */
static void dequant_q4_1(const uint8_t *p, size_t blocks, float *out) {
    for (size_t b = 0; b < blocks; b++, p += 20, out += 32) {
        float d = half(p), m = half(p + 2);
        for (int i = 0; i < 16; i++) {
            out[i] = d * (float)(p[4 + i] & 15) + m;
            out[16 + i] = d * (float)(p[4 + i] >> 4) + m;
        }
    }
}

/* d, 32 fifth bits, 16 bytes: low nibbles are elements 0..15, high ones 16..31 */
static void dequant_q5_0(const uint8_t *p, size_t blocks, float *out) {
    for (size_t b = 0; b < blocks; b++, p += 22, out += 32) {
        float d = half(p);
        uint32_t high = sf_load_u32(p + 2);
        for (int i = 0; i < 16; i++) {
            int low = p[6 + i] & 15, upper = p[6 + i] >> 4;
            out[i] = d * (float)((low | (int)(high >> i & 1) << 4) - 16);
            out[16 + i] = d * (float)((upper | (int)(high >> (16 + i) & 1) << 4) - 16);
        }
    }
}

/* d, m, then as above */
static void dequant_q5_1(const uint8_t *p, size_t blocks, float *out) {
    for (size_t b = 0; b < blocks; b++, p += 24, out += 32) {
        float d = half(p), m = half(p + 2);
        uint32_t high = sf_load_u32(p + 4);
        for (int i = 0; i < 16; i++) {
            int low = p[8 + i] & 15, upper = p[8 + i] >> 4;
            out[i] = d * (float)(low | (int)(high >> i & 1) << 4) + m;
            out[16 + i] = d * (float)(upper | (int)(high >> (16 + i) & 1) << 4) + m;
        }
    }
}

/* The 6-bit scale and minimum of group i (of 8) of a k-quant: 12 bytes hold the low 6 bits of the first four
 * scales and minima, then nibbles of the last four, whose upper two bits are those of the first eight bytes.
 */
static void scale_min(const uint8_t *p, int i, float *scale, float *min) {
    if (i < 4) {
        *scale = (float)(p[i] & 63);
        *min = (float)(p[i + 4] & 63);
    } else {
        *scale = (float)((p[i + 4] & 15) | (p[i - 4] >> 6) << 4);
        *min = (float)((p[i + 4] >> 4) | (p[i] >> 6) << 4);
    }
}

/* d, dmin, 12 bytes of scales and minima, 128 bytes: each 32 hold the nibbles of two groups of 32 */
static void dequant_q4_k(const uint8_t *p, size_t blocks, float *out) {
    for (size_t b = 0; b < blocks; b++, p += 144) {
        float d = half(p), dmin = half(p + 2);
        for (int g = 0; g < 8; g++, out += 32) {
            const uint8_t *q = p + 16 + g / 2 * 32;
            float scale, min;
            scale_min(p + 4, g, &scale, &min);
            scale *= d;
            min *= dmin;
            for (int i = 0; i < 32; i++)
                out[i] = scale * (float)(q[i] >> (g % 2 * 4) & 15) - min;
        }
    }
}

/* d, dmin, scales and minima, 32 bytes whose bit g is the fifth bit of group g, nibbles as above */
static void dequant_q5_k(const uint8_t *p, size_t blocks, float *out) {
    for (size_t b = 0; b < blocks; b++, p += 176) {
        float d = half(p), dmin = half(p + 2);
        for (int g = 0; g < 8; g++, out += 32) {
            const uint8_t *high = p + 16, *q = p + 48 + g / 2 * 32;
            float scale, min;
            scale_min(p + 4, g, &scale, &min);
            scale *= d;
            min *= dmin;
            for (int i = 0; i < 32; i++)
                out[i] = scale * (float)((q[i] >> (g % 2 * 4) & 15) | (high[i] >> g & 1) << 4) - min;
        }
    }
}

/* 128 bytes of low nibbles (each 64: 64 low ones, then 64 high ones), 64 bytes of upper pairs of bits (each
 * 32: four groups of 32), 16 x int8 scales, d */
static void dequant_q6_k(const uint8_t *p, size_t blocks, float *out) {
    for (size_t b = 0; b < blocks; b++, p += 210, out += 256) {
        float d = half(p + 208);
        for (int i = 0; i < 256; i++) {
            int in = i % 128, low = p[i / 128 * 64 + in % 64] >> (in / 64 * 4) & 15;
            int high = p[128 + i / 128 * 32 + in % 32] >> (in / 32 * 2) & 3;
            float scale = d * (float)(int8_t)p[192 + i / 16];
            out[i] = scale * (float)((low | high << 4) - 32);
        }
    }
}

/* The types of the format (ggml.h): elements and bytes of a block; fn where it is readable. */
static const struct {
    const char *name;
    uint16_t elements, bytes;
    dequant_fn *fn;
} types[] = {
    [SF_GGML_F32] = {"F32", 1, 4, dequant_f32},
    [SF_GGML_F16] = {"F16", 1, 2, dequant_f16},
    [SF_GGML_Q4_0] = {"Q4_0", 32, 18, dequant_q4_0},
    [SF_GGML_Q4_1] = {"Q4_1", 32, 20, dequant_q4_1},
    [SF_GGML_Q5_0] = {"Q5_0", 32, 22, dequant_q5_0},
    [SF_GGML_Q5_1] = {"Q5_1", 32, 24, dequant_q5_1},
    [SF_GGML_Q8_0] = {"Q8_0", 32, 34, dequant_q8_0},
    [9] = {"Q8_1", 32, 40, NULL},
    [10] = {"Q2_K", 256, 84, NULL},
    [11] = {"Q3_K", 256, 110, NULL},
    [SF_GGML_Q4_K] = {"Q4_K", 256, 144, dequant_q4_k},
    [SF_GGML_Q5_K] = {"Q5_K", 256, 176, dequant_q5_k},
    [SF_GGML_Q6_K] = {"Q6_K", 256, 210, dequant_q6_k},
    [15] = {"Q8_K", 256, 292, NULL}, /* of activations; never in a checkpoint */
    [16] = {"IQ2_XXS", 256, 66, NULL},
    [17] = {"IQ2_XS", 256, 74, NULL},
    [18] = {"IQ3_XXS", 256, 98, NULL},
    [19] = {"IQ1_S", 256, 50, NULL},
    [20] = {"IQ4_NL", 32, 18, NULL},
    [21] = {"IQ3_S", 256, 110, NULL},
    [22] = {"IQ2_S", 256, 82, NULL},
    [23] = {"IQ4_XS", 256, 136, NULL},
    [24] = {"I8", 1, 1, NULL},
    [25] = {"I16", 1, 2, NULL},
    [26] = {"I32", 1, 4, NULL},
    [27] = {"I64", 1, 8, NULL},
    [28] = {"F64", 1, 8, NULL},
    [29] = {"IQ1_M", 256, 56, NULL},
    [SF_GGML_BF16] = {"BF16", 1, 2, dequant_bf16},
    [34] = {"TQ1_0", 256, 54, NULL},
    [35] = {"TQ2_0", 256, 66, NULL},
    [39] = {"MXFP4", 32, 17, NULL},
};

static bool known(uint32_t type) {
    return type < sizeof types / sizeof *types && types[type].name;
}

const char *sf_ggml_type_name(uint32_t type) {
    return known(type) ? types[type].name : "an unknown type";
}

bool sf_ggml_type_readable(uint32_t type) {
    return known(type) && types[type].fn;
}

bool sf_ggml_type_block(uint32_t type, uint32_t *elements, uint32_t *bytes) {
    if (!known(type)) return false;
    *elements = types[type].elements;
    *bytes = types[type].bytes;
    return true;
}

size_t sf_ggml_bytes(uint32_t type, uint64_t count) {
    uint64_t block = types[type].elements;
    return (size_t)((count + block - 1) / block) * types[type].bytes;
}

void sf_ggml_dequant(uint32_t type, const uint8_t *p, uint64_t count, float *out) {
    size_t block = types[type].elements, whole = (size_t)count / block, rest = (size_t)count % block;
    types[type].fn(p, whole, out);
    if (rest) {
        float last[BLOCK_MAX];
        types[type].fn(p + whole * types[type].bytes, 1, last);
        memcpy(out + whole * block, last, rest * sizeof *out);
    }
}

sf_code sf_gguf_dequant(const sf_gguf_tensor *t, uint64_t row, uint64_t from, uint64_t count, float *out,
                        sf_err *err) {
    if (!sf_ggml_type_readable(t->type)) {
        return SF_FAIL(err, SF_UNSUPPORTED, "tensor %s is %s (%u), which cannot be read", t->name,
                       sf_ggml_type_name(t->type), t->type);
    }
    uint64_t rows = t->dims[1] * t->dims[2] * t->dims[3], block = types[t->type].elements;
    if (row >= rows || from > t->dims[0] || count > t->dims[0] - from || from % block != 0) {
        return SF_FAIL(err, SF_INVALID, "tensor %s: row %llu, elements %llu + %llu of [%llu, %llu]", t->name,
                       (unsigned long long)row, (unsigned long long)from, (unsigned long long)count,
                       (unsigned long long)rows, (unsigned long long)t->dims[0]);
    }
    sf_ggml_dequant(t->type, t->data + sf_ggml_bytes(t->type, row * t->dims[0] + from), count, out);
    return SF_OK;
}
