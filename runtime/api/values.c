#include "api/values_priv.h"

#include "api/json.h"

#include <stdlib.h>
#include <string.h>

sf_code sf_api_wrong(const sf_api_field *f, const json_t *found, sf_api_error *err) {
    char was[96], wanted[160];
    bool ranged = f->type == SF_API_INT || f->type == SF_API_FLOAT || f->type == SF_API_LOGPROBS;
    bool number = json_is_number(found) && ranged;
    return sf_api_fail(err, f->name, number ? "invalid_value" : "invalid_type", "%s is %s, expected %s",
                       f->name, sf_json_describe(found, was, sizeof was),
                       sf_api_field_expects(f, wanted, sizeof wanted));
}

/* One stop string: non-empty, and free of NUL, which a parameter's C string could not hold. */
static bool usable_stop(const json_t *v) {
    size_t len = json_is_string(v) ? json_string_length(v) : 0;
    return len > 0 && strlen(json_string_value(v)) == len;
}

sf_code sf_api_read_stop(const sf_api_field *f, json_t *v, sf_api_request *r, sf_api_error *err) {
    size_t n = json_is_array(v) ? json_array_size(v) : 1;
    if (n == 0) return SF_OK;
    if (n > (size_t)f->max) return sf_api_wrong(f, v, err);
    const char **stop = calloc(n, sizeof *stop);
    if (!stop) return sf_api_nomem(err);
    for (size_t i = 0; i < n; i++) {
        json_t *one = json_is_array(v) ? json_array_get(v, i) : v;
        if (!usable_stop(one)) {
            free(stop);
            return sf_api_wrong(f, one, err);
        }
        stop[i] = json_string_value(one);
    }
    r->params.stop = stop;
    r->params.n_stop = (int)n;
    return SF_OK;
}

sf_code sf_api_read_ids(const sf_api_model *m, const char *name, const json_t *array, sf_ids *out,
                        sf_api_error *err) {
    size_t n = json_array_size(array);
    char found[96];
    if (!array)
        return sf_api_fail(err, name, "missing_field", "%s is missing, expected a list of token ids", name);
    if (!json_is_array(array))
        return sf_api_fail(err, name, "invalid_type", "%s is %s, expected a list of token ids", name,
                           sf_json_describe(array, found, sizeof found));
    for (size_t i = 0; i < n; i++) {
        const json_t *v = json_array_get(array, i);
        json_int_t id = json_integer_value(v);
        if (!json_is_integer(v) || id < 0 || id >= m->vocab) {
            return sf_api_fail(err, name, json_is_integer(v) ? "invalid_value" : "invalid_type",
                               "%s[%zu] is %s, expected a token id in 0..%d", name, i,
                               sf_json_describe(v, found, sizeof found), m->vocab - 1);
        }
        sf_err e;
        if (sf_ids_push(out, (int32_t)id, &e) != SF_OK) return sf_api_nomem(err);
    }
    return SF_OK;
}

sf_code sf_api_read_stop_ids(const sf_api_model *m, const sf_api_field *f, json_t *v, sf_api_request *r,
                             sf_api_error *err) {
    if (!json_is_array(v) || json_array_size(v) > (size_t)f->max) return sf_api_wrong(f, v, err);
    sf_ids ids = {0};
    sf_code rc = sf_api_read_ids(m, f->name, v, &ids, err);
    if (rc != SF_OK) {
        sf_ids_fini(&ids);
        return rc;
    }
    r->params.stop_ids = ids.data;
    r->params.n_stop_ids = (int)ids.len;
    return SF_OK;
}

/* A key of logit_bias: plain decimal digits, so that one id has one spelling. */
static bool read_key(const char *key, int vocab, int32_t *out) {
    size_t len = strlen(key);
    if (len == 0 || len > 9 || strspn(key, "0123456789") != len || (len > 1 && key[0] == '0')) return false;
    long id = strtol(key, NULL, 10);
    *out = (int32_t)id;
    return id < vocab;
}

sf_code sf_api_read_bias(const sf_api_model *m, const sf_api_field *f, json_t *v, sf_api_request *r,
                         sf_api_error *err) {
    if (!json_is_object(v)) return sf_api_wrong(f, v, err);
    size_t n = json_object_size(v), i = 0;
    if (n == 0) return SF_OK;
    if (n > SF_BIAS_MAX)
        return sf_api_fail(err, f->name, "invalid_value", "%s has %zu entries, expected at most %d", f->name,
                           n, SF_BIAS_MAX);
    sf_bias *bias = calloc(n, sizeof *bias);
    if (!bias) return sf_api_nomem(err);
    r->params.bias = bias;
    const char *key;
    json_t *value;
    json_object_foreach(v, key, value) {
        if (!read_key(key, m->vocab, &bias[i].token)) {
            return sf_api_fail(err, f->name, "invalid_value",
                               "%s has the key \"%.40s\", expected a token id in 0..%d", f->name, key,
                               m->vocab - 1);
        }
        double b = json_number_value(value);
        if (!json_is_number(value) || b < f->min || b > f->max) {
            char was[96];
            return sf_api_fail(err, f->name, json_is_number(value) ? "invalid_value" : "invalid_type",
                               "%s[\"%s\"] is %s, expected a number in [%g, %g]", f->name, key,
                               sf_json_describe(value, was, sizeof was), f->min, f->max);
        }
        bias[i++].bias = (float)b;
    }
    r->params.n_bias = (int)n;
    return SF_OK;
}
