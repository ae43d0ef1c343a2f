#include "cuda/cuda_test.h"

#include "device/cuda/block.h"

#define PAGES 32
#define SEQS  4

static const sf_plan plan = {
    .model = {.vocab = 100}, .page_size = 16, .max_rows = 12, .max_logit_rows = 6, .max_context = 64};

static const int32_t tokens[] = {5, 6, 7, 8, 9, 10, 11, 12};
static const int32_t pages_a[] = {3, 1, 4, 15}, pages_b[] = {9, 2, 6, 5};
static const int32_t prompt[] = {20, 21, 22}, output[] = {30, 31, 32, 33, 34};
static const int32_t banned[] = {0, 1};
static const sf_bias bias[] = {{40, -1.5f}, {41, 2.0f}};
static const sf_sample greedy = {
    .top_p = 1.0f, .repetition_penalty = 1.0f, .position = 18, .target = -1, .draw = true};
/* One decode row at position 33, then a window of 4 rows at 14: the second crosses a page's end. */
static const sf_segment segs[] = {{SF_SEG_DECODE, 0, 1, 33, pages_a}, {SF_SEG_VERIFY, 1, 4, 14, pages_b}};
static const int32_t fresh[] = {4, 2}, logit_row[] = {0, 2, 3, 4};

typedef struct filled {
    sf_cuda_block_caps caps;
    char *mem;
    size_t used;
} filled;

static filled make(void) {
    filled f = {0};
    sf_err err;
    assert_int_equal(sf_cuda_block_caps_of(&plan, PAGES, SEQS, &f.caps, &err), SF_OK);
    f.mem = aligned_alloc(16, f.caps.bytes);
    assert_non_null(f.mem);
    memset(f.mem, 0xee, f.caps.bytes);
    return f;
}

static sf_code fill(filled *f, const sf_pass *pass, sf_err *err) {
    return sf_cuda_block_fill(&f->caps, &plan, PAGES, pass, f->mem, &f->used, err);
}

static const sf_cuda_block *block(const filled *f) {
    return (const void *)f->mem;
}

static const int *ints(const filled *f, int offset) {
    assert_int_equal(offset % 16, 0);
    assert_true(offset > 0 && (size_t)offset <= f->used);
    return (const void *)(f->mem + offset);
}

static sf_pass pass_of(const sf_sample *samples) {
    return (sf_pass){.cls = SF_CLASS_PINNED,
                     .rows = 5,
                     .tokens = tokens,
                     .n_segs = 2,
                     .segs = segs,
                     .n_fresh = 2,
                     .fresh = fresh,
                     .n_logits = 4,
                     .logit_row = logit_row,
                     .samples = samples};
}

static void rows_segments_and_pages_are_laid_out(void **state) {
    (void)state;
    const sf_sample samples[] = {greedy, greedy, greedy, greedy};
    const sf_pass pass = pass_of(samples);
    filled f = make();
    sf_err err;
    assert_int_equal(fill(&f, &pass, &err), SF_OK);
    const sf_cuda_block *b = block(&f);
    assert_true(b->rows == 5 && b->n_segs == 2 && b->n_logits == 4 && b->n_fresh == 2);
    assert_memory_equal(ints(&f, b->tokens), tokens, 5 * sizeof(int));
    const int positions[] = {33, 14, 15, 16, 17}, row_segs[] = {0, 1, 1, 1, 1};
    assert_memory_equal(ints(&f, b->positions), positions, sizeof positions);
    assert_memory_equal(ints(&f, b->row_segs), row_segs, sizeof row_segs);
    assert_memory_equal(ints(&f, b->logit_rows), logit_row, sizeof logit_row);
    assert_memory_equal(ints(&f, b->fresh), fresh, sizeof fresh);
    const sf_cuda_segment *s = (const void *)ints(&f, b->segs);
    assert_true(s[1].first_row == 1 && s[1].rows == 4 && s[1].pos0 == 14);
    assert_memory_equal(ints(&f, b->pool) + s[0].pages, pages_a,
                        3 * sizeof(int)); /* positions 0..33: three pages */
    assert_memory_equal(ints(&f, b->pool) + s[1].pages, pages_b, 2 * sizeof(int));
    assert_true(f.used <= f.caps.bytes && (unsigned char)f.mem[f.used] == 0xee);
    free(f.mem);
}

