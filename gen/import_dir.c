/* The figures of a Hugging Face directory: config.json, the tokenizer's files, and the ids that end a text of
 * generation_config.json too. */
#include "import_priv.h"

#include "base/buf.h"
#include "model/hf_config.h"
#include "model/tokenizer.h"

#include <jansson.h>
#include <string.h>
#include <sys/stat.h>

#define GENERATION     "generation_config.json"
#define GENERATION_MAX ((size_t)1 << 20)

#define FAIL(dir, code, ...) SF_FAIL_AT(err, code, ((sf_loc){dir, 0, 0}), __VA_ARGS__)

static sf_code add_eos(sf_model_desc *m, const char *dir, const json_t *v, sf_err *err) {
    json_int_t id = json_integer_value(v);
    if (json_is_integer(v) && id >= 0 && id < m->vocab) return sf_import_add_eos(m, dir, (int)id, err);
    return FAIL(dir, SF_FORMAT, GENERATION ": key eos_token_id is no id of 0..%d, nor a list of them",
                m->vocab - 1);
}

static sf_code add_all(sf_model_desc *m, const char *dir, const json_t *root, sf_err *err) {
    const json_t *eos = json_object_get(root, "eos_token_id");
    if (!eos || json_is_null(eos)) return SF_OK;
    if (!json_is_array(eos)) return add_eos(m, dir, eos, err);
    for (size_t i = 0; i < json_array_size(eos); i++)
        SF_TRY(add_eos(m, dir, json_array_get(eos, i), err));
    return SF_OK;
}

/* The file may be absent. */
static sf_code read_generation(sf_arena *a, const char *dir, sf_model_desc *m, sf_err *err) {
    const char *path = sf_arena_printf(a, "%s/" GENERATION, dir);
    sf_buf text = {0};
    sf_err why = {0};
    json_error_t at = {0};
    if (!path) return sf_arena_full(err);
    struct stat st;
    if (lstat(path, &st) != 0) return SF_OK; /* a link to nothing is not absent */
    sf_code rc = sf_buf_read_regular(&text, path, GENERATION_MAX, &why);
    if (rc != SF_OK) {
        sf_buf_fini(&text);
        return FAIL(dir, rc, GENERATION ": %s", why.msg);
    }
    json_t *root = json_loadb(text.data, text.len, JSON_REJECT_DUPLICATES, &at);
    if (root) {
        rc = add_all(m, dir, root, err);
    } else {
        rc = FAIL(dir, SF_FORMAT, GENERATION ": broken JSON, line %d, column %d: %s", at.line, at.column,
                  at.text);
    }
    json_decref(root);
    sf_buf_fini(&text);
    return rc;
}

static sf_code read_tokenizer(const char *dir, sf_model_desc *m, sf_err *err) {
    sf_tokenizer *t = NULL;
    sf_code rc = SF_OK;
    SF_TRY(sf_tokenizer_open_dir(dir, &t, NULL, err));
    int bos = sf_tokenizer_bos(t), eos = sf_tokenizer_eos(t);
    m->add_bos = sf_tokenizer_add_bos(t);
    m->tokenizer_split = sf_import_split(t);
    if (bos >= 0) m->bos = bos;
    if (sf_tokenizer_vocab(t) > m->vocab) {
        rc = FAIL(dir, SF_FORMAT, "the tokenizer has %d tokens, config.json's vocab_size is %d",
                  sf_tokenizer_vocab(t), m->vocab);
    } else if (!m->tokenizer_split) {
        rc = FAIL(dir, SF_UNSUPPORTED, "tokenizer.json: its split has no name here");
    } else if (eos >= 0) {
        rc = sf_import_add_eos(m, dir, eos, err);
    }
    sf_tokenizer_close(t);
    return rc;
}

sf_code sf_import_dir(sf_arena *a, const char *dir, sf_model_desc *out, sf_err *err) {
    sf_hf_config *c = NULL;
    const char *name = out->name;
    SF_TRY(sf_hf_config_open(dir, &c, err));
    *out = *sf_hf_config_model(c);
    out->name = name;
    sf_hf_config_close(c);
    SF_TRY(read_generation(a, dir, out, err));
    return read_tokenizer(dir, out, err);
}
