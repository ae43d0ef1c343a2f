/* JSON text in and out, strictly: UTF-8, no duplicate keys, 64-bit integers exact, fp32 with 9 digits. */
#ifndef SF_API_JSON_H
#define SF_API_JSON_H

#include "api/error.h"

#include <stdbool.h>

/* Parses one JSON object (owned by the caller). what names the text in messages ("the line", "the body").
 * Errors say where: invalid UTF-8, a byte order mark, duplicate keys, nesting past the parser's limit
 * (2,048), anything that is not an object. An integer outside int64 is a fault of the field it stands in. */
SF_CHECKED sf_code sf_json_parse(const char *text, size_t len, const char *what, json_t **out,
                                 sf_api_error *err);
/* The value of key, a string or an integer, in an object that sf_json_parse refused for what stands elsewhere
 * in it (a duplicate key, an integer too big, a NUL). Owned by the caller; NULL: there is none to be had. */
json_t *sf_json_salvage(const char *text, size_t len, const char *key);
/* Compact text, reals with 9 significant digits so that every fp32 comes back exactly; the caller frees it.
 * NULL: out of memory. */
char *sf_json_dump(const json_t *j);
/* The same over several lines, for people. */
char *sf_json_dump_pretty(const json_t *j);

/* Sets obj[key] = value (taken, also on failure); clears *ok when obj or value is NULL or memory is short. */
void sf_json_put(json_t *obj, const char *key, json_t *value, bool *ok);
void sf_json_push(json_t *array, json_t *value, bool *ok);
/* What was made so: o, or, where something of it failed, NULL (o is freed). */
json_t *sf_json_done(json_t *o, bool ok);
/* A JSON string; bytes that are not UTF-8 become '?'. NULL: out of memory. */
json_t *sf_json_text(const char *s, size_t len);
/* A log-probability: minus infinity, which JSON lacks, becomes -9999 (the completions form's convention). */
json_t *sf_json_logprob(float v);

/* The shortest decimal that reads back as v, with at least the digits of %g. Returns buf. */
const char *sf_json_number(double v, char buf[32]);
/* Describes a value for a message: `a string ("5")`, `7`, `an array of 3`. Returns buf. */
const char *sf_json_describe(const json_t *j, char *buf, size_t size);

#endif