static void a_sample_crosses_whole(void **state) {
    (void)state;
    const sf_sample s = {.temperature = 0.7f,
                         .top_k = 5,
                         .top_p = 0.9f,
                         .min_p = 0.1f,
                         .repetition_penalty = 1.1f,
                         .frequency_penalty = 0.2f,
                         .presence_penalty = 0.3f,
                         .seed = 0x123456789abcdef0u,
                         .choice = 2,
                         .position = 34,
                         .prompt = prompt,
                         .n_prompt = 3,
                         .output = output,
                         .n_output = 2,
                         .bias = bias,
                         .n_bias = 2,
                         .banned = banned,
                         .n_banned = 2,
                         .n_top = 4,
                         .target = 17,
                         .draw = true};
    sf_pass pass = pass_of(&s);
    pass.n_logits = 1;
    filled f = make();
    sf_err err;
    assert_int_equal(fill(&f, &pass, &err), SF_OK);
    const sf_cuda_sample *w = (const void *)ints(&f, block(&f)->samples);
    const int *pool = ints(&f, block(&f)->pool);
    assert_true(w->temperature == 0.7f && w->top_p == 0.9f && w->min_p == 0.1f &&
                w->repetition_penalty == 1.1f && w->frequency_penalty == 0.2f && w->presence_penalty == 0.3f);
    assert_true(w->top_k == 5 && w->n_top == 4 && w->target == 17 && w->draw == 1 && w->choice == 2 &&
                w->position == 34);
    assert_true(w->seed_low == 0x9abcdef0u && w->seed_high == 0x12345678u);
    assert_true(w->n_prompt == 3 && w->n_output == 2 && w->n_banned == 2 && w->n_bias == 2);
    assert_memory_equal(pool + w->prompt, prompt, sizeof prompt);
    assert_memory_equal(pool + w->output, output, 2 * sizeof(int));
    assert_memory_equal(pool + w->banned, banned, sizeof banned);
    assert_memory_equal(pool + w->bias, bias, sizeof bias);
    free(f.mem);
}

/* Pool words of a pass with these samples, beyond its five page ids. */
static int pool_words(filled *f, const sf_sample *samples) {
    const sf_pass pass = pass_of(samples);
    sf_err err;
    assert_int_equal(fill(f, &pass, &err), SF_OK);
    return (int)((f->used - (size_t)block(f)->pool) / sizeof(int)) - 5; /* rounded up to 4 with the pages */
}

static void histories_are_copied_for_penalties_only(void **state) {
    (void)state;
    sf_sample s[4] = {greedy, greedy, greedy, greedy};
    filled f = make();
    for (int i = 0; i < 4; i++) {
        s[i].prompt = prompt;
        s[i].n_prompt = 3;
        s[i].output = output;
        s[i].n_output = 1 + i;
    }
    assert_int_equal(pool_words(&f, s), 3); /* padding */
    const sf_cuda_sample *w = (const void *)(f.mem + block(&f)->samples);
    assert_true(w[0].n_prompt == 0 && w[0].n_output == 0);
    for (int i = 0; i < 4; i++)
        s[i].presence_penalty = 0.5f;       /* outputs only */
    assert_int_equal(pool_words(&f, s), 7); /* 4, and padding */
    assert_true(w[3].n_prompt == 0 && w[3].n_output == 4);
    free(f.mem);
}

