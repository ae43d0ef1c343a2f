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

static const int32_t bad_id[] = {-1};
static const sf_bias bad_bias[] = {{100000, 1}}, nan_bias[] = {{1, NAN}};

static void no_rows(sound *s) {
    s->pass.rows = 0;
}
static void too_many_rows(sound *s) {
    s->pass.rows = plan->max_rows + 1;
}
static void a_token_outside_the_vocabulary(sound *s) {
    s->tokens[2] = plan->model.vocab;
}
static void a_negative_token(sound *s) {
    s->tokens[0] = -1;
}
static void a_page_out_of_range(sound *s) {
    s->pages[1] = TINY_PAGES;
}
static void a_position_past_the_context(sound *s) {
    s->seg.pos0 = plan->max_context - 3;
}
static void a_negative_position(sound *s) {
    s->seg.pos0 = -1;
}
static void a_segment_that_begins_late(sound *s) {
    s->seg.first_row = 1;
}
static void a_segment_with_more_rows(sound *s) {
    s->seg.rows = 5;
}
static void a_segment_with_huge_rows(sound *s) {
    s->seg.rows = INT32_MAX;
}
static void rows_without_a_segment(sound *s) {
    s->seg.rows = 3;
}
static void a_fresh_page_out_of_range(sound *s) {
    s->pass.n_fresh = 1;
    s->pass.fresh = bad_id;
}
static void a_logit_row_out_of_range(sound *s) {
    s->logit_row[1] = 4;
}
static void logit_rows_out_of_order(sound *s) {
    s->logit_row[0] = 3;
}
static void too_many_logit_rows(sound *s) {
    s->pass.n_logits = plan->max_logit_rows + 1;
}
static void a_negative_temperature(sound *s) {
    s->samples[0].temperature = -1;
}
static void a_temperature_that_is_no_number(sound *s) {
    s->samples[1].temperature = NAN;
}
static void a_top_p_of_zero(sound *s) {
    s->samples[0].top_p = 0;
}
static void a_min_p_above_one(sound *s) {
    s->samples[0].min_p = 1.5f;
}
static void a_repetition_penalty_of_zero(sound *s) {
    s->samples[0].repetition_penalty = 0;
}
static void an_infinite_penalty(sound *s) {
    s->samples[0].presence_penalty = INFINITY;
}
static void too_many_top_tokens(sound *s) {
    s->samples[0].n_top = SF_TOP_MAX + 1;
}
static void a_target_outside_the_vocabulary(sound *s) {
    s->samples[0].target = plan->model.vocab;
}
static void a_bias_outside_the_vocabulary(sound *s) {
    s->samples[0].bias = bad_bias;
    s->samples[0].n_bias = 1;
}
static void a_bias_that_is_no_number(sound *s) {
    s->samples[0].bias = nan_bias;
    s->samples[0].n_bias = 1;
}
static void a_banned_id_out_of_range(sound *s) {
    s->samples[0].banned = bad_id;
    s->samples[0].n_banned = 1;
}
static void an_output_id_out_of_range(sound *s) {
    s->samples[0].output = bad_id;
    s->samples[0].n_output = 1;
}
static void a_prompt_id_out_of_range(sound *s) {
    s->samples[0].prompt = bad_id;
    s->samples[0].n_prompt = 1;
}

