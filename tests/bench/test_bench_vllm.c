#include "bench/metrics.h"
#include "bench/sse.h"

#include <jansson.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#define REQUESTS_MAX 32

typedef struct golden {
    json_t *root;
    sf_bench_send sends[REQUESTS_MAX];
    sf_bench_record records[REQUESTS_MAX];
    int n;
} golden;

typedef struct feeding {
    sf_bench_record *record;
    double now_s;
} feeding;

static double number(const json_t *o, const char *key) {
    assert_true(json_is_number(json_object_get(o, key)));
    return json_number_value(json_object_get(o, key));
}

static void assert_close(double got, double expected) {
    if (fabs(got - expected) > 1e-9 * fmax(1, fabs(expected)))
        fail_msg("got %.17g, vLLM has %.17g", got, expected);
}

static bool on_event(void *ctx, const char *data, size_t len) {
    feeding *f = ctx;
    sf_err err;
    assert_int_equal(sf_bench_record_event(f->record, data, len, f->now_s, &err), SF_OK);
    return true;
}

static void feed(const json_t *request, sf_bench_record *record) {
    sf_bench_sse sse = {0};
    feeding f = {.record = record};
    sf_err err;
    size_t i;
    const json_t *read;
    record->start_s = number(request, "start");
    json_array_foreach(json_object_get(request, "reads"), i, read) {
        const json_t *text = json_array_get(read, 1);
        f.now_s = json_number_value(json_array_get(read, 0));
        assert_int_equal(
            sf_bench_sse_feed(&sse, json_string_value(text), json_string_length(text), on_event, &f, &err),
            SF_OK);
    }
    assert_int_equal(sf_bench_sse_end(&sse, on_event, &f, &err), SF_OK);
    sf_bench_sse_fini(&sse);
    sf_bench_record_end(record);
}

static int setup(void **state) {
    golden *g = calloc(1, sizeof *g);
    json_error_t why;
    size_t i;
    const json_t *request;
    assert_non_null(g);
    g->root = json_load_file(SF_TEST_DIR "/bench/vllm.json", 0, &why);
    assert_non_null(g->root);
    json_array_foreach(json_object_get(g->root, "requests"), i, request) {
        assert_true(g->n < REQUESTS_MAX);
        feed(request, &g->records[g->n++]);
    }
    assert_true(g->n > 5);
    *state = g;
    return 0;
}

static int teardown(void **state) {
    golden *g = *state;
    for (int i = 0; i < g->n; i++)
        sf_bench_record_fini(&g->records[i]);
    json_decref(g->root);
    free(g);
    return 0;
}

static void a_stream_has_the_times_that_vllm_sees(void **state) {
    const golden *g = *state;
    for (int i = 0; i < g->n; i++) {
        const sf_bench_record *r = &g->records[i];
        const json_t *e = json_object_get(json_array_get(json_object_get(g->root, "requests"), (size_t)i),
                                          "expect"),
                     *itl = json_object_get(e, "itl");
        assert_true(r->success);
        assert_close(r->ttft_s, number(e, "ttft"));
        assert_close(r->latency_s, number(e, "latency"));
        assert_int_equal(r->itl.n, json_array_size(itl));
        for (size_t k = 0; k < r->itl.n; k++)
            assert_close(r->itl.v[k], json_number_value(json_array_get(itl, k)));
        assert_int_equal(r->output_tokens, json_integer_value(json_object_get(e, "output_tokens")));
        assert_int_equal(r->input_tokens, json_integer_value(json_object_get(e, "input_tokens")));
        assert_string_equal(r->text.data ? r->text.data : "", json_string_value(json_object_get(e, "text")));
    }
}

static void assert_figures(const golden *g, const sf_bench_figures *got, const char *name) {
    const json_t *e = json_object_get(json_object_get(g->root, "figures"), name),
                 *p = json_object_get(e, "percentiles");
    assert_close(got->mean, number(e, "mean"));
    assert_close(got->median, number(e, "median"));
    assert_close(got->std, number(e, "std"));
    for (size_t i = 0; i < json_array_size(p); i++)
        assert_close(got->percentiles[i], json_number_value(json_array_get(p, i)));
}

static void the_figures_are_vllm_s(void **state) {
    const golden *g = *state;
    const json_t *e = json_object_get(g->root, "figures"), *p = json_object_get(g->root, "percentiles");
    double percentiles[SF_BENCH_PERCENTILES_MAX];
    sf_err err;
    sf_bench_summary s;
    for (size_t i = 0; i < json_array_size(p); i++)
        percentiles[i] = json_number_value(json_array_get(p, i));
    const sf_bench_results results = {.sends = g->sends,
                                      .records = g->records,
                                      .n = g->n,
                                      .duration_s = number(g->root, "duration"),
                                      .percentiles = percentiles,
                                      .n_percentiles = (int)json_array_size(p)};
    assert_int_equal(sf_bench_summarize(&results, SF_BENCH_KINDS, &s, &err), SF_OK);
    assert_int_equal(s.completed, (int)number(e, "completed"));
    assert_int_equal(s.input_tokens, (int)number(e, "total_input_tokens"));
    assert_int_equal(s.output_tokens, (int)number(e, "total_output_tokens"));
    assert_close(s.requests_per_s, number(e, "request_throughput"));
    assert_close(s.output_per_s, number(e, "output_throughput"));
    assert_close(s.tokens_per_s, number(e, "total_token_throughput"));
    assert_close(s.peak_output_per_s, number(e, "max_output_tokens_per_s"));
    assert_figures(g, &s.of[SF_BENCH_TTFT], "ttft");
    assert_figures(g, &s.of[SF_BENCH_TPOT], "tpot");
    assert_figures(g, &s.of[SF_BENCH_ITL], "itl");
    assert_figures(g, &s.of[SF_BENCH_E2EL], "e2el");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_stream_has_the_times_that_vllm_sees),
        cmocka_unit_test(the_figures_are_vllm_s),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
