/* One table of flags: what is parsed, what --help says, and what the environment may set. */
#ifndef SF_CLI_OPTIONS_H
#define SF_CLI_OPTIONS_H

#include "base/err.h"
#include "device/plan.h"

#include <jansson.h>
#include <stdbool.h>

typedef enum sf_verb {
    SF_VERB_SERVE,
    SF_VERB_RUN,
    SF_VERB_AUDIT,
    SF_VERB_BENCH,
    SF_VERB_SELFTEST,
    SF_VERB_INFO,
    SF_VERB_TOKENIZE,
    SF_VERB_COUNT
} sf_verb;

#define SF_API_KEYS_MAX 64

/* Filled from the environment, then from the command line. Strings are borrowed from there. */
typedef struct sf_cli_opts {
    sf_verb verb;
    const char *weights, *isa, *policy, *chat_template, *kernel_cache;
    int gpu;     /* which GPU */
    bool graphs; /* info: the table of shapes */
    bool random;
    uint64_t random_seed;
    int threads, max_model_len, max_num_seqs, kv_pages; /* 0: the plan's */
    int window, prefill_chunk, max_num_batched_tokens;  /* 0: the plan's */
    int verify_wait, verify_group, prefill_split;       /* -1: the plan's */
    int64_t seed;
    bool seed_given;
    bool deterministic_default, strict;
    const char *prompt, *chat, *system, *input, *answers, *output, *report, *date;
    bool ordered, json;
    json_t *fields; /* request fields given as flags (owned): {"temperature": 0.5} */
    const char *text, *decode;
    bool ids, pieces, add_special_tokens;
    const char *host, *api_key_file, *served_model_name, *ssl_keyfile, *ssl_certfile, *allowed_origin,
        *log_format;
    const char *api_keys[SF_API_KEYS_MAX];
    int n_api_keys, port, shutdown_timeout, receive_timeout, max_queue;
    bool log_prompts;
    /* bench; lengths 0: the data's */
    const char *base_url, *model, *endpoint, *dataset_name, *dataset_path, *extra_body, *percentiles,
        *percentile_metrics, *goodput;
    int num_prompts, input_len, output_len, prefix_len, max_concurrency, num_warmups, repeat, ready_timeout,
        timeout;
    double range_ratio, request_rate, burstiness, deterministic_ratio; /* the last negative: not given */
    bool insecure, save_result, save_detailed;
    int debug_inject; /* STEADFAST_DEBUG: -1, or the offset in a window where a mismatch is planted */
    int debug_fault;  /* STEADFAST_DEBUG: 0, or rows from which a pinned pass is falsified */
    bool help, help_fields;
    bool kernels; /* info: the table of kernels */
} sf_cli_opts;

typedef enum sf_opt_kind {
    SF_OPT_STR,
    SF_OPT_INT,
    SF_OPT_SEED,   /* int64; sets seed_given too */
    SF_OPT_NUM,    /* double; "inf" where max is INT_MAX */
    SF_OPT_RANDOM, /* uint64; sets random too */
    SF_OPT_BOOL,
    SF_OPT_KEY,  /* adds to api_keys */
    SF_OPT_FIELD /* a request field of api/fields.h, by its type */
} sf_opt_kind;

typedef struct sf_opt {
    const char *name; /* without -- */
    sf_opt_kind kind;
    unsigned verbs;    /* 1 << sf_verb */
    const char *arg;   /* for --help; NULL for booleans */
    int min, max;      /* SF_OPT_INT, SF_OPT_NUM */
    size_t offset;     /* in sf_cli_opts */
    const char *field; /* SF_OPT_FIELD: the field's name */
    const char *help;  /* NULL for a field: the field's own text */
} sf_opt;

#define SF_OPTS_MAX 128 /* flags of all verbs, at most */
extern const sf_opt sf_opts[];
extern const int sf_n_opts;
extern const char *const sf_verb_names[SF_VERB_COUNT];
extern const char *const sf_verb_help[SF_VERB_COUNT], *const sf_verb_usage[SF_VERB_COUNT];

/* Defaults, then STEADFAST_<FLAG> variables and STEADFAST_DEBUG, then argv. sf_cli_opts_fini frees. Errors:
 * SF_INVALID names the flag or variable, what was found and what was expected. */
SF_CHECKED sf_code sf_cli_opts_parse(sf_verb verb, int argc, char **argv, sf_cli_opts *out, sf_err *err);
void sf_cli_opts_fini(sf_cli_opts *o);

/* help.c: both print to stdout. */
void sf_cli_help(const sf_plan *plan); /* all verbs */
void sf_cli_help_verb(sf_verb verb);
void sf_cli_help_fields(void);               /* of a request */
void sf_cli_completion(const sf_plan *plan); /* for bash */
void sf_cli_man(const sf_plan *plan);        /* man.c: a man page, to stdout */
/* What --help says of a flag; buf is used where it has to be put together. */
const char *sf_opt_text(const sf_opt *o, char *buf, size_t size);

/* The message with --flag in place of the name that the engine or a request has for it ("top_p is 2, ..."): a
 * name is a word of several parts, or the first word. Returns buf. */
const char *sf_opt_message(const char *message, char *buf, size_t size);
/* "STEADFAST_MAX_MODEL_LEN" of "max-model-len" */
const char *sf_opt_env(const sf_opt *o, char *buf, size_t size);

#endif
