#include "cli/options.h"

#include "api/fields.h"
#include "api/json.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define INJECT_MAX 63 /* offsets of a window of 64 */

const char *sf_opt_env(const sf_opt *o, char *buf, size_t size) {
    size_t at = (size_t)snprintf(buf, size, "STEADFAST_");
    for (const char *s = o->name; *s && at + 1 < size; s++)
        buf[at++] = (char)(*s == '-' ? '_' : *s >= 'a' && *s <= 'z' ? *s - 'a' + 'A' : *s);
    buf[at] = 0;
    return buf;
}

/* Digits, with a minus before them perhaps: strtoll takes blanks and a plus too. */
static bool read_i64(const char *s, int64_t *out) {
    char *end;
    if (s[*s == '-'] < '0' || s[*s == '-'] > '9') return false;
    errno = 0;
    long long v = strtoll(s, &end, 10);
    if (end == s || *end || errno) return false;
    *out = v;
    return true;
}

static bool read_bool(const char *s, bool *out) {
    bool yes = strcmp(s, "true") == 0 || strcmp(s, "1") == 0;
    bool no = strcmp(s, "false") == 0 || strcmp(s, "0") == 0;
    if (yes || no) *out = yes;
    return yes || no;
}

/* A field's value from text; NULL when the text is of no such type. Ranges are the field table's affair. */
static json_t *field_value(const sf_api_field *f, const char *s) {
    int64_t i;
    bool b;
    char *end;
    switch (f->type) {
    case SF_API_BOOL:
        return read_bool(s, &b) ? json_boolean(b) : NULL;
    case SF_API_LOGPROBS:
        if (!read_i64(s, &i) && read_bool(s, &b)) return json_boolean(b);
        return read_i64(s, &i) ? json_integer(i) : NULL;
    case SF_API_INT:
        return read_i64(s, &i) ? json_integer(i) : NULL;
    case SF_API_FLOAT: {
        bool plain = s[strspn(s, "0123456789.eE+-")] == 0 && *s != '+'; /* as JSON would have it, or nearly */
        double d = strtod(s, &end);
        return plain && end != s && !*end ? json_real(d) : NULL; /* NULL too for infinities */
    }
    default:
        return json_string(s);
    }
}

static sf_code set_field(const sf_opt *o, const char *name, const char *s, sf_cli_opts *out, sf_err *err) {
    const sf_api_field *f = sf_api_field_find(o->field);
    json_t *v = field_value(f, s);
    if (!v) {
        char wanted[160];
        return SF_FAIL(err, SF_INVALID, "%s is \"%s\", expected %s", name, s,
                       sf_api_field_expects(f, wanted, sizeof wanted));
    }
    bool ok = true;
    if (f->type == SF_API_STOP) { /* repeatable */
        json_t *list = json_object_get(out->fields, o->field);
        if (!list) {
            list = json_array();
            sf_json_put(out->fields, o->field, list, &ok);
        }
        sf_json_push(list, v, &ok);
    } else {
        sf_json_put(out->fields, o->field, v, &ok);
    }
    return ok ? SF_OK : SF_FAIL(err, SF_NOMEM, "out of memory for the flags");
}

static sf_code set_int(const sf_opt *o, const char *name, const char *s, void *at, sf_err *err) {
    int64_t v;
    bool read = read_i64(s, &v);
    if (o->max == INT_MAX &&
        (!read || v < o->min || v > o->max)) { /* the plan sets the limit, which it names */
        return SF_FAIL(err, SF_INVALID, "%s is \"%s\", expected an integer of at least %d", name, s, o->min);
    }
    if (!read || v < o->min || v > o->max) {
        return SF_FAIL(err, SF_INVALID, "%s is \"%s\", expected an integer in %d..%d", name, s, o->min,
                       o->max);
    }
    *(int *)at = (int)v;
    return SF_OK;
}

static sf_code set_random(const char *name, const char *s, sf_cli_opts *out, sf_err *err) {
    char *end;
    errno = 0;
    unsigned long long v = strtoull(s, &end, 10);
    if (*s < '0' || *s > '9' || *end || errno) {
        return SF_FAIL(err, SF_INVALID, "%s is \"%s\", expected an integer in 0..2^64-1", name, s);
    }
    out->random = true;
    out->random_seed = v;
    return SF_OK;
}

