#include "import.h"

#include "import_priv.h"
#include "model.h"
#include "model/tokenizer.h"
#include "writer.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_EOS ((int)(sizeof((sf_model_desc *)0)->eos / sizeof(int)))

const char *sf_import_split(const struct sf_tokenizer *t) {
    static const char *const names[] = {"smollm", "gpt2",   "llama3",        "qwen2",
                                        "tekken", "llama4", "sentencepiece", "regex"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (sf_tokenizer_check_split(t, "", names[i], NULL) == SF_OK) return names[i];
    }
    return NULL;
}

sf_code sf_import_add_eos(sf_model_desc *m, const char *path, int id, sf_err *err) {
    for (int i = 0; i < m->n_eos; i++) {
        if (m->eos[i] == id) return SF_OK;
    }
    if (m->n_eos == MAX_EOS)
        return SF_FAIL_AT(err, SF_UNSUPPORTED, ((sf_loc){path, 0, 0}), "over %d ids end a text", MAX_EOS);
    m->eos[m->n_eos++] = id;
    return SF_OK;
}

/* The shortest decimal that is the same double, or the same float; whole numbers without exponent. */
static const char *number(double v, bool as_float, char out[32]) {
    if (v >= 1 && v < 1e15 && v == (double)(int64_t)v) {
        snprintf(out, 32, "%.0f", v);
        return out;
    }
    for (int digits = 1; digits <= 17; digits++) {
        snprintf(out, 32, "%.*g", digits, v);
        double back = strtod(out, NULL);
        if (as_float ? (float)back == (float)v : back == v) break;
    }
    return out;
}

/* 0: not said. */
static void put_optional(sf_writer *w, const char *key, double v) {
    char text[32];
    if (v > 0) sf_put(w, "  %s: %s\n", key, number(v, false, text));
}

static void put_rope(sf_writer *w, const sf_model_desc *m) {
    char text[32];
    sf_put(w, "rope:\n  kind: %s\n  theta: %s\n", m->rope_kind, number(m->rope_theta, false, text));
    put_optional(w, "factor", m->rope_factor);
    put_optional(w, "low_freq_factor", m->rope_low_freq);
    put_optional(w, "high_freq_factor", m->rope_high_freq);
    put_optional(w, "original_context", m->rope_original_context);
    put_optional(w, "beta_fast", m->rope_beta_fast);
    put_optional(w, "beta_slow", m->rope_beta_slow);
    put_optional(w, "attention_factor", m->rope_attention_factor);
    put_optional(w, "mscale", m->rope_mscale);
    put_optional(w, "mscale_all_dim", m->rope_mscale_all_dim);
    if (m->rope_exact_range) sf_put(w, "  truncate: false\n");
}

static void put_model(sf_writer *w, const sf_model_desc *m) {
    char text[32];
    sf_put(w, "name: %s\nfamily: %s\nvocab: %d\nhidden: %d\nlayers: %d\n", m->name, m->family, m->vocab,
           m->hidden, m->layers);
    sf_put(w, "heads: %d\nkv_heads: %d\nhead_dim: %d\nintermediate: %d\ncontext: %d\n", m->heads, m->kv_heads,
           m->head_dim, m->intermediate, m->context);
    sf_put(w, "norm: {kind: rmsnorm, eps: %s}\n", number((double)m->norm_eps, true, text));
    put_rope(w, m);
    sf_put(w, "activation: silu\nbiases: %s\n", m->qkv_bias ? "qkv" : "none");
    if (m->qk_norm) sf_put(w, "qk_norm: rmsnorm\n");
    sf_put(w, "tied_embeddings: %s\n", m->tied_embeddings ? "true" : "false");
    sf_put(w, "tokenizer:\n  split: %s\n", m->tokenizer_split);
    if (m->bos < 0) {
        sf_put(w, "  bos: none\n");
    } else {
        sf_put(w, "  bos: %d\n", m->bos);
    }
    sf_put(w, "  add_bos: %s\n  eos: [", m->add_bos ? "true" : "false");
    for (int i = 0; i < m->n_eos; i++)
        sf_put(w, "%s%d", i ? ", " : "", m->eos[i]);
    sf_put(w, "]\nchat_template: checkpoint\n");
}

