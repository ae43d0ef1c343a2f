#include "cli/options.h"

#include "api/fields.h"
#include "api/json.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define V          (1u << SF_VERB_SERVE)
#define R          (1u << SF_VERB_RUN)
#define A          (1u << SF_VERB_AUDIT)
#define S          (1u << SF_VERB_SELFTEST)
#define I          (1u << SF_VERB_INFO)
#define T          (1u << SF_VERB_TOKENIZE)
#define AT(f)      offsetof(sf_cli_opts, f)
#define INJECT_MAX 63 /* offsets of a window of 64 */
#define STR(n, v, arg, f, help)                                                                              \
    { n, SF_OPT_STR, v, arg, 0, 0, AT(f), NULL, help }
#define INT(n, v, min, max, f, help)                                                                         \
    { n, SF_OPT_INT, v, "N", min, max, AT(f), NULL, help }
#define BOOL(n, v, f, help)                                                                                  \
    { n, SF_OPT_BOOL, v, NULL, 0, 0, AT(f), NULL, help }
#define FIELD(n, arg, field)                                                                                 \
    { n, SF_OPT_FIELD, R, arg, 0, 0, 0, field, NULL }

const char *const sf_verb_names[SF_VERB_COUNT] = {"serve", "run", "audit", "selftest", "info", "tokenize"};

