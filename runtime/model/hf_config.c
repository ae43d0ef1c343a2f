#include "model/hf_config.h"
#include "model/hf_config_priv.h"

#include "base/buf.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define CONFIG_MAX ((size_t)1 << 20)

/* "DIR/config.json", DIR the checkpoint or where it lies. NULL: no memory. */
static char *config_path(const char *checkpoint) {
    struct stat st;
    const char *slash = strrchr(checkpoint, '/');
    bool directory = stat(checkpoint, &st) == 0 && S_ISDIR(st.st_mode);
    size_t len = directory ? strlen(checkpoint) : slash ? (size_t)(slash - checkpoint) : 0;
    static const char name[] = "/config.json";
    char *path = malloc(len + sizeof name + 1);
    if (!path) return NULL;
    memcpy(path, checkpoint, len);
    bool here = !directory && !slash;
    memcpy(path + len, here ? name + 1 : name, here ? sizeof name - 1 : sizeof name);
    return path;
}

static sf_code parse(sf_hf_config *c, const char *text, size_t len, sf_err *err) {
    json_error_t why = {0};
    c->json = json_loadb(text, len, JSON_REJECT_DUPLICATES, &why);
    if (!c->json && (json_error_code(&why) == json_error_out_of_memory || !why.text[0]))
        return SF_HF_FAIL(c, SF_NOMEM, "no memory for %zu bytes of JSON", len);
    if (!c->json) {
        return SF_HF_FAIL(c, SF_FORMAT, "broken JSON, line %d, column %d: %s", why.line, why.column,
                          why.text);
    }
    if (json_is_object(c->json)) return SF_OK;
    return SF_HF_FAIL(c, SF_FORMAT, "%s", "the JSON is an array, expected an object");
}

sf_code sf_hf_config_open_text(const char *path, const char *text, size_t len, sf_hf_config **out,
                               sf_err *err) {
    sf_hf_config *c = calloc(1, sizeof *c);
    if (!c) return SF_FAIL_AT(err, SF_NOMEM, ((sf_loc){path, 0, 0}), "no memory");
    c->path = path;
    sf_code rc = parse(c, text, len, err);
    if (rc == SF_OK) rc = sf_hf_config_read(c, err);
    if (rc != SF_OK) {
        sf_hf_config_close(c);
        return rc;
    }
    *out = c;
    return SF_OK;
}

sf_code sf_hf_config_open(const char *checkpoint, sf_hf_config **out, sf_err *err) {
    const sf_loc at = {checkpoint, 0, 0};
    sf_buf text = {0};
    sf_err why = {0};
    char *path = config_path(checkpoint);
    if (!path) return SF_FAIL_AT(err, SF_NOMEM, at, "no memory");
    sf_code rc = sf_buf_read_regular(&text, path, CONFIG_MAX, &why);
    if (rc != SF_OK) {
        rc = SF_FAIL_AT(err, rc, at, "config.json: %s", why.msg);
    } else {
        rc = sf_hf_config_open_text(checkpoint, text.data ? text.data : "", text.len, out, err);
    }
    sf_buf_fini(&text);
    free(path);
    return rc;
}

void sf_hf_config_close(sf_hf_config *c) {
    if (!c) return;
    json_decref(c->json);
    free(c);
}

const char *sf_hf_config_path(const sf_hf_config *c) {
    return c->path;
}

const sf_model_desc *sf_hf_config_model(const sf_hf_config *c) {
    return &c->model;
}

const json_t *sf_hf_value(const json_t *map, const char *key) {
    const json_t *v = json_object_get(map, key);
    return json_is_null(v) ? NULL : v;
}

bool sf_hf_config_has(const sf_hf_config *c, const char *key) {
    return sf_hf_value(c->json, key);
}

static const char *kind_of(const json_t *v) {
    switch (json_typeof(v)) {
    case JSON_OBJECT:
        return "an object";
    case JSON_ARRAY:
        return "a list";
    case JSON_STRING:
        return "a text";
    case JSON_INTEGER:
        return "an integer";
    case JSON_REAL:
        return "a number with a point";
    case JSON_TRUE:
    case JSON_FALSE:
        return "true or false";
    case JSON_NULL:
        break;
    }
    return "null";
}

/* Whether there is a value (in *v) to be read. */
static sf_code value(const sf_hf_config *c, sf_hf_key k, const json_t **v, sf_err *err) {
    *v = sf_hf_value(k.map, k.key);
    if (*v || !k.required) return SF_OK;
    return SF_HF_FAIL(c, SF_FORMAT, "key %s%s is missing", k.inside, k.key);
}

static sf_code other_type(const sf_hf_config *c, sf_hf_key k, const json_t *v, const char *expected,
                          sf_err *err) {
    return SF_HF_FAIL(c, SF_FORMAT, "key %s%s is %s, expected %s", k.inside, k.key, kind_of(v), expected);
}

sf_code sf_hf_get_int(const sf_hf_config *c, sf_hf_key k, int lo, int hi, int *out, sf_err *err) {
    const json_t *v = NULL;
    SF_TRY(value(c, k, &v, err));
    if (!v) return SF_OK;
    if (!json_is_integer(v)) return other_type(c, k, v, "an integer", err);
    json_int_t i = json_integer_value(v);
    if (i < lo || i > hi) {
        return SF_HF_FAIL(c, SF_FORMAT, "key %s%s is %lld, expected %d..%d", k.inside, k.key, (long long)i,
                          lo, hi);
    }
    *out = (int)i;
    return SF_OK;
}

sf_code sf_hf_get_num(const sf_hf_config *c, sf_hf_key k, double lo, double hi, double *out, sf_err *err) {
    const json_t *v = NULL;
    SF_TRY(value(c, k, &v, err));
    if (!v) return SF_OK;
    if (!json_is_number(v)) return other_type(c, k, v, "a number", err);
    double d = json_number_value(v);
    if (!(d >= lo && d <= hi)) {
        return SF_HF_FAIL(c, SF_FORMAT, "key %s%s is %.9g, expected %g..%g", k.inside, k.key, d, lo, hi);
    }
    *out = d;
    return SF_OK;
}

sf_code sf_hf_get_bool(const sf_hf_config *c, sf_hf_key k, bool *out, sf_err *err) {
    const json_t *v = NULL;
    SF_TRY(value(c, k, &v, err));
    if (!v) return SF_OK;
    if (!json_is_boolean(v)) return other_type(c, k, v, "true or false", err);
    *out = json_is_true(v);
    return SF_OK;
}

sf_code sf_hf_get_text(const sf_hf_config *c, sf_hf_key k, const char **out, sf_err *err) {
    const json_t *v = NULL;
    SF_TRY(value(c, k, &v, err));
    if (!v) return SF_OK;
    if (!json_is_string(v)) return other_type(c, k, v, "a text", err);
    *out = json_string_value(v);
    return SF_OK;
}
