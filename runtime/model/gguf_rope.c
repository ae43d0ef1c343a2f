#include "model/gguf_rope.h"

#include "device/rope.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define FAIL(g, code, ...) SF_FAIL_AT(err, code, ((sf_loc){sf_gguf_path(g), 0, 0}), __VA_ARGS__)
#define FREQS              "tensor " SF_GGUF_ROPE_FREQS

#define DEFAULT_THETA 10000.0 /* what an absent rope.freq_base means */
#define CLOSE         1e-4    /* of factors that went through fp32 */

static const char *const known[] = {"rope.freq_base",
                                    "rope.scaling.type",
                                    "rope.scaling.factor",
                                    "rope.scaling.original_context_length",
                                    "rope.scaling.finetuned",
                                    "rope.scaling.yarn_beta_fast",
                                    "rope.scaling.yarn_beta_slow"};

bool sf_gguf_rope_knows(const char *key, size_t len) {
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strlen(known[i]) == len && memcmp(known[i], key, len) == 0) return true;
    return false;
}

static void full_key(const sf_model_desc *m, const char *key, char out[128]) {
    snprintf(out, 128, "%s.%s", m->family, key);
}

/* An absent key leaves *out. */
static sf_code read_num(const sf_gguf *g, const sf_model_desc *m, const char *key, double lo, double hi,
                        double *out, sf_err *err) {
    char name[128];
    double v = 0;
    full_key(m, key, name);
    if (!sf_gguf_has(g, name)) return SF_OK;
    SF_TRY(sf_gguf_get_f64(g, name, &v, err));
    if (!(v >= lo && v <= hi)) return FAIL(g, SF_FORMAT, "key %s is %.9g, expected %g..%g", name, v, lo, hi);
    *out = v;
    return SF_OK;
}

static sf_code read_int(const sf_gguf *g, const sf_model_desc *m, const char *key, int *out, sf_err *err) {
    char name[128];
    int64_t v = 0;
    full_key(m, key, name);
    if (!sf_gguf_has(g, name)) return SF_OK;
    SF_TRY(sf_gguf_get_i64(g, name, &v, err));
    if (v < 1 || v > 1 << 30)
        return FAIL(g, SF_FORMAT, "key %s is %lld, expected 1..%d", name, (long long)v, 1 << 30);
    *out = (int)v;
    return SF_OK;
}

/* A file with a factor and no type scales linearly, as llama.cpp takes it. */
static sf_code read_kind(const sf_gguf *g, sf_model_desc *m, sf_err *err) {
    static const char *const kinds[][2] = {{"none", "default"}, {"linear", "linear"}, {"yarn", "yarn"}};
    char name[128];
    sf_str s = {0};
    full_key(m, "rope.scaling.factor", name);
    m->rope_kind = sf_gguf_has(g, name) ? "linear" : "default";
    full_key(m, "rope.scaling.type", name);
    if (!sf_gguf_has(g, name)) return SF_OK;
    SF_TRY(sf_gguf_get_str(g, name, &s, err));
    m->rope_kind = NULL;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (strlen(kinds[i][0]) == s.len && memcmp(kinds[i][0], s.data, s.len) == 0)
            m->rope_kind = kinds[i][1];
    if (m->rope_kind) return SF_OK;
    return FAIL(g, SF_UNSUPPORTED, "key %s is '%.*s', expected none, linear or yarn", name,
                (int)(s.len < 40 ? s.len : 40), s.data);
}

static sf_code read_keys(const sf_gguf *g, sf_model_desc *m, sf_err *err) {
    m->rope_theta = DEFAULT_THETA;
    SF_TRY(read_num(g, m, "rope.freq_base", 1.001, 1e12, &m->rope_theta, err));
    SF_TRY(read_kind(g, m, err));
    if (strcmp(m->rope_kind, "default") == 0) return SF_OK;
    m->rope_factor = 1;
    SF_TRY(read_num(g, m, "rope.scaling.factor", 1, 1024, &m->rope_factor, err));
    if (strcmp(m->rope_kind, "yarn") != 0) return SF_OK;
    m->rope_original_context = m->context;
    m->rope_beta_fast = SF_YARN_BETA_FAST;
    m->rope_beta_slow = SF_YARN_BETA_SLOW;
    SF_TRY(read_int(g, m, "rope.scaling.original_context_length", &m->rope_original_context, err));
    SF_TRY(read_num(g, m, "rope.scaling.yarn_beta_fast", 0.001, 65536, &m->rope_beta_fast, err));
    return read_num(g, m, "rope.scaling.yarn_beta_slow", 0.001, 65536, &m->rope_beta_slow, err);
}

/* The factors of rope_freqs.weight, [head_dim / 2]. */
static sf_code read_factors(const sf_gguf *g, const sf_gguf_tensor *t, const sf_model_desc *m, float *out,
                            sf_err *err) {
    const uint64_t pairs = (uint64_t)m->head_dim / 2;
    if (m->head_dim < 2 || pairs > SF_ROPE_PAIRS_MAX)
        return FAIL(g, SF_UNSUPPORTED, FREQS ": heads have %d values, expected 2..%d", m->head_dim,
                    2 * SF_ROPE_PAIRS_MAX);
    if (t->type != SF_GGML_F32 || t->n_dims != 1 || t->dims[0] != pairs)
        return FAIL(g, SF_FORMAT, FREQS " is [%llu] %s, expected [%d] F32", (unsigned long long)t->dims[0],
                    sf_ggml_type_name(t->type), (int)pairs);
    return sf_gguf_dequant(t, 0, 0, pairs, out, err);
}

