#include "bench/report.h"
#include "cli/files.h"
#include "cli/output.h"
#include "cli/setup.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#define CHAT           "/v1/chat/completions"
#define REQUESTS_MAX   (1 << 24)
#define RATE_MIN       1e-6 /* a day is 86,400 s: slower is an error of typing */
#define BURSTINESS_MAX 1e6  /* beyond it the draws lose their digits; below its inverse, all come at once */
#define FILES_BESIDE   16   /* that are no connections */

/* What is open during the verb; all of it is freed at its end. */
typedef struct bench {
    sf_engine *engine; /* for its tokenizer; NULL: no --weights */
    json_t *fields, *extra;
    sf_bench_target target;
    sf_bench_dataset prompts;
    sf_bench_outcome outcome;
    sf_output result;
    sf_bench_wishes wishes;
    int avoid[9]; /* special ids, as far as the plan knows them */
    char date[32], name[400];
} bench;

static bool is_chat(const sf_cli_opts *o) {
    return strcmp(o->endpoint, CHAT) == 0;
}

static int find_source(const sf_cli_opts *o, sf_bench_source *out) {
    static const char *const names[] = {
        [SF_BENCH_RANDOM] = "random", [SF_BENCH_SHAREGPT] = "sharegpt", [SF_BENCH_CUSTOM] = "custom"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (strcmp(o->dataset_name, names[i]) != 0) continue;
        *out = (sf_bench_source)i;
        if (!o->dataset_path == (i != SF_BENCH_RANDOM))
            return sf_cli_error(SF_EXIT_USAGE, "--dataset-name %s %s --dataset-path", names[i],
                                o->dataset_path ? "takes no" : "needs");
        return SF_EXIT_OK;
    }
    return sf_cli_error(SF_EXIT_USAGE, "--dataset-name is \"%s\", expected random, sharegpt or custom",
                        o->dataset_name);
}

static int check(const sf_cli_opts *o) {
    if (!is_chat(o) && strcmp(o->endpoint, "/v1/completions") != 0)
        return sf_cli_error(SF_EXIT_USAGE, "--endpoint is \"%s\", expected /v1/completions or " CHAT,
                            o->endpoint);
    if (o->request_rate < RATE_MIN)
        return sf_cli_error(SF_EXIT_USAGE, "--request-rate is %g, expected %g or more", o->request_rate,
                            RATE_MIN);
    if (o->burstiness < 1 / BURSTINESS_MAX || (o->burstiness > BURSTINESS_MAX && !isinf(o->burstiness)))
        return sf_cli_error(SF_EXIT_USAGE, "--burstiness is %g, expected %g..%g or inf", o->burstiness,
                            1 / BURSTINESS_MAX, BURSTINESS_MAX);
    if (o->range_ratio >= 1) return sf_cli_error(SF_EXIT_USAGE, "--random-range-ratio is 1, expected less");
    if ((int64_t)o->num_prompts * o->repeat > REQUESTS_MAX)
        return sf_cli_error(SF_EXIT_USAGE, "--num-prompts times --repeat is more than %d", REQUESTS_MAX);
    return sf_cli_check_files(o);
}

/* The request fields that flags and the dataset ask for. */
static int make_fields(const sf_cli_opts *o, bench *b, sf_bench_source source) {
    json_error_t why;
    b->fields = json_copy(o->fields);
    if (!b->fields) return sf_cli_error(SF_EXIT_FAILED, "out of memory");
    /* Random prompts mean nothing, and end at once as often as not. */
    if (source == SF_BENCH_RANDOM && !json_object_get(b->fields, "ignore_eos") &&
        json_object_set_new(b->fields, "ignore_eos", json_true()) != 0)
        return sf_cli_error(SF_EXIT_FAILED, "out of memory");
    if (!o->extra_body) return SF_EXIT_OK;
    b->extra = json_loads(o->extra_body, 0, &why);
    if (json_is_object(b->extra)) return SF_EXIT_OK;
    return sf_cli_error(SF_EXIT_USAGE, "--extra-body is no JSON object: %s",
                        b->extra ? o->extra_body : why.text);
}

static int open_tokenizer(const sf_plan *plan, const sf_cli_opts *o, bench *b) {
    sf_engine_config c;
    if (!o->weights) return SF_EXIT_OK;
    sf_cli_engine_config(o, &c);
    c.text_only = true;
    return sf_cli_engine_open(plan, &c, &b->engine);
}

