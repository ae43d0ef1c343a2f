#include "emit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const op_ids[] = {"SF_OP_EMBED",         "SF_OP_RMSNORM",   "SF_OP_GEMM",
                                     "SF_OP_ROPE_APPEND",   "SF_OP_ATTENTION", "SF_OP_SAMPLE",
                                     "SF_OP_ATTENTION_LONG"};
static const char *const scope_ids[] = {"SF_SCOPE_PRE", "SF_SCOPE_LAYER", "SF_SCOPE_HEAD"};
static const char *const buf_ids[] = {"SF_BUF_NONE", "SF_BUF_TOKENS", "SF_BUF_X",
                                      "SF_BUF_H",    "SF_BUF_QKV",    "SF_BUF_Q",
                                      "SF_BUF_ATTN", "SF_BUF_ACT",    "SF_BUF_LOGITS"};
static const char *const dtype_ids[] = {"SF_F32", "SF_BF16", "SF_I32"};
static const char *const format_ids[] = {"SF_W_F32", "SF_W_BF16", "SF_W_BF16_MMA"};
static const char *const role_ids[] = {"SF_ROLE_PLAIN", "SF_ROLE_Q", "SF_ROLE_K"};
static const char *const class_ids[] = {"SF_CLASS_FAST", "SF_CLASS_PINNED"};

static const char *yes(bool b) {
    return b ? "true" : "false";
}

/* CUDA: the arrays of sources.c, and the headers by their names. */
static void put_sources(sf_writer *w, const sf_plan *p) {
    for (int i = 0; i < p->n_headers + p->n_kernels; i++) {
        sf_put(w, "extern const char ");
        sf_put_source_name(w, i < p->n_headers ? p->headers[i].name : p->kernels[i - p->n_headers].name);
        sf_put(w, "[];\n");
    }
    sf_put(w, "\n/* sources.c; kernels include them by these names */\nstatic const sf_source_file headers[] "
              "= {\n");
    for (int i = 0; i < p->n_headers; i++) {
        sf_put(w, "    {\"%s\", ", p->headers[i].name);
        sf_put_source_name(w, p->headers[i].name);
        sf_put(w, "},\n");
    }
    sf_put(w, "};\n\n");
}

/* Declarations per instruction set, and a macro that is the symbol where the build has it. */
static void put_isas(sf_writer *w, const sf_planned *p) {
    for (int isa = 0; isa < SF_ISA_COUNT; isa++) {
        if (!p->in->machine.isa[isa]) continue;
        const char *name = sf_machine_isa_name((sf_isa)isa);
        sf_put(w, "#if SF_HAVE_%s\n", name);
        for (int i = 0; i < p->plan.n_kernels; i++)
            sf_put(w, "extern sf_cpu_kernel_fn %s__%s;\n", p->plan.kernels[i].name, name);
        sf_put(w, "#define %s_KERNEL(name) name##__%s\n#else\n#define %s_KERNEL(name) NULL\n#endif\n\n", name,
               name, name);
    }
    sf_put(w, "#define CPU_KERNELS(name) {");
    for (int isa = 0; isa < SF_ISA_COUNT; isa++)
        if (p->in->machine.isa[isa])
            sf_put(w, "%s%s_KERNEL(name)", isa ? ", " : "", sf_machine_isa_name((sf_isa)isa));
        else
            sf_put(w, "%sNULL", isa ? ", " : "");
    sf_put(w, "}\n\n");
}

static void put_weights(sf_writer *w, const sf_plan *p) {
    sf_put(w, "static const sf_weight_desc weights[] = {\n");
    for (int i = 0; i < p->n_weights; i++) {
        const sf_weight_desc *d = &p->weights[i];
        sf_put(w, "    /* %d: [%d, %d]%s */\n    {\"%s\", %s, %s, %s, %d, %d, %d,\n     {", i, d->n, d->k,
               d->per_layer ? " per layer" : "", d->name, format_ids[d->format], yes(d->per_layer),
               yes(d->interleave), d->n, d->k, d->n_parts);
        for (int j = 0; j < d->n_parts; j++) {
            const sf_wpart *part = &d->parts[j];
            sf_put(w, "%s{\"%s\", %d, %s, ", j ? ",\n      " : "", part->tensor, part->rows,
                   role_ids[part->role]);
            sf_put_c_text(w, part->fallback);
            sf_put(w, "}");
        }
        sf_put(w, "},\n     %d},\n", d->tile);
    }
    sf_put(w, "};\n\n");
}

