/* steadfast-gen: the verbs. Exit codes: 0 all well, 1 an error (or drift), 2 usage. */
#include "base/fds.h"
#include "emit.h"
#include "explain.h"
#ifdef SF_GEN_IMPORT
#include "import.h"
#endif
#include "outdir.h"

#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

typedef struct options {
    const char *model, *config, *out, *templates, *from;
    bool check, json;
} options;

typedef sf_code verb_fn(sf_arena *a, const options *o, sf_err *err);

static const char usage_text[] =
    "usage: steadfast-gen generate --model models/X.yaml --config build-configs/Y.yaml --out DIR [--check]\n"
    "       steadfast-gen explain  --model models/X.yaml --config build-configs/Y.yaml [--json]\n"
#ifdef SF_GEN_IMPORT
    "       steadfast-gen import   --from DIR_OR_GGUF --out models/X.yaml\n"
#endif
    "       steadfast-gen list\n"
    "\n"
    "generate  writes kernels/, plan.c, plan.json and LOCK; files that would not change are left alone\n"
    "          --check writes nothing there: it fails where a file differs, and leaves FILE.new beside it\n"
    "explain   prints the plan: kernels, routes, expected time and roofline share by class and rows\n"
    "          --json prints plan.json\n"
#ifdef SF_GEN_IMPORT
    "import    writes a model description from a GGUF file, or from a Hugging Face directory;\n"
    "          a description that is there already is never changed\n"
#endif
    "list      prints the models, build configurations and templates of this folder\n"
    "\n"
    "--templates DIR  templates (default: templates)\n"
    "--help, --version\n"
    "Run it in the repository's root. Exit codes: 0 all well, 1 an error or drift, 2 usage.\n";

static sf_code make_plan(sf_arena *a, const options *o, sf_planned **out, sf_err *err) {
    sf_inputs *in = NULL;
    SF_TRY(sf_inputs_read(a, o->model, o->config, o->templates, &in, err));
    return sf_planned_build(a, in, out, err);
}

static sf_code generate(sf_arena *a, const options *o, sf_err *err) {
    sf_planned *p = NULL;
    sf_files *files = NULL;
    SF_TRY(make_plan(a, o, &p, err));
    SF_TRY(sf_emit(a, p, &files, err));
    if (o->check) {
        sf_buf report = {0};
        sf_code rc = sf_outdir_check(a, o->out, files, &report, err);
        if (report.len) fputs(report.data, stderr);
        sf_buf_fini(&report);
        return rc;
    }
    int changed = 0;
    SF_TRY(sf_outdir_write(a, o->out, files, &changed, err));
    printf("%s: %d kernels, %d of %d files changed in %s\n", p->plan.engine, p->plan.n_kernels, changed,
           files->n, o->out);
    return SF_OK;
}

static sf_code explain(sf_arena *a, const options *o, sf_err *err) {
    sf_planned *p = NULL;
    SF_TRY(make_plan(a, o, &p, err));
    sf_writer w = {.err = err};
    if (o->json)
        sf_emit_plan_json(&w, p);
    else
        sf_explain(&w, p);
    if (w.rc == SF_OK) fputs(w.buf.data, stdout);
    sf_buf_fini(&w.buf);
    return w.rc;
}

static sf_code list_folder(sf_arena *a, const char *title, const char *dir, const char *suffix, sf_err *err) {
    const char *names[SF_TEMPLATES_MAX];
    int n = 0;
    SF_TRY(sf_inputs_list(a, dir, suffix, SF_TEMPLATES_MAX, names, &n, err));
    printf("%s (%s)\n", title, dir);
    for (int i = 0; i < n; i++)
        printf("  %.*s\n", (int)(strlen(names[i]) - strlen(suffix)), names[i]);
    return SF_OK;
}

static sf_code list(sf_arena *a, const options *o, sf_err *err) {
    const char *cpu = sf_arena_printf(a, "%s/cpu", o->templates);
    const char *cuda = sf_arena_printf(a, "%s/cuda", o->templates);
    if (!cpu || !cuda) return sf_arena_full(err);
    SF_TRY(sf_inputs_check_folder(o->templates, err));
    SF_TRY(list_folder(a, "models", "models", ".yaml", err));
    SF_TRY(list_folder(a, "build configurations", "build-configs", ".yaml", err));
    SF_TRY(list_folder(a, "templates", cpu, ".c", err));
    return list_folder(a, "templates", cuda, ".cu", err);
}

