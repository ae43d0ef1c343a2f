/* The engine's fields, shared by engine.c and open.c. */
#ifndef SF_ENGINE_ENGINE_PRIV_H
#define SF_ENGINE_ENGINE_PRIV_H

#include "engine/engine.h"
#include "engine/fingerprint.h"

struct sf_engine {
    const sf_plan *plan;
    sf_weights *weights;
    sf_tokenizer *tokenizer; /* NULL: random weights without a checkpoint */
    sf_chat *chat;
    sf_device *device;
    sf_sched *sched;
    sf_sched_config sched_config;
    int threads;
    double load_s;
    char chat_missing[480];
    char refuse[480]; /* why deterministic requests are refused; sched_config points here */
    char fingerprint[SF_FINGERPRINT_SIZE];
    char chat_hash[65]; /* of the template's text, once chat is set */
};

/* The parts of sf_engine_open that touch the checkpoint: weights, tokenizer, chat template. */
SF_CHECKED sf_code sf_engine_load(sf_engine *e, const sf_engine_config *cfg, sf_err *err);

#endif
