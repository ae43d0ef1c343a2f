#include "api/json.h"
#include "cli/batch.h"
#include "cli/warn.h"
#include "device/cuda/cuda.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static json_t *stats_json(const sf_sched_stats *s) {
    json_t *o = json_object();
    bool ok = o != NULL;
    const struct {
        const char *name;
        int64_t value;
    } rows[] = {{"fast_passes", s->passes[SF_CLASS_FAST]},
                {"fast_rows", s->rows[SF_CLASS_FAST]},
                {"pinned_passes", s->passes[SF_CLASS_PINNED]},
                {"pinned_rows", s->rows[SF_CLASS_PINNED]},
                {"verify_passes", s->verify_passes},
                {"verify_rows", s->verify_rows},
                {"windows_verified", s->windows_verified},
                {"rollbacks", s->rollbacks},
                {"tokens_rolled_back", s->tokens_rolled_back},
                {"drafted", s->drafted},
                {"drafts_accepted", s->drafts_accepted},
                {"ride_along_rows", s->ride_along_rows},
                {"provenance_tokens", s->provenance_tokens},
                {"prompt_tokens", s->prompt_tokens},
                {"committed_tokens", s->committed_tokens},
                {"ordinary_tokens", s->ordinary_tokens},
                {"pages_free", s->pages_free},
                {"pages_total", s->pages_total}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        sf_json_put(o, rows[i].name, json_integer(rows[i].value), &ok);
    sf_json_put(o, "fast_seconds", json_real(s->us[SF_CLASS_FAST] * 1e-6), &ok);
    sf_json_put(o, "pinned_seconds", json_real(s->us[SF_CLASS_PINNED] * 1e-6), &ok);
    return sf_json_done(o, ok);
}

/* What passes cost the host, those of the start's selftest among them. */
static json_t *cuda_json(const sf_device *cuda) {
    const sf_cuda_counts c = sf_cuda_counts_get(cuda);
    json_t *o = json_object();
    bool ok = o != NULL;
    sf_json_put(o, "passes", json_integer(c.passes), &ok);
    sf_json_put(o, "launches", json_integer(c.launches), &ok);
    sf_json_put(o, "library_launches", json_integer(c.library), &ok);
    sf_json_put(o, "copies", json_integer(c.copies), &ok);
    sf_json_put(o, "waits", json_integer(c.waits), &ok);
    sf_json_put(o, "allocations", json_integer(c.allocations), &ok);
    return sf_json_done(o, ok);
}

sf_code sf_cli_write_report(const sf_engine *e, sf_output *report, const sf_run_counts *c, sf_err *err) {
    if (report->fd < 0) return SF_OK;
    sf_sched_stats stats;
    sf_sched_stats_get(sf_engine_sched(e), &stats);
    const sf_sched_config *cfg = sf_engine_sched_config(e);
    json_t *r = json_object();
    bool ok = r != NULL;
    sf_json_put(r, "requests", json_integer(c->requests), &ok);
    sf_json_put(r, "failed", json_integer(c->failed), &ok);
    sf_json_put(r, "seconds", json_real(c->seconds), &ok);
    sf_json_put(r, "prompt_tokens", json_integer(c->prompt_tokens), &ok);
    sf_json_put(r, "output_tokens", json_integer(c->output_tokens), &ok);
    sf_json_put(r, "tokens_per_second", json_real(c->seconds > 0 ? (double)c->output_tokens / c->seconds : 0),
                &ok);
    sf_json_put(r, "system_fingerprint", json_string(sf_engine_fingerprint(e)), &ok);
    sf_json_put(r, "device", sf_json_text(sf_engine_device(e)->desc, strlen(sf_engine_device(e)->desc)), &ok);
    sf_json_put(r, "policy", json_string(cfg->policy == SF_POLICY_PIN ? "pin" : "verify"), &ok);
    sf_json_put(r, "window", json_integer(cfg->window), &ok);
    sf_json_put(r, "stats", stats_json(&stats), &ok);
    if (sf_engine_cuda(e)) sf_json_put(r, "cuda", cuda_json(sf_engine_cuda(e)), &ok);
    char *text = ok ? sf_json_dump_pretty(r) : NULL;
    json_decref(r);
    if (!text) return SF_FAIL(err, SF_NOMEM, "out of memory for the report");
    sf_code rc = sf_output_empty(report, err);
    if (rc == SF_OK) rc = sf_output_line(report, text, err);
    if (rc == SF_OK) rc = sf_output_close(report, err);
    free(text);
    return rc;
}

void sf_cli_print_figures(const sf_engine *e, const sf_run_counts *c) {
    sf_sched_stats s;
    sf_sched_stats_get(sf_engine_sched(e), &s);
    fprintf(stderr,
            "%lld request%s (%lld failed), %lld prompt and %lld answer token%s in %.2f s: %.1f tokens/s; "
            "%lld window%s verified, %lld rollback%s, %lld token%s rolled back; %s\n",
            (long long)c->requests, sf_cli_s(c->requests), (long long)c->failed, (long long)c->prompt_tokens,
            (long long)c->output_tokens, sf_cli_s(c->output_tokens), c->seconds,
            c->seconds > 0 ? (double)c->output_tokens / c->seconds : 0.0, (long long)s.windows_verified,
            sf_cli_s(s.windows_verified), (long long)s.rollbacks, sf_cli_s(s.rollbacks),
            (long long)s.tokens_rolled_back, sf_cli_s(s.tokens_rolled_back), sf_engine_fingerprint(e));
}
