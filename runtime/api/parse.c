#include "api/fields.h"
#include "api/json.h"
#include "api/values_priv.h"

#include <float.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#define COMPLETION_MAX_TOKENS 16

static void store(sf_api_request *r, const sf_api_field *f, const void *value, size_t size) {
    memcpy((char *)r + f->offset, value, size);
}

static sf_code read_int(const sf_api_field *f, const json_t *v, sf_api_request *r, sf_api_error *err) {
    json_int_t i = json_integer_value(v);
    if (!json_is_integer(v) || (double)i < f->min || (double)i > f->max) return sf_api_wrong(f, v, err);
    int value = (int)i;
    store(r, f, &value, sizeof value);
    return SF_OK;
}

static sf_code read_float(const sf_api_field *f, const json_t *v, sf_api_request *r, sf_api_error *err) {
    double d = json_number_value(v);
    bool inside = (f->open_min ? d > f->min : d >= f->min) && d <= f->max;
    if (!json_is_number(v) || !inside) return sf_api_wrong(f, v, err);
    float value = (float)d;
    if (f->open_min && value <= (float)f->min) value = FLT_MIN; /* 1e-60 is > 0, and stays so */
    store(r, f, &value, sizeof value);
    return SF_OK;
}

static sf_code read_logprobs(const sf_api_field *f, const json_t *v, sf_api_request *r, sf_api_error *err) {
    if (!json_is_boolean(v)) {
        return json_is_integer(v) ? read_int(f, v, r, err) : sf_api_wrong(f, v, err);
    }
    int value = json_is_true(v) ? 0 : -1;
    store(r, f, &value, sizeof value);
    return SF_OK;
}

bool sf_api_id_usable(const json_t *id) {
    return json_is_integer(id) || (json_is_string(id) && json_string_length(id) <= SF_API_ID_MAX);
}

static bool json_kind_ok(sf_api_type type, const json_t *v) {
    switch (type) {
    case SF_API_BOOL:
        return json_is_boolean(v);
    case SF_API_STRING:
        return json_is_string(v);
    case SF_API_OBJECT:
        return json_is_object(v);
    case SF_API_ARRAY:
        return json_is_array(v);
    case SF_API_PROMPT:
        return json_is_array(v) || json_is_string(v);
    case SF_API_INT64:
        return json_is_integer(v);
    case SF_API_ID:
        return sf_api_id_usable(v);
    default:
        return true;
    }
}

static sf_code read_field(const sf_api_model *m, const sf_api_field *f, json_t *v, sf_api_request *r,
                          sf_api_error *err) {
    if (!json_kind_ok(f->type, v)) return sf_api_wrong(f, v, err);
    switch (f->type) {
    case SF_API_BOOL: {
        bool b = json_is_true(v);
        store(r, f, &b, sizeof b);
        return SF_OK;
    }
    case SF_API_INT64: {
        int64_t i = json_integer_value(v);
        store(r, f, &i, sizeof i);
        return SF_OK;
    }
    case SF_API_STRING: {
        const char *s = json_string_value(v);
        store(r, f, &s, sizeof s);
        return SF_OK;
    }
    case SF_API_OBJECT:
    case SF_API_ARRAY:
    case SF_API_ID:
    case SF_API_PROMPT:
        store(r, f, &v, sizeof v);
        return SF_OK;
    case SF_API_INT:
        return read_int(f, v, r, err);
    case SF_API_FLOAT:
        return read_float(f, v, r, err);
    case SF_API_LOGPROBS:
        return read_logprobs(f, v, r, err);
    case SF_API_STOP:
        return sf_api_read_stop(f, v, r, err);
    case SF_API_IDS:
        return sf_api_read_stop_ids(m, f, v, r, err);
    case SF_API_BIAS:
        return sf_api_read_bias(m, f, v, r, err);
    }
    return SF_OK;
}

static sf_code fail_unknown(const char *key, unsigned kind, sf_api_error *err) {
    const char *near = sf_api_field_near(key, kind);
    return sf_api_fail(err, key, "unknown_field", "%.60s: unknown field%s%s%s", key,
                       near ? ", did you mean " : "", near ? near : "", near ? "?" : "");
}

