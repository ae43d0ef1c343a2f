/* What launch refuses, and how opening fails. */
#include "tiny.h"

static const sf_plan *const plan = &sf_the_plan;

/* A sound pass of one segment of four rows, to be spoilt in one place. */
typedef struct sound {
    int32_t tokens[4], pages[2], logit_row[2];
    sf_segment seg;
    sf_sample samples[2];
    sf_row_out out[2];
    sf_pass pass;
    sf_device *d;
} sound;

static void make(sound *s, const tiny *t) {
    *s = (sound){.tokens = {1, 2, 3, 4}, .pages = {5, 6}, .logit_row = {1, 3}};
    s->seg = (sf_segment){.rows = 4, .pos0 = 14, .pages = s->pages};
    for (int i = 0; i < 2; i++)
        s->samples[i] = (sf_sample){.top_p = 1, .repetition_penalty = 1, .target = -1, .draw = true};
    s->pass = (sf_pass){.cls = SF_CLASS_PINNED,
                        .rows = 4,
                        .tokens = s->tokens,
                        .n_segs = 1,
                        .segs = &s->seg,
                        .n_logits = 2,
                        .logit_row = s->logit_row,
                        .samples = s->samples,
                        .out = s->out};
    s->d = tiny_open(t, "auto", 1);
}

/* Refused with a message that holds `text`, and the device goes on. */
static void refused(sound *s, const char *text) {
    sf_err err = {0};
    assert_int_equal(s->d->ops->launch(s->d, &s->pass, &err), SF_INVALID);
    if (!strstr(err.msg, text)) fail_msg("\"%s\" lacks \"%s\"", err.msg, text);
    assert_int_equal(s->d->ops->sync(s->d, NULL, &err), SF_INVALID); /* nothing was queued */
    tiny_close(s->d);
}

static void a_sound_pass_runs(void **state) {
    sound s;
    sf_err err;
    make(&s, *state);
    assert_int_equal(s.d->ops->launch(s.d, &s.pass, &err), SF_OK);
    assert_int_equal(s.d->ops->launch(s.d, &s.pass, &err), SF_INVALID); /* one in flight */
    assert_int_equal(s.d->ops->sync(s.d, NULL, &err), SF_OK);
    assert_true(s.out[1].token >= 0 && s.out[1].logprob < 0);
    tiny_close(s.d);
}

#define REFUSES(name, spoil, text)                                                                           \
    static void refuses_##name(void **state) {                                                               \
        static const int32_t bad_id[] = {-1};                                                                \
        static const sf_bias bad_bias[] = {{100000, 1}}, nan_bias[] = {{1, NAN}};                            \
        sound s;                                                                                             \
        (void)bad_id, (void)bad_bias, (void)nan_bias;                                                        \
        make(&s, *state);                                                                                    \
        spoil;                                                                                               \
        refused(&s, text);                                                                                   \
    }
REFUSES(no_rows, s.pass.rows = 0, "0 rows")
REFUSES(too_many_rows, s.pass.rows = plan->max_rows + 1, "rows, expected")
REFUSES(a_token_outside_the_vocabulary, s.tokens[2] = plan->model.vocab, "token 2")
REFUSES(a_negative_token, s.tokens[0] = -1, "token 0")
REFUSES(a_page_out_of_range, s.pages[1] = TINY_PAGES, "page 1")
REFUSES(a_position_past_the_context, s.seg.pos0 = plan->max_context - 3, "positions")
REFUSES(a_negative_position, s.seg.pos0 = -1, "positions")
REFUSES(a_segment_that_begins_late, s.seg.first_row = 1, "begin at row 0")
REFUSES(a_segment_with_more_rows, s.seg.rows = 5, "5 rows")
REFUSES(a_segment_with_huge_rows, s.seg.rows = INT32_MAX, "rows")
REFUSES(rows_without_a_segment, s.seg.rows = 3, "hold 3 rows")
REFUSES(a_fresh_page_out_of_range, (s.pass.n_fresh = 1, s.pass.fresh = bad_id), "fresh page")
REFUSES(a_logit_row_out_of_range, s.logit_row[1] = 4, "logit row 1")
REFUSES(logit_rows_out_of_order, s.logit_row[0] = 3, "logit row 1")
REFUSES(too_many_logit_rows, s.pass.n_logits = plan->max_logit_rows + 1, "logit rows")
REFUSES(a_negative_temperature, s.samples[0].temperature = -1, "temperature")
REFUSES(a_temperature_that_is_no_number, s.samples[1].temperature = NAN, "temperature")
REFUSES(a_top_p_of_zero, s.samples[0].top_p = 0, "top_p")
REFUSES(a_min_p_above_one, s.samples[0].min_p = 1.5f, "min_p")
REFUSES(a_repetition_penalty_of_zero, s.samples[0].repetition_penalty = 0, "repetition_penalty")
REFUSES(an_infinite_penalty, s.samples[0].presence_penalty = INFINITY, "penalty")
REFUSES(too_many_top_tokens, s.samples[0].n_top = SF_TOP_MAX + 1, "n_top")
REFUSES(a_target_outside_the_vocabulary, s.samples[0].target = plan->model.vocab, "target")
REFUSES(a_bias_outside_the_vocabulary, (s.samples[0].bias = bad_bias, s.samples[0].n_bias = 1),
        "biased token")
