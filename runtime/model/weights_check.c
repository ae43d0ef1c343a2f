/* The checkpoint's metadata against the plan: one table of the keys that are understood. Any other key of the
 * architecture may change what has to be computed, so it is refused by name. */
#include "model/gguf_priv.h"
#include "model/gguf_rope.h"
#include "model/weights_priv.h"

#include <stdio.h>
#include <string.h>

#define FAIL(g, code, ...) SF_FAIL_AT(err, code, ((sf_loc){sf_gguf_path(g), 0, 0}), __VA_ARGS__)

typedef enum kind { KIND_INT, KIND_FLOAT, KIND_ZERO } kind;

typedef struct rule {
    const char *key; /* without the architecture's name */
    kind kind;       /* ZERO: an integer that must be 0 if present */
    bool required;
    double expected; /* INT, FLOAT (compared as fp32) */
    double absent;   /* what an absent key means, where it isn't required */
} rule;

static sf_code check_int(const sf_gguf *g, const char *key, const rule *r, sf_err *err) {
    int64_t v = (int64_t)r->absent;
    if (r->required || sf_gguf_has(g, key)) SF_TRY(sf_gguf_get_i64(g, key, &v, err));
    if (v == (int64_t)r->expected) return SF_OK;
    return FAIL(g, SF_FORMAT, "key %s is %s%lld, expected %lld", key,
                sf_gguf_has(g, key) ? "" : "missing, which means ", (long long)v, (long long)r->expected);
}

static sf_code check_float(const sf_gguf *g, const char *key, const rule *r, sf_err *err) {
    double v = r->absent;
    if (r->required || sf_gguf_has(g, key)) SF_TRY(sf_gguf_get_f64(g, key, &v, err));
    if ((float)v == (float)r->expected) return SF_OK;
    return FAIL(g, SF_FORMAT, "key %s is %s%.9g, expected %.9g", key,
                sf_gguf_has(g, key) ? "" : "missing, which means ", v, (double)(float)r->expected);
}

static sf_code check_rule(const sf_gguf *g, const char *key, const rule *r, sf_err *err) {
    int64_t v = 0;
    switch (r->kind) {
    case KIND_INT:
        return check_int(g, key, r, err);
    case KIND_FLOAT:
        return check_float(g, key, r, err);
    case KIND_ZERO:
        if (!sf_gguf_has(g, key)) return SF_OK;
        SF_TRY(sf_gguf_get_i64(g, key, &v, err));
        if (v == 0) return SF_OK;
        return FAIL(g, SF_UNSUPPORTED, "key %s is %lld, a mixture of experts is not supported", key,
                    (long long)v);
    }
    return SF_OK;
}

static sf_code check_architecture(const sf_plan *plan, const sf_gguf *g, sf_err *err) {
    sf_str arch;
    SF_TRY(sf_gguf_get_str(g, "general.architecture", &arch, err));
    const char *family = plan->model.family;
    if (arch.len != strlen(family) || memcmp(arch.data, family, arch.len) != 0) {
        return FAIL(g, SF_UNSUPPORTED, "key general.architecture is '%.*s', expected '%s'",
                    (int)(arch.len < 40 ? arch.len : 40), arch.data, family);
    }
    if (!sf_gguf_has(g, "split.count")) return SF_OK;
    int64_t files = 0;
    SF_TRY(sf_gguf_get_i64(g, "split.count", &files, err));
    if (files <= 1) return SF_OK;
    return FAIL(g, SF_UNSUPPORTED,
                "key split.count is %lld, a checkpoint in several GGUF files is not supported",
                (long long)files);
}

/* Every key "<family>.X" of the file stands in the table. */
static sf_code check_unknown(const sf_plan *plan, const sf_gguf *g, const rule *rules, int n, sf_err *err) {
    size_t prefix = strlen(plan->model.family);
    for (int i = 0; i < g->n_kvs; i++) {
        sf_str key = g->kvs[i].key;
        if (key.len <= prefix || memcmp(key.data, plan->model.family, prefix) != 0 || key.data[prefix] != '.')
            continue;
        sf_str rest = {key.data + prefix + 1, key.len - prefix - 1};
        bool known = sf_gguf_rope_knows(rest.data, rest.len);
        for (int j = 0; j < n && !known; j++)
            known = strlen(rules[j].key) == rest.len && memcmp(rules[j].key, rest.data, rest.len) == 0;
        if (!known) {
            return FAIL(g, SF_UNSUPPORTED, "key %.*s is not supported", (int)(key.len < 100 ? key.len : 100),
                        key.data);
        }
    }
    return SF_OK;
}

sf_code sf_weights_check_metadata(const sf_plan *plan, const sf_gguf *g, sf_err *err) {
    const sf_model_desc *m = &plan->model;
    const double head = m->head_dim, default_head = m->heads ? m->hidden / m->heads : 0;
    const rule rules[] = {
        {"block_count", KIND_INT, true, m->layers, 0},
        {"context_length", KIND_INT, true, m->context, 0},
        {"embedding_length", KIND_INT, true, m->hidden, 0},
        {"feed_forward_length", KIND_INT, true, m->intermediate, 0},
        {"attention.head_count", KIND_INT, true, m->heads, 0},
        {"attention.head_count_kv", KIND_INT, false, m->kv_heads, m->heads},
        {"attention.key_length", KIND_INT, false, head, default_head},
        {"attention.value_length", KIND_INT, false, head, default_head},
        {"attention.layer_norm_rms_epsilon", KIND_FLOAT, true, (double)m->norm_eps, 0},
        {"rope.dimension_count", KIND_INT, false, head, head},
        {"vocab_size", KIND_INT, false, m->vocab, m->vocab},
        {"expert_count", KIND_ZERO, false, 0, 0},
        {"expert_used_count", KIND_ZERO, false, 0, 0},
    };
    const int n = (int)(sizeof rules / sizeof *rules);
    SF_TRY(check_architecture(plan, g, err));
    for (int i = 0; i < n; i++) {
        char key[128];
        snprintf(key, sizeof key, "%s.%s", m->family, rules[i].key);
        SF_TRY(check_rule(g, key, &rules[i], err));
    }
    SF_TRY(sf_gguf_rope_check(g, m, err));
    return check_unknown(plan, g, rules, n, err);
}
