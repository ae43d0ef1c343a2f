#include "api/json.h"
#include "cli/info_cuda.h"
#include "cli/setup.h"
#include "device/cpu/cpu.h"
#include "engine/fingerprint.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const class_names[SF_CLASS_COUNT] = {
    [SF_CLASS_FAST] = "fast", [SF_CLASS_PINNED] = "pinned"};

static json_t *keep(json_t *o, bool ok) {
    return sf_json_done(o, ok);
}

static json_t *model_json(const sf_model_desc *m) {
    json_t *o = json_object(), *eos = json_array();
    bool ok = o && eos;
    const struct {
        const char *name;
        int value;
    } ints[] = {{"vocab", m->vocab},
                {"hidden", m->hidden},
                {"layers", m->layers},
                {"heads", m->heads},
                {"kv_heads", m->kv_heads},
                {"head_dim", m->head_dim},
                {"intermediate", m->intermediate},
                {"context", m->context},
                {"bos", m->bos}};
    sf_json_put(o, "name", json_string(m->name), &ok);
    sf_json_put(o, "family", json_string(m->family), &ok);
    for (size_t i = 0; i < sizeof ints / sizeof *ints; i++)
        sf_json_put(o, ints[i].name, json_integer(ints[i].value), &ok);
    for (int i = 0; i < m->n_eos; i++)
        sf_json_push(eos, json_integer(m->eos[i]), &ok);
    sf_json_put(o, "eos", eos, &ok);
    sf_json_put(o, "rope_theta", json_real(m->rope_theta), &ok);
    sf_json_put(o, "norm_eps", json_real((double)m->norm_eps), &ok);
    sf_json_put(o, "tied_embeddings", json_boolean(m->tied_embeddings), &ok);
    return keep(o, ok);
}

static json_t *routes_json(const sf_plan *p, const sf_op_desc *op, int cls) {
    json_t *list = json_array();
    bool ok = list != NULL;
    for (int i = 0; i < op->n_routes[cls]; i++) {
        const sf_route *r = &op->routes[cls][i];
        if (r->kernel < 0) continue; /* nothing to do at so few rows */
        json_t *o = json_object();
        sf_json_put(o, "rows_max", json_integer(r->rows_max), &ok);
        sf_json_put(o, "kernel", json_string(p->kernels[r->kernel].name), &ok);
        sf_json_put(o, "order", json_string(p->kernels[r->kernel].order), &ok);
        sf_json_put(o, "us_at_max", json_real(r->us_at_max), &ok);
        sf_json_push(list, o, &ok);
    }
    return keep(list, ok);
}

static json_t *ops_json(const sf_plan *p) {
    json_t *list = json_array();
    bool ok = list != NULL;
    for (int i = 0; i < p->n_ops; i++) {
        const sf_op_desc *op = &p->ops[i];
        json_t *o = json_object();
        sf_json_put(o, "name", json_string(op->name), &ok);
        sf_json_put(o, "n", json_integer(op->n), &ok);
        sf_json_put(o, "k", json_integer(op->k), &ok);
        sf_json_put(o, "weight_bytes", json_integer((json_int_t)op->weight_bytes), &ok);
        sf_json_put(o, "row_flops", json_integer((json_int_t)op->row_flops), &ok);
        for (int cls = 0; cls < SF_CLASS_COUNT; cls++)
            sf_json_put(o, class_names[cls], routes_json(p, op, cls), &ok);
        sf_json_push(list, o, &ok);
    }
    return keep(list, ok);
}

static json_t *buckets_json(const sf_plan *p) {
    json_t *list = json_array();
    bool ok = list != NULL;
    for (int i = 0; i < p->n_buckets; i++) {
        json_t *o = json_object();
        sf_json_put(o, "rows_max", json_integer(p->buckets[i].rows_max), &ok);
        for (int cls = 0; cls < SF_CLASS_COUNT; cls++) {
            char key[24];
            snprintf(key, sizeof key, "%s_us", class_names[cls]);
            sf_json_put(o, key, json_real(p->buckets[i].us[cls]), &ok);
        }
        sf_json_push(list, o, &ok);
    }
    return keep(list, ok);
}

