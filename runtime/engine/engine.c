#include "engine/engine.h"

#include "device/cpu/cpu.h"
#include "engine/engine_priv.h"
#include "engine/selftest.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define THREADS_MAX 256

void sf_engine_config_default(sf_engine_config *c) {
    *c = (sf_engine_config){.verify_wait = -1, .verify_group = -1, .prefill_split = -1, .inject_offset = -1};
}

/* The cores this process may use, which in a container are fewer than the machine's. */
int sf_engine_machine_threads(void) {
    int n = sf_pool_cores();
    return n > THREADS_MAX ? THREADS_MAX : n;
}

/* Takes value over *out when given (value > unset); names the setting when it is out of range. */
static sf_code set_int(const char *name, int value, int unset, int min, int max, int *out, sf_err *err) {
    if (value <= unset) return SF_OK;
    if (value < min || value > max) {
        return SF_FAIL(err, SF_INVALID, "%s is %d, expected %d..%d", name, value, min, max);
    }
    *out = value;
    return SF_OK;
}

static sf_code set_policy(const char *policy, sf_policy *out, sf_err *err) {
    if (!policy) return SF_OK;
    if (strcmp(policy, "verify") == 0) {
        *out = SF_POLICY_VERIFY;
    } else if (strcmp(policy, "pin") == 0) {
        *out = SF_POLICY_PIN;
    } else if (strcmp(policy, "auto") == 0) {
        return SF_FAIL(err, SF_UNSUPPORTED, "policy auto is not in this build, expected verify or pin");
    } else {
        return SF_FAIL(err, SF_INVALID, "policy is \"%s\", expected verify or pin", policy);
    }
    return SF_OK;
}

static sf_code make_sched_config(const sf_plan *plan, const sf_engine_config *c, sf_sched_config *out,
                                 sf_err *err) {
    sf_sched_config_default(plan, out);
    SF_TRY(set_policy(c->policy, &out->policy, err));
    SF_TRY(set_int("max_model_len", c->max_context, 0, 2, plan->max_context, &out->max_context, err));
    SF_TRY(set_int("max_num_seqs", c->max_seqs, 0, 1, 4096, &out->max_seqs, err));
    SF_TRY(set_int("window", c->window, 0, 2, 64, &out->window, err));
    SF_TRY(set_int("max_queue", c->max_queue, 0, 1, 1 << 20, &out->max_queue, err));
    SF_TRY(set_int("verify_wait", c->verify_wait, -1, 0, 1000, &out->verify_wait, err));
    SF_TRY(set_int("verify_group", c->verify_group, -1, 0, 4096, &out->verify_group, err));
    SF_TRY(set_int("prefill_split", c->prefill_split, -1, 0, 1 << 20, &out->prefill_split, err));
    SF_TRY(set_int("max_num_batched_tokens", c->max_rows, 0, 1, plan->max_rows, &out->max_rows, err));
    SF_TRY(set_int("prefill_chunk", c->prefill_chunk, 0, 1, plan->max_rows, &out->prefill_chunk, err));
    /* A smaller pass than the plan's makes the default chunk and window smaller too; one that the user asked
     * for must fit. */
    if (out->prefill_chunk > out->max_rows && c->prefill_chunk <= 0) out->prefill_chunk = out->max_rows;
    if (out->window > out->max_rows && c->window <= 0) out->window = out->max_rows;
    if (out->prefill_chunk > out->max_rows || out->window > out->max_rows) {
        return SF_FAIL(err, SF_INVALID, "%s is %d, more than max_num_batched_tokens (%d)",
                       out->window > out->max_rows ? "window" : "prefill_chunk",
                       out->window > out->max_rows ? out->window : out->prefill_chunk, out->max_rows);
    }
    out->inject_offset = c->inject_offset;
    return SF_OK;
}

/* A device that fails the probe still serves ordinary requests; only the promise is withdrawn. */
static sf_code probe(sf_engine *e, const sf_engine_config *cfg, sf_err *err) {
    sf_code rc = sf_backend_proves(e, cfg) ? sf_backend_prove(e, cfg, e->refuse, sizeof e->refuse, err)
                                           : sf_selftest_probe(e->device, e->refuse, sizeof e->refuse, err);
    if (rc == SF_NONDET) {
        e->sched_config.refuse_deterministic = e->refuse;
        rc = SF_OK;
    }
    return rc;
}

