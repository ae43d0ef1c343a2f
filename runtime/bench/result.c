/* The result file: vLLM's keys in its order, then ours. */
#include "api/json.h"
#include "bench/report.h"

#include <math.h>
#include <string.h>

typedef struct object {
    json_t *o;
    bool ok;
} object;

static void put(object *w, const char *key, json_t *value) {
    sf_json_put(w->o, key, value, &w->ok);
}

static void put_int(object *w, const char *key, int64_t v) {
    put(w, key, json_integer(v));
}

static void put_real(object *w, const char *key, double v) {
    put(w, key, isinf(v) ? json_string("inf") : isnan(v) ? json_null() : json_real(v));
}

static void put_setup(object *w, const sf_bench_report *r, const char *date) {
    const sf_bench_config *c = r->config;
    const char *type = c->run.chat ? "openai-chat" : "openai";
    put(w, "date", json_string(date));
    put(w, "endpoint_type", json_string(type));
    put(w, "backend", json_string(type));
    put(w, "label", json_null());
    put(w, "model_id", sf_json_text(r->outcome->model, strlen(r->outcome->model)));
    put(w, "tokenizer_id", json_null());
    /* vLLM's key is what `completed` is a part of: requests. */
    put_int(w, "num_prompts", (int64_t)c->load.n_prompts * c->load.copies);
    put_int(w, "unique_prompts", c->load.n_prompts);
    put_real(w, "request_rate", c->load.rate);
    put_real(w, "burstiness", c->load.burstiness);
    put(w, "max_concurrency",
        c->run.max_concurrency > 0 ? json_integer(c->run.max_concurrency) : json_null());
}

static void put_summary(object *w, const sf_bench_report *r) {
    const sf_bench_summary *s = &r->all;
    put_real(w, "duration", s->duration_s);
    put_int(w, "completed", s->completed);
    put_int(w, "failed", s->failed);
    put_int(w, "total_input_tokens", s->input_tokens);
    put_int(w, "total_output_tokens", s->output_tokens);
    put_real(w, "request_throughput", s->requests_per_s);
    put(w, "request_goodput", sf_bench_report_has_goals(r) ? json_real(s->good_per_s) : json_null());
    put_real(w, "output_throughput", s->output_per_s);
    put_real(w, "total_token_throughput", s->tokens_per_s);
    put_real(w, "max_output_tokens_per_s", s->peak_output_per_s);
    put_int(w, "max_concurrent_requests", s->peak_concurrency);
}

static void put_figures(object *w, const sf_bench_report *r, const sf_bench_summary *s, const char *before) {
    char key[80];
    for (int m = 0; m < SF_BENCH_METRICS; m++) {
        const sf_bench_figures *v = &s->of[m];
        if (!r->wishes->metrics[m]) continue;
        const struct {
            const char *what;
            double value;
        } rows[] = {{"mean", v->mean}, {"median", v->median}, {"std", v->std}};
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
            snprintf(key, sizeof key, "%s%s_%s_ms", before, rows[i].what, sf_bench_metric_names[m]);
            put_real(w, key, rows[i].value);
        }
        for (int p = 0; p < r->results.n_percentiles; p++) {
            snprintf(key, sizeof key, "%sp%g_%s_ms", before, r->results.percentiles[p],
                     sf_bench_metric_names[m]);
            put_real(w, key, v->percentiles[p]);
        }
    }
}

static json_t *copies_json(const sf_bench_copies *c) {
    return json_pack("{s:i,s:i,s:i}", "prompts", c->prompts, "one_output", c->same, "most_outputs", c->most);
}

static json_t *counters_json(const double v[SF_BENCH_COUNTERS]) {
    static const char *const keys[SF_BENCH_COUNTERS] = {[SF_BENCH_VERIFY_PASSES] = "verify_passes",
                                                        [SF_BENCH_VERIFY_ROWS] = "verify_rows",
                                                        [SF_BENCH_ROLLBACKS] = "rollbacks",
                                                        [SF_BENCH_ROLLED_BACK] = "tokens_rolled_back"};
    object w = {json_object(), true};
    for (int i = 0; i < SF_BENCH_COUNTERS; i++)
        put_real(&w, keys[i], v[i]);
    return sf_json_done(w.o, w.ok);
}