static sf_code set_num(const sf_opt *o, const char *name, const char *s, double *at, sf_err *err) {
    char *end;
    const bool infinite = o->max == INT_MAX && strcmp(s, "inf") == 0,
               plain = s[strspn(s, "0123456789.eE+-")] == 0;
    const double v = infinite ? INFINITY : strtod(s, &end);
    const bool read = infinite || (plain && *s != '+' && end != s && !*end && isfinite(v));
    if (read && v >= o->min && (v <= o->max || o->max == INT_MAX)) {
        *at = v;
        return SF_OK;
    }
    if (o->max == INT_MAX)
        return SF_FAIL(err, SF_INVALID, "%s is \"%s\", expected a number of at least %d, or inf", name, s,
                       o->min);
    return SF_FAIL(err, SF_INVALID, "%s is \"%s\", expected a number in %d..%d", name, s, o->min, o->max);
}

/* name is the flag or the variable, for messages. */
static sf_code set_option(const sf_opt *o, const char *name, const char *s, sf_cli_opts *out, sf_err *err) {
    void *at = (char *)out + o->offset;
    switch (o->kind) {
    case SF_OPT_STR:
        *(const char **)at = s;
        return SF_OK;
    case SF_OPT_INT:
        return set_int(o, name, s, at, err);
    case SF_OPT_SEED:
        out->seed_given = read_i64(s, &out->seed);
        if (out->seed_given) return SF_OK;
        return SF_FAIL(err, SF_INVALID, "%s is \"%s\", expected a 64-bit integer", name, s);
    case SF_OPT_NUM:
        return set_num(o, name, s, at, err);
    case SF_OPT_RANDOM:
        return set_random(name, s, out, err);
    case SF_OPT_BOOL:
        if (read_bool(s, at)) return SF_OK;
        return SF_FAIL(err, SF_INVALID, "%s is \"%s\", expected true or false", name, s);
    case SF_OPT_KEY:
        if (!*s) return SF_FAIL(err, SF_INVALID, "%s is empty, expected a key", name);
        if (out->n_api_keys == SF_API_KEYS_MAX)
            return SF_FAIL(err, SF_INVALID, "%s is given more than %d times: use --api-key-file", name,
                           SF_API_KEYS_MAX);
        out->api_keys[out->n_api_keys++] = s;
        return SF_OK;
    case SF_OPT_FIELD:
        return set_field(o, name, s, out, err);
    }
    return SF_OK;
}

static bool takes_value(const sf_opt *o) {
    return o->arg != NULL;
}

static sf_code parse_env(sf_verb verb, sf_cli_opts *out, sf_err *err) {
    for (int i = 0; i < sf_n_opts; i++) {
        const sf_opt *o = &sf_opts[i];
        char name[64];
        const char *value = getenv(sf_opt_env(o, name, sizeof name));
        if (!value || !(o->verbs & (1u << verb)) || strncmp(o->name, "help", 4) == 0) continue;
        SF_TRY(set_option(o, name, value, out, err));
    }
    return SF_OK;
}

/* "name=N" of len bytes, N in min..max. */
static bool read_debug(const char *s, size_t len, const char *name, int min, int max, int *out) {
    size_t head = strlen(name);
    char number[16];
    int64_t v;
    if (len <= head || len - head > sizeof number || strncmp(s, name, head) != 0 || s[head] != '=')
        return false;
    snprintf(number, sizeof number, "%.*s", (int)(len - head - 1), s + head + 1);
    if (!read_i64(number, &v) || v < min || v > max) return false;
    *out = (int)v;
    return true;
}