static int make_prompts(const sf_plan *plan, const sf_cli_opts *o, bench *b, sf_bench_source source) {
    sf_err err;
    int n_avoid = 0;
    for (; n_avoid < plan->model.n_eos; n_avoid++)
        b->avoid[n_avoid] = plan->model.eos[n_avoid];
    b->avoid[n_avoid++] = plan->model.bos;
    const sf_bench_dataset_config c = {.source = source,
                                       .path = o->dataset_path,
                                       .chat = is_chat(o),
                                       .n = o->num_prompts,
                                       .seed = o->seed,
                                       .output_len = o->output_len,
                                       .input_len = o->input_len,
                                       .prefix_len = o->prefix_len,
                                       .range_ratio = o->range_ratio,
                                       .vocab = plan->model.vocab,
                                       .avoid = b->avoid,
                                       .n_avoid = n_avoid,
                                       .tokenizer = b->engine ? sf_engine_tokenizer(b->engine) : NULL};
    return sf_bench_dataset_make(&c, &b->prompts, &err) == SF_OK ? SF_EXIT_OK : sf_cli_report(&err);
}

/* It goes into a header of each request. */
static bool is_key(const char *key) {
    for (const char *s = key; *s; s++)
        if (*s <= ' ' || *s > '~') return false;
    return strlen(key) <= SF_BENCH_KEY_MAX;
}

static int make_target(const sf_cli_opts *o, bench *b) {
    const char *key = getenv("OPENAI_API_KEY");
    sf_err err;
    char url[300];
    const bool v6 = strchr(o->host, ':') != NULL;
    snprintf(url, sizeof url, "http://%s%s%s:%d", v6 ? "[" : "", o->host, v6 ? "]" : "", o->port);
    b->target.api_key = o->n_api_keys ? o->api_keys[0] : key && *key ? key : NULL;
    if (b->target.api_key && !is_key(b->target.api_key))
        return sf_cli_error(SF_EXIT_USAGE, "the key is more than %d bytes, or not of printable ASCII",
                            SF_BENCH_KEY_MAX);
    b->target.insecure = o->insecure;
    b->target.timeout_s = o->timeout;
    if (sf_bench_target_parse(&b->target, o->base_url ? o->base_url : url, &err) == SF_OK) return SF_EXIT_OK;
    return sf_cli_report(&err);
}

/* A connection for each request may be open at once. */
static void raise_files(const sf_cli_opts *o) {
    struct rlimit l;
    const int requests = o->num_prompts * o->repeat;
    const int open = o->max_concurrency > 0 && o->max_concurrency < requests ? o->max_concurrency : requests;
    if (getrlimit(RLIMIT_NOFILE, &l) != 0) return;
    l.rlim_cur = l.rlim_max;
    (void)setrlimit(RLIMIT_NOFILE, &l);
    if (l.rlim_max < (rlim_t)open + FILES_BESIDE)
        sf_cli_error(0,
                     "warning: %d connections may be wanted at once, and this process may have %llu files: "
                     "--max-concurrency keeps them fewer",
                     open, (unsigned long long)l.rlim_max);
}

/* Opened before the run, so that a bad path costs none. */
static int open_result(const sf_cli_opts *o, bench *b) {
    const time_t now = time(NULL);
    struct tm local;
    sf_err err;
    char limit[32] = "";
    strftime(b->date, sizeof b->date, "%Y%m%d-%H%M%S", localtime_r(&now, &local));
    if (!o->output && !o->save_result) return SF_EXIT_OK;
    if (o->max_concurrency > 0) snprintf(limit, sizeof limit, "-concurrency%d", o->max_concurrency);
    snprintf(b->name, sizeof b->name, "%s-%gqps%s-%s.json", is_chat(o) ? "openai-chat" : "openai",
             o->request_rate, limit, b->date);
    return sf_output_open(&b->result, o->output ? o->output : b->name, &err) == SF_OK ? SF_EXIT_OK
                                                                                      : sf_cli_report(&err);
}