static void rows_of_one_request_share_their_history(void **state) {
    (void)state;
    sf_sample s[4] = {greedy, greedy, greedy, greedy};
    filled f = make();
    for (int i = 0; i < 4; i++) {
        s[i].repetition_penalty = 1.2f;
        s[i].prompt = prompt;
        s[i].n_prompt = 3;
        s[i].output = output;
        s[i].n_output = i == 3 ? 1 : 2 + i; /* grows, then is shorter again */
        s[i].banned = i < 2 ? banned : NULL;
        s[i].n_banned = i < 2 ? 2 : 0;
        s[i].bias = bias;
        s[i].n_bias = 2;
    }
    assert_int_equal(pool_words(&f, s),
                     15); /* 3 prompt, 4 output, 2 banned, 4 bias: 13; 18 with the pages: 20 */
    const sf_cuda_sample *w = (const void *)(f.mem + block(&f)->samples);
    const int *pool = (const void *)(f.mem + block(&f)->pool);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(w[i].n_output, s[i].n_output);
        assert_int_equal(w[i].n_banned, s[i].n_banned);
        assert_memory_equal(pool + w[i].output, output, (size_t)s[i].n_output * sizeof(int));
        assert_memory_equal(pool + w[i].prompt, prompt, sizeof prompt);
        assert_memory_equal(pool + w[i].bias, bias, sizeof bias);
    }
    assert_true(w[0].output == w[3].output && w[0].prompt == w[3].prompt && w[0].bias == w[3].bias);
    free(f.mem);
}

static void requests_do_not_share(void **state) {
    (void)state;
    static const int32_t other[] = {50, 51, 52, 53};
    sf_sample s[4] = {greedy, greedy, greedy, greedy};
    filled f = make();
    for (int i = 0; i < 4; i++) {
        s[i].repetition_penalty = i == 1 ? 1.0f : 1.2f; /* one without penalties between */
        s[i].prompt = i < 2 ? prompt : other;
        s[i].n_prompt = 3;
        s[i].output = i < 2 ? output : other;
        s[i].n_output = 1 + i;
    }
    (void)pool_words(&f, s);
    const sf_cuda_sample *w = (const void *)(f.mem + block(&f)->samples);
    const int *pool = (const void *)(f.mem + block(&f)->pool);
    for (int i = 0; i < 4; i++) {
        assert_memory_equal(pool + w[i].output, s[i].output, (size_t)w[i].n_output * sizeof(int));
        assert_memory_equal(pool + w[i].prompt, s[i].prompt, (size_t)w[i].n_prompt * sizeof(int));
    }
    assert_true(w[0].n_output == 1 && w[1].n_output == 0 && w[3].n_output == 4);
    free(f.mem);
}

static void the_largest_pass_fits_to_the_byte(void **state) {
    (void)state;
    enum { ROWS = 12 };
    int32_t all[ROWS] = {0}, every[PAGES], rows[6] = {0, 2, 4, 6, 8, 10};
    sf_segment one[ROWS];
    sf_sample s[6];
    filled f = make();
    sf_err err;
    for (int i = 0; i < PAGES; i++)
        every[i] = i;
    for (int i = 0; i < ROWS; i++)
        one[i] = (sf_segment){SF_SEG_DECODE, i, 1, 63, pages_a};
    for (int i = 0; i < 6; i++)
        s[i] = greedy;
    const sf_pass pass = {.cls = SF_CLASS_FAST,
                          .rows = ROWS,
                          .tokens = all,
                          .n_segs = ROWS,
                          .segs = one,
                          .n_fresh = PAGES,
                          .fresh = every,
                          .n_logits = 6,
                          .logit_row = rows,
                          .samples = s};
    f.caps.pool = 4 * ROWS; /* its pages alone */
    assert_int_equal(fill(&f, &pass, &err), SF_OK);
    f.caps.pool--;
    assert_fails(fill(&f, &pass, &err), &err, SF_INVALID, "take 48 words, expected 47 at most");
    free(f.mem);
}

static void a_refused_pass_leaves_the_block_alone(void **state) {
    (void)state;
    sf_sample s[4] = {greedy, greedy, greedy, greedy};
    filled f = make();
    sf_err err;
    s[3].bias = bias;
    s[3].n_bias = 2;
    f.caps.pool = 8; /* 5 pages and 4 words of biases */
    const sf_pass pass = pass_of(s);
    f.used = 77;
    assert_fails(fill(&f, &pass, &err), &err, SF_INVALID, "take 9 words, expected 8 at most");
    for (size_t i = 0; i < f.caps.bytes; i++)
        assert_int_equal((unsigned char)f.mem[i], 0xee);
    assert_int_equal(f.used, 77);
    free(f.mem);
}

