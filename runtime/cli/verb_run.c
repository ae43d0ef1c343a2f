#include "api/answer.h"
#include "api/json.h"
#include "base/progress.h"
#include "cli/batch.h"
#include "cli/files.h"
#include "cli/warn.h"
#include "engine/selftest.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The request that the flags describe; a reference for the caller. NULL: not UTF-8, or out of memory. */
static json_t *flags_body(const sf_cli_opts *o) {
    json_t *body = json_copy(o->fields);
    bool ok = body != NULL;
    if (o->prompt) sf_json_put(body, "prompt", json_string(o->prompt), &ok);
    if (o->chat) sf_json_put(body, "messages", sf_cli_messages(o), &ok);
    return sf_json_done(body, ok);
}

/* Reads the flags' fields before anything is loaded, so that a wrong one costs no wait. */
static int check_fields(const sf_plan *plan, const sf_cli_opts *o) {
    sf_api_model m;
    sf_cli_api_model(plan, NULL, o, &m);
    json_t *body = o->input ? json_copy(o->fields) : flags_body(o);
    if (!body) return sf_cli_error(SF_EXIT_USAGE, "--prompt, --chat and --system must be valid UTF-8");
    bool ok = true;
    if (o->input) sf_json_put(body, "prompt", json_string("x"), &ok);
    sf_api_request r;
    sf_api_error e;
    sf_code rc = sf_api_request_read(&m, SF_API_RUN, body, &r, &e);
    sf_api_request_fini(&r);
    json_decref(body);
    char flags[640];
    if (rc == SF_OK && ok) return SF_EXIT_OK;
    return sf_cli_error(SF_EXIT_USAGE, "%s", sf_opt_message(e.message, flags, sizeof flags));
}

/* Steps until r is done, streaming its one choice. A failed write ends the request; out->broken tells. */
static sf_code stream(sf_engine *e, sf_request *r, bool quiet, sf_output *out, sf_err *err) {
    size_t printed = 0;
    bool cancelled = false;
    sf_code wrote = SF_OK;
    while (!sf_request_done(r)) {
        bool busy;
        sf_err failed;
        sf_code rc = sf_sched_step(sf_engine_sched(e), &busy, &failed);
        if (rc != SF_OK) {
            *err = failed;
            return rc;
        }
        sf_choice c;
        sf_request_choice(r, 0, &c);
        if (!quiet && wrote == SF_OK)
            wrote = sf_output_bytes(out, c.text + printed, c.text_len - printed, err);
        printed = c.text_len;
        if ((sf_cli_signalled() || wrote != SF_OK) && !cancelled) {
            sf_sched_cancel(sf_engine_sched(e), r);
            cancelled = true;
        }
    }
    return wrote;
}

static sf_code print_json(const sf_api_model *m, const sf_api_request *req, const sf_api_answer *a,
                          sf_output *out, sf_err *err) {
    json_t *o;
    sf_api_error e;
    char *text = NULL;
    if (sf_api_answer_json(m, req, a, &o, &e) == SF_OK) {
        text = sf_json_dump(o);
        json_decref(o);
    }
    if (!text) return SF_FAIL(err, SF_NOMEM, "out of memory for the answer");
    sf_code rc = sf_output_line(out, text, err);
    free(text);
    return rc;
}

static sf_code print_answer(const sf_api_model *m, const sf_cli_opts *o, const sf_api_request *req,
                            const sf_api_answer *a, sf_output *out, sf_err *err) {
    if (o->json) return print_json(m, req, a, out, err);
    if (a->n_choices == 1) return sf_output_line(out, "", err);
    for (int i = 0; i < a->n_choices; i++) {
        char head[16];
        int n = snprintf(head, sizeof head, "%s[%d] ", i ? "\n" : "", i);
        SF_TRY(sf_output_bytes(out, head, (size_t)n, err));
        SF_TRY(sf_output_line(out, a->choices[i].text, err));
    }
    return SF_OK;
}

static int answer(sf_engine *e, const sf_api_model *m, const sf_cli_opts *o, const sf_api_request *api,
                  sf_request *r, sf_run_files *f) {
    sf_err err;
    double t0 = sf_now_s();
    sf_code rc = sf_sched_submit(sf_engine_sched(e), r, &err);
    if (rc != SF_OK) return sf_cli_report(&err);
    bool quiet = o->json || api->params.n > 1;
    rc = stream(e, r, quiet, &f->out, &err);
    if (rc != SF_OK && !f->out.broken) return sf_cli_report(&err);
    if (sf_request_error(r)) return sf_cli_report(sf_request_error(r));
    sf_choice choices[SF_N_MAX];
    sf_api_answer a;
    sf_api_answer_of(r, choices, &a);
    if (rc == SF_OK) rc = print_answer(m, o, api, &a, &f->out, &err);
    int code = rc == SF_OK || rc == SF_CANCELLED ? SF_EXIT_OK : sf_cli_report(&err);
    sf_run_counts counts = {.requests = 1, .prompt_tokens = a.n_prompt, .seconds = sf_now_s() - t0};
    for (int i = 0; i < a.n_choices; i++)
        counts.output_tokens += a.choices[i].n_tokens;
    sf_cli_print_figures(e, &counts);
    if (sf_cli_write_report(e, &f->report, &counts, &err) != SF_OK) code = sf_cli_report(&err);
    return sf_cli_signalled() ? 128 + sf_cli_signalled() : code;
}