/* "models/X.yaml" -> "X". */
static sf_code name_of(sf_arena *a, const char *out, const char **name, sf_err *err) {
    static const char end[] = ".yaml";
    const char *slash = strrchr(out, '/'), *base = slash ? slash + 1 : out;
    size_t len = strlen(base), suffix = sizeof end - 1;
    if (len <= suffix || strcmp(base + len - suffix, end) != 0) {
        return SF_FAIL_AT(err, SF_INVALID, ((sf_loc){out, 0, 0}),
                          "the name of a model description ends in .yaml");
    }
    *name = sf_arena_text(a, base, len - suffix);
    return *name ? SF_OK : sf_arena_full(err);
}

/* Takes it as the generator would. */
static sf_code read_back(sf_arena *a, const char *out, const sf_buf *text, sf_err *err) {
    sf_yaml_node *root = NULL;
    sf_model unused;
    SF_TRY(sf_yaml_parse(a, out, text->data, text->len, &root, err));
    return sf_model_read(root, out, &unused, err);
}

static sf_code io_error(const char *path, sf_err *err) {
    return SF_FAIL_AT(err, SF_IO, ((sf_loc){path, 0, 0}), "%s", strerror(errno));
}

/* A file that is there may hold somebody's work. */
static sf_code compare(const char *path, const sf_buf *text, sf_err *err) {
    sf_buf old = {0};
    sf_code rc = sf_buf_read_regular(&old, path, SF_YAML_MAX_BYTES, err);
    bool same = rc == SF_OK && old.len == text->len && memcmp(old.data, text->data, old.len) == 0;
    sf_buf_fini(&old);
    if (rc != SF_OK || same) return rc;
    return SF_FAIL_AT(
        err, SF_INVALID, ((sf_loc){path, 0, 0}),
        "it is there already and differs from the checkpoint's; remove it, or give another name");
}

static bool write_all(const char *path, const sf_buf *text) {
    FILE *f = fopen(path, "wbx");
    if (!f) return false;
    bool ok = fwrite(text->data, 1, text->len, f) == text->len;
    ok = fflush(f) == 0 && ok; /* a full disk may show only here */
    return fclose(f) == 0 && ok;
}

/* Under another name first: who reads path sees all of it or nothing. */
static sf_code write_new(const char *path, const sf_buf *text, bool *written, sf_err *err) {
    sf_buf part = {0};
    SF_TRY(sf_buf_printf(&part, err, "%s.%ld.new", path, (long)getpid()));
    bool ok = write_all(part.data, text);
    if (ok && link(part.data, path) == 0) {
        *written = true;
        unlink(part.data);
        sf_buf_fini(&part);
        return SF_OK;
    }
    sf_code rc = ok && errno == EEXIST ? compare(path, text, err) : io_error(path, err);
    unlink(part.data);
    sf_buf_fini(&part);
    return rc;
}

sf_code sf_import(sf_arena *a, const char *from, const char *out, bool *written, sf_err *err) {
    sf_model_desc m = {.bos = -1};
    struct stat st;
    SF_TRY(name_of(a, out, &m.name, err));
    bool directory = stat(from, &st) == 0 && S_ISDIR(st.st_mode);
    SF_TRY(directory ? sf_import_dir(a, from, &m, err) : sf_import_gguf(a, from, &m, err));
    sf_writer w = {.err = err};
    *written = false;
    sf_put(&w, "# Imported from a checkpoint's %s.\n",
           directory ? "config.json and tokenizer.json" : "metadata (GGUF)");
    put_model(&w, &m);
    sf_code rc = w.rc;
    if (rc == SF_OK) rc = read_back(a, out, &w.buf, err);
    if (rc == SF_OK) rc = write_new(out, &w.buf, written, err);
    sf_buf_fini(&w.buf);
    return rc;
}