static int write_result(const sf_cli_opts *o, bench *b, const sf_bench_report *r) {
    sf_err err;
    char *text = sf_bench_report_json(r, b->date, o->save_detailed);
    if (!text) return sf_cli_error(SF_EXIT_FAILED, "out of memory for the result");
    fflush(stdout); /* which the result may go to as well */
    sf_code rc = sf_output_empty(&b->result, &err);
    if (rc == SF_OK) rc = sf_output_line(&b->result, text, &err);
    free(text);
    return rc == SF_OK ? SF_EXIT_OK : sf_cli_report(&err);
}

static int tell(const sf_cli_opts *o, bench *b, const sf_bench_config *c) {
    sf_bench_report r;
    sf_err err;
    int code = SF_EXIT_OK;
    if (b->outcome.warmups_failed > 0)
        sf_cli_error(0, "warning: %d of %d warm-up requests failed", b->outcome.warmups_failed,
                     o->num_warmups);
    if (sf_bench_report_make(c, &b->outcome, &b->wishes, &r, &err) != SF_OK) return sf_cli_report(&err);
    sf_bench_report_failures(&r, stderr);
    sf_bench_report_print(&r, stdout);
    const sf_bench_copies *d = &r.determinism.deterministic;
    if (d->same < d->prompts)
        code = sf_cli_error(SF_EXIT_FAILED, "%d of %d deterministic prompts had more than one output",
                            d->prompts - d->same, d->prompts);
    if (r.all.failed > 0)
        code = sf_cli_error(SF_EXIT_FAILED, "%d of %d requests failed", r.all.failed, b->outcome.n);
    if (b->result.fd >= 0 && write_result(o, b, &r) != SF_EXIT_OK) code = SF_EXIT_FAILED;
    return sf_cli_signalled() ? 128 + sf_cli_signalled() : code;
}

static int run(const sf_cli_opts *o, bench *b) {
    sf_err err;
    const sf_bench_config c = {.target = &b->target,
                               .ready_timeout_s = o->ready_timeout,
                               .load = {.n_prompts = o->num_prompts,
                                        .copies = o->repeat,
                                        .rate = o->request_rate,
                                        .burstiness = o->burstiness,
                                        .deterministic_ratio = o->deterministic_ratio,
                                        .seed = o->seed},
                               .run = {.prompts = &b->prompts,
                                       .endpoint = o->endpoint,
                                       .model = o->model,
                                       .chat = is_chat(o),
                                       .fields = b->fields,
                                       .extra = b->extra,
                                       .seeded = o->repeat > 1,
                                       .seed = o->seed,
                                       .max_concurrency = o->max_concurrency,
                                       .progress = "bench",
                                       .stopped = sf_cli_signalled},
                               .warmups = o->num_warmups};
    sf_cli_signals();
    raise_files(o);
    sf_code rc = sf_bench(&c, &b->outcome, &err);
    if (rc == SF_OK) return tell(o, b, &c);
    return sf_cli_signalled() ? 128 + sf_cli_signalled() : sf_cli_report(&err);
}

static int open_and_run(const sf_plan *plan, const sf_cli_opts *o, bench *b) {
    sf_bench_source source = SF_BENCH_RANDOM;
    sf_err err;
    int code = check(o);
    if (code == SF_EXIT_OK) code = find_source(o, &source);
    if (code == SF_EXIT_OK &&
        sf_bench_wishes_read(o->percentiles, o->goodput, o->percentile_metrics, &b->wishes, &err) != SF_OK)
        code = sf_cli_report(&err);
    if (code == SF_EXIT_OK) code = make_fields(o, b, source);
    if (code == SF_EXIT_OK) code = make_target(o, b);
    if (code == SF_EXIT_OK) code = open_result(o, b);
    if (code == SF_EXIT_OK) code = open_tokenizer(plan, o, b);
    if (code == SF_EXIT_OK) code = make_prompts(plan, o, b, source);
    return code == SF_EXIT_OK ? run(o, b) : code;
}

int sf_verb_bench(const sf_plan *plan, const sf_cli_opts *o) {
    bench b = {.result = {.fd = -1}};
    sf_err err;
    int code = open_and_run(plan, o, &b);
    if (b.result.fd >= 0) {
        if (sf_output_close(&b.result, &err) != SF_OK) code = sf_cli_report(&err);
        sf_output_discard(&b.result);
    }
    sf_bench_outcome_fini(&b.outcome);
    sf_bench_dataset_fini(&b.prompts);
    sf_engine_close(b.engine);
    json_decref(b.fields);
    json_decref(b.extra);
    return code;
}