static sf_code open_parts(sf_engine *e, const sf_engine_config *cfg, sf_err *err) {
    int threads = sf_engine_machine_threads(), pages = e->plan->kv_pages;
    SF_TRY(set_int("threads", cfg->threads, 0, 1, THREADS_MAX, &threads, err));
    SF_TRY(set_int("kv_pages", cfg->kv_pages, 0, 1, 1 << 24, &pages, err));
    e->threads = threads;
    e->pages = pages;
    SF_TRY(make_sched_config(e->plan, cfg, &e->sched_config, err));
    SF_TRY(sf_engine_load(e, cfg, err));
    if (cfg->text_only) return SF_OK;
    sf_fingerprint_parts parts = {.pinned_hash = e->plan->pinned_hash,
                                  .weights_hash = sf_weights_hash(e->weights),
                                  .tokenizer_hash = e->tokenizer ? sf_tokenizer_hash(e->tokenizer) : NULL,
                                  .chat_hash = e->chat ? e->chat_hash : NULL,
                                  .device_identity = sf_backend_identity(e)};
    SF_TRY(sf_fingerprint_make(&parts, e->fingerprint, err));
    SF_TRY(sf_backend_ready(e, cfg, err));
    if (cfg->wrap_device) e->device = cfg->wrap_device(cfg->wrap_ctx, e->device);
    if (!cfg->skip_probe) SF_TRY(probe(e, cfg, err));
    return sf_sched_create(e->device, e->tokenizer, &e->sched_config, &e->sched, err);
}

sf_code sf_engine_open(const sf_plan *plan, const sf_engine_config *cfg, sf_engine **out, sf_err *err) {
    sf_engine *e = calloc(1, sizeof *e);
    if (!e) return SF_FAIL(err, SF_NOMEM, "out of memory for the engine");
    e->plan = plan;
    sf_code rc = open_parts(e, cfg, err);
    if (rc != SF_OK) {
        sf_engine_close(e);
        return rc;
    }
    *out = e;
    return SF_OK;
}

void sf_engine_close(sf_engine *e) {
    if (!e) return;
    if (e->sched) sf_sched_destroy(e->sched);
    if (e->device) e->device->ops->destroy(e->device);
    if (e->chat) sf_chat_close(e->chat);
    if (e->tokenizer) sf_tokenizer_close(e->tokenizer);
    if (e->weights) sf_weights_destroy(e->weights);
    free(e->poisoned);
    free(e);
}

int sf_engine_isas(const sf_plan *plan, sf_isa out[SF_ISA_COUNT]) {
    int n = 0;
    for (int i = 0; i < SF_ISA_COUNT; i++) {
        bool built = plan->n_kernels > 0 && plan->kernels[0].cpu[i] != NULL;
        if (built && sf_cpu_isa_here((sf_isa)i)) out[n++] = (sf_isa)i;
    }
    return n;
}

const sf_plan *sf_engine_plan(const sf_engine *e) {
    return e->plan;
}
const sf_tokenizer *sf_engine_tokenizer(const sf_engine *e) {
    return e->tokenizer;
}
const sf_chat *sf_engine_chat(const sf_engine *e) {
    return e->chat;
}
const char *sf_engine_chat_missing(const sf_engine *e) {
    return e->chat_missing;
}
sf_weights *sf_engine_weights(const sf_engine *e) {
    return e->weights;
}
double sf_engine_load_seconds(const sf_engine *e) {
    return e->load_s;
}
int sf_engine_threads(const sf_engine *e) {
    return e->threads;
}
sf_device *sf_engine_device(const sf_engine *e) {
    return e->device;
}
sf_sched *sf_engine_sched(const sf_engine *e) {
    return e->sched;
}
const sf_sched_config *sf_engine_sched_config(const sf_engine *e) {
    return &e->sched_config;
}
const char *sf_engine_fingerprint(const sf_engine *e) {
    return e->fingerprint;
}