/* The value v under key, which is f's name or its alias: errors name what the client wrote. */
static sf_code read_named(const sf_api_model *m, const sf_api_field *f, const char *key, json_t *v,
                          sf_api_request *r, sf_api_error *err) {
    sf_api_field named = *f;
    const json_t *other = json_object_get(r->body, f->name);
    named.name = key;
    if (strcmp(key, f->name) != 0 && other && !json_is_null(other) && !json_equal(other, v)) {
        return sf_api_fail(err, key, "invalid_value",
                           "%s and %s are two names of one field and differ, expected one of them", key,
                           f->name);
    }
    return read_field(m, &named, v, r, err);
}

static sf_code read_fields(const sf_api_model *m, sf_api_request *r, sf_api_error *err) {
    const char *key;
    json_t *v;
    json_object_foreach(r->body, key, v) {
        const sf_api_field *f = sf_api_field_find(key);
        if (f && !(f->where & r->kind)) f = NULL;
        if (!f) {
            if (m->strict) return fail_unknown(key, r->kind, err);
            if (!r->ignored) r->ignored = key;
            continue;
        }
        if (json_is_null(v)) continue; /* as if absent, which is what clients mean by it */
        SF_TRY(read_named(m, f, key, v, r, err));
    }
    return SF_OK;
}

const char *sf_api_request_unknown(const sf_api_request *r, char *buf, size_t size) {
    static const char more[] = "...";
    const char *key;
    json_t *v;
    size_t at = 0;
    buf[0] = 0;
    json_object_foreach(r->body, key, v) {
        const sf_api_field *f = sf_api_field_find(key);
        if (f && (f->where & r->kind)) continue;
        const bool fits = at + strlen(key) + 2 + sizeof more + 1 < size;
        at += (size_t)snprintf(buf + at, size - at, "%s%s", at ? ", " : "", fits ? key : more);
        if (!fits) break;
    }
    return buf;
}

/* OpenAI's batch files wrap each request; the wrapper's own words would be ignored as unknown. */
static sf_code check_wrapper(const sf_api_request *r, sf_api_error *err) {
    if (!(r->kind & SF_API_RUN) || !json_object_get(r->body, "body") || !json_object_get(r->body, "url"))
        return SF_OK;
    return sf_api_fail(
        err, "body", "unsupported",
        "body: batch wrapper lines (custom_id, method, url, body) are not understood, expected "
        "what body holds as the line itself; custom_id may stand in it");
}

/* Which of completion and chat the line of a run is. */
static unsigned run_kind(const json_t *body) {
    bool chat = !json_is_null(json_object_get(body, "messages")) && json_object_get(body, "messages");
    return SF_API_RUN | (chat ? (unsigned)SF_API_CHAT : (unsigned)SF_API_COMPLETION);
}

static sf_code check_source(const sf_api_request *r, sf_api_error *err) {
    int n = (r->prompt != NULL) + (r->prompt_ids != NULL) + (r->messages != NULL);
    if (n == 1) return SF_OK;
    bool run = r->kind & SF_API_RUN;
    const char *wanted = run                     ? "prompt, prompt_ids or messages"
                         : r->kind & SF_API_CHAT ? "messages"
                                                 : "prompt";
    if (n == 0) {
        const char *near = r->ignored ? sf_api_field_near(r->ignored, r->kind) : NULL;
        char hint[160] = "";
        if (near) snprintf(hint, sizeof hint, " (%.60s is unknown, did you mean %s?)", r->ignored, near);
        return sf_api_fail(err, r->kind & SF_API_CHAT ? "messages" : "prompt", "missing_field",
                           "%s is missing%s", wanted, hint);
    }
    return sf_api_fail(err, "prompt", "invalid_value", "expected only one of %s", wanted);
}

/* Of the two names for the length of an answer the newer one wins, wherever it stands in the object. */
static sf_code check_length(sf_api_request *r, sf_api_error *err) {
    sf_params *p = &r->params;
    const bool newer = r->max_completion_tokens >= 0;
    const char *name = newer ? "max_completion_tokens" : "max_tokens";
    if (newer) p->max_tokens = r->max_completion_tokens;
    if (p->max_tokens >= 0 && p->min_tokens > p->max_tokens) {
        return sf_api_fail(err, "min_tokens", "invalid_value", "min_tokens is %d, expected at most %s (%d)",
                           p->min_tokens, name, p->max_tokens);
    }
    if (p->max_tokens == 0 && !r->echo && r->prompt_logprobs < 0) {
        return sf_api_fail(err, name, "invalid_value",
                           "%s is 0, expected at least 1 without echo or prompt_logprobs", name);
    }
    return SF_OK;
}