static int run_one(sf_engine *e, const sf_api_model *m, const sf_cli_opts *o, sf_run_files *f) {
    json_t *body = flags_body(o);
    if (!body) return sf_cli_error(SF_EXIT_FAILED, "out of memory");
    sf_api_request api;
    sf_api_error why;
    sf_code rc = sf_api_request_read(m, SF_API_RUN, body, &api, &why);
    json_decref(body);
    if (rc == SF_OK) rc = sf_api_request_prompts(m, &api, &why);
    int code;
    if (rc != SF_OK) {
        code = sf_cli_error(SF_EXIT_FAILED, "%s", why.message);
    } else {
        sf_request *r = NULL;
        sf_err err;
        sf_warned warned = {0};
        sf_cli_warn_request(&warned, m, &api, NULL, 0);
        const sf_ids *ids = &api.prompts[0];
        rc = sf_request_create(&api.params, ids->data, (int)ids->len, &r, &err);
        code = rc == SF_OK ? answer(e, m, o, &api, r, f) : sf_cli_report(&err);
        sf_request_destroy(r);
    }
    sf_api_request_fini(&api);
    return code;
}

static int check_sources(const sf_cli_opts *o) {
    int sources = (o->prompt != NULL) + (o->chat != NULL) + (o->input != NULL);
    if (sources != 1)
        return sf_cli_error(SF_EXIT_USAGE, "run needs %s--prompt, --chat or --input",
                            sources ? "only one of " : "");
    if (sf_cli_check_chat(o) != SF_EXIT_OK) return SF_EXIT_USAGE;
    if (!o->input && o->output) return sf_cli_error(SF_EXIT_USAGE, "--output needs --input");
    bool lists = json_object_get(o->fields, "logprobs") || json_object_get(o->fields, "prompt_logprobs") ||
                 json_object_get(o->fields, "return_token_ids") || json_object_get(o->fields, "echo");
    if (!o->input && lists && !o->json)
        return sf_cli_error(SF_EXIT_USAGE,
                            "--logprobs, --prompt-logprobs, --echo and --return-token-ids need --json "
                            "or --input");
    return SF_EXIT_OK;
}

/* Told here, with its reason, before the weights are read. */
static int check_pages(const sf_plan *plan, const sf_cli_opts *o) {
    int least = sf_selftest_probe_pages(plan);
    if (o->kv_pages == 0 || o->kv_pages >= least) return SF_EXIT_OK;
    return sf_cli_error(SF_EXIT_USAGE,
                        "--kv-pages is %d, expected at least %d: the probe of the start-up needs them",
                        o->kv_pages, least);
}

static int run_with(const sf_plan *plan, const sf_cli_opts *o, sf_run_files *f) {
    sf_engine_config c;
    sf_cli_engine_config(o, &c);
    sf_engine *e = NULL;
    int code = sf_cli_engine_open(plan, &c, &e);
    if (code != SF_EXIT_OK) return code;
    const char *refused = sf_engine_sched_config(e)->refuse_deterministic;
    if (refused) sf_cli_error(0, "warning: deterministic requests are refused: %s", refused);
    sf_api_model m;
    sf_cli_api_model(plan, e, o, &m);
    if (o->input) {
        code = sf_cli_batch(e, &m, o, f);
    } else {
        sf_cli_signals();
        code = run_one(e, &m, o, f);
    }
    sf_engine_close(e);
    return code;
}

static void close_quietly(sf_output *o) {
    sf_err told; /* another error is the one to tell */
    if (sf_output_close(o, &told) != SF_OK) o->broken = true;
}

/* Everything but the checks of the flags: the output is open, and locked, before the weights are read. */
static int run_into_files(const sf_plan *plan, const sf_cli_opts *o) {
    int code;
    sf_run_files f = {.report.fd = -1};
    sf_err err;
    if (sf_output_open(&f.out, o->output ? o->output : "-", &err) != SF_OK) return sf_cli_report(&err);
    if (o->report && sf_output_open(&f.report, o->report, &err) != SF_OK) {
        code = sf_cli_report(&err);
    } else {
        code = run_with(plan, o, &f);
    }
    if (code == SF_EXIT_FAILED || code == SF_EXIT_USAGE) { /* nothing was answered: leave nothing behind */
        sf_output_discard(&f.report);
        sf_output_discard(&f.out);
    }
    close_quietly(&f.report);
    close_quietly(&f.out);
    return code;
}

int sf_verb_run(const sf_plan *plan, const sf_cli_opts *o) {
    if (o->help_fields) {
        sf_cli_help_fields();
        return SF_EXIT_OK;
    }
    int code = check_sources(o);
    if (code == SF_EXIT_OK) code = check_fields(plan, o);
    if (code == SF_EXIT_OK) code = check_pages(plan, o);
    if (code == SF_EXIT_OK) code = sf_cli_check_files(o);
    return code == SF_EXIT_OK ? run_into_files(plan, o) : code;
}

int sf_verb_audit(const sf_plan *plan, const sf_cli_opts *o) {
    if (!o->input) return sf_cli_error(SF_EXIT_USAGE, "audit needs --input");
    int code = sf_cli_check_chat(o);
    if (code == SF_EXIT_OK) code = check_pages(plan, o);
    if (code == SF_EXIT_OK) code = sf_cli_check_files(o);
    return code == SF_EXIT_OK ? run_into_files(plan, o) : code;
}
