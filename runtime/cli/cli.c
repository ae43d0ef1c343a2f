#include "cli/cli.h"

#include "base/fds.h"
#include "cli/guard.h"
#include "cli/setup.h"
#include "cli/warn.h"
#include "engine/fingerprint.h"

#include <stdio.h>
#include <string.h>

typedef int verb_fn(const sf_plan *plan, const sf_cli_opts *o);
static verb_fn *const verbs[SF_VERB_COUNT] = {sf_verb_serve,    sf_verb_run,  sf_verb_audit,   sf_verb_bench,
                                              sf_verb_selftest, sf_verb_info, sf_verb_tokenize};

static int run_verb(const sf_plan *plan, sf_verb verb, int argc, char **argv) {
    sf_cli_opts o;
    sf_err err;
    if (sf_cli_opts_parse(verb, argc, argv, &o, &err) != SF_OK) return sf_cli_report(&err);
    int code = SF_EXIT_OK;
    sf_cli_warn_env();
    if (o.weights) sf_cli_guard_mapping(o.weights);
    if (o.help) {
        sf_cli_help_verb(verb);
    } else {
        code = verbs[verb](plan, &o);
    }
    sf_cli_opts_fini(&o);
    return code;
}

static int dispatch(const sf_plan *plan, int argc, char **argv) {
    const char *what = argc > 1 ? argv[1] : "";
    if (strcmp(what, "--help") == 0 || strcmp(what, "-h") == 0) {
        sf_cli_help(plan);
        return SF_EXIT_OK;
    }
    if (strcmp(what, "--version") == 0) {
        printf("steadfast %s (engine %s, plan %.12s, %s)\n", SF_VERSION, plan->engine, plan->gen_hash,
               sf_fingerprint_compiler());
        return SF_EXIT_OK;
    }
    if (strcmp(what, "--completion") == 0) {
        sf_cli_completion(plan);
        return SF_EXIT_OK;
    }
    if (strcmp(what, "--man") == 0) {
        sf_cli_man(plan);
        return SF_EXIT_OK;
    }
    for (int v = 0; v < SF_VERB_COUNT; v++)
        if (strcmp(what, sf_verb_names[v]) == 0) return run_verb(plan, (sf_verb)v, argc - 2, argv + 2);
    if (what[0]) return sf_cli_error(SF_EXIT_USAGE, "%s: unknown verb (--help lists them)", what);
    return sf_cli_error(SF_EXIT_USAGE, "no verb given (--help lists them)");
}

int sf_cli_main(const sf_plan *plan, int argc, char **argv) {
    sf_fds_open_std();
    int code = dispatch(plan, argc, argv);
    /* What was printed counts only once it is out: a full disk must not look like success. */
    if ((fflush(stdout) != 0 || ferror(stdout)) && code == SF_EXIT_OK)
        code = sf_cli_error(SF_EXIT_FAILED, "stdout: cannot write");
    return code;
}
