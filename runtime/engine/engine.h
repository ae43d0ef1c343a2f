/* The engine owns everything: plan, weights, tokenizer, chat template, device, scheduler. */
#ifndef SF_ENGINE_ENGINE_H
#define SF_ENGINE_ENGINE_H

#include "model/chat.h"
#include "model/tokenizer.h"
#include "sched/sched.h"

typedef struct sf_engine sf_engine;

typedef struct sf_engine_config {
    const char *weights; /* GGUF path */
    bool random; /* random weights of `random_seed` instead; needs no tokenizer when weights is NULL */
    uint64_t random_seed;
    int threads;               /* 0: the machine's cores */
    const char *isa;           /* NULL or "auto": the best */
    int kv_pages;              /* 0: the plan's */
    int max_context, max_seqs; /* 0: the plan's */
    int window, verify_wait, verify_group, prefill_chunk,
        max_rows;              /* < 0 (max_rows, window, prefill_chunk: 0): the plan's */
    const char *policy;        /* NULL: the plan's; "verify" or "pin" */
    const char *chat_template; /* path of a template file, or NULL: the plan's or the checkpoint's */
    int inject_offset;         /* -1: off */
    bool skip_probe;           /* no start-up probe of the numeric contract (selftest runs its own) */
    bool progress;
} sf_engine_config;

void sf_engine_config_default(sf_engine_config *c);
/* Loads, checks that checkpoint, tokenizer and plan agree, opens the device, probes the numeric contract (a
 * failure makes deterministic requests be refused by name, see sf_sched_config). */
SF_CHECKED sf_code sf_engine_open(const sf_plan *plan, const sf_engine_config *cfg, sf_engine **out,
                                  sf_err *err);
void sf_engine_close(sf_engine *e);

const sf_plan *sf_engine_plan(const sf_engine *e);
const sf_tokenizer *sf_engine_tokenizer(const sf_engine *e); /* NULL with random weights and no checkpoint */
const sf_chat *sf_engine_chat(const sf_engine *e);           /* NULL: the checkpoint has no template */
sf_device *sf_engine_device(const sf_engine *e);
sf_sched *sf_engine_sched(const sf_engine *e);
const sf_sched_config *sf_engine_sched_config(const sf_engine *e);
/* Numerics fingerprint, "sf-" and 32 hex digits: pinned kernels and schedule, compiler and flags,
 * architecture (not the instruction set: it changes no bit), weights, tokenizer, sampler version. */
const char *sf_engine_fingerprint(const sf_engine *e);

#endif
