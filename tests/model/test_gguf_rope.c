/* RoPE as a GGUF file says it: its keys and rope_freqs.weight, against a model's figures. */
#include "model/gguf_rope.h"

#include "device/rope.h"
#include "model/gguf_make.h"
#include "model/gguf_priv.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <math.h>

/* Llama 3.1's. */
static const sf_model_desc llama3 = {.family = "llama",
                                     .head_dim = 128,
                                     .context = 131072,
                                     .rope_theta = 500000,
                                     .rope_kind = "llama3",
                                     .rope_factor = 8,
                                     .rope_low_freq = 1,
                                     .rope_high_freq = 4,
                                     .rope_original_context = 8192};

typedef struct file {
    const char *kind;    /* rope.scaling.type; NULL: none */
    float factor;        /* 0: none */
    uint32_t original;   /* 0: none */
    float theta;         /* 0: 500000 */
    const float *values; /* rope_freqs.weight; NULL: none */
    uint64_t n_values;
} file;

static gm build(const file *f) {
    const uint64_t dims[1] = {f->n_values};
    gm m = {0};
    gm_head(&m, 3, f->values ? 1 : 0, 1u + !!f->kind + (f->factor > 0) + !!f->original);
    gm_kv_f32(&m, "llama.rope.freq_base", f->theta > 0 ? f->theta : 500000);
    if (f->kind) gm_kv_str(&m, "llama.rope.scaling.type", f->kind);
    if (f->factor > 0) gm_kv_f32(&m, "llama.rope.scaling.factor", f->factor);
    if (f->original) gm_kv_u32(&m, "llama.rope.scaling.original_context_length", f->original);
    if (f->values) gm_tensor(&m, SF_GGUF_ROPE_FREQS, 1, dims, SF_GGML_F32, 0);
    gm_pad(&m, 32);
    for (uint64_t i = 0; i < f->n_values; i++)
        gm_f32(&m, f->values[i]);
    gm_pad(&m, 32);
    return m;
}

/* Keeps the bytes until the next file. */
static sf_gguf *opened(const file *f) {
    static gm m;
    sf_gguf *g = NULL;
    sf_err err = {0};
    gm_fini(&m);
    m = build(f);
    if (sf_gguf_open_bytes("model.gguf", m.data, m.len, &g, &err) != SF_OK) fail_msg("%s", err.msg);
    return g;
}

static sf_code check(const file *f, const sf_model_desc *m, sf_err *err) {
    sf_gguf *g = opened(f);
    sf_code rc = sf_gguf_rope_check(g, m, err);
    sf_gguf_close(g);
    return rc;
}

static void refused(const file *f, const sf_model_desc *m, sf_code code, const char *text) {
    sf_err err = {0};
    sf_code rc = check(f, m, &err);
    if (rc != code || !strstr(err.msg, text))
        fail_msg("code %d '%s', expected %d '%s'", (int)rc, err.msg, (int)code, text);
}

static sf_model_desc read_file(const file *f, const sf_model_desc *of) {
    sf_model_desc m = {.family = "llama", .head_dim = of->head_dim, .context = of->context};
    sf_gguf *g = opened(f);
    sf_err err = {0};
    if (sf_gguf_rope_read(g, &m, &err) != SF_OK) fail_msg("%s", err.msg);
    sf_gguf_close(g);
    return m;
}

/* In fp32 where the converter computes so. */
static void factors_of(const sf_model_desc *m, float *out) {
    for (int i = 0; i < m->head_dim / 2; i++) {
        const float freq = 1.0f / powf((float)m->rope_theta, 2.0f * (float)i / (float)m->head_dim);
        const double turns = m->rope_original_context * (double)freq / 6.283185307179586;
        const double smooth = (turns - m->rope_low_freq) / (m->rope_high_freq - m->rope_low_freq);
        out[i] = (float)(turns > m->rope_high_freq  ? 1
                         : turns < m->rope_low_freq ? m->rope_factor
                                                    : 1 / ((1 - smooth) / m->rope_factor + smooth));
    }
}

static void factors_that_the_figures_give_pass(void **state) {
    (void)state;
    float factors[64];
    factors_of(&llama3, factors);
    sf_err err = {0};
    if (check(&(file){.values = factors, .n_values = 64}, &llama3, &err) != SF_OK) fail_msg("%s", err.msg);
    if (check(&(file){0}, &llama3, &err) != SF_OK) fail_msg("%s", err.msg); /* conversions before it */
}

static void other_factors_are_refused_by_pair(void **state) {
    (void)state;
    float factors[64];
    sf_model_desc plain = {.family = "llama", .head_dim = 128, .rope_theta = 500000}, other = llama3;
    factors_of(&llama3, factors);
    const file f = {.values = factors, .n_values = 64};
    refused(&f, &plain, SF_FORMAT, "tensor rope_freqs.weight: the factor of pair 29 is 1.2");
    other.rope_factor = 32;
    refused(&f, &other, SF_FORMAT, "tensor rope_freqs.weight: the factor of pair 29 is 1.2");
    factors[63] = 7.99f;
    refused(&f, &llama3, SF_FORMAT,
            "tensor rope_freqs.weight: the factor of pair 63 is 7.98999977, expected 8");
    factors[63] = NAN;
    refused(&f, &llama3, SF_FORMAT, "tensor rope_freqs.weight: the factor of pair 63 is nan, expected 8");
    refused(&(file){.values = factors, .n_values = 32}, &llama3, SF_FORMAT,
            "tensor rope_freqs.weight is [32] F32, expected [64] F32");
}