REFUSES(a_bias_that_is_no_number, (s.samples[0].bias = nan_bias, s.samples[0].n_bias = 1), "bias")
REFUSES(a_banned_id_out_of_range, (s.samples[0].banned = bad_id, s.samples[0].n_banned = 1), "banned token")
REFUSES(an_output_id_out_of_range, (s.samples[0].output = bad_id, s.samples[0].n_output = 1), "output token")
REFUSES(a_prompt_id_out_of_range, (s.samples[0].prompt = bad_id, s.samples[0].n_prompt = 1), "prompt token")

static void kv_read_checks_its_place(void **state) {
    uint16_t k[64], v[64];
    sf_err err;
    sf_device *d = tiny_open(*state, "auto", 1);
    assert_int_equal(d->ops->kv_read(d, TINY_PAGES, 0, 0, 0, k, v, &err), SF_INVALID);
    assert_int_equal(d->ops->kv_read(d, 0, plan->page_size, 0, 0, k, v, &err), SF_INVALID);
    assert_int_equal(d->ops->kv_read(d, 0, 0, plan->model.layers, 0, k, v, &err), SF_INVALID);
    assert_int_equal(d->ops->kv_read(d, 0, 0, 0, plan->model.kv_heads, k, v, &err), SF_INVALID);
    tiny_close(d);
}

static void opening_refuses(void **state) {
    const tiny *t = *state;
    sf_device *d = NULL;
    sf_err err = {0};
    sf_cpu_config cfg = {.threads = 1, .isa = "sse9", .n_pages = 4};
    assert_int_equal(sf_cpu_open(plan, t->weights, &cfg, &d, &err), SF_INVALID);
    assert_non_null(strstr(err.msg, "sse9"));
    cfg = (sf_cpu_config){.threads = 0, .isa = "auto", .n_pages = 4};
    assert_int_equal(sf_cpu_open(plan, t->weights, &cfg, &d, &err), SF_INVALID);
    cfg = (sf_cpu_config){.threads = 1, .isa = "auto", .n_pages = 0};
    assert_int_equal(sf_cpu_open(plan, t->weights, &cfg, &d, &err), SF_INVALID);
    sf_plan other = *plan;
    other.backend = "cuda";
    cfg.n_pages = 4;
    assert_int_equal(sf_cpu_open(&other, t->weights, &cfg, &d, &err), SF_UNSUPPORTED);
    sf_kernel *kernels = calloc((size_t)plan->n_kernels, sizeof *kernels);
    assert_non_null(kernels);
    memcpy(kernels, plan->kernels, (size_t)plan->n_kernels * sizeof *kernels);
    for (int i = 0; i < plan->n_kernels; i++)
        kernels[i].cpu[SF_ISA_AVX512] = NULL;
    other = *plan;
    other.kernels = kernels;
    cfg.isa = "avx512";
    assert_int_equal(sf_cpu_open(&other, t->weights, &cfg, &d, &err), SF_UNSUPPORTED);
    assert_non_null(strstr(err.msg, "avx512"));
    free(kernels);
    assert_null(d);
}

static void a_pool_too_large_says_how_large(void **state) {
    const tiny *t = *state;
    sf_device *d = NULL;
    sf_err err = {0};
    sf_plan other = *plan;
    other.model.layers = 1 << 20; /* with the pages below some 10^18 bytes */
    const sf_cpu_config cfg = {.threads = 1, .isa = "auto", .n_pages = INT32_MAX};
    assert_int_equal(sf_cpu_open(&other, t->weights, &cfg, &d, &err), SF_NOMEM);
    assert_non_null(strstr(err.msg, "KV pool"));
    assert_non_null(strstr(err.msg, "bytes"));
    assert_null(d);
}

#define T(name) cmocka_unit_test(name)
int main(void) {
    const struct CMUnitTest tests[] = {
        T(a_sound_pass_runs),
        T(refuses_no_rows),
        T(refuses_too_many_rows),
        T(refuses_a_token_outside_the_vocabulary),
        T(refuses_a_negative_token),
        T(refuses_a_page_out_of_range),
        T(refuses_a_position_past_the_context),
        T(refuses_a_negative_position),
        T(refuses_a_segment_that_begins_late),
        T(refuses_a_segment_with_more_rows),
        T(refuses_a_segment_with_huge_rows),
        T(refuses_rows_without_a_segment),
        T(refuses_a_fresh_page_out_of_range),
        T(refuses_a_logit_row_out_of_range),
        T(refuses_logit_rows_out_of_order),
        T(refuses_too_many_logit_rows),
        T(refuses_a_negative_temperature),
        T(refuses_a_temperature_that_is_no_number),
        T(refuses_a_top_p_of_zero),
        T(refuses_a_min_p_above_one),
        T(refuses_a_repetition_penalty_of_zero),
        T(refuses_an_infinite_penalty),
        T(refuses_too_many_top_tokens),
        T(refuses_a_target_outside_the_vocabulary),
        T(refuses_a_bias_outside_the_vocabulary),
        T(refuses_a_bias_that_is_no_number),
        T(refuses_a_banned_id_out_of_range),
        T(refuses_an_output_id_out_of_range),
        T(refuses_a_prompt_id_out_of_range),
        T(kv_read_checks_its_place),
        T(opening_refuses),
        T(a_pool_too_large_says_how_large),
    };
    return cmocka_run_group_tests(tests, tiny_setup, tiny_teardown);
}