static json_t *plan_json(const sf_plan *p) {
    json_t *o = json_object();
    bool ok = o != NULL;
    const struct {
        const char *name;
        int value;
    } ints[] = {{"page_size", p->page_size},
                {"max_rows", p->max_rows},
                {"max_logit_rows", p->max_logit_rows},
                {"max_context", p->max_context},
                {"max_seqs", p->max_seqs},
                {"kv_pages", p->kv_pages},
                {"window", p->window},
                {"prefill_chunk", p->prefill_chunk},
                {"verify_wait", p->verify_wait},
                {"prefill_split", p->prefill_split},
                {"kernels", p->n_kernels}};
    sf_json_put(o, "gen_hash", json_string(p->gen_hash), &ok);
    sf_json_put(o, "pinned_hash", json_string(p->pinned_hash), &ok);
    sf_json_put(o, "policy", json_string(p->policy), &ok);
    for (size_t i = 0; i < sizeof ints / sizeof *ints; i++)
        sf_json_put(o, ints[i].name, json_integer(ints[i].value), &ok);
    sf_json_put(o, "ops", ops_json(p), &ok);
    sf_json_put(o, "buckets", buckets_json(p), &ok);
    return keep(o, ok);
}

static json_t *isas_json(const sf_plan *p, bool built, bool here) {
    json_t *list = json_array();
    bool ok = list != NULL;
    for (int i = 0; i < SF_ISA_COUNT; i++) {
        bool in_build = p->n_kernels > 0 && p->kernels[0].cpu[i];
        if ((built && !in_build) || (here && !sf_cpu_isa_here((sf_isa)i))) continue;
        sf_json_push(list, json_string(sf_isa_name((sf_isa)i)), &ok);
    }
    return keep(list, ok);
}

static json_t *machine_json(const sf_plan *p, const sf_engine *e) {
    json_t *o = json_object();
    bool ok = o != NULL;
    sf_json_put(o, "arch", json_string(sf_fingerprint_arch()), &ok);
    sf_json_put(o, "isas_built", isas_json(p, true, false), &ok);
    sf_json_put(o, "isas_machine", isas_json(p, false, true), &ok);
    sf_json_put(o, "isas_usable", isas_json(p, true, true), &ok);
    sf_json_put(o, "isa_best", json_string(sf_isa_name(sf_cpu_isa_best(p))), &ok);
    sf_json_put(o, "threads", json_integer(e ? sf_engine_threads(e) : sf_engine_machine_threads()), &ok);
    if (e) sf_json_put(o, "device", json_string(sf_engine_device(e)->desc), &ok);
    return keep(o, ok);
}

static json_t *weights_json(const sf_engine *e, const sf_cli_opts *opts) {
    json_t *o = json_object();
    bool ok = o != NULL;
    const sf_weights *w = sf_engine_weights(e);
    const char *path = opts->weights ? opts->weights : "random";
    sf_json_put(o, "path", sf_json_text(path, strlen(path)), &ok);
    sf_json_put(o, "random", json_boolean(opts->random), &ok);
    sf_json_put(o, "hash", json_string(sf_weights_hash(w)), &ok);
    sf_json_put(o, "bytes", json_integer((json_int_t)sf_weights_bytes(w)), &ok);
    sf_json_put(o, "load_seconds", json_real(sf_engine_load_seconds(e)), &ok);
    return keep(o, ok);
}

static json_t *info_json(const sf_plan *p, const sf_engine *e, const sf_cli_opts *opts) {
    json_t *o = json_object();
    bool ok = o != NULL;
    sf_json_put(o, "version", json_string(SF_VERSION), &ok);
    sf_json_put(o, "engine", json_string(p->engine), &ok);
    sf_json_put(o, "backend", json_string(p->backend), &ok);
    sf_json_put(o, "config", json_string(p->config), &ok);
    sf_json_put(o, "compiler", json_string(sf_fingerprint_compiler()), &ok);
    sf_json_put(o, "model", model_json(&p->model), &ok);
    sf_json_put(o, "plan", plan_json(p), &ok);
    sf_json_put(o, "machine", machine_json(p, e), &ok);
    if (e) {
        const char *refused = sf_engine_sched_config(e)->refuse_deterministic;
        sf_json_put(o, "weights", weights_json(e, opts), &ok);
        sf_json_put(o, "system_fingerprint", json_string(sf_engine_fingerprint(e)), &ok);
        if (sf_engine_cuda(e)) sf_json_put(o, "cuda", sf_info_cuda_json(sf_engine_cuda(e)), &ok);
        sf_json_put(o, "deterministic_refused", refused ? json_string(refused) : json_null(), &ok);
    }
    return keep(o, ok);
}

