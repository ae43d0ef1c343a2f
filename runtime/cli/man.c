/* The man page, from the tables that parse the command line and write --help. */
#include "cli/cli.h"
#include "cli/options.h"

#include <stdio.h>

/* Text as roff wants it: no escape, no request at the beginning of a line, hyphens as typed. */
static void put(const char *s) {
    for (const char *at = s; *at; at++) {
        const char before = at == s ? '\n' : at[-1];
        if (before == '\n' && (*at == '.' || *at == '\'')) fputs("\\&", stdout);
        if (*at == '\\')
            fputs("\\e", stdout);
        else if (*at == '-')
            fputs("\\-", stdout);
        else
            putchar(*at);
    }
}

static void put_flags(sf_verb verb) {
    for (int i = 0; i < sf_n_opts; i++) {
        const sf_opt *o = &sf_opts[i];
        char text[320];
        if (!(o->verbs & (1u << verb))) continue;
        printf(".TP\n.B \\-\\-");
        put(o->name);
        if (o->arg) printf(" \\fI%s\\fR", o->arg);
        putchar('\n');
        put(sf_opt_text(o, text, sizeof text));
        putchar('\n');
    }
}

void sf_cli_man(const sf_plan *plan) {
    printf(".TH STEADFAST 1 \"\" \"steadfast %s\" \"Steadfast\"\n.SH NAME\nsteadfast \\- deterministic LLM "
           "inference\n",
           SF_VERSION);
    printf(".SH SYNOPSIS\n");
    for (int v = 0; v < SF_VERB_COUNT; v++) {
        printf(".B steadfast\n");
        put(sf_verb_usage[v]);
        printf("\n.br\n");
    }
    printf(".SH DESCRIPTION\nRuns one model on one kind of machine, here ");
    put(plan->engine);
    printf(".\nA request marked deterministic gets the same tokens and the same log\\-probability bits "
           "whatever else the engine is\n"
           "doing.\n");
    for (int v = 0; v < SF_VERB_COUNT; v++) {
        printf(".SH \"VERB %s\"\n", sf_verb_names[v]);
        put(sf_verb_help[v]);
        putchar('\n');
        put_flags((sf_verb)v);
    }
    printf(".SH ENVIRONMENT\nEach flag may also come from the variable\n.BR STEADFAST_\\fIFLAG\\fR ,\n"
           "in capitals and with underscores; the command line wins.\n"
           ".SH \"EXIT STATUS\"\n0 all well, 1 something failed, 2 wrong usage.\n");
}
