/* A config.json's figures against the plan's. */
#include "device/rope.h"
#include "model/weights_priv.h"

#include <string.h>

#define FAIL(c, code, ...) SF_FAIL_AT(err, code, ((sf_loc){sf_hf_config_path(c), 0, 0}), __VA_ARGS__)

typedef struct figure {
    const char *key;
    double found, expected; /* compared as fp32 where either isn't an integer */
} figure;

static const char *missing(const sf_hf_config *c, const char *key) {
    return sf_hf_config_has(c, key) ? "" : "missing, which means ";
}

static sf_code check_figures(const sf_hf_config *c, const figure *f, size_t n, sf_err *err) {
    for (size_t i = 0; i < n; i++) {
        if ((float)f[i].found != (float)f[i].expected || (int64_t)f[i].found != (int64_t)f[i].expected) {
            return FAIL(c, SF_FORMAT, "config.json: key %s is %s%.9g, expected %.9g", f[i].key,
                        missing(c, f[i].key), f[i].found, f[i].expected);
        }
    }
    return SF_OK;
}

/* RoPE's keys stand in one of three places, so a message names them without it. What a kind doesn't have is 0
 * on both sides. */
static sf_code check_rope(const sf_hf_config *c, const sf_model_desc *m, const sf_model_desc *p,
                          sf_err *err) {
    const char *kind = p->rope_kind ? p->rope_kind : "default";
    sf_rope found, expected;
    if ((float)m->rope_theta != (float)p->rope_theta) {
        return FAIL(c, SF_FORMAT, "config.json: key rope_theta is %.9g, expected %.9g", m->rope_theta,
                    p->rope_theta);
    }
    if (strcmp(m->rope_kind, kind) != 0)
        return FAIL(c, SF_FORMAT, "config.json: key rope_type is %s, expected %s", m->rope_kind, kind);
    sf_rope_init(m, &found);
    sf_rope_init(p, &expected);
    const figure scaled[] = {
        {"factor", m->rope_factor, p->rope_factor},
        {"low_freq_factor", m->rope_low_freq, p->rope_low_freq},
        {"high_freq_factor", m->rope_high_freq, p->rope_high_freq},
        {"original_max_position_embeddings", m->rope_original_context, p->rope_original_context},
        {"beta_fast", m->rope_beta_fast, p->rope_beta_fast},
        {"beta_slow", m->rope_beta_slow, p->rope_beta_slow},
        {"attention_factor (or mscale and mscale_all_dim)", found.attention, expected.attention},
        {"truncate", !m->rope_exact_range, !p->rope_exact_range},
    };
    for (size_t i = 0; i < sizeof scaled / sizeof *scaled; i++) {
        if ((float)scaled[i].found != (float)scaled[i].expected) {
            return FAIL(c, SF_FORMAT, "config.json: RoPE's key %s is %.9g, expected %.9g", scaled[i].key,
                        scaled[i].found, scaled[i].expected);
        }
    }
    return SF_OK;
}

/* The plan may know more ids that end (generation_config.json has them), never fewer. */
static sf_code check_ids(const sf_hf_config *c, const sf_model_desc *m, const sf_model_desc *p, sf_err *err) {
    if (m->bos >= 0 && p->bos >= 0 && m->bos != p->bos)
        return FAIL(c, SF_FORMAT, "config.json: key bos_token_id is %d, expected %d", m->bos, p->bos);
    for (int i = 0; i < m->n_eos; i++) {
        bool known = false;
        for (int j = 0; j < p->n_eos; j++)
            known = known || p->eos[j] == m->eos[i];
        if (!known) {
            return FAIL(c, SF_FORMAT, "config.json: key eos_token_id has %d, which model %s does not list",
                        m->eos[i], p->name);
        }
    }
    return SF_OK;
}

sf_code sf_weights_check_config(const sf_plan *plan, const sf_hf_config *c, sf_err *err) {
    const sf_model_desc *m = sf_hf_config_model(c), *p = &plan->model;
    const figure figures[] = {
        {"vocab_size", m->vocab, p->vocab},
        {"hidden_size", m->hidden, p->hidden},
        {"num_hidden_layers", m->layers, p->layers},
        {"num_attention_heads", m->heads, p->heads},
        {"num_key_value_heads", m->kv_heads, p->kv_heads},
        {"head_dim", m->head_dim, p->head_dim},
        {"intermediate_size", m->intermediate, p->intermediate},
        {"max_position_embeddings", m->context, p->context},
        {"rms_norm_eps", (double)m->norm_eps, (double)p->norm_eps},
    };
    if (strcmp(m->family, p->family) != 0) {
        return FAIL(c, SF_UNSUPPORTED, "config.json: key model_type belongs to family %s, expected %s",
                    m->family, p->family);
    }
    SF_TRY(check_figures(c, figures, sizeof figures / sizeof *figures, err));
    if (m->tied_embeddings != p->tied_embeddings) {
        return FAIL(c, SF_FORMAT, "config.json: key tie_word_embeddings is %s%s, expected %s",
                    missing(c, "tie_word_embeddings"), m->tied_embeddings ? "true" : "false",
                    p->tied_embeddings ? "true" : "false");
    }
    if (m->qkv_bias != p->qkv_bias) {
        return FAIL(c, SF_FORMAT, "config.json: the model has %s of q, k and v, expected %s",
                    m->qkv_bias ? "biases" : "no biases", p->qkv_bias ? "them" : "none");
    }
    if (m->qk_norm != p->qk_norm) {
        return FAIL(c, SF_FORMAT, "config.json: the model has %s of q and k, expected %s",
                    m->qk_norm ? "norms" : "no norms", p->qk_norm ? "them" : "none");
    }
    SF_TRY(check_rope(c, m, p, err));
    return check_ids(c, m, p, err);
}
