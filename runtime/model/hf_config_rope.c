/* RoPE in its spellings: rope_theta beside rope_scaling, or both inside rope_parameters; the kind as
 * rope_type or type. */
#include "model/hf_config_priv.h"

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
    return SF_OK;
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
    if (strcmp(kind, "llama3") == 0) {
        c->model.rope_kind = "llama3";
        return read_llama3(c, map, inside, err);
    }
    return SF_HF_FAIL(c, SF_UNSUPPORTED, "key %srope_type is '%.40s', expected default or llama3", inside,
                      kind);
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