static void print_routes(const sf_plan *p, int cls) {
    printf("\n%s kernels, with the expected time at the most rows\n", class_names[cls]);
    for (int i = 0; i < p->n_ops; i++) {
        const sf_op_desc *op = &p->ops[i];
        for (int r = 0; r < op->n_routes[cls]; r++) {
            const sf_route *route = &op->routes[cls][r];
            if (route->kernel < 0) continue;
            const sf_kernel *k = &p->kernels[route->kernel];
            printf("  %-12s <= %4d rows  expected %8.1f us  %s\n%*s%s\n", r ? "" : op->name, route->rows_max,
                   route->us_at_max, k->name, 49, "", k->order);
        }
    }
}

static void print_text(const sf_plan *p, const sf_engine *e, const sf_cli_opts *o) {
    const sf_model_desc *m = &p->model;
    printf("engine      %s (backend %s, config %s)\n", p->engine, p->backend, p->config);
    printf("model       %s: %d layers, hidden %d, %d heads (%d KV) of %d, intermediate %d, vocab %d\n",
           m->name, m->layers, m->hidden, m->heads, m->kv_heads, m->head_dim, m->intermediate, m->vocab);
    printf("plan        pages of %d positions x %d, passes of %d rows, context %d, window %d, policy %s\n",
           p->page_size, p->kv_pages, p->max_rows, p->max_context, p->window, p->policy);
    printf("            inputs %.16s, pinned %.16s\n", p->gen_hash, p->pinned_hash);
    const int threads = e ? sf_engine_threads(e) : sf_engine_machine_threads();
    if (p->arch)
        printf("machine     built for %s with %d multiprocessors%s%s\n", p->arch, p->sms, e ? "; " : "",
               e ? sf_engine_device(e)->desc : "");
    else
        printf("machine     %s, best %s of built: %s; %d threads\n", sf_fingerprint_arch(),
               sf_isa_name(sf_cpu_isa_best(p)), p->isas, threads);
    printf("compiler    %s\n", sf_fingerprint_compiler());
    if (e) {
        printf("weights     %s, %.1f MB packed, %.2f s to load\n            %s\n",
               o->weights ? o->weights : "random", (double)sf_weights_bytes(sf_engine_weights(e)) / 1e6,
               sf_engine_load_seconds(e), sf_weights_hash(sf_engine_weights(e)));
        const char *refused = sf_engine_sched_config(e)->refuse_deterministic;
        printf("fingerprint %s\ndeterminism %s\n", sf_engine_fingerprint(e),
               refused ? refused : "probe passed");
        if (sf_engine_cuda(e)) sf_info_cuda_print(sf_engine_cuda(e), o->graphs);
    }
    if (!o->kernels) return;
    print_routes(p, SF_CLASS_PINNED);
    print_routes(p, SF_CLASS_FAST);
}

static int print_info(const sf_plan *plan, const sf_engine *e, const sf_cli_opts *o) {
    if (!o->json) {
        print_text(plan, e, o);
        return SF_EXIT_OK;
    }
    json_t *info = info_json(plan, e, o);
    char *text = info ? sf_json_dump_pretty(info) : NULL;
    json_decref(info);
    if (!text) return sf_cli_error(SF_EXIT_FAILED, "out of memory");
    puts(text);
    free(text);
    return SF_EXIT_OK;
}

int sf_verb_info(const sf_plan *plan, const sf_cli_opts *o) {
    sf_engine *e = NULL;
    if (o->weights || o->random) {
        sf_engine_config c;
        sf_cli_engine_config(o, &c);
        int code = sf_cli_engine_open(plan, &c, &e);
        if (code != SF_EXIT_OK) return code;
    }
    int code = print_info(plan, e, o);
    sf_engine_close(e);
    return code;
}
