#include "api/json.h"

#include "base/utf8.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define REAL_DIGITS   9
#define LOGPROB_FLOOR (-9999.0)
#define QUOTE_MAX     24 /* bytes of a string value that a message shows */

/* jansson's texts, where they name its flags rather than the fault. */
static const char *plain_reason(const char *text) {
    if (strstr(text, "JSON_ALLOW_NUL")) return "\\u0000 is not allowed in a string";
    if (strstr(text, "maximum parsing depth")) return "nested too deeply (at most 2048 levels)";
    if (strstr(text, "too big")) return "an integer outside the 64-bit range";
    return text;
}

sf_code sf_json_parse(const char *text, size_t len, const char *what, json_t **out, sf_api_error *err) {
    json_error_t why;
    json_t *j = json_loadb(text, len, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &why);
    if (!j) {
        if (json_error_code(&why) == json_error_out_of_memory) return sf_api_nomem(err);
        return sf_api_fail(err, NULL, "invalid_json", "%s is not valid JSON, line %d column %d: %s", what,
                           why.line, why.column, plain_reason(why.text));
    }
    if (json_is_object(j)) {
        *out = j;
        return SF_OK;
    }
    char found[64];
    sf_json_describe(j, found, sizeof found);
    json_decref(j);
    return sf_api_fail(err, NULL, "invalid_json", "%s is %s, expected a JSON object", what, found);
}

char *sf_json_dump(const json_t *j) {
    return json_dumps(j, JSON_COMPACT | JSON_REAL_PRECISION(REAL_DIGITS));
}

char *sf_json_dump_pretty(const json_t *j) {
    return json_dumps(j, JSON_INDENT(2) | JSON_REAL_PRECISION(REAL_DIGITS));
}

void sf_json_put(json_t *obj, const char *key, json_t *value, bool *ok) {
    if (json_object_set_new(obj, key, value) != 0) *ok = false;
}

void sf_json_push(json_t *array, json_t *value, bool *ok) {
    if (json_array_append_new(array, value) != 0) *ok = false;
}

json_t *sf_json_text(const char *s, size_t len) {
    json_t *j = json_stringn(s, len);
    if (j) return j;
    char *copy = malloc(len + 1);
    if (!copy) return NULL;
    memcpy(copy, s, len);
    for (size_t i = 0; i < len;) {
        i += sf_utf8_prefix(copy + i, len - i);
        if (i < len) copy[i++] = '?';
    }
    j = json_stringn(copy, len);
    free(copy);
    return j;
}

json_t *sf_json_logprob(float v) {
    return json_real(isfinite(v) ? (double)v : LOGPROB_FLOOR);
}

const char *sf_json_describe(const json_t *j, char *buf, size_t size) {
    switch (json_typeof(j)) {
    case JSON_OBJECT:
        snprintf(buf, size, "an object");
        break;
    case JSON_ARRAY:
        snprintf(buf, size, "an array of %zu", json_array_size(j));
        break;
    case JSON_STRING: {
        size_t len = json_string_length(j);
        bool cut = len > QUOTE_MAX;
        snprintf(buf, size, "a string (\"%.*s%s\")", cut ? QUOTE_MAX : (int)len, json_string_value(j),
                 cut ? "..." : "");
        break;
    }
    case JSON_INTEGER:
        snprintf(buf, size, "an integer (%" JSON_INTEGER_FORMAT ")", json_integer_value(j));
        break;
    case JSON_REAL:
        snprintf(buf, size, "a number (%g)", json_real_value(j));
        break;
    case JSON_TRUE:
    case JSON_FALSE:
        snprintf(buf, size, "%s", json_is_true(j) ? "true" : "false");
        break;
    case JSON_NULL:
        snprintf(buf, size, "null");
        break;
    }
    return buf;
}
