/* RoPE in its spellings: rope_theta beside rope_scaling, or both inside rope_parameters; the kind as
 * rope_type or type. */
#include "model/hf_config_priv.h"

#include "device/rope.h"

#include <string.h>

#define DEFAULT_THETA 10000.0

static sf_code read_kind(const sf_hf_config *c, const json_t *map, const char *inside, const char **kind,
                         sf_err *err) {
    const char *old = NULL, *now = NULL;
    SF_TRY(sf_hf_get_text(c, (sf_hf_key){map, inside, "rope_type", false}, &now, err));
    SF_TRY(sf_hf_get_text(c, (sf_hf_key){map, inside, "type", false}, &old, err));
    if (old && now && strcmp(old, now) != 0) {
        return SF_HF_FAIL(c, SF_FORMAT, "keys %srope_type and %stype are %.40s and %.40s, expected the same",
                          inside, inside, now, old);
    }
    *kind = now ? now : old ? old : "default";
    if (now || old || !sf_hf_value(map, "factor")) return SF_OK;
    return SF_HF_FAIL(c, SF_FORMAT, "key %srope_type is missing, and %sfactor is there", inside, inside);
}

static sf_code read_llama3(sf_hf_config *c, const json_t *map, const char *inside, sf_err *err) {
    sf_model_desc *m = &c->model;
    SF_TRY(sf_hf_get_num(c, (sf_hf_key){map, inside, "factor", true}, 1, 1024, &m->rope_factor, err));
    SF_TRY(sf_hf_get_num(c, (sf_hf_key){map, inside, "low_freq_factor", true}, 1e-3, 1024, &m->rope_low_freq,
                         err));
    SF_TRY(sf_hf_get_num(c, (sf_hf_key){map, inside, "high_freq_factor", true}, 1e-3, 1024,
                         &m->rope_high_freq, err));
    SF_TRY(sf_hf_get_int(c, (sf_hf_key){map, inside, "original_max_position_embeddings", true}, 1, 1 << 30,
                         &m->rope_original_context, err));
    if (m->rope_high_freq > m->rope_low_freq) return SF_OK;
    return SF_HF_FAIL(c, SF_FORMAT, "key %shigh_freq_factor is %g, expected over low_freq_factor (%g)",
                      inside, m->rope_high_freq, m->rope_low_freq);
}

/* What is absent is what transformers takes for it. */
static sf_code read_yarn(sf_hf_config *c, const json_t *map, const char *inside, sf_err *err) {
    sf_model_desc *m = &c->model;
    bool truncate = true;
    m->rope_beta_fast = SF_YARN_BETA_FAST;
    m->rope_beta_slow = SF_YARN_BETA_SLOW;
    m->rope_original_context = m->context;
    const struct {
        const char *key;
        double lo, hi, *out;
    } optional[] = {{"beta_fast", 1e-3, 65536, &m->rope_beta_fast},
                    {"beta_slow", 1e-3, 65536, &m->rope_beta_slow},
                    {"attention_factor", 1e-3, 1024, &m->rope_attention_factor},
                    {"mscale", 0, 1024, &m->rope_mscale},
                    {"mscale_all_dim", 0, 1024, &m->rope_mscale_all_dim}};
    SF_TRY(sf_hf_get_num(c, (sf_hf_key){map, inside, "factor", true}, 1, 1024, &m->rope_factor, err));
    SF_TRY(sf_hf_get_int(c, (sf_hf_key){map, inside, "original_max_position_embeddings", false}, 1, 1 << 30,
                         &m->rope_original_context, err));
    for (size_t i = 0; i < sizeof optional / sizeof *optional; i++)
        SF_TRY(sf_hf_get_num(c, (sf_hf_key){map, inside, optional[i].key, false}, optional[i].lo,
                             optional[i].hi, optional[i].out, err));
    SF_TRY(sf_hf_get_bool(c, (sf_hf_key){map, inside, "truncate", false}, &truncate, err));
    m->rope_exact_range = !truncate;
    if (m->rope_beta_fast < m->rope_beta_slow)
        return SF_HF_FAIL(c, SF_FORMAT, "key %sbeta_fast is %g, expected beta_slow (%g) at least", inside,
                          m->rope_beta_fast, m->rope_beta_slow);
    if (m->rope_theta >= 1.001) return SF_OK;
    return SF_HF_FAIL(c, SF_FORMAT, "key rope_theta is %.9g, expected 1.001 at least for yarn",
                      m->rope_theta);
}