/* A number that no check but one stands before, as a caller's overflow would leave it. */
static void impossible_counts_are_refused(void **state) {
    static const struct {
        size_t at;
        int value;
        const char *text;
    } cases[] = {
        {offsetof(sound, pass.cls), SF_CLASS_COUNT, "class 2"},
        {offsetof(sound, pass.cls), -1, "class -1"},
        {offsetof(sound, pass.rows), -1, "-1 rows"},
        {offsetof(sound, pass.n_segs), -1, "hold 0 rows"},
        {offsetof(sound, pass.n_segs), 0, "hold 0 rows"},
        {offsetof(sound, pass.n_fresh), -1, "-1 fresh pages"},
        {offsetof(sound, pass.n_logits), -1, "-1 logit rows"},
        {offsetof(sound, logit_row[0]), -1, "logit row 0 is row -1"},
        {offsetof(sound, pages[0]), -1, "page 0 is -1"},
        {offsetof(sound, seg.rows), 0, "0 rows"},
        {offsetof(sound, seg.rows), -1, "-1 rows"},
        {offsetof(sound, seg.rows), INT32_MIN, "-2147483648 rows"},
        {offsetof(sound, seg.first_row), -1, "from row -1"},
        {offsetof(sound, seg.first_row), INT32_MAX, "from row 2147483647"},
        {offsetof(sound, seg.pos0), INT32_MIN, "positions from -2147483648"},
        {offsetof(sound, seg.pos0), INT32_MAX, "positions from 2147483647"},
        {offsetof(sound, samples[1].n_banned), -1, "negative length"},
        {offsetof(sound, samples[1].n_bias), -1, "negative length"},
        {offsetof(sound, samples[1].n_prompt), -1, "negative length"},
        {offsetof(sound, samples[1].n_output), INT32_MIN, "negative length"},
        {offsetof(sound, samples[1].n_top), -1, "n_top is -1"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        sound s;
        make(&s, *state);
        memcpy((char *)&s + cases[i].at, &cases[i].value, sizeof(int));
        refused(&s, cases[i].text);
    }
}

static void impossible_sampling_numbers_are_refused(void **state) {
    static const struct {
        size_t at;
        float value;
        const char *text;
    } cases[] = {
        {offsetof(sf_sample, temperature), INFINITY, "temperature"},
        {offsetof(sf_sample, top_p), -0.5f, "top_p"},
        {offsetof(sf_sample, top_p), 1.5f, "top_p"},
        {offsetof(sf_sample, top_p), NAN, "top_p"},
        {offsetof(sf_sample, min_p), -0.5f, "min_p"},
        {offsetof(sf_sample, min_p), NAN, "min_p"},
        {offsetof(sf_sample, repetition_penalty), -1, "repetition_penalty"},
        {offsetof(sf_sample, repetition_penalty), INFINITY, "repetition_penalty"},
        {offsetof(sf_sample, repetition_penalty), NAN, "repetition_penalty"},
        {offsetof(sf_sample, frequency_penalty), NAN, "penalty"},
        {offsetof(sf_sample, frequency_penalty), -INFINITY, "penalty"},
        {offsetof(sf_sample, presence_penalty), NAN, "penalty"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        sound s;
        make(&s, *state);
        memcpy((char *)&s.samples[1] + cases[i].at, &cases[i].value, sizeof(float));
        refused(&s, cases[i].text);
    }
}

/* One spoilt place each, and what the message must hold. */
typedef struct refusal {
    const char *name;
    void (*spoil)(sound *s);
    const char *text;
} refusal;

static const refusal refusals[] = {
    {"refuses_no_rows", no_rows, "0 rows"},
    {"refuses_too_many_rows", too_many_rows, "rows, expected"},
    {"refuses_a_token_outside_the_vocabulary", a_token_outside_the_vocabulary, "token 2"},
    {"refuses_a_negative_token", a_negative_token, "token 0"},
    {"refuses_a_page_out_of_range", a_page_out_of_range, "page 1"},
    {"refuses_a_position_past_the_context", a_position_past_the_context, "positions"},
    {"refuses_a_negative_position", a_negative_position, "positions"},
    {"refuses_a_segment_that_begins_late", a_segment_that_begins_late, "begin at row 0"},
    {"refuses_a_segment_with_more_rows", a_segment_with_more_rows, "5 rows"},
    {"refuses_a_segment_with_huge_rows", a_segment_with_huge_rows, "rows"},
    {"refuses_rows_without_a_segment", rows_without_a_segment, "hold 3 rows"},
    {"refuses_a_fresh_page_out_of_range", a_fresh_page_out_of_range, "fresh page"},
    {"refuses_a_logit_row_out_of_range", a_logit_row_out_of_range, "logit row 1"},
    {"refuses_logit_rows_out_of_order", logit_rows_out_of_order, "logit row 1"},
    {"refuses_too_many_logit_rows", too_many_logit_rows, "logit rows"},
    {"refuses_a_negative_temperature", a_negative_temperature, "temperature"},
    {"refuses_a_temperature_that_is_no_number", a_temperature_that_is_no_number, "temperature"},
    {"refuses_a_top_p_of_zero", a_top_p_of_zero, "top_p"},
    {"refuses_a_min_p_above_one", a_min_p_above_one, "min_p"},
    {"refuses_a_repetition_penalty_of_zero", a_repetition_penalty_of_zero, "repetition_penalty"},
    {"refuses_an_infinite_penalty", an_infinite_penalty, "penalty"},
    {"refuses_too_many_top_tokens", too_many_top_tokens, "n_top"},
    {"refuses_a_target_outside_the_vocabulary", a_target_outside_the_vocabulary, "target"},
    {"refuses_a_bias_outside_the_vocabulary", a_bias_outside_the_vocabulary, "biased token"},
    {"refuses_a_bias_that_is_no_number", a_bias_that_is_no_number, "bias"},
    {"refuses_a_banned_id_out_of_range", a_banned_id_out_of_range, "banned token"},
    {"refuses_an_output_id_out_of_range", an_output_id_out_of_range, "output token"},
    {"refuses_a_prompt_id_out_of_range", a_prompt_id_out_of_range, "prompt token"},
};
enum { REFUSALS = sizeof refusals / sizeof *refusals };

static const refusal *current;

static void refuses(void **state) {
    sound s;
    make(&s, *state);
    current->spoil(&s);
    refused(&s, current->text);
}

/* Run one by one before the test that it belongs to. */
static int next_refusal(void **state) {
    (void)state;
    current = current ? current + 1 : refusals;
    return 0;
}

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

static void an_instruction_set_is_picked_by_name(void **state) {
    (void)state;
    sf_isa isa = SF_ISA_COUNT;
    sf_err err = {0};
    assert_int_equal(sf_cpu_isa_pick(plan, NULL, &isa, &err), SF_OK);
    assert_int_equal(isa, sf_cpu_isa_best(plan));
    assert_int_equal(sf_cpu_isa_pick(plan, "auto", &isa, &err), SF_OK);
    assert_int_equal(isa, sf_cpu_isa_best(plan));
    for (int i = 0; i < SF_ISA_COUNT; i++) {
        const char *name = sf_isa_name((sf_isa)i);
        isa = SF_ISA_COUNT;
        const sf_code rc = sf_cpu_isa_pick(plan, name, &isa, &err);
        assert_int_equal(rc, tiny_has((sf_isa)i) ? SF_OK : SF_UNSUPPORTED);
        assert_int_equal(isa, rc == SF_OK ? i : SF_ISA_COUNT);
    }
    assert_int_equal(sf_cpu_isa_pick(plan, "avx", &isa, &err), SF_INVALID);
    assert_string_equal(err.msg, "isa is avx, expected auto or one of generic avx2 avx512 avx512bf16");
    assert_int_equal(sf_cpu_isa_pick(plan, "", &isa, &err), SF_INVALID);
}

static void a_pool_too_large_says_how_large(void **state) {
    const tiny *t = *state;
    sf_device *d = NULL;
    sf_err err = {0};
    sf_plan other = *plan;
    other.model.layers = 1 << 24; /* with the pages below more than an address can say */
    const sf_cpu_config cfg = {.threads = 1, .isa = "auto", .n_pages = INT32_MAX};
    assert_int_equal(sf_cpu_open(&other, t->weights, &cfg, &d, &err), SF_NOMEM);
    assert_non_null(strstr(err.msg, "KV pool"));
    assert_non_null(strstr(err.msg, "bytes"));
    assert_null(d);
}

int main(void) {
    struct CMUnitTest tests[REFUSALS + 7] = {
        cmocka_unit_test(a_sound_pass_runs),
        cmocka_unit_test(kv_read_checks_its_place),
        cmocka_unit_test(opening_refuses),
        cmocka_unit_test(an_instruction_set_is_picked_by_name),
        cmocka_unit_test(a_pool_too_large_says_how_large),
        cmocka_unit_test(impossible_counts_are_refused),
        cmocka_unit_test(impossible_sampling_numbers_are_refused),
    };
    for (int i = 0; i < REFUSALS; i++)
        tests[7 + i] =
            (struct CMUnitTest){.name = refusals[i].name, .test_func = refuses, .setup_func = next_refusal};
    return cmocka_run_group_tests(tests, tiny_setup, tiny_teardown);
}