/* STEADFAST_DEBUG: name=N, separated by commas. */
static sf_code parse_debug(sf_cli_opts *out, sf_err *err) {
    const char *s = getenv("STEADFAST_DEBUG");
    while (s && *s) {
        size_t len = strcspn(s, ",");
        if (!read_debug(s, len, "inject", 0, INJECT_MAX, &out->debug_inject) &&
            !read_debug(s, len, "fault", 1, INT_MAX, &out->debug_fault))
            return SF_FAIL(err, SF_INVALID,
                           "STEADFAST_DEBUG has \"%.*s\", expected inject=N (0..%d) or fault=N (1..)",
                           len < 60 ? (int)len : 60, s, INJECT_MAX);
        s += len + (s[len] == ',');
    }
    return SF_OK;
}

static const sf_opt *find_opt(sf_verb verb, const char *name, size_t len) {
    for (int i = 0; i < sf_n_opts; i++) {
        const sf_opt *o = &sf_opts[i];
        if (strlen(o->name) == len && memcmp(o->name, name, len) == 0 && (o->verbs & (1u << verb))) return o;
    }
    return NULL;
}

/* A repeated --stop adds up, but the command line replaces what the environment gave. */
static void forget_env(const sf_opt *o, bool *seen, sf_cli_opts *out) {
    if (o->kind == SF_OPT_FIELD && !*seen) json_object_del(out->fields, o->field);
    if (o->kind == SF_OPT_KEY && !*seen) out->n_api_keys = 0;
    *seen = true;
}

static sf_code parse_argv(sf_verb verb, int argc, char **argv, sf_cli_opts *out, sf_err *err) {
    bool seen[SF_OPTS_MAX] = {false};
    for (int i = 0; i < argc; i++) {
        const char *a = strcmp(argv[i], "-h") == 0 ? "--help" : argv[i];
        if (strncmp(a, "--", 2) != 0)
            return SF_FAIL(err, SF_INVALID, "unexpected argument \"%s\" (%s --help lists the flags)", a,
                           sf_verb_names[verb]);
        size_t len = strcspn(a + 2, "=");
        const sf_opt *o = find_opt(verb, a + 2, len);
        if (!o)
            return SF_FAIL(err, SF_INVALID, "%.*s: unknown flag (%s --help lists them)", (int)len + 2, a,
                           sf_verb_names[verb]);
        char name[64];
        snprintf(name, sizeof name, "--%s", o->name);
        const char *value = a[2 + len] ? a + 3 + len : NULL;
        if (!value && takes_value(o)) {
            if (i + 1 >= argc) return SF_FAIL(err, SF_INVALID, "%s needs a value (%s)", name, o->arg);
            value = argv[++i];
        }
        forget_env(o, &seen[o - sf_opts], out);
        SF_TRY(set_option(o, name, value ? value : "true", out, err));
    }
    return SF_OK;
}

sf_code sf_cli_opts_parse(sf_verb verb, int argc, char **argv, sf_cli_opts *out, sf_err *err) {
    sf_cli_opts o = {.verb = verb,
                     .verify_wait = -1,
                     .verify_group = -1,
                     .prefill_split = -1,
                     .ordered = true,
                     .add_special_tokens = true,
                     .host = "127.0.0.1",
                     .port = 8000,
                     .shutdown_timeout = 30,
                     .receive_timeout = 60,
                     .log_format = "text",
                     .endpoint = "/v1/completions",
                     .dataset_name = "random",
                     .percentiles = "99",
                     .num_prompts = 1000,
                     .input_len = 1024,
                     .repeat = 1,
                     .timeout = 6 * 60 * 60,
                     .request_rate = INFINITY,
                     .burstiness = 1,
                     .deterministic_ratio = -1,
                     .debug_inject = -1,
                     .fields = json_object()};
    sf_code rc = o.fields ? SF_OK : SF_FAIL(err, SF_NOMEM, "out of memory for the flags");
    if (rc == SF_OK) rc = parse_env(verb, &o, err);
    if (rc == SF_OK) rc = parse_debug(&o, err);
    if (rc == SF_OK) rc = parse_argv(verb, argc, argv, &o, err);
    if (rc != SF_OK) {
        sf_cli_opts_fini(&o);
        return rc;
    }
    *out = o;
    return SF_OK;
}

void sf_cli_opts_fini(sf_cli_opts *o) {
    json_decref(o->fields);
    o->fields = NULL;
}