/* One set of parameters: of rope_parameters there may be one for each kind of layer, which isn't computed. */
static sf_code read_map(sf_hf_config *c, const json_t *map, const char *inside, sf_err *err) {
    const char *kind = NULL, *key;
    json_t *v;
    json_object_foreach((json_t *)(uintptr_t)map, key, v) {
        if (json_is_object(v)) {
            return SF_HF_FAIL(c, SF_UNSUPPORTED, "key %s%.40s: RoPE by kind of layer is not supported",
                              inside, key);
        }
    }
    SF_TRY(read_kind(c, map, inside, &kind, err));
    if (strcmp(kind, "default") == 0) return SF_OK;
    if (strcmp(kind, "linear") == 0) {
        c->model.rope_kind = "linear";
        return sf_hf_get_num(c, (sf_hf_key){map, inside, "factor", true}, 1, 1024, &c->model.rope_factor,
                             err);
    }
    if (strcmp(kind, "llama3") == 0) {
        c->model.rope_kind = "llama3";
        return read_llama3(c, map, inside, err);
    }
    if (strcmp(kind, "yarn") == 0) {
        c->model.rope_kind = "yarn";
        return read_yarn(c, map, inside, err);
    }
    return SF_HF_FAIL(c, SF_UNSUPPORTED,
                      "key %srope_type is '%.40s', expected default, linear, llama3 or yarn", inside, kind);
}

sf_code sf_hf_config_read_rope(sf_hf_config *c, sf_err *err) {
    const json_t *old = sf_hf_value(c->json, "rope_scaling"), *now = sf_hf_value(c->json, "rope_parameters");
    double outer = 0, inner = 0, whole = 1;
    c->model.rope_kind = "default";
    if ((old && !json_is_object(old)) || (now && !json_is_object(now))) {
        return SF_HF_FAIL(c, SF_FORMAT, "key %s is no object",
                          old && !json_is_object(old) ? "rope_scaling" : "rope_parameters");
    }
    if (old && now)
        return SF_HF_FAIL(c, SF_FORMAT, "keys %s and %s are both there", "rope_scaling", "rope_parameters");
    SF_TRY(sf_hf_get_num(c, (sf_hf_key){c->json, "", "rope_theta", false}, 1, 1e12, &outer, err));
    if (now) {
        sf_hf_key k = {now, "rope_parameters.", "rope_theta", false};
        SF_TRY(sf_hf_get_num(c, k, 1, 1e12, &inner, err));
        k.key = "partial_rotary_factor";
        SF_TRY(sf_hf_get_num(c, k, 0, 1, &whole, err));
    }
    if (outer > 0 && inner > 0 && (float)outer != (float)inner) {
        return SF_HF_FAIL(
            c, SF_FORMAT,
            "keys rope_theta and rope_parameters.rope_theta are %.9g and %.9g, expected the same", outer,
            inner);
    }
    SF_TRY(sf_hf_get_num(c, (sf_hf_key){c->json, "", "partial_rotary_factor", false}, 0, whole, &whole, err));
    if (whole < 1) return SF_HF_FAIL(c, SF_UNSUPPORTED, "key partial_rotary_factor is %g, expected 1", whole);
    c->model.rope_theta = inner > 0 ? inner : outer > 0 ? outer : DEFAULT_THETA;
    if (old) return read_map(c, old, "rope_scaling.", err);
    return now ? read_map(c, now, "rope_parameters.", err) : SF_OK;
}
