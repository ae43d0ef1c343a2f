/* Times whole passes of a CUDA engine on random or real weights: decode steps, verify passes and prefill by
 * class, and each op beside its roofline.
 *
 * usage: bench-step-ENGINE [--weights FILE | --random-weights SEED] [--rows 1,8,32,128] [--windows 1x16,8x16]
 *        [--context 528] [--prefill 16x2048] [--repeats 20] [--ops] [--json FILE] */
#include "gpu/step.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LIST_MAX = 16 };

typedef struct options {
    sf_engine_config engine;
    int rows[LIST_MAX], n_rows;
    int windows[LIST_MAX][2], n_windows; /* groups, rows of each */
    int context, prompts, prompt, repeats;
    bool ops;
    const char *json;
} options;

static int fail(const sf_err *err) {
    char text[512];
    fprintf(stderr, "bench-step: %s\n", sf_err_format(err, text, sizeof text));
    return 1;
}

static const char *const way_names[STEP_WAYS] = {"fast", "pinned", "fast_own"};

static sf_code run_rows(step_bench *b, const options *o, FILE *json, sf_err *err) {
    printf("%-22s %12s %12s %8s %12s\n", "pass", "pinned us", "fast us", "ratio", "own us");
    for (int i = 0; i < o->n_rows + o->n_windows; i++) {
        const bool decode = i < o->n_rows;
        const int groups = decode ? o->rows[i] : o->windows[i - o->n_rows][0];
        const int rows = decode ? 1 : o->windows[i - o->n_rows][1];
        double us[STEP_WAYS] = {0};
        SF_TRY(step_prepare(b, groups, rows, o->context > rows ? o->context : rows, err));
        /* by turns, so that a drift of the clock meets all */
        SF_TRY(step_time_ways(b, o->repeats, us, err));
        char name[64];
        snprintf(name, sizeof name, decode ? "decode %d" : "verify %d x %d", groups, rows);
        printf("%-22s %12.1f %12.1f %8.3f %12.1f\n", name, us[STEP_PINNED], us[STEP_FAST],
               us[STEP_PINNED] / us[STEP_FAST], us[STEP_OWN]);
        fprintf(
            json,
            "%s\n  {\"pass\": \"%s\", \"groups\": %d, \"rows\": %d, \"context\": %d, \"pinned_us\": %.1f, "
            "\"fast_us\": %.1f, \"fast_own_us\": %.1f}",
            i ? "," : "", name, groups, rows, o->context, us[STEP_PINNED], us[STEP_FAST], us[STEP_OWN]);
    }
    return SF_OK;
}

static sf_code run_prefill(step_bench *b, const options *o, FILE *json, sf_err *err) {
    const double tokens = (double)o->prompts * o->prompt;
    for (int w = 0; w < STEP_WAYS && o->prompts > 0; w++) {
        double us = 0;
        SF_TRY(step_time_prefill(b, (step_way)w, o->prompts, o->prompt, 3, &us, err));
        if (us == 0) continue;
        printf("prefill %d x %d, %s: %.1f ms, %.0f tokens/s\n", o->prompts, o->prompt, way_names[w], us / 1e3,
               tokens / us * 1e6);
        fprintf(
            json,
            "%s\n  {\"way\": \"%s\", \"prompts\": %d, \"tokens\": %d, \"us\": %.0f, \"tokens_per_second\": "
            "%.0f}",
            w ? "," : "", way_names[w], o->prompts, o->prompt, us, tokens / us * 1e6);
    }
    return SF_OK;
}

/* Every op of the prepared pass beside its roofline. */
static sf_code run_pass_ops(step_bench *b, const char *pass, FILE *json, bool *first, sf_err *err) {
    printf("\n%-14s %-14s %10s %10s %9s  %s\n", "pass", "op", "us", "roof us", "share", "kernel (pinned)");
    for (int op = 0; op < b->plan->n_ops; op++) {
        step_op t;
        SF_TRY(step_time_op(b, SF_CLASS_PINNED, op, &t, err));
        if (!t.time.kernel) continue;
        printf("%-14s %-14s %10.2f %10.2f %8.1f%%  %s\n", pass, t.time.op, t.time.us, t.roof_us,
               100 * t.roof_us / t.time.us, t.time.kernel);
        fprintf(json,
                "%s\n  {\"pass\": \"%s\", \"rows\": %d, \"op\": \"%s\", \"launches\": %d, \"us\": %.2f, "
                "\"roof_us\": %.2f, \"kernel\": \"%s\"}",
                *first ? "" : ",", pass, b->pass.rows, t.time.op, t.time.launches, t.time.us, t.roof_us,
                t.time.kernel);
        *first = false;
    }
    return SF_OK;
}

static sf_code run_ops(step_bench *b, const options *o, FILE *json, sf_err *err) {
    bool first = true;
    for (int i = 0; i < o->n_rows + o->n_windows && o->ops; i++) {
        const int groups = i < o->n_rows ? o->rows[i] : o->windows[i - o->n_rows][0];
        const int rows = i < o->n_rows ? 1 : o->windows[i - o->n_rows][1];
        const int context = o->context > rows ? o->context : rows;
        char name[64];
        snprintf(name, sizeof name, "%d x %d", groups, rows);
        SF_TRY(step_prepare(b, groups, rows, context, err));
        SF_TRY(run_pass_ops(b, name, json, &first, err));
    }
    return SF_OK;
}