static void capacities_past_2_gib_are_refused(void **state) {
    (void)state;
    sf_plan huge = plan;
    sf_cuda_block_caps caps;
    sf_err err;
    huge.max_context = 1 << 20;
    huge.max_rows = 1 << 20;
    assert_fails(sf_cuda_block_caps_of(&huge, PAGES, SEQS, &caps, &err), &err, SF_INVALID, "over 2 GiB");
}

/* ---- what launch must refuse ---- */

static void refuse(const sf_pass *pass, const char *words) {
    filled f = make();
    sf_err err;
    assert_fails(fill(&f, pass, &err), &err, SF_INVALID, words);
    assert_int_equal((unsigned char)f.mem[0], 0xee);
    free(f.mem);
}

static void ids_out_of_range_are_refused(void **state) {
    (void)state;
    const sf_sample samples[] = {greedy, greedy, greedy, greedy};
    const int32_t bad_tokens[] = {5, 6, 100, 8, 9}, bad_pages[] = {3, 1, PAGES}, bad_fresh[] = {4, -1};
    sf_segment s[] = {segs[0], segs[1]};
    sf_pass p = pass_of(samples);
    p.tokens = bad_tokens;
    refuse(&p, "token 2 is 100, expected 0..99");
    p = pass_of(samples);
    s[0].pages = bad_pages;
    p.segs = s;
    refuse(&p, "page 2 is 32, expected 0..31");
    p = pass_of(samples);
    p.fresh = bad_fresh;
    refuse(&p, "fresh page 1 is -1");
    p.n_fresh = -1;
    refuse(&p, "-1 fresh pages");
}

static void rows_out_of_range_are_refused(void **state) {
    (void)state;
    const sf_sample samples[] = {greedy, greedy, greedy, greedy};
    const int32_t late[] = {0, 2, 3, 5}, twice[] = {0, 2, 2, 4};
    sf_segment s[] = {segs[0], segs[1]};
    sf_pass p = pass_of(samples);
    p.rows = 13;
    refuse(&p, "13 rows, expected 1..12");
    p = pass_of(samples);
    p.logit_row = late;
    refuse(&p, "logit row 3 is row 5, expected 4..4");
    p.logit_row = twice;
    refuse(&p, "logit row 2 is row 2, expected 3..4");
    p.n_logits = 7;
    refuse(&p, "7 logit rows, expected 0..6");
    p = pass_of(samples);
    p.segs = s;
    s[1].pos0 = 61;
    refuse(&p, "4 positions from 61, expected 0..63");
    s[1] = segs[1];
    s[1].rows = 5;
    refuse(&p, "segment 1 has 5 rows, the pass 4 more");
    s[1].rows = 3;
    refuse(&p, "the segments hold 4 rows, the pass 5");
    s[1].rows = 4;
    s[1].first_row = 2;
    refuse(&p, "expected to begin at row 1");
}

static void samples_out_of_range_are_refused(void **state) {
    (void)state;
    sf_sample samples[] = {greedy, greedy, greedy, greedy};
    const sf_pass p = pass_of(samples);
    const int32_t bad[] = {100};
    samples[1].top_p = 0.0f;
    refuse(&p, "top_p is 0");
    samples[1] = greedy;
    samples[2].banned = bad;
    samples[2].n_banned = 1;
    refuse(&p, "banned token 0 is 100");
    samples[2].n_banned = -1;
    refuse(&p, "negative length");
    samples[2] = greedy;
    samples[3].target = 100;
    refuse(&p, "target is 100");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_segments_and_pages_are_laid_out),
        cmocka_unit_test(a_sample_crosses_whole),
        cmocka_unit_test(histories_are_copied_for_penalties_only),
        cmocka_unit_test(rows_of_one_request_share_their_history),
        cmocka_unit_test(requests_do_not_share),
        cmocka_unit_test(the_largest_pass_fits_to_the_byte),
        cmocka_unit_test(a_refused_pass_leaves_the_block_alone),
        cmocka_unit_test(capacities_past_2_gib_are_refused),
        cmocka_unit_test(ids_out_of_range_are_refused),
        cmocka_unit_test(rows_out_of_range_are_refused),
        cmocka_unit_test(samples_out_of_range_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