static void figures_are_found_from_factors(void **state) {
    (void)state;
    static const struct {
        double factor, high;
        int original, head_dim;
    } cases[] = {
        {8, 4, 8192, 128}, {32, 4, 8192, 64}, {8, 4, 8192, 80}, {4, 8, 4096, 128}, {16, 2, 32768, 256}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        sf_model_desc m = llama3;
        float factors[256];
        m.rope_factor = cases[i].factor;
        m.rope_high_freq = cases[i].high;
        m.rope_original_context = cases[i].original;
        m.head_dim = cases[i].head_dim;
        factors_of(&m, factors);
        const sf_model_desc found =
            read_file(&(file){.values = factors, .n_values = (uint64_t)m.head_dim / 2}, &m);
        assert_string_equal(found.rope_kind, "llama3");
        assert_true(found.rope_factor == m.rope_factor && found.rope_low_freq == 1 &&
                    found.rope_high_freq == m.rope_high_freq &&
                    found.rope_original_context == m.rope_original_context);
    }
}

static void factors_of_something_else_are_refused(void **state) {
    (void)state;
    float factors[64];
    sf_model_desc m = {.family = "llama", .head_dim = 128, .context = 4096};
    sf_err err = {0};
    for (int kind = 0; kind < 3; kind++) {
        factors_of(&llama3, factors);
        for (int i = 0; i < 64; i++) {
            if (kind == 0) factors[i] = 8;                      /* uniform */
            if (kind == 1) factors[i] = 1 + 7 * (float)i / 63;  /* another curve */
            if (kind == 2 && i == 31) factors[i] = factors[30]; /* one of them off */
        }
        sf_gguf *g = opened(&(file){.values = factors, .n_values = 64});
        assert_int_equal(sf_gguf_rope_read(g, &m, &err), SF_UNSUPPORTED);
        assert_non_null(strstr(err.msg, "no figures of RoPE llama3 give its factors (the last is 8)"));
        sf_gguf_close(g);
    }
    sf_gguf *g = opened(&(file){.kind = "linear", .factor = 2, .values = factors, .n_values = 64});
    assert_int_equal(sf_gguf_rope_read(g, &m, &err), SF_UNSUPPORTED);
    assert_non_null(strstr(err.msg, "RoPE is scaled by it and by keys too"));
    sf_gguf_close(g);
}

static void keys_give_the_kind(void **state) {
    (void)state;
    const sf_model_desc of = {.head_dim = 128, .context = 4096};
    assert_string_equal(read_file(&(file){0}, &of).rope_kind, "default");
    assert_string_equal(read_file(&(file){.kind = "none"}, &of).rope_kind, "default");
    sf_model_desc m = read_file(&(file){.factor = 2}, &of);
    assert_string_equal(m.rope_kind, "linear");
    assert_true(m.rope_factor == 2);
    m = read_file(&(file){.kind = "yarn", .factor = 4, .original = 1024}, &of);
    assert_string_equal(m.rope_kind, "yarn");
    assert_true(m.rope_factor == 4 && m.rope_original_context == 1024 && m.rope_beta_fast == 32);
    assert_int_equal(read_file(&(file){.kind = "yarn", .factor = 4}, &of).rope_original_context, 4096);
}

static void keys_that_differ_from_the_model_are_refused(void **state) {
    (void)state;
    sf_model_desc m = {.family = "llama",
                       .head_dim = 128,
                       .context = 4096,
                       .rope_theta = 500000,
                       .rope_kind = "yarn",
                       .rope_factor = 4,
                       .rope_original_context = 1024,
                       .rope_beta_fast = 32,
                       .rope_beta_slow = 1};
    sf_err err = {0};
    if (check(&(file){.kind = "yarn", .factor = 4, .original = 1024}, &m, &err) != SF_OK)
        fail_msg("%s", err.msg);
    refused(&(file){.kind = "yarn", .factor = 2, .original = 1024}, &m, SF_FORMAT,
            "key llama.rope.scaling.factor is 2, expected 4");
    refused(&(file){.kind = "yarn", .factor = 4}, &m, SF_FORMAT,
            "key llama.rope.scaling.original_context_length is 4096, expected 1024");
    refused(&(file){.kind = "linear", .factor = 4}, &m, SF_FORMAT,
            "keys llama.rope.scaling.* say RoPE linear, expected yarn");
    refused(&(file){.theta = 10000}, &m, SF_FORMAT, "key llama.rope.freq_base is 10000, expected 500000");
    refused(&(file){.kind = "linear", .factor = 2}, &llama3, SF_FORMAT,
            "keys llama.rope.scaling.* say RoPE linear, expected llama3");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(factors_that_the_figures_give_pass),
        cmocka_unit_test(other_factors_are_refused_by_pair),
        cmocka_unit_test(figures_are_found_from_factors),
        cmocka_unit_test(factors_of_something_else_are_refused),
        cmocka_unit_test(keys_give_the_kind),
        cmocka_unit_test(keys_that_differ_from_the_model_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
