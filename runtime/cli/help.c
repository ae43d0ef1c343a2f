#include "api/fields.h"
#include "cli/cli.h"
#include "cli/options.h"

#include <stdio.h>
#include <string.h>

#define FLAG_COLUMN 32

const char *const sf_verb_help[SF_VERB_COUNT] = {
    "an OpenAI-compatible HTTP server",
    "answer one prompt, or requests from a JSONL file",
    "whether this engine would have given these answers",
    "measure an OpenAI-compatible server, and whether it says the same twice",
    "prove on this machine that pinned passes give the same bits by every route",
    "the model, the plan and the machine",
    "text to token ids and back",
};

const char *const sf_verb_usage[SF_VERB_COUNT] = {
    "serve --weights FILE [--host HOST] [--port N] [flags]",
    "run --weights FILE (--prompt TEXT | --chat TEXT | --input F.jsonl --output G.jsonl) [flags]",
    "audit --weights FILE --input F.jsonl [--answers G.jsonl] [--output H.jsonl] [flags]",
    "bench [--base-url URL] [--num-prompts N] [--repeat N] [flags]",
    "selftest --weights FILE [flags]",
    "info [--weights FILE] [--kernels] [--json]",
    "tokenize --weights FILE [--text TEXT | --chat TEXT | --decode IDS] [flags]",
};

void sf_cli_help(const sf_plan *plan) {
    printf("steadfast %s, engine %s\n\nusage: steadfast VERB [flags]\n\n", SF_VERSION, plan->engine);
    for (int v = 0; v < SF_VERB_COUNT; v++)
        printf("  %-10s %s\n", sf_verb_names[v], sf_verb_help[v]);
    printf("\nsteadfast VERB --help lists a verb's flags; --version; --completion and --man print a bash\n"
           "completion and a man page.\n"
           "Exit codes: 0 all well, 1 something failed, 2 wrong usage.\n");
}

const char *sf_opt_text(const sf_opt *o, char *buf, size_t size) {
    const sf_api_field *f = o->kind == SF_OPT_FIELD ? sf_api_field_find(o->field) : NULL;
    char wanted[160] = "";
    if (!f) return o->help;
    if (o->arg) sf_api_field_expects(f, wanted, sizeof wanted); /* a flag without a value needs no type */
    snprintf(buf, size, "%s%s%s%s%s", f->help, o->arg ? ": " : "", wanted,
             f->fallback[0] ? "; default: " : "", f->fallback);
    return buf;
}

static void print_option(const sf_opt *o) {
    char flag[64], text[320];
    snprintf(flag, sizeof flag, "--%s%s%s", o->name, o->arg ? " " : "", o->arg ? o->arg : "");
    printf("  %-*s %s\n", FLAG_COLUMN, flag, sf_opt_text(o, text, sizeof text));
}

void sf_cli_help_verb(sf_verb verb) {
    printf("usage: steadfast %s\n\n%s\n\n", sf_verb_usage[verb], sf_verb_help[verb]);
    for (int i = 0; i < sf_n_opts; i++)
        if (sf_opts[i].verbs & (1u << verb)) print_option(&sf_opts[i]);
    printf("\nA flag without a value is on; --flag=false turns it off. Each flag may also come from the "
           "variable\n"
           "STEADFAST_<FLAG> (STEADFAST_THREADS=2); the command line wins.\n");
    if (verb == SF_VERB_RUN || verb == SF_VERB_SELFTEST || verb == SF_VERB_SERVE)
        printf(
            "STEADFAST_DEBUG, for tests: inject=N makes the draft err at offset N of every window; fault=N\n"
            "falsifies a log-probability in pinned passes of N rows or more.\n");
    if (verb == SF_VERB_AUDIT)
        printf("Compared are token_ids and, where an answer has them, text or message.content, logprobs, "
               "prompt_logprobs,\n"
               "finish_reason, and determinism's seed and digest. A request without a seed gets the one that "
               "its "
               "answer reports.\n");
    if (verb == SF_VERB_RUN)
        printf("With --input, request fields given as flags hold for the lines that do not set them. SIGINT "
               "ends the\n"
               "run; answers that are complete are in the output.\n");
}

