/* The engine owns everything: plan, weights, tokenizer, chat template, device, scheduler. */
#ifndef SF_ENGINE_ENGINE_H
#define SF_ENGINE_ENGINE_H

#include "model/chat.h"
#include "model/tokenizer.h"
#include "model/weights.h"
#include "sched/sched.h"

typedef struct sf_engine sf_engine;
struct sf_selftest_config;

typedef struct sf_engine_config {
    const char
        *weights; /* a GGUF file, a Hugging Face directory, or, without tokenizer, a .safetensors file */
    bool random;  /* random weights of `random_seed` instead; needs no tokenizer when weights is NULL */
    uint64_t random_seed;
    int threads;               /* 0: the machine's cores */
    int gpu;                   /* cuda: which GPU, from 0 */
    const char *kernel_cache;  /* cuda: directory of compiled kernels; NULL: the user's cache */
    const char *isa;           /* NULL or "auto": the best */
    int kv_pages;              /* 0: the plan's */
    int max_queue;             /* requests that may wait; 0: the scheduler's default */
    int max_context, max_seqs; /* 0: the plan's */
    int window, verify_wait, verify_group, prefill_split, prefill_chunk,
        max_rows;              /* < 0 (max_rows, window, prefill_chunk: 0): the plan's */
    const char *policy;        /* NULL: the plan's; "verify" or "pin" */
    const char *chat_template; /* path of a template file, or NULL: the plan's or the checkpoint's */
    int inject_offset;         /* -1: off */
    bool skip_probe;           /* no start-up probe of the numeric contract (selftest runs its own) */
    const char *proof_dir;     /* cuda: where a passed selftest is noted; NULL: the user's cache */
    bool progress;
    bool text_only; /* tokenizer and chat template alone: no weights, device, scheduler or fingerprint */
    /* Tests only, or NULL: returns the device to use in place of `d`, and owns `d` from then on (it destroys
     * it in its own destroy). So a fault can be planted, and seen to be caught, without a special build. */
    sf_device *(*wrap_device)(void *ctx, sf_device *d);
    void *wrap_ctx;
} sf_engine_config;

void sf_engine_config_default(sf_engine_config *c);
/* The cores this process may use: the default of `threads`. */
int sf_engine_machine_threads(void);
/* Loads, checks that checkpoint, tokenizer and plan agree, opens the device, probes the numeric contract (a
 * failure makes deterministic requests be refused by name, see sf_sched_config). */
SF_CHECKED sf_code sf_engine_open(const sf_plan *plan, const sf_engine_config *cfg, sf_engine **out,
                                  sf_err *err);
void sf_engine_close(sf_engine *e);

const sf_plan *sf_engine_plan(const sf_engine *e);
const sf_tokenizer *sf_engine_tokenizer(const sf_engine *e); /* NULL: none came with the weights */
const sf_chat *sf_engine_chat(const sf_engine *e);           /* NULL: see sf_engine_chat_missing */
const char *sf_engine_chat_missing(const sf_engine *e);      /* why there is no chat template; "" if one is */
sf_weights *sf_engine_weights(const sf_engine *e);
double sf_engine_load_seconds(const sf_engine *e);
int sf_engine_threads(const sf_engine *e);
sf_device *sf_engine_device(const sf_engine *e);
/* The CUDA device (device/cuda/cuda.h), also where a test wrapped it; NULL: another backend. */
sf_device *sf_engine_cuda(const sf_engine *e);
/* Fills in the modes that a selftest of this engine's device has to compare; leaves out as it is where there
 * are none. */
void sf_engine_selftest_modes(const sf_engine *e, struct sf_selftest_config *out);
/* Makes the embedding row of the last token infinite, or puts it back: sf_selftest_config.poison, with the
 * engine as its context. Errors: SF_UNSUPPORTED, SF_NOMEM, SF_DEVICE. */
SF_CHECKED sf_code sf_engine_poison(void *engine, bool on, sf_err *err);
sf_sched *sf_engine_sched(const sf_engine *e);
const sf_sched_config *sf_engine_sched_config(const sf_engine *e);
/* Opens a further device on the engine's weights (selftest: other instruction sets and thread counts). The
 * caller destroys it, before the engine. */
SF_CHECKED sf_code sf_engine_device_open(const sf_engine *e, const char *isa, int threads, int n_pages,
                                         sf_device **out, sf_err *err);
/* Instruction sets that both this machine and the build have; returns how many (at most SF_ISA_COUNT). */
int sf_engine_isas(const sf_plan *plan, sf_isa out[SF_ISA_COUNT]);
/* Numerics fingerprint, "sf-" and 32 hex digits: pinned kernels and schedule, compiler and flags,
 * architecture (not the instruction set: it changes no bit), weights, tokenizer, sampler version. */
const char *sf_engine_fingerprint(const sf_engine *e);

#endif
