#include "engine/engine_priv.h"

#include "base/hash.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define TEMPLATE_MAX ((size_t)1 << 20)

/* What the weights are read from: a GGUF file, or safetensors with their config.json. */
typedef struct checkpoint {
    sf_gguf *g;
    sf_safetensors *st;
    sf_hf_config *config;
} checkpoint;

static bool is_safetensors(const char *path) {
    static const char end[] = ".safetensors";
    struct stat st;
    size_t len = strlen(path);
    if (stat(path, &st) == 0 && S_ISDIR(st.st_mode)) return true;
    return len >= sizeof end - 1 && strcmp(path + len - (sizeof end - 1), end) == 0;
}

/* On an error the caller closes what is open. */
static sf_code open_checkpoint(const sf_engine_config *cfg, checkpoint *c, sf_err *err) {
    if (!is_safetensors(cfg->weights)) return sf_gguf_open(cfg->weights, &c->g, err);
    if (cfg->text_only) {
        return SF_FAIL_AT(err, SF_UNSUPPORTED, ((sf_loc){cfg->weights, 0, 0}),
                          "no tokenizer: this build reads one from GGUF files only");
    }
    SF_TRY(sf_safetensors_open(cfg->weights, &c->st, err));
    return sf_hf_config_open(cfg->weights, &c->config, err);
}

static void close_checkpoint(checkpoint *c) {
    sf_gguf_close(c->g);
    sf_safetensors_close(c->st);
    sf_hf_config_close(c->config);
}

/* The plan fixes vocabulary and special ids: a checkpoint that says otherwise belongs to another engine. */
static sf_code check_tokenizer(const sf_plan *plan, const sf_tokenizer *t, const char *path, sf_err *err) {
    const sf_model_desc *m = &plan->model;
    sf_loc at = {path, 0, 0};
    if (sf_tokenizer_vocab(t) != m->vocab) {
        return SF_FAIL_AT(err, SF_INVALID, at, "the tokenizer has %d tokens, engine %s expects %d",
                          sf_tokenizer_vocab(t), plan->engine, m->vocab);
    }
    SF_TRY(sf_tokenizer_check_split(t, path, m->tokenizer_split, err));
    if (sf_tokenizer_add_bos(t) != m->add_bos) {
        return SF_FAIL_AT(err, SF_INVALID, at, "the tokenizer %s a BOS before plain prompts, engine %s %s",
                          sf_tokenizer_add_bos(t) ? "asks for" : "asks for no", plan->engine,
                          m->add_bos ? "adds one" : "adds none");
    }
    int32_t bos = sf_tokenizer_bos(t), eos = sf_tokenizer_eos(t);
    if (m->bos >= 0 && bos >= 0 && bos != m->bos) {
        return SF_FAIL_AT(err, SF_INVALID, at, "the tokenizer's bos is %d, engine %s expects %d", bos,
                          plan->engine, m->bos);
    }
    bool known = eos < 0 || m->n_eos == 0;
    for (int i = 0; i < m->n_eos; i++)
        known = known || m->eos[i] == eos;
    if (known) return SF_OK;
    return SF_FAIL_AT(err, SF_INVALID, at, "the tokenizer's eos is %d, which engine %s does not list", eos,
                      plan->engine);
}

static const char *piece_text(const sf_tokenizer *t, int32_t id, char buf[128]) {
    size_t len = 0;
    const char *piece = id < 0 ? NULL : sf_tokenizer_piece(t, id, &len);
    if (!piece || len >= 128) return NULL;
    memcpy(buf, piece, len);
    buf[len] = 0;
    return buf;
}