static const char example_request[] = "{\"id\": \"a1\", \"prompt\": \"The sea is\", \"max_tokens\": 4, "
                                      "\"temperature\": 0, \"is_deterministic\": true}";
static const char example_answer[] =
    "{\"id\": \"a1\", \"text\": \" a place of endless\", \"token_ids\": [253, 1379, 282, 11746], "
    "\"finish_reason\": \"length\", "
    "\"usage\": {...}, \"determinism\": {...}, \"system_fingerprint\": \"sf-...\"}";

void sf_cli_help_fields(void) {
    printf("A line of --input is a JSON object with one of prompt, prompt_ids and messages. Its fields:\n\n");
    for (int i = 0; i < sf_api_n_fields; i++) {
        const sf_api_field *f = &sf_api_fields[i];
        const char *alias = sf_api_field_alias(f);
        char wanted[160];
        printf("  %s%s%s: %s%s%s\n      %s\n", f->name, alias ? ", or " : "", alias ? alias : "",
               sf_api_field_expects(f, wanted, sizeof wanted), f->fallback[0] ? "; default: " : "",
               f->fallback, f->help);
    }
    printf("\nA request, and its answer:\n\n%s\n%s\n\n"
           "A bad line is answered by {\"id\", \"line\", \"error\": {\"message\", \"type\", \"param\", "
           "\"code\"}}.\n",
           example_request, example_answer);
}

/* The flag that a setting or field is given by, or NULL. */
static const sf_opt *flag_of(const char *word, size_t len) {
    for (int i = 0; i < sf_n_opts; i++) {
        const sf_opt *o = &sf_opts[i];
        bool same = strlen(o->name) == len;
        for (size_t k = 0; same && k < len; k++)
            same = o->name[k] == (word[k] == '_' ? '-' : word[k]);
        if (same || (o->field && strlen(o->field) == len && memcmp(o->field, word, len) == 0)) return o;
    }
    return NULL;
}

const char *sf_opt_message(const char *message, char *buf, size_t size) {
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz_";
    size_t at = 0;
    buf[0] = 0;
    for (const char *s = message; *s && at + 1 < size;) {
        size_t len = strspn(s, letters);
        bool starts = s == message || s[-1] == ' ' || s[-1] == '(';
        bool name = starts && len > 0 && (s == message || memchr(s, '_', len));
        const sf_opt *o = name ? flag_of(s, len) : NULL;
        if (len == 0) len = 1;
        int n = o ? snprintf(buf + at, size - at, "--%s", o->name)
                  : snprintf(buf + at, size - at, "%.*s", (int)len, s);
        at += (size_t)n;
        s += len;
    }
    return buf;
}

void sf_cli_completion(const sf_plan *plan) {
    printf("_steadfast() {\n    local cur=${COMP_WORDS[COMP_CWORD]} flags=\n    case ${COMP_WORDS[1]} in\n");
    for (int v = 0; v < SF_VERB_COUNT; v++) {
        printf("    %s) flags='", sf_verb_names[v]);
        for (int i = 0; i < sf_n_opts; i++)
            if (sf_opts[i].verbs & (1u << v)) printf(" --%s", sf_opts[i].name);
        printf("' ;;\n");
    }
    printf("    esac\n    if [ \"$COMP_CWORD\" = 1 ]; then flags='");
    for (int v = 0; v < SF_VERB_COUNT; v++)
        printf("%s ", sf_verb_names[v]);
    printf("--help --version --completion --man'; fi\n    COMPREPLY=($(compgen -W \"$flags\" -- \"$cur\"))\n"
           "    [[ $cur == --* || $COMP_CWORD == 1 ]] || COMPREPLY=($(compgen -f -- \"$cur\"))\n}\n"
           "complete -F _steadfast steadfast steadfast-%s\n",
           plan->engine);
}