static json_t *determinism_json(const sf_bench_determinism *d) {
    object w = {json_object(), true};
    put_int(&w, "copies", d->copies);
    put(&w, "compared", d->copies > 1 ? json_string(d->by_digest ? "digests" : "texts") : json_null());
    put(&w, "deterministic", copies_json(&d->deterministic));
    put(&w, "ordinary", copies_json(&d->ordinary));
    put_int(&w, "answers", d->answers);
    put_int(&w, "windows_verified", d->windows);
    put_int(&w, "rollbacks", d->rollbacks);
    put_int(&w, "tokens_rolled_back", d->tokens_rolled_back);
    put_real(&w, "recompute_ratio", d->recompute_ratio);
    if (d->counters.there) put(&w, "server", counters_json(d->counters.v));
    return sf_json_done(w.o, w.ok);
}

static json_t *itls_json(const sf_bench_list *l, bool *ok) {
    json_t *list = json_array();
    for (size_t i = 0; i < l->n; i++)
        sf_json_push(list, json_real(l->v[i]), ok);
    return list;
}

enum {
    INPUT_LENS,
    OUTPUT_LENS,
    TTFTS,
    ITLS,
    LATENCIES,
    START_TIMES,
    QUEUE_TIMES,
    TEXTS,
    ERRORS,
    PROMPTS,
    MARKS,
    DIGESTS,
    LISTS
};

static json_t *item(const sf_bench_report *r, int list, int i, bool *ok) {
    const sf_bench_record *rec = &r->results.records[i];
    const sf_bench_send *send = &r->results.sends[i];
    switch (list) {
    case INPUT_LENS:
        return json_integer(rec->input_tokens);
    case OUTPUT_LENS:
        return json_integer(rec->success ? rec->output_tokens : 0);
    case TTFTS:
        return json_real(rec->ttft_s);
    case ITLS:
        return itls_json(&rec->itl, ok);
    case LATENCIES:
        return json_real(rec->latency_s);
    case START_TIMES:
        return json_real(rec->start_s);
    case QUEUE_TIMES:
        return json_real(rec->queue_s);
    case TEXTS:
        return sf_json_text(rec->text.data ? rec->text.data : "", rec->text.len);
    case ERRORS:
        return sf_json_text(rec->error, strlen(rec->error));
    case PROMPTS:
        return json_integer(send->prompt);
    case MARKS:
        return send->kind == SF_BENCH_UNMARKED ? json_null()
                                               : json_boolean(send->kind == SF_BENCH_DETERMINISTIC);
    default:
        return rec->digest[0] ? sf_json_text(rec->digest, strlen(rec->digest)) : json_null();
    }
}

static void put_lists(object *w, const sf_bench_report *r) {
    static const char *const keys[LISTS] = {[INPUT_LENS] = "input_lens",
                                            [OUTPUT_LENS] = "output_lens",
                                            [TTFTS] = "ttfts",
                                            [ITLS] = "itls",
                                            [LATENCIES] = "latencies",
                                            [START_TIMES] = "start_times",
                                            [QUEUE_TIMES] = "queue_times",
                                            [TEXTS] = "generated_texts",
                                            [ERRORS] = "errors",
                                            [PROMPTS] = "prompt_indices",
                                            [MARKS] = "is_deterministic",
                                            [DIGESTS] = "digests"};
    for (int l = 0; l < LISTS; l++) {
        json_t *list = json_array();
        for (int i = 0; i < r->results.n; i++)
            sf_json_push(list, item(r, l, i, &w->ok), &w->ok);
        put(w, keys[l], list);
    }
}

char *sf_bench_report_json(const sf_bench_report *r, const char *date, bool detailed) {
    object w = {json_object(), true};
    put_setup(&w, r, date);
    put_summary(&w, r);
    if (detailed) put_lists(&w, r);
    put_figures(&w, r, &r->all, "");
    if (sf_bench_report_both(r)) {
        put_figures(&w, r, &r->by_kind[SF_BENCH_DETERMINISTIC], "deterministic_");
        put_figures(&w, r, &r->by_kind[SF_BENCH_ORDINARY], "ordinary_");
    }
    put_int(&w, "seed", r->config->load.seed);
    put(&w, "deterministic_ratio",
        r->config->load.deterministic_ratio < 0 ? json_null()
                                                : json_real(r->config->load.deterministic_ratio));
    put_int(&w, "interrupted", r->all.cut);
    put(&w, "determinism", determinism_json(&r->determinism));
    /* All digits, as Python writes them: a result is data to compute with. */
    char *text = w.ok ? json_dumps(w.o, JSON_COMPACT) : NULL;
    json_decref(w.o);
    return text;
}
