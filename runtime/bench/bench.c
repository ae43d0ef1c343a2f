#include "bench/bench.h"

#include "base/progress.h"

#include <jansson.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RETRY_MS  200 /* between looks at a server that is not ready */
#define FETCH_MAX 30  /* seconds for an address to take a connection, or for a GET's answer */

static bool is_stopped(const sf_bench_config *c) {
    return c->run.stopped && c->run.stopped();
}

static void free_records(sf_bench_record *records, int n) {
    for (int i = 0; records && i < n; i++)
        sf_bench_record_fini(&records[i]);
    free(records);
}

void sf_bench_outcome_fini(sf_bench_outcome *o) {
    free_records(o->records, o->n);
    free(o->sends);
    *o = (sf_bench_outcome){0};
}

/* ---- the server ---- */

static sf_code take_model(const json_t *models, const char *name, sf_bench_outcome *out, sf_err *err) {
    const json_t *first = json_array_get(json_object_get(models, "data"), 0);
    const char *id = name ? name : json_string_value(json_object_get(first, "id"));
    if (!id) return SF_FAIL(err, SF_IO, "/v1/models lists no model: give --model");
    if (strlen(id) >= sizeof out->model)
        return SF_FAIL(err, SF_IO, "the model's name has %zu bytes, expected fewer than %zu", strlen(id),
                       sizeof out->model);
    snprintf(out->model, sizeof out->model, "%s", id);
    return SF_OK;
}

static sf_code ask_models(const sf_bench_config *c, sf_bench_client *client, int limit_s,
                          sf_bench_outcome *out, sf_err *err) {
    sf_buf body = {0};
    json_error_t why;
    sf_code rc = sf_bench_client_get(client, "/v1/models", limit_s, c->run.stopped, &body, err);
    if (rc == SF_OK) {
        json_t *models = json_loadb(body.data ? body.data : "", body.len, 0, &why);
        rc = take_model(models, c->run.model, out, err);
        json_decref(models);
    }
    sf_buf_fini(&body);
    return rc;
}

/* Seconds for one step until end (sf_now_s), or, when nothing is waited for, at all. */
static int limit_of(const sf_bench_config *c, double end) {
    const double left = c->ready_timeout_s > 0 ? end - sf_now_s() : FETCH_MAX;
    const int most = c->target->timeout_s < FETCH_MAX ? c->target->timeout_s : FETCH_MAX;
    return left >= most ? most : left > 1 ? (int)left : 1;
}

/* One try. Without a wait and with a name there is nothing to ask. */
static sf_code try_server(const sf_bench_config *c, double end, sf_bench_client **client,
                          sf_bench_outcome *out, sf_err *err) {
    SF_TRY(sf_bench_target_reach(c->target, limit_of(c, end), c->run.stopped, err));
    if (!*client) SF_TRY(sf_bench_client_create(c->target, client, err));
    if (c->run.model && c->ready_timeout_s == 0) return take_model(NULL, c->run.model, out, err);
    return ask_models(c, *client, limit_of(c, end), out, err);
}

static sf_code find_server(const sf_bench_config *c, sf_bench_client **client, sf_bench_outcome *out,
                           sf_err *err) {
    const double end = sf_now_s() + c->ready_timeout_s;
    for (;;) {
        sf_code rc = try_server(c, end, client, out, err);
        if (is_stopped(c)) return SF_FAIL(err, SF_CANCELLED, "interrupted");
        if (rc != SF_IO || sf_now_s() >= end) return rc;
        poll(NULL, 0, RETRY_MS);
    }
}

/* ---- the run ---- */

static sf_code warm_up(const sf_bench_config *c, const sf_bench_run_config *run, sf_bench_outcome *out,
                       sf_err *err) {
    if (c->warmups == 0) return SF_OK;
    const size_t n = (size_t)c->warmups;
    sf_bench_send *sends = calloc(n, sizeof *sends); /* the first prompt, unmarked */
    sf_bench_record *records = calloc(n, sizeof *records);
    sf_bench_run_config quiet = *run;
    double ignored;
    if (quiet.progress) quiet.progress = "warming up";
    sf_code rc = sends && records ? sf_bench_run(&quiet, sends, c->warmups, records, &ignored, err)
                                  : SF_FAIL(err, SF_NOMEM, "out of memory for the warm-up");
    for (size_t i = 0; rc == SF_OK && i < n; i++)
        out->warmups_failed += !records[i].success;
    free_records(records, c->warmups);
    free(sends);
    return rc;
}

static sf_code measure(const sf_bench_config *c, sf_bench_client *client, sf_bench_outcome *out,
                       sf_err *err) {
    sf_bench_run_config run = c->run;
    run.client = client;
    run.model = out->model;
    const int limit = c->target->timeout_s < FETCH_MAX ? c->target->timeout_s : FETCH_MAX;
    SF_TRY(warm_up(c, &run, out, err));
    if (is_stopped(c)) return SF_FAIL(err, SF_CANCELLED, "interrupted");
    sf_bench_counters_get(client, limit, c->run.stopped, &out->before);
    SF_TRY(sf_bench_run(&run, out->sends, out->n, out->records, &out->duration_s, err));
    if (!is_stopped(c)) sf_bench_counters_get(client, limit, c->run.stopped, &out->after);
    return SF_OK;
}

sf_code sf_bench(const sf_bench_config *c, sf_bench_outcome *out, sf_err *err) {
    sf_bench_client *client = NULL;
    *out = (sf_bench_outcome){0};
    SF_TRY(sf_bench_load_make(&c->load, &out->sends, err));
    out->n = c->load.n_prompts * c->load.copies;
    out->records = calloc((size_t)out->n, sizeof *out->records);
    if (!out->records) return SF_FAIL(err, SF_NOMEM, "out of memory for %d records", out->n);
    sf_code rc = find_server(c, &client, out, err);
    if (rc == SF_OK) rc = measure(c, client, out, err);
    sf_bench_client_destroy(client);
    return rc;
}