#ifdef SF_GEN_IMPORT
static sf_code import(sf_arena *a, const options *o, sf_err *err) {
    bool written = false;
    SF_TRY(sf_import(a, o->from, o->out, &written, err));
    printf("%s: %s\n", o->out, written ? "written" : "as it was");
    return SF_OK;
}
#endif

static int usage_error(const char *what, const char *arg) {
    fprintf(stderr, "steadfast-gen: %s%s%s\n%s", what, arg ? " " : "", arg ? arg : "", usage_text);
    return 2;
}

/* Returns -1 to go on, else the exit code. */
static int parse_options(int argc, char **argv, options *o) {
    static const struct option longs[] = {
        {"model", required_argument, NULL, 'm'}, {"config", required_argument, NULL, 'c'},
        {"out", required_argument, NULL, 'o'},   {"templates", required_argument, NULL, 't'},
        {"from", required_argument, NULL, 'f'},  {"check", no_argument, NULL, 'k'},
        {"json", no_argument, NULL, 'j'},        {"help", no_argument, NULL, 'h'},
        {"version", no_argument, NULL, 'v'},     {NULL, 0, NULL, 0}};
    for (int c; (c = getopt_long(argc, argv, "", longs, NULL)) != -1;) {
        switch (c) {
        case 'm':
            o->model = optarg;
            break;
        case 'c':
            o->config = optarg;
            break;
        case 'o':
            o->out = optarg;
            break;
        case 't':
            o->templates = optarg;
            break;
        case 'f':
            o->from = optarg;
            break;
        case 'k':
            o->check = true;
            break;
        case 'j':
            o->json = true;
            break;
        case 'h':
            fputs(usage_text, stdout);
            return 0;
        case 'v':
            printf("steadfast-gen %s\n", SF_GEN_VERSION);
            return 0;
        default:
            fputs(usage_text, stderr); /* getopt has named the option */
            return 2;
        }
    }
    return -1;
}

static int run(verb_fn *verb, const options *o) {
    sf_err err = {0};
    sf_arena *a = sf_arena_create();
    sf_code rc = a ? verb(a, o, &err) : sf_arena_full(&err);
    if (rc == SF_OK && (fflush(stdout) != 0 || ferror(stdout)))
        rc = SF_FAIL(&err, SF_IO, "standard output could not be written");
    if (rc != SF_OK) {
        char text[800];
        sf_err_format(&err, text, sizeof text);
        fprintf(stderr, "%s%s\n", err.user.file ? "" : "steadfast-gen: ", text);
    }
    sf_arena_destroy(a);
    return rc == SF_OK ? 0 : 1;
}

/* NULL: no verb of this program. */
static verb_fn *verb_of(const char *name) {
    static const struct {
        const char *name;
        verb_fn *fn;
    } verbs[] = {{"generate", generate},
                 {"explain", explain},
#ifdef SF_GEN_IMPORT
                 {"import", import},
#endif
                 {"list", list}};
    for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++) {
        if (strcmp(verbs[i].name, name) == 0) return verbs[i].fn;
    }
    return NULL;
}

/* What the verb needs and doesn't know; NULL: nothing is wrong. */
static const char *wrong_flags(const char *verb, const options *o) {
    bool generates = strcmp(verb, "generate") == 0, explains = strcmp(verb, "explain") == 0;
    bool imports = strcmp(verb, "import") == 0;
    if ((generates || explains) && (!o->model || !o->config)) return "needs --model and --config";
    if (generates && !o->out) return "needs --out";
    if (imports && (!o->from || !o->out)) return "needs --from and --out";
    if (o->check && !generates) return "takes no --check, which goes with generate only";
    if (o->json && !explains) return "takes no --json, which goes with explain only";
    if (o->from && !imports) return "takes no --from, which goes with import only";
    return NULL;
}

int main(int argc, char **argv) {
    sf_fds_open_std();
    signal(SIGXFSZ, SIG_IGN); /* a file that may grow no more is an error of the write */
    options o = {.templates = "templates"};
    int rc = parse_options(argc, argv, &o);
    if (rc >= 0) return rc;
    if (optind >= argc) return usage_error("no verb", NULL);
    const char *name = argv[optind];
    if (optind + 1 < argc) return usage_error("unexpected argument", argv[optind + 1]);
    verb_fn *verb = verb_of(name);
    if (!verb) return usage_error("unknown verb", name);
    const char *wrong = wrong_flags(name, &o);
    if (wrong) return usage_error(name, wrong);
    if (o.out && !o.out[0]) return usage_error("--out is empty, expected a path", NULL);
    return run(verb, &o);
}
