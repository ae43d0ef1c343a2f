#include "engine/engine_priv.h"

#include "base/hash.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define TEMPLATE_MAX ((size_t)1 << 20)

/* What is read: a GGUF file, or safetensors with their config.json and, in a directory, a tokenizer. */
typedef struct checkpoint {
    sf_gguf *g;
    const char *directory; /* NULL: it is a file */
    sf_safetensors *st;
    sf_hf_config *config;
    sf_buf chat; /* the directory's template; empty: none */
} checkpoint;

static bool is_safetensors_file(const char *path) {
    static const char end[] = ".safetensors";
    size_t len = strlen(path);
    return len >= sizeof end - 1 && strcmp(path + len - (sizeof end - 1), end) == 0;
}

/* On an error the caller closes what is open. */
static sf_code open_checkpoint(const sf_engine_config *cfg, checkpoint *c, sf_err *err) {
    struct stat st;
    if (stat(cfg->weights, &st) == 0 && S_ISDIR(st.st_mode)) c->directory = cfg->weights;
    if (!c->directory && !is_safetensors_file(cfg->weights)) return sf_gguf_open(cfg->weights, &c->g, err);
    if (cfg->text_only || cfg->random) return SF_OK; /* no weights of it are wanted */
    SF_TRY(sf_safetensors_open(cfg->weights, &c->st, err));
    return sf_hf_config_open(cfg->weights, &c->config, err);
}

static void close_checkpoint(checkpoint *c) {
    sf_gguf_close(c->g);
    sf_safetensors_close(c->st);
    sf_hf_config_close(c->config);
    sf_buf_fini(&c->chat);
}

/* The plan fixes vocabulary and special ids: a checkpoint that says otherwise belongs to another engine. */
static sf_code check_tokenizer(const sf_plan *plan, const sf_tokenizer *t, const char *path, bool directory,
                               sf_err *err) {
    const sf_model_desc *m = &plan->model;
    sf_loc at = {path, 0, 0};
    /* Rows of the embedding past the last token are padding (Qwen2.5 has 151,936 for 151,665 tokens): their
     * ids can be drawn like any other, as in vLLM, and have no text. */
    if (sf_tokenizer_vocab(t) > m->vocab) {
        return SF_FAIL_AT(err, SF_INVALID, at, "the tokenizer has %d tokens, engine %s has rows for %d",
                          sf_tokenizer_vocab(t), plan->engine, m->vocab);
    }
    if (!directory) SF_TRY(sf_tokenizer_check_split(t, path, m->tokenizer_split, err));
    if (directory && sf_tokenizer_check_split(t, path, m->tokenizer_split, NULL) != SF_OK) {
        return SF_FAIL_AT(err, SF_INVALID, at,
                          "tokenizer.json splits text otherwise than '%s', as engine %s does",
                          m->tokenizer_split, plan->engine);
    }
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

/* The checkpoint's own template; an error is a reason why there is no chat. */
static sf_code parse_own_chat(sf_engine *e, const checkpoint *c, sf_err *why) {
    const char *own = e->plan->model.chat_template;
    if (own) return parse_chat(e, "chat_template of the model description", own, strlen(own), why);
    if (c->chat.len) return parse_chat(e, "chat template of the directory", c->chat.data, c->chat.len, why);
    if (!c->g) return SF_FAIL_AT(why, SF_NOT_FOUND, ((sf_loc){c->directory, 0, 0}), "no chat template");
    sf_str s;
    SF_TRY(sf_gguf_get_str(c->g, "tokenizer.chat_template", &s, why));
    return parse_chat(e, "tokenizer.chat_template", s.data, s.len, why);
}

/* A template given by the user must parse; the checkpoint's own may not, and then only chat is missing. */
static sf_code load_chat(sf_engine *e, const sf_engine_config *cfg, const checkpoint *c, sf_err *err) {
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
                 cfg->weights ? "the weights came without one" : "no checkpoint");
        return SF_OK;
    }
    sf_err why;
    if (parse_own_chat(e, c, &why) != SF_OK) sf_err_format(&why, e->chat_missing, sizeof e->chat_missing);
    return SF_OK;
}

/* A directory may come without tokenizer.json: then prompts are token ids. */
static sf_code load_tokenizer(sf_engine *e, const sf_engine_config *cfg, checkpoint *c, sf_err *err) {
    bool there = false;
    if (c->g) SF_TRY(sf_tokenizer_open(c->g, &e->tokenizer, err));
    if (c->directory) {
        sf_buf path = {0};
        SF_TRY(sf_buf_printf(&path, err, "%s/tokenizer.json", c->directory));
        struct stat st;
        there = lstat(path.data, &st) == 0; /* a link to nothing is half a download */
        sf_buf_fini(&path);
    }
    if (there) SF_TRY(sf_tokenizer_open_dir(c->directory, &e->tokenizer, &c->chat, err));
    if (e->tokenizer) return check_tokenizer(e->plan, e->tokenizer, cfg->weights, there, err);
    if (!cfg->text_only || !cfg->weights) return SF_OK;
    return SF_FAIL_AT(err, SF_NOT_FOUND, ((sf_loc){cfg->weights, 0, 0}), "no tokenizer: %s",
                      c->directory ? "the directory has no tokenizer.json"
                                   : "give the directory of the file");
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
    if ((rc = load_tokenizer(e, cfg, &c, err)) != SF_OK) goto done;
    if ((rc = load_chat(e, cfg, &c, err)) != SF_OK) goto done;
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
