/* The tokenizer of a Hugging Face directory: its files, and the chat template in whichever of them. */
#include "model/tokenizer_json_priv.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { MAX_JSON = 1 << 28, MAX_TEMPLATE = 1 << 20 };

static sf_code join(const char *dir, const char *name, sf_buf *path, sf_err *err) {
    path->len = 0;
    return sf_buf_printf(path, err, "%s/%s", dir, name);
}

/* A link to nothing is there: half a download, no file that was left out. */
static bool is_there(const char *path) {
    struct stat st;
    return lstat(path, &st) == 0;
}

/* *out stays NULL where an optional file is absent. Messages name directory and file: the path built here
 * does not outlive them. */
static sf_code load(const char *dir, const char *name, bool optional, json_t **out, sf_err *err) {
    sf_buf path = {0}, text = {0};
    sf_err why = {0};
    json_error_t at = {0};
    sf_code rc = join(dir, name, &path, err);
    if (rc != SF_OK) goto done;
    if (optional && !is_there(path.data)) goto done;
    rc = sf_buf_read_regular(&text, path.data, MAX_JSON, &why);
    if (rc != SF_OK) {
        rc = SF_FAIL_AT(err, rc, ((sf_loc){dir, 0, 0}), "%s: %.200s", name, why.msg);
        goto done;
    }
    *out = json_loadb(text.len ? text.data : "", text.len, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &at);
    if (*out) goto done;
    bool memory = json_error_code(&at) == json_error_out_of_memory;
    rc = SF_FAIL_AT(err, memory ? SF_NOMEM : SF_FORMAT, ((sf_loc){dir, 0, 0}), "%s:%d:%d: %.160s", name,
                    at.line, at.column, at.text);
done:
    sf_buf_fini(&path);
    sf_buf_fini(&text);
    return rc;
}

/* A text, or a list of named ones of which "default" is meant. */
static const json_t *template_of(const json_t *config) {
    json_t *v = json_object_get(config, "chat_template"), *item;
    size_t i;
    if (json_is_string(v)) return v;
    json_array_foreach(v, i, item) {
        const char *name = json_string_value(json_object_get(item, "name"));
        if (name && !strcmp(name, "default")) return json_object_get(item, "template");
    }
    return NULL;
}

/* chat_template.jinja goes before tokenizer_config.json, as the library's users have it. */
static sf_code read_template(const char *dir, const json_t *config, sf_buf *out, sf_err *err) {
    static const char name[] = "chat_template.jinja";
    sf_buf path = {0};
    sf_err why = {0};
    sf_code rc = join(dir, name, &path, err);
    if (rc == SF_OK && is_there(path.data)) {
        rc = sf_buf_read_regular(out, path.data, MAX_TEMPLATE, &why);
        if (rc != SF_OK) rc = SF_FAIL_AT(err, rc, ((sf_loc){dir, 0, 0}), "%s: %.200s", name, why.msg);
    } else if (rc == SF_OK) {
        const json_t *said = json_object_get(config, "chat_template"), *v = template_of(config);
        if (said && !json_is_null(said) && !json_is_string(said) && !json_is_array(said))
            rc =
                SF_FAIL_AT(err, SF_FORMAT, ((sf_loc){dir, 0, 0}),
                           "tokenizer_config.json: chat_template is neither a text nor a list of named ones");
        if (json_is_string(v)) rc = sf_buf_append(out, json_string_value(v), json_string_length(v), err);
    }
    sf_buf_fini(&path);
    return rc;
}

sf_code sf_tokenizer_open_dir(const char *dir, sf_tokenizer **out, sf_buf *chat_template, sf_err *err) {
    json_t *root = NULL, *config = NULL;
    sf_buf text = {0};
    sf_tokenizer *t = NULL;
    sf_code rc = load(dir, "tokenizer.json", false, &root, err);
    if (rc == SF_OK) rc = load(dir, "tokenizer_config.json", true, &config, err);
    if (rc == SF_OK && config && !json_is_object(config))
        rc = SF_FAIL_AT(err, SF_FORMAT, ((sf_loc){dir, 0, 0}),
                        "tokenizer_config.json: the whole is no object");
    if (rc == SF_OK) rc = sf_tokenizer_json_build(dir, root, config, &t, err);
    if (rc == SF_OK && chat_template) rc = read_template(dir, config, &text, err);
    if (rc == SF_OK && chat_template && text.len) rc = sf_buf_append(chat_template, text.data, text.len, err);
    if (rc == SF_OK)
        *out = t;
    else
        sf_tokenizer_close(t);
    sf_buf_fini(&text);
    json_decref(root);
    json_decref(config);
    return rc;
}