static void put_kernels(sf_writer *w, const sf_planned *p) {
    sf_put(w, "static const sf_kernel kernels[] = {\n");
    for (int i = 0; i < p->plan.n_kernels; i++) {
        const sf_kernel *k = &p->plan.kernels[i];
        sf_put(w, "    /* %d */\n    {\"%s\", \"%s\", \"%s\",\n     ", i, k->name, k->file, k->template);
        sf_put_c_text(w, k->order);
        sf_put(w, ",\n     %s, ", class_ids[k->cls]);
        if (k->source) {
            sf_put(w, "{NULL}, ");
            sf_put_source_name(w, k->name);
            sf_put(w, "},\n");
        } else {
            sf_put(w, "CPU_KERNELS(%s), NULL},\n", k->name);
        }
    }
    sf_put(w, "};\n\n");
}

static void put_routes(sf_writer *w, const sf_plan *p) {
    sf_put(w, "/* {rows_max, kernel (-1: none), microseconds at rows_max} */\n");
    for (int i = 0; i < p->n_ops; i++)
        for (int c = 0; c < SF_CLASS_COUNT; c++) {
            const sf_op_desc *op = &p->ops[i];
            sf_put(w, "static const sf_route %s_%s[] = {", op->name, sf_class_name((sf_class)c));
            for (int r = 0; r < op->n_routes[c]; r++)
                sf_put(w, "%s{%d, %d, %.6g}", r ? ", " : "", op->routes[c][r].rows_max,
                       op->routes[c][r].kernel, op->routes[c][r].us_at_max);
            sf_put(w, "};\n");
        }
    for (int i = 0; i < p->n_ops; i++) {
        const sf_library_route *r = p->ops[i].library;
        if (r)
            sf_put(w, "static const sf_library_route %s_library = {\"%s\", %d, %d, %d, %s};\n",
                   p->ops[i].name, r->library, r->rows_min, r->kernel, r->finish, yes(r->adds));
    }
    sf_put(w, "\n");
}

static void put_ops(sf_writer *w, const sf_planned *p) {
    sf_put(w, "static const sf_op_desc ops[] = {\n");
    for (int i = 0; i < p->ops.n; i++) {
        const sf_op_desc *op = &p->plan.ops[i];
        sf_put(w, "    /* %s */\n    {\"%s\", %s, %s, %s, %s, %d, %d, %d, %d, %lluu, %lluu, %lluu,\n",
               p->ops.ops[i].shape, op->name, op_ids[op->op], scope_ids[op->scope], buf_ids[op->in],
               buf_ids[op->out], op->weight, op->bias, op->n, op->k, (unsigned long long)op->weight_bytes,
               (unsigned long long)op->row_bytes, (unsigned long long)op->row_flops);
        sf_put(w, "     {%d, %d}, {%s_fast, %s_pinned}, ", op->n_routes[SF_CLASS_FAST],
               op->n_routes[SF_CLASS_PINNED], op->name, op->name);
        if (op->library)
            sf_put(w, "&%s_library},\n", op->name);
        else
            sf_put(w, "NULL},\n");
    }
    sf_put(w, "};\n\n");
}

static void put_buckets(sf_writer *w, const sf_plan *p) {
    sf_put(w, "/* {rows_max, {fast, pinned} microseconds a pass, context excluded} */\n");
    sf_put(w, "static const sf_bucket buckets[] = {\n");
    for (int i = 0; i < p->n_buckets; i++)
        sf_put(w, "    {%d, {%.6g, %.6g}},\n", p->buckets[i].rows_max, p->buckets[i].us[SF_CLASS_FAST],
               p->buckets[i].us[SF_CLASS_PINNED]);
    sf_put(w, "};\n\n");
}

/* The fewest digits that give the float back, with the dot that C's suffix asks for. */
static void put_float(sf_writer *w, float v) {
    char buf[40];
    for (int digits = 1; digits <= 9; digits++) {
        snprintf(buf, sizeof buf, "%.*g", digits, (double)v);
        if (strtof(buf, NULL) == v) break;
    }
    sf_put(w, "%s%sf", buf, strpbrk(buf, ".e") ? "" : ".0");
}

/* What a scaled kind has beside theta; what is 0 isn't named. */
static void put_rope(sf_writer *w, const sf_model_desc *m) {
    if (m->rope_factor > 0) sf_put(w, ", .rope_factor = %.17g", m->rope_factor);
    if (m->rope_low_freq > 0)
        sf_put(w, ", .rope_low_freq = %.17g,\n              .rope_high_freq = %.17g", m->rope_low_freq,
               m->rope_high_freq);
    if (m->rope_original_context > 0) sf_put(w, ", .rope_original_context = %d", m->rope_original_context);
    if (m->rope_beta_fast > 0)
        sf_put(w,
               ",\n              .rope_beta_fast = %.17g, .rope_beta_slow = %.17g, .rope_attention_factor = "
               "%.17g,\n              .rope_mscale = %.17g, .rope_mscale_all_dim = %.17g, .rope_exact_range "
               "= %s",
               m->rope_beta_fast, m->rope_beta_slow, m->rope_attention_factor, m->rope_mscale,
               m->rope_mscale_all_dim, yes(m->rope_exact_range));
}