/* What the start chose, which the passes below were timed with. */
static void put_library(const step_bench *b, FILE *json) {
    sf_cuda_library_info l;
    for (int i = 0; sf_cuda_library_get(b->cuda, i, &l); i++) {
        if (i == 0) printf("%-8s %6s %10s %10s  used\n", "op", "rows", "own us", l.library);
        printf("%-8s %6d %10.1f %10.1f  %s\n", l.op, l.rows, l.own_us, l.library_us,
               l.used ? l.library : "own");
        fprintf(json,
                "%s\n  {\"op\": \"%s\", \"rows\": %d, \"own_us\": %.1f, \"library_us\": %.1f, \"used\": %s}",
                i ? "," : "", l.op, l.rows, l.own_us, l.library_us, l.used ? "true" : "false");
    }
}

static sf_code run(step_bench *b, const options *o, FILE *json, sf_err *err) {
    fprintf(json, "{\"engine\": \"%s\", \"device\": \"%s\", \"repeats\": %d,\n \"library\": [",
            b->plan->engine, sf_engine_device(b->engine)->desc, o->repeats);
    put_library(b, json);
    fprintf(json, "],\n \"steps\": [");
    SF_TRY(run_rows(b, o, json, err));
    fprintf(json, "],\n \"prefill\": [");
    SF_TRY(run_prefill(b, o, json, err));
    fprintf(json, "],\n \"ops\": [");
    SF_TRY(run_ops(b, o, json, err));
    fprintf(json, "]}\n");
    return SF_OK;
}

/* "1,8,32" or "1x16,8x16" (pairs) */
static int read_list(char *text, int (*pairs)[2], int *singles) {
    int n = 0;
    char *end = text;
    for (; *end && n < LIST_MAX; n++) {
        const long a = strtol(end, &end, 10);
        long b = 0;
        if (pairs && *end == 'x') b = strtol(end + 1, &end, 10);
        if (a < 1 || a > 1 << 20 || b < 0 || b > 1 << 20 || (pairs && b == 0) || (*end && *end != ','))
            return -1;
        if (pairs) {
            pairs[n][0] = (int)a;
            pairs[n][1] = (int)b;
        } else {
            singles[n] = (int)a;
        }
        if (*end == ',') end++;
    }
    return n;
}

static bool read_options(int argc, char **argv, options *o) {
    static const struct option names[] = {
        {"weights", required_argument, NULL, 'w'}, {"random-weights", required_argument, NULL, 'r'},
        {"rows", required_argument, NULL, 'n'},    {"windows", required_argument, NULL, 'W'},
        {"context", required_argument, NULL, 'c'}, {"prefill", required_argument, NULL, 'p'},
        {"repeats", required_argument, NULL, 'k'}, {"ops", no_argument, NULL, 'o'},
        {"json", required_argument, NULL, 'j'},    {NULL, 0, NULL, 0}};
    int pair[LIST_MAX][2];
    for (int c; (c = getopt_long(argc, argv, "", names, NULL)) != -1;) {
        bool ok = true;
        if (c == 'w') o->engine.weights = optarg;
        if (c == 'r') o->engine.random = true, o->engine.random_seed = strtoull(optarg, NULL, 10);
        if (c == 'n') ok = (o->n_rows = read_list(optarg, NULL, o->rows)) > 0;
        if (c == 'W') ok = (o->n_windows = read_list(optarg, o->windows, NULL)) > 0;
        if (c == 'c') ok = (o->context = (int)strtol(optarg, NULL, 10)) > 0;
        if (c == 'p') {
            ok = read_list(optarg, pair, NULL) == 1;
            if (ok) o->prompts = pair[0][0], o->prompt = pair[0][1];
        }
        if (c == 'k') ok = (o->repeats = (int)strtol(optarg, NULL, 10)) > 0;
        if (c == 'o') o->ops = true;
        if (c == 'j') o->json = optarg;
        if (c == '?' || !ok) return false;
    }
    return optind == argc && (o->engine.weights || o->engine.random);
}

int main(int argc, char **argv) {
    options o = {.context = 528, .repeats = 20, .rows = {1, 8, 32, 128}, .n_rows = 4};
    sf_engine_config_default(&o.engine);
    if (!read_options(argc, argv, &o)) {
        fprintf(stderr,
                "usage: bench-step (--weights FILE | --random-weights SEED) [--rows 1,8,32,128]\n"
                "       [--windows 1x16,8x16] [--context 528] [--prefill 16x2048] [--repeats 20] [--ops]\n"
                "       [--json FILE]\n");
        return 2;
    }
    step_bench b = {0};
    sf_err err = {0};
    FILE *json = fopen(o.json ? o.json : "/dev/null", "w");
    sf_code rc = json ? SF_OK : SF_FAIL(&err, SF_IO, "cannot write %s", o.json);
    if (rc == SF_OK) rc = step_open(&b, &o.engine, &err);
    if (rc == SF_OK) rc = run(&b, &o, json, &err);
    step_close(&b);
    if (json && fclose(json) != 0 && rc == SF_OK) rc = SF_FAIL(&err, SF_IO, "cannot write %s", o.json);
    return rc == SF_OK ? 0 : fail(&err);
}