/* The first pair whose factor isn't what m's figures give; -1: all agree. */
static int differing(const sf_model_desc *m, const float *factors, double *want) {
    sf_rope rope;
    sf_rope_init(m, &rope);
    for (int i = 0; i < rope.pairs; i++) {
        *want = sf_rope_frequency(m->rope_theta, i, m->head_dim) / rope.freq[i];
        if (!(fabs((double)factors[i] / *want - 1) <= CLOSE)) return i;
    }
    return -1;
}

/* Between low and high, 1 / factor falls linearly with a pair's turns in the original context: two pairs
 * there give the line, hence both ends of it in frequencies. */
static bool solve_llama3(sf_model_desc *m, const float *factors) {
    const double two_pi = 6.283185307179586, most = (double)factors[m->head_dim / 2 - 1];
    double plain[2] = {0, 0}, share[2] = {0, 0};
    int n = 0;
    for (int i = 0; i < m->head_dim / 2; i++) {
        const double f = (double)factors[i];
        if (!(f > 1 + CLOSE && f < most * (1 - CLOSE))) continue;
        const int at = n++ > 0; /* the first and the last */
        plain[at] = sf_rope_frequency(m->rope_theta, i, m->head_dim);
        share[at] = (1 / f - 1 / most) / (1 - 1 / most);
    }
    if (n < 2 || !(most <= 1024)) return false;
    const double slope = (share[0] - share[1]) / (plain[0] - plain[1]), base = slope * plain[0] - share[0];
    const double context = two_pi * slope / base;
    if (!(base > 0 && context >= 16 && context <= 1 << 20)) return false;
    m->rope_kind = "llama3";
    m->rope_factor = most;
    m->rope_low_freq = 1;
    m->rope_high_freq = round((1 + 1 / base) * 1000) / 1000;
    m->rope_original_context = (int)(context + 0.5);
    double want = 0;
    return differing(m, factors, &want) < 0;
}

sf_code sf_gguf_rope_read(const sf_gguf *g, sf_model_desc *m, sf_err *err) {
    const sf_gguf_tensor *t = sf_gguf_find_tensor(g, SF_GGUF_ROPE_FREQS);
    float factors[SF_ROPE_PAIRS_MAX];
    SF_TRY(read_keys(g, m, err));
    if (!t) return SF_OK;
    SF_TRY(read_factors(g, t, m, factors, err));
    if (strcmp(m->rope_kind, "default") != 0)
        return FAIL(g, SF_UNSUPPORTED, FREQS ": RoPE is scaled by it and by keys too");
    if (solve_llama3(m, factors)) return SF_OK;
    return FAIL(g, SF_UNSUPPORTED,
                FREQS
                ": no figures of RoPE llama3 give its factors (the last is %.9g); import from the directory "
                "with config.json",
                (double)factors[m->head_dim / 2 - 1]);
}

static sf_code check_factors(const sf_gguf *g, const sf_gguf_tensor *t, const sf_model_desc *m, sf_err *err) {
    float factors[SF_ROPE_PAIRS_MAX];
    double want = 1;
    SF_TRY(read_factors(g, t, m, factors, err));
    const int i = differing(m, factors, &want);
    if (i < 0) return SF_OK;
    return FAIL(g, SF_FORMAT, FREQS ": the factor of pair %d is %.9g, expected %.9g", i, (double)factors[i],
                want);
}

sf_code sf_gguf_rope_check(const sf_gguf *g, const sf_model_desc *m, sf_err *err) {
    const sf_gguf_tensor *t = sf_gguf_find_tensor(g, SF_GGUF_ROPE_FREQS);
    const char *kind = m->rope_kind ? m->rope_kind : "default";
    const bool llama3 = strcmp(kind, "llama3") == 0;
    sf_model_desc file = {.family = m->family, .context = m->context};
    SF_TRY(read_keys(g, &file, err));
    if ((float)file.rope_theta != (float)m->rope_theta) {
        char name[128];
        full_key(m, "rope.freq_base", name);
        return FAIL(g, SF_FORMAT, "key %s is %s%.9g, expected %.9g", name,
                    sf_gguf_has(g, name) ? "" : "missing, which means ", file.rope_theta, m->rope_theta);
    }
    if (strcmp(file.rope_kind, llama3 ? "default" : kind) != 0)
        return FAIL(g, SF_FORMAT, "keys %s.rope.scaling.* say RoPE %s, expected %s", m->family,
                    file.rope_kind, kind);
    const struct {
        const char *key;
        double found, expected;
    } figures[] = {
        {"factor", file.rope_factor, llama3 ? 0 : m->rope_factor},
        {"original_context_length", file.rope_original_context, llama3 ? 0 : m->rope_original_context},
        {"yarn_beta_fast", file.rope_beta_fast, m->rope_beta_fast},
        {"yarn_beta_slow", file.rope_beta_slow, m->rope_beta_slow}};
    for (size_t i = 0; i < sizeof figures / sizeof *figures; i++)
        if ((float)figures[i].found != (float)figures[i].expected)
            return FAIL(g, SF_FORMAT, "key %s.rope.scaling.%s is %.9g, expected %.9g", m->family,
                        figures[i].key, figures[i].found, figures[i].expected);
    return t ? check_factors(g, t, m, err) : SF_OK;
}