static void put_model(sf_writer *w, const sf_model_desc *m) {
    sf_put(w, "    .model = {.name = \"%s\", .family = \"%s\",\n", m->name, m->family);
    sf_put(w, "              .vocab = %d, .hidden = %d, .layers = %d,\n", m->vocab, m->hidden, m->layers);
    sf_put(w, "              .heads = %d, .kv_heads = %d, .head_dim = %d,\n", m->heads, m->kv_heads,
           m->head_dim);
    sf_put(w, "              .intermediate = %d, .context = %d,\n              .norm_eps = ", m->intermediate,
           m->context);
    put_float(w, m->norm_eps);
    sf_put(w, ", .rope_theta = %.17g,\n", m->rope_theta);
    sf_put(w, "              .tied_embeddings = %s, .qkv_bias = %s,\n", yes(m->tied_embeddings),
           yes(m->qkv_bias));
    sf_put(w, "              .bos = %d, .add_bos = %s, .n_eos = %d, .eos = {", m->bos, yes(m->add_bos),
           m->n_eos);
    for (int i = 0; i < m->n_eos; i++)
        sf_put(w, "%s%d", i ? ", " : "", m->eos[i]);
    sf_put(w, "},\n              .tokenizer_split = \"%s\", .chat_template = ", m->tokenizer_split);
    sf_put_c_text(w, m->chat_template);
    sf_put(w, ",\n              .rope_kind = \"%s\"", m->rope_kind);
    put_rope(w, m);
    if (m->qk_norm) sf_put(w, ", .qk_norm = true");
    sf_put(w, "},\n");
}

static void put_plan(sf_writer *w, const sf_plan *p) {
    sf_put(w, "const sf_plan sf_the_plan = {\n");
    sf_put(w, "    .engine = \"%s\", .backend = \"%s\", .config = \"%s\",\n", p->engine, p->backend,
           p->config);
    sf_put(w, "    .gen_hash = \"%s\",\n    .pinned_hash = \"%s\",\n", p->gen_hash, p->pinned_hash);
    put_model(w, &p->model);
    sf_put(w, "    .page_size = %d, .max_rows = %d, .max_logit_rows = %d, .max_context = %d,\n", p->page_size,
           p->max_rows, p->max_logit_rows, p->max_context);
    sf_put(w,
           "    .max_seqs = %d, .kv_pages = %d, .window = %d, .prefill_chunk = %d, .verify_wait = %d,\n"
           "    .prefill_split = %d,\n",
           p->max_seqs, p->kv_pages, p->window, p->prefill_chunk, p->verify_wait, p->prefill_split);
    sf_put(w, "    .policy = \"%s\", .isas = \"%s\",\n", p->policy, p->isas);
    if (p->arch)
        sf_put(w, "    .arch = \"%s\", .sms = %d, .n_headers = %d, .headers = headers,\n", p->arch, p->sms,
               p->n_headers);
    sf_put(w, "    .n_weights = %d, .n_ops = %d, .n_kernels = %d, .n_buckets = %d,\n", p->n_weights, p->n_ops,
           p->n_kernels, p->n_buckets);
    sf_put(w, "    .weights = weights, .ops = ops, .kernels = kernels, .buckets = buckets,\n    .bufs = {\n");
    for (int i = 0; i < SF_BUF_COUNT; i++) {
        const sf_buf_desc *b = &p->bufs[i];
        sf_put(w, "        {%s, \"%s\", %s, %d, %s},\n", buf_ids[b->id], b->name, dtype_ids[b->dtype],
               b->cols, yes(b->logit_rows));
    }
    sf_put(w, "    },\n};\n");
}

void sf_emit_plan_c(sf_writer *w, const sf_planned *p) {
    sf_put(w, "/* GENERATED by steadfast-gen " SF_GEN_VERSION " from %s and %s (inputs %s).\n",
           p->in->files[0].name, p->in->files[1].name, p->plan.gen_hash);
    sf_put(w, " * The one table of what this engine can run; device/plan.h says what the fields mean. */\n");
    sf_put(w, "#include \"device/plan.h\"\n\n#include <stddef.h>\n\n");
    if (p->in->machine.cuda)
        put_sources(w, &p->plan);
    else
        put_isas(w, p);
    put_weights(w, &p->plan);
    put_kernels(w, p);
    put_routes(w, &p->plan);
    put_ops(w, p);
    put_buckets(w, &p->plan);
    put_plan(w, &p->plan);
}
