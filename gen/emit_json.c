#include "emit.h"

#include "cost.h"

static const char *yes(bool b) {
    return b ? "true" : "false";
}
static const char *comma(bool more) {
    return more ? "," : "";
}

static void put_field(sf_writer *w, const char *indent, const char *name, const char *value) {
    sf_put(w, "%s\"%s\": ", indent, name);
    sf_put_json_text(w, value);
    sf_put(w, ",\n");
}

static void put_rope(sf_writer *w, const sf_model_desc *m) {
    if (m->rope_factor > 0) sf_put(w, "\"rope_factor\": %.17g, ", m->rope_factor);
    if (m->rope_low_freq > 0)
        sf_put(w, "\"rope_low_freq\": %.17g, \"rope_high_freq\": %.17g,\n    ", m->rope_low_freq,
               m->rope_high_freq);
    if (m->rope_original_context > 0) sf_put(w, "\"rope_original_context\": %d, ", m->rope_original_context);
    if (m->rope_beta_fast > 0)
        sf_put(w,
               "\"rope_beta_fast\": %.17g, \"rope_beta_slow\": %.17g, \"rope_attention_factor\": %.17g,\n    "
               "\"rope_mscale\": %.17g, \"rope_mscale_all_dim\": %.17g, \"rope_truncate\": %s,\n    ",
               m->rope_beta_fast, m->rope_beta_slow, m->rope_attention_factor, m->rope_mscale,
               m->rope_mscale_all_dim, yes(!m->rope_exact_range));
}

static void put_model(sf_writer *w, const sf_model_desc *m) {
    sf_put(w,
           "  \"model\": {\"name\": \"%s\", \"family\": \"%s\", \"vocab\": %d, \"hidden\": %d, \"layers\": "
           "%d,\n",
           m->name, m->family, m->vocab, m->hidden, m->layers);
    sf_put(w,
           "    \"heads\": %d, \"kv_heads\": %d, \"head_dim\": %d, \"intermediate\": %d, \"context\": %d,\n",
           m->heads, m->kv_heads, m->head_dim, m->intermediate, m->context);
    sf_put(w, "    \"norm_eps\": %.9g, \"rope_theta\": %.17g, \"tied_embeddings\": %s, \"qkv_bias\": %s,\n",
           (double)m->norm_eps, m->rope_theta, yes(m->tied_embeddings), yes(m->qkv_bias));
    sf_put(w, "    \"rope_kind\": \"%s\", ", m->rope_kind);
    put_rope(w, m);
    if (m->qk_norm) sf_put(w, "\"qk_norm\": true, ");
    sf_put(w, "\"bos\": %d, \"add_bos\": %s, \"eos\": [", m->bos, yes(m->add_bos));
    for (int i = 0; i < m->n_eos; i++)
        sf_put(w, "%s%d", i ? ", " : "", m->eos[i]);
    sf_put(w, "], \"tokenizer_split\": \"%s\"},\n", m->tokenizer_split);
}

static void put_gpu(sf_writer *w, const sf_plan *d) {
    put_field(w, "  ", "arch", d->arch);
    sf_put(w, "  \"sms\": %d, \"headers\": [", d->sms);
    for (int i = 0; i < d->n_headers; i++)
        sf_put(w, "%s\"%s\"", i ? ", " : "", d->headers[i].name);
    sf_put(w, "],\n");
}

static void put_config(sf_writer *w, const sf_planned *p) {
    const sf_plan *d = &p->plan;
    const sf_machine *c = &p->in->machine;
    sf_put(w,
           "  \"page_size\": %d, \"kv_pages\": %d, \"max_rows\": %d, \"max_logit_rows\": %d, "
           "\"max_context\": %d,\n",
           d->page_size, d->kv_pages, d->max_rows, d->max_logit_rows, d->max_context);
    sf_put(w,
           "  \"max_seqs\": %d, \"window\": %d, \"prefill_chunk\": %d, \"verify_wait\": %d, "
           "\"prefill_split\": %d,\n",
           d->max_seqs, d->window, d->prefill_chunk, d->verify_wait, d->prefill_split);
    put_field(w, "  ", "policy", d->policy);
    put_field(w, "  ", "isas", d->isas);
    if (d->arch) put_gpu(w, d);
    sf_put(w,
           "  \"measured\": {\"bandwidth_gbs\": %.9g, \"gflops\": {\"fast\": %.9g, \"pinned\": %.9g}, "
           "\"source\": ",
           c->bandwidth_gbs, c->gflops[SF_CLASS_FAST], c->gflops[SF_CLASS_PINNED]);
    sf_put_json_text(w, c->measured_source);
    sf_put(w, "},\n");
}

static void put_weights(sf_writer *w, const sf_plan *p) {
    sf_put(w, "  \"weights\": [\n");
    for (int i = 0; i < p->n_weights; i++) {
        static const char *const formats[] = {"f32", "bf16", "bf16_mma"};
        const sf_weight_desc *d = &p->weights[i];
        sf_put(w,
               "    {\"name\": \"%s\", \"format\": \"%s\", \"per_layer\": %s, \"interleave\": %s, \"n\": %d, "
               "\"k\": %d, ",
               d->name, formats[d->format], yes(d->per_layer), yes(d->interleave), d->n, d->k);
        if (d->tile) sf_put(w, "\"tile\": %d, ", d->tile);
        sf_put(w, "\"bytes\": %llu, \"parts\": [", (unsigned long long)sf_cost_weight_bytes(d));
        for (int j = 0; j < d->n_parts; j++)
            sf_put(w, "%s\"%s\"", j ? ", " : "", d->parts[j].tensor);
        sf_put(w, "]}%s\n", comma(i + 1 < p->n_weights));
    }
    sf_put(w, "  ],\n");
}

