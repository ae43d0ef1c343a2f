/* The engine's fields, shared by engine.c and open.c. */
#ifndef SF_ENGINE_ENGINE_PRIV_H
#define SF_ENGINE_ENGINE_PRIV_H

#include "device/cuda/cuda.h"
#include "engine/engine.h"
#include "engine/fingerprint.h"
#include "engine/selftest.h"

struct sf_engine {
    const sf_plan *plan;
    sf_weights *weights;
    sf_tokenizer *tokenizer; /* NULL: random weights without a checkpoint */
    sf_chat *chat;
    sf_device *device;
    sf_device *cuda;      /* the CUDA device under `device`; NULL: another backend */
    sf_weights_sink sink; /* cuda */
    uint16_t *poisoned;   /* the embedding row that sf_engine_poison took away; NULL: never did */
    sf_sched *sched;
    sf_sched_config sched_config;
    int threads, pages; /* KV pages of the pool */
    double load_s;
    char chat_missing[480];
    char refuse[480]; /* why deterministic requests are refused; sched_config points here */
    char fingerprint[SF_FINGERPRINT_SIZE];
    char chat_hash[65]; /* of the template's text, once chat is set */
};

/* The parts of sf_engine_open that touch the checkpoint: weights, tokenizer, chat template. */
SF_CHECKED sf_code sf_engine_load(sf_engine *e, const sf_engine_config *cfg, sf_err *err);

/* Backends (backend.c). begin: before the weights, ready: after; sink: where the weights go (NULL: host);
 * identity: what else makes bits (NULL: nothing). Errors: those of sf_cpu_open, sf_cuda_open, sf_cuda_ready.
 */
bool sf_backend_is_cuda(const sf_plan *plan);
SF_CHECKED sf_code sf_backend_begin(sf_engine *e, const sf_engine_config *cfg, sf_err *err);
const sf_weights_sink *sf_backend_sink(const sf_engine *e);
SF_CHECKED sf_code sf_backend_ready(sf_engine *e, const sf_engine_config *cfg, sf_err *err);
const char *sf_backend_identity(const sf_engine *e);
/* Whether this start must run the whole selftest: kernels compiled on this machine that it has not yet
 * proved (proof.h). prove runs it and notes that it passed; SF_NONDET: why says what failed. Other errors:
 * those of sf_selftest_run. */
bool sf_backend_proves(const sf_engine *e, const sf_engine_config *cfg);
SF_CHECKED sf_code sf_backend_prove(sf_engine *e, const sf_engine_config *cfg, char *why, size_t why_size,
                                    sf_err *err);

#endif