static sf_code check_together(sf_api_request *r, sf_api_error *err) {
    if (r->top_logprobs > 0 && r->logprobs < 0) {
        return sf_api_fail(err, "top_logprobs", "invalid_value", "top_logprobs is %d, expected logprobs too",
                           r->top_logprobs);
    }
    if (r->continue_final_message && r->add_generation_prompt) {
        if (json_is_true(json_object_get(r->body, "add_generation_prompt"))) {
            return sf_api_fail(
                err, "continue_final_message", "invalid_value",
                "continue_final_message and add_generation_prompt are both true, expected one");
        }
        r->add_generation_prompt = false;
    }
    return SF_OK;
}

bool sf_api_request_seeded(const sf_api_request *r) {
    const json_t *seed = json_object_get(r->body, "seed");
    return seed && !json_is_null(seed);
}

/* Below 2^53, so that a client whose numbers are doubles can send it back. */
static int64_t fresh_seed(void) {
    uint64_t raw;
    if (getrandom(&raw, sizeof raw, 0) != (ssize_t)sizeof raw) {
        struct timespec now; /* a system that withholds its randomness */
        clock_gettime(CLOCK_MONOTONIC, &now);
        raw = ((uint64_t)now.tv_sec << 30 ^ (uint64_t)now.tv_nsec) * 0x9e3779b97f4a7c15u;
    }
    return (int64_t)(raw >> 11);
}

/* A deterministic answer is a function of the request, and a greedy one draws nothing: only others want a
 * seed that is new each time. */
static void choose_seed(const sf_api_model *m, sf_api_request *r) {
    const bool draws = r->params.temperature > 0 && !r->params.deterministic;
    if (sf_api_request_seeded(r)) return;
    r->params.seed = draws && !m->seed_given ? fresh_seed() : m->seed;
}

/* What the scheduler must report so that the answer can be written. */
static void derive(sf_api_request *r) {
    sf_params *p = &r->params;
    if (p->top_k < 0) p->top_k = 0;
    if (r->logprobs >= 0 && r->top_logprobs > r->logprobs) r->logprobs = r->top_logprobs;
    p->logprobs = r->logprobs;
    p->prompt_logprobs = r->prompt_logprobs;
    if (r->echo && r->logprobs > p->prompt_logprobs) p->prompt_logprobs = r->logprobs;
    if (p->max_tokens == 0 && p->prompt_logprobs < 0) p->prompt_logprobs = 0;
}

sf_code sf_api_request_read(const sf_api_model *m, unsigned kind, json_t *body, sf_api_request *out,
                            sf_api_error *err) {
    sf_api_request *r = out;
    *r = (sf_api_request){.kind = kind & SF_API_RUN ? run_kind(body) : kind,
                          .add_special_tokens = true,
                          .add_generation_prompt = true,
                          .logprobs = -1,
                          .prompt_logprobs = -1,
                          .max_completion_tokens = -1,
                          .body = json_incref(body)};
    sf_params_default(&r->params);
    r->params.max_tokens = r->kind & SF_API_CHAT ? -1 : COMPLETION_MAX_TOKENS;
    r->params.deterministic = m->deterministic_default;
    SF_TRY(check_wrapper(r, err));
    SF_TRY(read_fields(m, r, err));
    choose_seed(m, r);
    SF_TRY(check_source(r, err));
    SF_TRY(check_length(r, err));
    SF_TRY(check_together(r, err));
    derive(r);
    return SF_OK;
}

void sf_api_request_fini(sf_api_request *r) {
    for (int i = 0; i < r->n_prompts; i++)
        sf_ids_fini(&r->prompts[i]);
    free(r->prompts);
    free((void *)(uintptr_t)r->params.stop);
    free((void *)(uintptr_t)r->params.stop_ids);
    free((void *)(uintptr_t)r->params.bias);
    json_decref(r->body);
    *r = (sf_api_request){0};
}
