#include "api/json.h"
#include "base/progress.h"
#include "cli/setup.h"
#include "device/cpu/cpu.h"
#include "engine/selftest.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAME_COLUMN 22

typedef struct report {
    json_t *checks; /* NULL: print lines */
    bool ok;
} report;

static const char *verdict(const sf_selftest_line *l) {
    return l->failed ? "FAILED" : l->control ? "note" : "ok";
}

static void on_line(void *ctx, const sf_selftest_line *l) {
    report *r = ctx;
    if (!r->checks) {
        printf("%-6s  %-*s %6lld rows compared, %lld differ, %.1f s (%s)\n", verdict(l), NAME_COLUMN, l->name,
               (long long)l->rows, (long long)l->differing, l->seconds, l->what);
        if (l->first[0]) printf("        %s\n", l->first);
        fflush(stdout);
        return;
    }
    json_t *o = json_object();
    sf_json_put(o, "name", json_string(l->name), &r->ok);
    sf_json_put(o, "what", json_string(l->what), &r->ok);
    sf_json_put(o, "rows", json_integer(l->rows), &r->ok);
    sf_json_put(o, "differing", json_integer(l->differing), &r->ok);
    sf_json_put(o, "failed", json_boolean(l->failed), &r->ok);
    sf_json_put(o, "control", json_boolean(l->control), &r->ok);
    sf_json_put(o, "seconds", json_real(l->seconds), &r->ok);
    sf_json_put(o, "first", json_string(l->first), &r->ok);
    sf_json_push(r->checks, o, &r->ok);
}

typedef struct opener {
    sf_engine *e;
    const sf_cli_opts *o;
} opener;

static sf_code open_other(void *ctx, sf_isa isa, int threads, int n_pages, sf_device **out, sf_err *err) {
    const opener *p = ctx;
    SF_TRY(sf_engine_device_open(p->e, sf_isa_name(isa), threads, n_pages, out, err));
    if (p->o->debug_fault) *out = sf_fault_device((void *)(uintptr_t)&p->o->debug_fault, *out);
    return SF_OK;
}

static void print_summary(const report *r, const sf_engine *e, const sf_selftest_result *res,
                          double seconds) {
    if (!r->checks) {
        printf("%s: %d checks, %d failed, %lld rows compared in %.1f s; fast class %s; %s\n",
               res->failed ? "FAILED" : "ok", res->checks, res->failed, (long long)res->rows, seconds,
               res->control_differs ? "differs, as it may" : "never differed", sf_engine_fingerprint(e));
        return;
    }
    json_t *o = json_object();
    bool ok = r->ok;
    sf_json_put(o, "checks", json_incref(r->checks), &ok);
    sf_json_put(o, "failed", json_integer(res->failed), &ok);
    sf_json_put(o, "rows", json_integer(res->rows), &ok);
    sf_json_put(o, "control_differs", json_boolean(res->control_differs), &ok);
    sf_json_put(o, "seconds", json_real(seconds), &ok);
    sf_json_put(o, "system_fingerprint", json_string(sf_engine_fingerprint(e)), &ok);
    char *text = ok ? sf_json_dump_pretty(o) : NULL;
    if (text) puts(text);
    free(text);
    json_decref(o);
}

static int run(sf_engine *e, const sf_plan *plan, const sf_cli_opts *o) {
    opener p = {e, o};
    report r = {.checks = o->json ? json_array() : NULL, .ok = true};
    sf_selftest_config cfg = {.device = sf_engine_device(e),
                              .open = open_other,
                              .open_ctx = &p,
                              .threads = sf_engine_threads(e),
                              .poison = sf_engine_poison,
                              .poison_ctx = e,
                              .report = on_line,
                              .report_ctx = &r};
    if (sf_engine_cuda(e)) {
        sf_engine_selftest_modes(e, &cfg);
        cfg.open = NULL;
    } else {
        cfg.n_isas = sf_engine_isas(plan, cfg.isas);
    }
    sf_selftest_result res;
    sf_err err;
    double t0 = sf_now_s();
    int code = SF_EXIT_OK;
    if (sf_selftest_run(&cfg, &res, &err) != SF_OK) {
        sf_cli_report(&err);
        code = SF_EXIT_FAILED;
    } else {
        print_summary(&r, e, &res, sf_now_s() - t0);
        if (res.failed || !r.ok) code = SF_EXIT_FAILED;
    }
    json_decref(r.checks);
    return code;
}

int sf_verb_selftest(const sf_plan *plan, const sf_cli_opts *o) {
    sf_engine_config c;
    sf_cli_engine_config(o, &c);
    c.skip_probe = true;
    if (c.kv_pages < sf_selftest_pages(plan)) c.kv_pages = sf_selftest_pages(plan);
    sf_engine *e = NULL;
    int code = sf_cli_engine_open(plan, &c, &e);
    if (code != SF_EXIT_OK) return code;
    code = run(e, plan, o);
    sf_engine_close(e);
    return code;
}