static sf_code parse_chat(sf_engine *e, const char *name, const char *source, size_t len, sf_err *err) {
    char bos[128], eos[128];
    const char *bos_text = NULL, *eos_text = NULL;
    if (e->tokenizer) {
        bos_text = piece_text(e->tokenizer, sf_tokenizer_bos(e->tokenizer), bos);
        eos_text = piece_text(e->tokenizer, sf_tokenizer_eos(e->tokenizer), eos);
    }
    if (!sf_sha256_of(source, len, e->chat_hash)) return SF_FAIL(err, SF_NOMEM, "out of memory for a hash");
    return sf_chat_open(name, source, len, bos_text, eos_text, &e->chat, err);
}

/* A template given by the user must parse; the checkpoint's own may not, and then only chat is missing. */
static sf_code load_chat(sf_engine *e, const sf_engine_config *cfg, const sf_gguf *g, sf_err *err) {
    if (cfg->chat_template) {
        sf_buf text = {0};
        sf_code rc = sf_buf_read_file(&text, cfg->chat_template, TEMPLATE_MAX, err);
        if (rc == SF_OK) {
            rc = parse_chat(e, cfg->chat_template, text.data ? text.data : "", text.len, err);
        }
        sf_buf_fini(&text);
        return rc;
    }
    if (!e->tokenizer) {
        snprintf(e->chat_missing, sizeof e->chat_missing, "this engine has no tokenizer (%s)",
                 cfg->weights ? "this build reads one from GGUF files only" : "no checkpoint");
        return SF_OK;
    }
    sf_err why;
    sf_code rc;
    const char *own = e->plan->model.chat_template;
    if (own) {
        rc = parse_chat(e, "chat_template of the model description", own, strlen(own), &why);
    } else {
        sf_str s;
        rc = sf_gguf_get_str(g, "tokenizer.chat_template", &s, &why);
        if (rc == SF_OK) rc = parse_chat(e, "tokenizer.chat_template", s.data, s.len, &why);
    }
    if (rc != SF_OK) sf_err_format(&why, e->chat_missing, sizeof e->chat_missing);
    return SF_OK;
}

static sf_code load_text(sf_engine *e, const sf_engine_config *cfg, const sf_gguf *g, sf_err *err) {
    if (g) {
        SF_TRY(sf_tokenizer_open(g, &e->tokenizer, err));
        SF_TRY(check_tokenizer(e->plan, e->tokenizer, cfg->weights, err));
    }
    return load_chat(e, cfg, g, err);
}

static sf_code load_weights(sf_engine *e, const sf_engine_config *cfg, const checkpoint *c, sf_pool *pool,
                            sf_err *err) {
    const sf_weights_sink *sink = sf_backend_sink(e);
    if (cfg->random)
        return sf_weights_random(e->plan, cfg->random_seed, pool, cfg->progress, sink, &e->weights, err);
    if (c->g) return sf_weights_load(e->plan, c->g, pool, cfg->progress, sink, &e->weights, err);
    return sf_weights_load_st(e->plan, c->st, c->config, pool, cfg->progress, sink, &e->weights, err);
}

sf_code sf_engine_load(sf_engine *e, const sf_engine_config *cfg, sf_err *err) {
    checkpoint c = {0};
    sf_pool *pool = NULL;
    double t0 = sf_now_s();
    sf_code rc;
    if (!cfg->weights && !cfg->random) {
        return SF_FAIL(
            err, SF_INVALID,
            "no weights: give a GGUF file or a directory of safetensors, or ask for random weights");
    }
    if (cfg->weights && (rc = open_checkpoint(cfg, &c, err)) != SF_OK) goto done;
    if ((rc = load_text(e, cfg, c.g, err)) != SF_OK) goto done;
    if (cfg->text_only) goto done;
    if ((rc = sf_backend_begin(e, cfg, err)) != SF_OK) goto done;
    t0 = sf_now_s();
    if ((rc = sf_pool_create(e->threads, &pool, err)) != SF_OK) goto done;
    rc = load_weights(e, cfg, &c, pool, err);
    e->load_s = sf_now_s() - t0;
done:
    sf_pool_destroy(pool);
    close_checkpoint(&c);
    return rc;
}