/* clang-format off */
const sf_opt sf_opts[] = {
    STR("weights", V | R | A | S | I | T, "FILE", weights, "GGUF file or Hugging Face directory: weights and tokenizer"),
    {"random-weights", SF_OPT_RANDOM, V | R | A | S | I, "SEED", 0, 0, AT(random_seed), NULL, "random weights in place of a checkpoint's"},
    STR("host", V, "HOST", host, "address to listen on (default 127.0.0.1; 0.0.0.0 or :: for all)"),
    INT("port", V, 0, 65535, port, "default 8000; 0 takes a free one"),
    {"api-key", SF_OPT_KEY, V, "KEY", 0, 0, 0, NULL, "clients must give this key, or another --api-key"},
    STR("api-key-file", V, "FILE", api_key_file, "keys, one a line"),
    STR("served-model-name", V, "NAME", served_model_name, "the model's name in requests and answers (default: the engine's)"),
    STR("ssl-certfile", V, "FILE", ssl_certfile, "PEM certificate chain: serve HTTPS"),
    STR("ssl-keyfile", V, "FILE", ssl_keyfile, "its PEM key"),
    STR("allowed-origin", V, "ORIGIN", allowed_origin, "let pages of this origin (* for any) use the server"),
    STR("log-format", V, "text|json", log_format, "of the lines on stderr, one a request"),
    BOOL("log-prompts", V, log_prompts, "put the bodies of requests in the log"),
    INT("shutdown-timeout", V, 0, 86400, shutdown_timeout, "seconds that running requests have after SIGTERM (default 30)"),
    INT("max-queue", V, 1, 1 << 20, max_queue, "requests that may wait; further ones get 429"),
    STR("prompt", R, "TEXT", prompt, "answer this text, streamed to stdout"),
    STR("chat", R | T, "TEXT", chat, "the same as a user's message through the chat template"),
    STR("system", R | T, "TEXT", system, "system message before --chat"),
    STR("answers", A, "FILE", answers, "the answers to them, in the same order; without it a line of --input is {\"request\", \"answer\"}"),
    STR("input", R | A, "FILE", input, "requests, one JSON object a line; - is stdin"),
    STR("output", R | A, "FILE", output, "answers or verdicts, one line each (default: stdout); - is stdout"),
    BOOL("ordered", R | A, ordered, "answers in the order of the requests (default true); false: as they finish"),
    STR("report", R | A, "FILE", report, "write counters of the whole run as JSON"),
    STR("date", V | R | A | T, "YYYY-MM-DD", date, "today's date for chat templates that ask for it"),
    FIELD("temperature", "T", "temperature"),
    FIELD("top-k", "N", "top_k"),
    FIELD("top-p", "P", "top_p"),
    FIELD("min-p", "P", "min_p"),
    FIELD("repetition-penalty", "X", "repetition_penalty"),
    FIELD("frequency-penalty", "X", "frequency_penalty"),
    FIELD("presence-penalty", "X", "presence_penalty"),
    FIELD("max-tokens", "N", "max_tokens"),
    FIELD("min-tokens", "N", "min_tokens"),
    FIELD("stop", "TEXT", "stop"),
    FIELD("n", "N", "n"),
    FIELD("logprobs", "N", "logprobs"),
    FIELD("prompt-logprobs", "N", "prompt_logprobs"),
    FIELD("ignore-eos", NULL, "ignore_eos"),
    FIELD("echo", NULL, "echo"),
    FIELD("return-token-ids", NULL, "return_token_ids"),
    FIELD("deterministic", NULL, "is_deterministic"),
    {"seed", SF_OPT_I64, V | R | A, "SEED", 0, 0, AT(seed), NULL, "seed of requests that give none (default 0)"},
    BOOL("deterministic-default", V | R, deterministic_default, "requests are deterministic unless they say otherwise"),
    BOOL("strict", V | R | A, strict, "unknown request fields are errors"),
    STR("policy", V | R, "verify|pin", policy, "draft and verify in windows, or pinned passes only"),
    INT("window", V | R, 2, 64, window, "rows of a verify window"),
    INT("verify-wait", V | R, 0, 1000, verify_wait, "passes that a full window may wait for a group"),
    INT("verify-group", V | R, 0, 4096, verify_group, "full windows that start a verify pass at once; 0: all that draft"),
    INT("max-num-seqs", V | R | A, 1, 4096, max_num_seqs, "answers in progress at once"),
    INT("max-num-batched-tokens", V | R | A, 2, INT_MAX, max_num_batched_tokens, "rows of one pass"),
    INT("prefill-chunk", V | R | A, 1, INT_MAX, prefill_chunk, "rows of prefill in one pass"),
    INT("max-model-len", V | R | A | T, 2, INT_MAX, max_model_len, "positions of prompt and answer together"),
    INT("kv-pages", V | R | A | S, 1, 1 << 24, kv_pages, "pages of the KV pool"),
    INT("threads", V | R | A | S | I, 1, 256, threads, "default: the cores this process may use"),
    INT("gpu", V | R | A | S | I, 0, 1024, gpu, "which GPU a CUDA engine runs on (default 0)"),
    STR("kernel-cache", V | R | A | S | I, "DIR", kernel_cache, "where a CUDA engine keeps compiled kernels (default: the user's cache)"),
    BOOL("kernels", I, kernels, "the kernels by operation and rows, with expected times (--json has them always)"),
    BOOL("graphs", I, graphs, "how a CUDA engine launches each shape of pass, with measured times"),
    STR("isa", V | R | A | S | I, "NAME", isa, "auto, or an instruction set that info lists as usable"),
    STR("chat-template", V | R | A | T, "FILE", chat_template, "in place of the checkpoint's"),
    STR("text", T, "TEXT", text, "text to tokenize (default: stdin)"),
    STR("decode", T, "IDS", decode, "token ids, separated by commas or blanks, in brackets or not, back to text"),
    BOOL("ids", T, ids, "print the ids alone, not JSON"),
    BOOL("pieces", T, pieces, "with the text of each token"),
    BOOL("add-special-tokens", T, add_special_tokens, "BOS where the model has one (default true)"),
    BOOL("json", R | S | I, json, "print JSON"),
    BOOL("help-fields", R, help_fields, "the fields of a line of --input, with types, ranges and defaults"),
    BOOL("help", V | R | A | S | I | T, help, "this text"),
};
/* clang-format on */
const int sf_n_opts = (int)(sizeof sf_opts / sizeof *sf_opts);

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
    case SF_API_INT:
    case SF_API_LOGPROBS:
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

/* name is the flag or the variable, for messages. */
static sf_code set_option(const sf_opt *o, const char *name, const char *s, sf_cli_opts *out, sf_err *err) {
    void *at = (char *)out + o->offset;
    switch (o->kind) {
    case SF_OPT_STR:
        *(const char **)at = s;
        return SF_OK;
    case SF_OPT_INT:
        return set_int(o, name, s, at, err);
    case SF_OPT_I64:
        if (read_i64(s, at)) return SF_OK;
        return SF_FAIL(err, SF_INVALID, "%s is \"%s\", expected a 64-bit integer", name, s);
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
    bool seen[sizeof sf_opts / sizeof *sf_opts] = {false};
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
                     .ordered = true,
                     .add_special_tokens = true,
                     .host = "127.0.0.1",
                     .port = 8000,
                     .shutdown_timeout = 30,
                     .log_format = "text",
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
