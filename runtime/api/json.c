#include "api/json.h"

#include "base/utf8.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define REAL_DIGITS   9
#define INT64_END     9223372036854775808.0 /* 2^63 */
#define INT_EXACT     9007199254740992.0    /* 2^53: up to here a double holds every integer */
#define LOGPROB_FLOOR (-9999.0)
#define QUOTE_MAX     24 /* bytes of a string value that a message shows */

/* jansson's texts, where they name its flags rather than the fault. */
static const char *plain_reason(const char *text) {
    if (strstr(text, "JSON_ALLOW_NUL")) return "\\u0000 is not allowed in a string";
    if (strstr(text, "maximum parsing depth")) return "nested too deeply (at most 2048 levels)";
    if (strstr(text, "too big")) return "an integer outside the 64-bit range";
    return text;
}

/* Takes what sf_json_parse refuses for a detail; all integers become reals. */
static json_t *parse_leniently(const char *text, size_t len) {
    json_error_t why;
    return json_loadb(text, len, JSON_DECODE_INT_AS_REAL | JSON_ALLOW_NUL, &why);
}

json_t *sf_json_salvage(const char *text, size_t len, const char *key) {
    json_t *all = parse_leniently(text, len);
    json_t *v = json_object_get(all, key);
    double d = json_real_value(v);
    json_t *out = NULL;
    if (json_is_string(v) && strlen(json_string_value(v)) == json_string_length(v)) out = json_incref(v);
    if (json_is_real(v) && fabs(d) < INT_EXACT && d == floor(d)) out = json_integer((json_int_t)d);
    json_decref(all);
    return out;
}

/* Whether a number outside int64 stands anywhere in j, as deep as the parser goes. */
static bool holds_too_big(json_t *j) {
    const char *key;
    json_t *v;
    size_t i;
    double d = json_real_value(j);
    if (json_is_real(j)) return d >= INT64_END || d <= -INT64_END;
    json_array_foreach(j, i, v) if (holds_too_big(v)) return true;
    json_object_foreach(j, key, v) if (holds_too_big(v)) return true;
    return false;
}

/* Names the field whose integer is too big. False: there is none to name. */
static bool fail_too_big(const char *text, size_t len, sf_api_error *err) {
    json_t *all = parse_leniently(text, len);
    const char *key;
    json_t *v;
    bool found = false;
    json_object_foreach(all, key, v) {
        found = holds_too_big(v);
        if (!found) continue;
        (void)sf_api_fail(err, key, "invalid_value", "%.60s %s outside the 64-bit range", key,
                          json_is_real(v) ? "is an integer" : "has an integer");
        break;
    }
    json_decref(all);
    return found;
}

/* Marks that text editors put before a text; JSON has none (RFC 8259, section 8.1). */
static const char *byte_order_mark(const char *text, size_t len) {
    if (len >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0)
        return "begins with a byte order mark, expected none";
    if (len >= 2 && (memcmp(text, "\xff\xfe", 2) == 0 || memcmp(text, "\xfe\xff", 2) == 0))
        return "begins with the byte order mark of UTF-16, expected UTF-8 without one";
    return NULL;
}

/* Refused although the grammar allows it. */
static bool is_grammatical(const json_error_t *why) {
    switch (json_error_code(why)) {
    case json_error_null_character:
    case json_error_null_byte_in_key:
    case json_error_duplicate_key:
    case json_error_numeric_overflow:
    case json_error_stack_overflow:
        return true;
    default:
        return false;
    }
}

static sf_code bad_json(const char *text, size_t len, const char *what, const json_error_t *why,
                        sf_api_error *err) {
    const char *mark = byte_order_mark(text, len);
    char line[24] = "";
    if (json_error_code(why) == json_error_out_of_memory) return sf_api_nomem(err);
    if (mark) return sf_api_fail(err, NULL, "invalid_json", "%s %s", what, mark);
    if (json_error_code(why) == json_error_numeric_overflow && fail_too_big(text, len, err))
        return SF_INVALID;
    /* Of one line it is the place in the line that helps; which line it is, `what` may say. */
    if (len > 0 && memchr(text, '\n', len)) snprintf(line, sizeof line, " line %d", why->line);
    return sf_api_fail(err, NULL, "invalid_json", "%s %s,%s column %d: %s", what,
                       is_grammatical(why) ? "is refused" : "is not valid JSON", line, why->column,
                       plain_reason(why->text));
}

sf_code sf_json_parse(const char *text, size_t len, const char *what, json_t **out, sf_api_error *err) {
    json_error_t why;
    json_t *j = json_loadb(text, len, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &why);
    if (!j) return bad_json(text, len, what, &why, err);
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

json_t *sf_json_done(json_t *o, bool ok) {
    if (ok) return o;
    json_decref(o);
    return NULL;
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

const char *sf_json_number(double v, char buf[32]) {
    for (int digits = 6; digits <= 17; digits++) {
        snprintf(buf, 32, "%.*g", digits, v);
        if (strtod(buf, NULL) == v) break;
    }
    return buf;
}

const char *sf_json_describe(const json_t *j, char *buf, size_t size) {
    char number[32];
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
        snprintf(buf, size, "%" JSON_INTEGER_FORMAT, json_integer_value(j));
        break;
    case JSON_REAL:
        sf_json_number(json_real_value(j), number);
        /* 5.0 is no integer, and says so */
        snprintf(buf, size, "%s%s", number, number[strspn(number, "-0123456789")] ? "" : ".0");
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
