/* Tokens per second by batch and class, inside one process: the ordinary path, the verify-rollback loop and
 * pinned decoding in turn, and prefill of one prompt. Prints a table, or JSON with --json.
 *
 * usage: bench-decode --weights W [--threads N] [--isa I] [--batches 1,2,4] [--tokens T] [--prompt P]
 * [--json] */
#include "base/progress.h"
#include "engine/engine.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BATCHES_MAX = 16 };
enum { MODE_FAST, MODE_VERIFY, MODE_PIN, MODES };
static const char *const mode_names[MODES] = {"ordinary", "verify", "pin"};

static const char help_text[] =
    "usage: bench-decode --weights W [flags]\n"
    "  --threads N        threads (default 2)\n"
    "  --isa I            auto, or an instruction set that info lists\n"
    "  --batches 1,2,4    answers in progress at once (default 1,2,4,8,16,32)\n"
    "  --tokens T         tokens of each answer (default 64)\n"
    "  --prompt P         tokens of the prompt whose prefill is timed (default 512)\n"
    "  --repeats R        repeats of which the median is told, 1..9 (default 3)\n"
    "  --json             print JSON\n";

typedef struct options {
    const char *weights, *isa;
    int threads, tokens, prompt, repeats;
    int batches[BATCHES_MAX], n_batches;
    bool json, help;
} options;

typedef struct figure {
    double decode, prefill; /* tokens per second */
    sf_sched_stats stats;
} figure;

static int fail(const sf_err *err) {
    char text[512];
    fprintf(stderr, "bench-decode: %s\n", sf_err_format(err, text, sizeof text));
    return 1;
}

/* Prompts differ between requests, so that no two rows are alike. */
static sf_code make_request(const options *o, const sf_plan *plan, int mode, int index, int n_prompt,
                            int max_tokens, sf_request **out, sf_err *err) {
    int32_t *prompt = malloc(sizeof *prompt * (size_t)n_prompt);
    if (!prompt) return SF_FAIL(err, SF_NOMEM, "prompt of %d tokens", n_prompt);
    (void)o;
    for (int i = 0; i < n_prompt; i++)
        prompt[i] = (int32_t)(((unsigned)(i + 1) * 2654435761u + (unsigned)index * 40503u) %
                              (unsigned)plan->model.vocab);
    sf_params p;
    sf_params_default(&p);
    p.temperature = 0;
    p.max_tokens = max_tokens;
    p.ignore_eos = true;
    p.deterministic = mode != MODE_FAST;
    sf_code rc = sf_request_create(&p, prompt, n_prompt, out, err);
    free(prompt);
    return rc;
}

/* Runs until every request has at least one token (prefill), then until all are done (decode). */
static sf_code drive(sf_sched *s, sf_request **reqs, int n, int n_prompt, figure *f, sf_err *err) {
    double start = sf_now_s(), decode_start = 0;
    int first_tokens = 0;
    for (bool busy = true; busy;) {
        SF_TRY(sf_sched_step(s, &busy, err));
        if (decode_start > 0) continue;
        int begun = 0;
        sf_choice c;
        for (int i = 0; i < n; i++) {
            sf_request_choice(reqs[i], 0, &c);
            begun += c.n_tokens > 0;
            first_tokens += c.n_tokens;
        }
        if (begun == n)
            decode_start = sf_now_s();
        else
            first_tokens = 0;
    }
    double end = sf_now_s();
    int tokens = 0;
    for (int i = 0; i < n; i++) {
        sf_choice c;
        sf_request_choice(reqs[i], 0, &c);
        if (c.finish != SF_FINISH_LENGTH)
            return SF_FAIL(err, SF_DEVICE, "request %d did not run to its length", i);
        tokens += c.n_tokens;
    }
    f->prefill = n * n_prompt / (decode_start - start);
    f->decode = end > decode_start ? (tokens - first_tokens) / (end - decode_start) : 0;
    return SF_OK;
}

static sf_code measure(const options *o, sf_engine *e, int mode, int batch, int n_prompt, int tokens,
                       figure *f, sf_err *err) {
    const sf_plan *plan = sf_engine_plan(e);
    sf_sched_config cfg = *sf_engine_sched_config(e);
    cfg.policy = mode == MODE_PIN ? SF_POLICY_PIN : SF_POLICY_VERIFY;
    sf_sched *s = NULL;
    sf_request **reqs = calloc((size_t)batch, sizeof(sf_request *));
    sf_code rc = reqs ? SF_OK : SF_FAIL(err, SF_NOMEM, "%d requests", batch);
    if (rc == SF_OK) rc = sf_sched_create(sf_engine_device(e), sf_engine_tokenizer(e), &cfg, &s, err);
    for (int i = 0; rc == SF_OK && i < batch; i++) {
        rc = make_request(o, plan, mode, i, n_prompt, tokens, &reqs[i], err);
        if (rc == SF_OK) rc = sf_sched_submit(s, reqs[i], err);
    }
    if (rc == SF_OK) rc = drive(s, reqs, batch, n_prompt, f, err);
    if (rc == SF_OK) sf_sched_stats_get(s, &f->stats);
    sf_sched_destroy(s);
    for (int i = 0; reqs && i < batch; i++)
        sf_request_destroy(reqs[i]);
    free(reqs);
    return rc;
}

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The median of the repeats, the modes taken in turn so that a slow minute hits all of them. */
static sf_code medians(const options *o, sf_engine *e, int batch, int n_prompt, int tokens, figure out[MODES],
                       sf_err *err) {
    double decode[MODES][9], prefill[MODES][9];
    for (int r = 0; r < o->repeats; r++)
        for (int m = 0; m < MODES; m++) {
            SF_TRY(measure(o, e, m, batch, n_prompt, tokens, &out[m], err));
            decode[m][r] = out[m].decode;
            prefill[m][r] = out[m].prefill;
        }
    for (int m = 0; m < MODES; m++) {
        qsort(decode[m], (size_t)o->repeats, sizeof(double), by_value);
        qsort(prefill[m], (size_t)o->repeats, sizeof(double), by_value);
        out[m].decode = decode[m][o->repeats / 2];
        out[m].prefill = prefill[m][o->repeats / 2];
    }
    return SF_OK;
}

