/* Inside of the reader of config.json. */
#ifndef SF_MODEL_HF_CONFIG_PRIV_H
#define SF_MODEL_HF_CONFIG_PRIV_H

#include "model/hf_config.h"

#include <jansson.h>

struct sf_hf_config {
    const char *path; /* the checkpoint's; borrowed */
    json_t *json;
    sf_model_desc model;
};

#define SF_HF_FAIL(c, code, fmt, ...)                                                                        \
    SF_FAIL_AT(err, code, ((sf_loc){(c)->path, 0, 0}), "config.json: " fmt, __VA_ARGS__)

/* As sf_hf_config_open, over JSON text. */
SF_CHECKED sf_code sf_hf_config_open_text(const char *path, const char *text, size_t len, sf_hf_config **out,
                                          sf_err *err);
/* Fills c->model from c->json. */
SF_CHECKED sf_code sf_hf_config_read(sf_hf_config *c, sf_err *err);
SF_CHECKED sf_code sf_hf_config_read_rope(sf_hf_config *c, sf_err *err);

/* A key of map (inside, for messages: "", or "rope_scaling."); an absent key and null leave *out as it is, or
 * are an error where `required`. */
typedef struct sf_hf_key {
    const json_t *map;
    const char *inside, *key;
    bool required;
} sf_hf_key;

const json_t *sf_hf_value(const json_t *map, const char *key); /* NULL: absent, or null */
SF_CHECKED sf_code sf_hf_get_int(const sf_hf_config *c, sf_hf_key k, int lo, int hi, int *out, sf_err *err);
SF_CHECKED sf_code sf_hf_get_num(const sf_hf_config *c, sf_hf_key k, double lo, double hi, double *out,
                                 sf_err *err);
SF_CHECKED sf_code sf_hf_get_bool(const sf_hf_config *c, sf_hf_key k, bool *out, sf_err *err);
SF_CHECKED sf_code sf_hf_get_text(const sf_hf_config *c, sf_hf_key k, const char **out, sf_err *err);

#endif
