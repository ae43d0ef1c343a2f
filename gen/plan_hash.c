#include "plan_priv.h"

#include "base/hash.h"
#include "include.h"

#include <stdio.h>
#include <string.h>

static void hash_number(sf_sha256 *h, const char *name, double v) {
    char buf[64];
    snprintf(buf, sizeof buf, "%s %.17g", name, v);
    sf_sha256_add_str(h, buf);
}

/* Which ids begin a prompt and end an answer: with others, the same request is answered with other tokens. */
static void hash_ids(sf_sha256 *h, const sf_model_desc *m) {
    hash_number(h, "bos", m->bos);
    hash_number(h, "add_bos", m->add_bos);
    for (int i = 0; i < m->n_eos; i++)
        hash_number(h, "eos", m->eos[i]);
}

/* Frequencies are scaled. */
static void hash_rope(sf_sha256 *h, const sf_model_desc *m) {
    sf_sha256_add_str(h, m->rope_kind);
    hash_number(h, "rope_factor", m->rope_factor);
    hash_number(h, "rope_low_freq", m->rope_low_freq);
    hash_number(h, "rope_high_freq", m->rope_high_freq);
    hash_number(h, "rope_original_context", m->rope_original_context);
    if (strcmp(m->rope_kind, "yarn") != 0) return;
    hash_number(h, "rope_beta_fast", m->rope_beta_fast);
    hash_number(h, "rope_beta_slow", m->rope_beta_slow);
    hash_number(h, "rope_attention_factor", m->rope_attention_factor);
    hash_number(h, "rope_mscale", m->rope_mscale);
    hash_number(h, "rope_mscale_all_dim", m->rope_mscale_all_dim);
    hash_number(h, "rope_exact_range", m->rope_exact_range);
}

/* What is computed, in which order, apart from the kernels' own text. */
static void hash_schedule(sf_sha256 *h, const sf_planned *p) {
    const sf_model_desc *m = &p->plan.model;
    hash_number(h, "layers", m->layers);
    hash_number(h, "heads", m->heads);
    hash_number(h, "kv_heads", m->kv_heads);
    hash_number(h, "head_dim", m->head_dim);
    hash_number(h, "norm_eps", (double)m->norm_eps);
    hash_number(h, "rope_theta", m->rope_theta);
    if (m->rope_factor > 0) hash_rope(h, m);
    hash_ids(h, m);
    for (int i = 0; i < p->ops.n; i++) {
        const sf_op_spec *s = &p->ops.ops[i];
        sf_sha256_add_str(h, s->desc.name);
        sf_sha256_add_str(h, s->shape);
        hash_number(h, "scope", s->desc.scope);
        if (s->desc.weight < 0) continue;
        const sf_weight_desc *w = &p->ops.weights[s->desc.weight];
        sf_sha256_add_str(h, w->name);
        hash_number(h, "format", w->format);
        hash_number(h, "interleave", w->interleave);
    }
}

static sf_code pinned_hash(const sf_planned *p, char out[65], sf_err *err) {
    bool used[SF_SNIPPETS_MAX] = {false};
    for (int i = 0; i < p->plan.n_kernels; i++) {
        const sf_planned_kernel *k = &p->kernels[i];
        bool other[SF_SNIPPETS_MAX] = {false}; /* a fast kernel's are looked for, and hashed nowhere */
        bool pinned = p->plan.kernels[i].cls == SF_CLASS_PINNED;
        SF_TRY(sf_include_mark(p->in, k->t->path, k->text, pinned ? used : other, err));
    }
    sf_sha256 *h = sf_sha256_create();
    if (!h) return sf_arena_full(err);
    hash_schedule(h, p);
    for (int i = 0; i < p->plan.n_kernels; i++) {
        if (p->plan.kernels[i].cls != SF_CLASS_PINNED) continue;
        sf_sha256_add_str(h, p->kernels[i].text);
        sf_sha256_add_str(h, p->kernels[i].t->order);
    }
    for (int i = 0; i < p->in->n_snippets; i++) {
        if (!used[i]) continue;
        sf_sha256_add_str(h, p->in->snippets[i].name);
        sf_sha256_add_str(h, p->in->snippets[i].text);
    }
    sf_sha256_hex(h, out);
    sf_sha256_destroy(h);
    return SF_OK;
}

static sf_code gen_hash(const sf_inputs *in, char out[65], sf_err *err) {
    sf_sha256 *h = sf_sha256_create();
    if (!h) return sf_arena_full(err);
    sf_sha256_add_str(h, "steadfast-gen " SF_GEN_VERSION);
    for (int i = 0; i < in->n_files; i++) {
        sf_sha256_add_str(h, in->files[i].name);
        sf_sha256_add_str(h, in->files[i].sha256);
    }
    sf_sha256_hex(h, out);
    sf_sha256_destroy(h);
    return SF_OK;
}

sf_code sf_plan_hashes(sf_arena *a, sf_planned *p, sf_err *err) {
    char gen[65], pinned[65];
    SF_TRY(gen_hash(p->in, gen, err));
    SF_TRY(pinned_hash(p, pinned, err));
    p->plan.gen_hash = sf_arena_text(a, gen, 64);
    p->plan.pinned_hash = sf_arena_text(a, pinned, 64);
    return p->plan.gen_hash && p->plan.pinned_hash ? SF_OK : sf_arena_full(err);
}