static sf_code run_all(const options *o, sf_engine *e, sf_err *err) {
    figure f[MODES];
    SF_TRY(medians(o, e, 1, o->prompt, 2, f, err));
    if (o->json) {
        printf("{\"device\": \"%s\", \"threads\": %d, \"prompt\": %d, \"tokens\": %d,\n",
               sf_engine_device(e)->desc, o->threads, o->prompt, o->tokens);
        printf(" \"prefill\": {\"ordinary\": %.1f, \"pinned\": %.1f},\n \"decode\": [", f[MODE_FAST].prefill,
               f[MODE_PIN].prefill);
    } else {
        printf("%s\nprefill of %d tokens: ordinary %.0f tokens/s, pinned %.0f\n\n", sf_engine_device(e)->desc,
               o->prompt, f[MODE_FAST].prefill, f[MODE_PIN].prefill);
        printf("batch  ordinary    verify       pin  tokens/s  verify/ordinary  pin/ordinary  rollbacks\n");
    }
    for (int b = 0; b < o->n_batches; b++) {
        SF_TRY(medians(o, e, o->batches[b], 16, o->tokens, f, err));
        double base = f[MODE_FAST].decode;
        if (o->json) {
            printf("%s\n  {\"batch\": %d", b ? "," : "", o->batches[b]);
            for (int m = 0; m < MODES; m++)
                printf(", \"%s\": %.1f", mode_names[m], f[m].decode);
            printf(", \"rollbacks\": %lld}", (long long)f[MODE_VERIFY].stats.rollbacks);
        } else {
            printf("%5d  %8.1f  %8.1f  %8.1f            %15.2f  %12.2f  %9lld\n", o->batches[b], f[0].decode,
                   f[1].decode, f[2].decode, f[1].decode / base, f[2].decode / base,
                   (long long)f[MODE_VERIFY].stats.rollbacks);
        }
        fflush(stdout);
    }
    if (o->json) printf("]}\n");
    return SF_OK;
}

static bool parse_int(const char *text, int lo, int hi, int *out) {
    char *end;
    long v = strtol(text, &end, 10);
    if (*text == 0 || *end != 0 || v < lo || v > hi) return false;
    *out = (int)v;
    return true;
}

static bool parse_batches(char *text, options *o) {
    o->n_batches = 0;
    char *save = NULL;
    for (char *w = strtok_r(text, ",", &save); w; w = strtok_r(NULL, ",", &save))
        if (o->n_batches == BATCHES_MAX || !parse_int(w, 1, 256, &o->batches[o->n_batches++])) return false;
    return o->n_batches > 0;
}

static bool parse_args(int argc, char **argv, options *o) {
    static const struct option longs[] = {
        {"weights", 1, NULL, 'w'}, {"threads", 1, NULL, 't'}, {"isa", 1, NULL, 'i'},
        {"batches", 1, NULL, 'b'}, {"tokens", 1, NULL, 'n'},  {"prompt", 1, NULL, 'p'},
        {"repeats", 1, NULL, 'r'}, {"json", 0, NULL, 'j'},    {"help", 0, NULL, 'h'},
        {NULL, 0, NULL, 0},
    };
    *o = (options){.threads = 2,
                   .tokens = 64,
                   .prompt = 512,
                   .repeats = 3,
                   .n_batches = 6,
                   .batches = {1, 2, 4, 8, 16, 32}};
    for (int c; (c = getopt_long(argc, argv, "", longs, NULL)) != -1;) {
        bool ok = true;
        if (c == 'w')
            o->weights = optarg;
        else if (c == 'i')
            o->isa = optarg;
        else if (c == 'j')
            o->json = true;
        else if (c == 'h')
            o->help = true;
        else if (c == 't')
            ok = parse_int(optarg, 1, 256, &o->threads);
        else if (c == 'n')
            ok = parse_int(optarg, 2, 4096, &o->tokens);
        else if (c == 'p')
            ok = parse_int(optarg, 1, 65536, &o->prompt);
        else if (c == 'r')
            ok = parse_int(optarg, 1, 9, &o->repeats);
        else if (c == 'b')
            ok = parse_batches(optarg, o);
        else
            ok = false;
        if (!ok) return false;
    }
    return (o->help || o->weights) && optind == argc;
}

int main(int argc, char **argv) {
    options o;
    if (!parse_args(argc, argv, &o)) {
        fprintf(stderr, "bench-decode: wrong usage\n%s", help_text);
        return 2;
    }
    if (o.help) {
        fputs(help_text, stdout);
        return 0;
    }
    sf_engine_config cfg;
    sf_engine_config_default(&cfg);
    cfg.weights = o.weights;
    cfg.threads = o.threads;
    cfg.isa = o.isa;
    sf_engine *e = NULL;
    sf_err err = {0};
    if (sf_engine_open(&sf_the_plan, &cfg, &e, &err) != SF_OK) return fail(&err);
    sf_code rc = run_all(&o, e, &err);
    sf_engine_close(e);
    return rc == SF_OK ? 0 : fail(&err);
}