static void put_kernels(sf_writer *w, const sf_planned *p) {
    sf_put(w, "  \"kernels\": [\n");
    for (int i = 0; i < p->plan.n_kernels; i++) {
        const sf_kernel *k = &p->plan.kernels[i];
        const sf_planned_kernel *from = &p->kernels[i];
        char buf[64];
        sf_put(w,
               "    {\"name\": \"%s\", \"class\": \"%s\", \"template\": \"%s\", \"file\": \"%s\",\n     "
               "\"params\": {",
               k->name, sf_class_name(k->cls), k->template, k->file);
        for (int j = 0; j < from->t->n_params; j++) {
            const sf_param *param = &from->t->params[j];
            const char *quote = param->kind == SF_PARAM_ENUM ? "\"" : "";
            sf_put(w, "%s\"%s\": %s%s%s", j ? ", " : "", param->name.text, quote,
                   sf_param_text(param, from->values[j], buf, sizeof buf), quote);
        }
        sf_put(w, "},\n     \"order\": ");
        sf_put_json_text(w, k->order);
        sf_put(w, "}%s\n", comma(i + 1 < p->plan.n_kernels));
    }
    sf_put(w, "  ],\n");
}

static void put_library(sf_writer *w, const sf_planned *p, const sf_library_route *r) {
    sf_put(w, "     \"library\": {\"name\": \"%s\", \"rows_min\": %d, \"kernel\": \"%s\", ", r->library,
           r->rows_min, p->plan.kernels[r->kernel].name);
    if (r->finish >= 0) sf_put(w, "\"finish\": \"%s\", ", p->plan.kernels[r->finish].name);
    sf_put(w, "\"adds\": %s}\n", yes(r->adds));
}

static void put_op(sf_writer *w, const sf_planned *p, int i) {
    const sf_op_desc *op = &p->plan.ops[i];
    static const char *const scopes[] = {"pre", "layer", "head"};
    sf_put(w,
           "    {\"name\": \"%s\", \"op\": \"%s\", \"scope\": \"%s\", \"in\": \"%s\", \"out\": \"%s\", "
           "\"n\": %d, \"k\": %d,\n",
           op->name, sf_op_name(op->op), scopes[op->scope], p->plan.bufs[op->in].name,
           p->plan.bufs[op->out].name, op->n, op->k);
    sf_put(w,
           "     \"weight\": %d, \"bias\": %d, \"weight_bytes\": %llu, \"row_bytes\": %llu, \"row_flops\": "
           "%llu,\n",
           op->weight, op->bias, (unsigned long long)op->weight_bytes, (unsigned long long)op->row_bytes,
           (unsigned long long)op->row_flops);
    for (int c = 0; c < SF_CLASS_COUNT; c++) {
        sf_put(w, "     \"%s\": [", sf_class_name((sf_class)c));
        for (int r = 0; r < op->n_routes[c]; r++)
            sf_put(w, "%s{\"rows_max\": %d, \"kernel\": \"%s\", \"us_at_max\": %.6g}", r ? ", " : "",
                   op->routes[c][r].rows_max, sf_route_name(&p->plan, &op->routes[c][r]),
                   op->routes[c][r].us_at_max);
        sf_put(w, "]%s\n", comma(c + 1 < SF_CLASS_COUNT || op->library));
    }
    if (op->library) put_library(w, p, op->library);
    sf_put(w, "    }%s\n", comma(i + 1 < p->plan.n_ops));
}

void sf_emit_plan_json(sf_writer *w, const sf_planned *p) {
    const sf_plan *d = &p->plan;
    sf_put(w, "{\n");
    put_field(w, "  ", "generator", SF_GEN_VERSION);
    put_field(w, "  ", "engine", d->engine);
    put_field(w, "  ", "backend", d->backend);
    put_field(w, "  ", "config", d->config);
    put_field(w, "  ", "gen_hash", d->gen_hash);
    put_field(w, "  ", "pinned_hash", d->pinned_hash);
    put_model(w, &d->model);
    put_config(w, p);
    put_weights(w, d);
    put_kernels(w, p);
    sf_put(w, "  \"ops\": [\n");
    for (int i = 0; i < d->n_ops; i++)
        put_op(w, p, i);
    sf_put(w, "  ],\n  \"buckets\": [\n");
    for (int i = 0; i < d->n_buckets; i++)
        sf_put(w, "    {\"rows_max\": %d, \"fast_us\": %.6g, \"pinned_us\": %.6g}%s\n",
               d->buckets[i].rows_max, d->buckets[i].us[SF_CLASS_FAST], d->buckets[i].us[SF_CLASS_PINNED],
               comma(i + 1 < d->n_buckets));
    sf_put(w, "  ]\n}\n");
}
