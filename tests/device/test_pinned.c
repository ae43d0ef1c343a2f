/* The promise of the pinned class on the whole device: tokens, log-probabilities and KV, bit for bit. */
#include "tiny.h"

#include "base/hash.h"

enum { LEN = 150 };

static const sf_plan *const plan = &sf_the_plan;
static tiny_result base, got;

/* What every test compares with: one pass after another of one row, the simplest kernels, one thread. */
static sf_device *one_by_one(const tiny *t) {
    sf_device *d = tiny_open(t, sf_isa_name(tiny_first()), 1);
    tiny_feed(d, t, SF_CLASS_PINNED, 0, LEN, 1, &base);
    return d;
}

static void bits_do_not_depend_on_instruction_set_or_threads(void **state) {
    const tiny *t = *state;
    static const int threads[] = {1, 2, 3, 5};
    sf_device *first = one_by_one(t);
    int compared = 0;
    for (int isa = 0; isa < SF_ISA_COUNT; isa++) {
        if (!tiny_has((sf_isa)isa)) continue;
        for (int i = 0; i < 4; i++, compared++) {
            sf_device *d = tiny_open(t, sf_isa_name((sf_isa)isa), threads[i]);
            tiny_feed(d, t, SF_CLASS_PINNED, 0, LEN, i == 0 ? 1 : 13 * i, &got);
            assert_true(tiny_same(first, d, t, &base, &got, 0, LEN));
            tiny_close(d);
        }
    }
    assert_true(compared >= 4);
    tiny_close(first);
}

static void bits_do_not_depend_on_how_a_sequence_is_cut(void **state) {
    const tiny *t = *state;
    static const int cuts[] = {2, 3, 5, 8, 16, 33, LEN};
    sf_device *first = one_by_one(t);
    for (size_t i = 0; i < sizeof cuts / sizeof *cuts; i++) {
        sf_device *d = tiny_open(t, "auto", 2);
        tiny_feed(d, t, SF_CLASS_PINNED, 0, LEN, cuts[i], &got);
        assert_true(tiny_same(first, d, t, &base, &got, 0, LEN));
        tiny_close(d);
    }
    tiny_close(first);
}

/* The sequence's rows stand behind `before` rows and in front of others of a second sequence on other pages.
 */
static void crowded_pass(sf_device *d, const tiny *t, int from, int before, int rows, int after,
                         tiny_result *out) {
    static const int32_t other[] = {20, 21, 22, 23};
    int32_t tokens[96], logit_row[96];
    sf_sample samples[96];
    sf_row_out results[96];
    sf_err err;
    const sf_segment segs[] = {{.first_row = 0, .rows = before, .pos0 = 0, .pages = other},
                               {.first_row = before, .rows = rows, .pos0 = from, .pages = t->pages},
                               {.first_row = before + rows, .rows = after, .pos0 = before, .pages = other}};
    for (int i = 0; i < before + rows + after; i++) {
        const bool ours = i >= before && i < before + rows;
        tokens[i] = ours ? t->tokens[from + i - before] : (i * 31 + from) % plan->model.vocab;
        if (!ours) continue;
        const int pos = from + i - before;
        logit_row[i - before] = i;
        samples[i - before] = (sf_sample){.temperature = pos % 3 ? 0.8f : 0.0f,
                                          .top_p = 1,
                                          .repetition_penalty = 1,
                                          .seed = 42,
                                          .position = (uint32_t)pos + 1,
                                          .n_top = 5,
                                          .target = t->tokens[(pos + 1) % TINY_TOKENS],
                                          .draw = true};
    }
    const sf_pass pass = {.cls = SF_CLASS_PINNED,
                          .rows = before + rows + after,
                          .tokens = tokens,
                          .n_segs = 3,
                          .segs = segs,
                          .n_fresh = from == 0 ? 16 : 0,
                          .fresh = t->pages,
                          .n_logits = rows,
                          .logit_row = logit_row,
                          .samples = samples,
                          .out = results};
    assert_int_equal(d->ops->launch(d, &pass, &err), SF_OK);
    assert_int_equal(d->ops->sync(d, NULL, &err), SF_OK);
    memcpy(out->row + from, results, (size_t)rows * sizeof *results);
}

static void bits_do_not_depend_on_place_and_neighbours(void **state) {
    const tiny *t = *state;
    sf_device *first = one_by_one(t), *d = tiny_open(t, "auto", 3);
    for (int from = 0, i = 1; from < LEN; i++) {
        const int rows = LEN - from < 1 + i * 5 % 11 ? LEN - from : 1 + i * 5 % 11;
        crowded_pass(d, t, from, 1 + i * 7 % 23, rows, 1 + i % 17, &got);
        from += rows;
    }
    assert_true(tiny_same(first, d, t, &base, &got, 0, LEN));
    tiny_close(first);
    tiny_close(d);
}

static void a_rewritten_position_gives_the_same_bits(void **state) {
    const tiny *t = *state;
    sf_device *first = one_by_one(t), *d = tiny_open(t, "auto", 2);
    tiny draft = *t;
    tiny_feed(d, t, SF_CLASS_PINNED, 0, 100, 20, &got);
    for (int p = 100; p < LEN; p++)
        draft.tokens[p] = (draft.tokens[p] + 1) % plan->model.vocab;
    tiny_feed(d, &draft, SF_CLASS_FAST, 100, LEN, 1, &got); /* candidates that are rolled back */
    tiny_feed(d, t, SF_CLASS_PINNED, 100, LEN, 8, &got);
    assert_true(tiny_same(first, d, t, &base, &got, 0, LEN));
    tiny_close(first);
    tiny_close(d);
}

static void what_a_page_held_before_changes_nothing(void **state) {
    const tiny *t = *state;
    sf_device *first = one_by_one(t), *d = tiny_open(t, "auto", 2);
    tiny other = *t;
    for (int p = 0; p < TINY_TOKENS; p++)
        other.tokens[p] = (p * 17) % plan->model.vocab;
    tiny_feed(d, &other, SF_CLASS_FAST, 0, LEN, 30, &got);
    tiny_feed(d, t, SF_CLASS_PINNED, 0, LEN, 30, &got);
    assert_true(tiny_same(first, d, t, &base, &got, 0, LEN));
    tiny_close(first);
    tiny_close(d);
}

/* Whatever the compiler: gcc and clang give these bits. A change of the numerics changes this line, and
 * nothing else may. */
static const char recorded[] = "81a46b1b4200efd26d0ee21bb968cb3f8d98879642929901f98e2ae6be414e25";

static void bits_are_those_recorded(void **state) {
    const tiny *t = *state;
    const sf_model_desc *m = &plan->model;
    char digest[65];
    uint16_t kv[2][64];
    sf_err err;
    sf_device *d = one_by_one(t);
    sf_sha256 *h = sf_sha256_create();
    assert_non_null(h);
    for (int p = 0; p < LEN; p++) {
        const sf_row_out *r = base.row + p;
        sf_sha256_add(h, &r->token, sizeof r->token);
        sf_sha256_add(h, &r->logprob, sizeof r->logprob);
        sf_sha256_add(h, &r->target_logprob, sizeof r->target_logprob);
        sf_sha256_add(h, r->top_id, (size_t)r->n_top * sizeof *r->top_id);
        sf_sha256_add(h, r->top_logprob, (size_t)r->n_top * sizeof *r->top_logprob);
        for (int i = 0; i < m->layers * m->kv_heads; i++) {
            assert_int_equal(d->ops->kv_read(d, t->pages[p / plan->page_size], p % plan->page_size,
                                             i / m->kv_heads, i % m->kv_heads, kv[0], kv[1], &err),
                             SF_OK);
            for (int j = 0; j < 2; j++)
                sf_sha256_add(h, kv[j], (size_t)m->head_dim * sizeof kv[j][0]);
        }
    }
    sf_sha256_hex(h, digest);
    sf_sha256_destroy(h);
    tiny_close(d);
    assert_string_equal(digest, recorded);
}

/* The negative control: without the promise one row and many rows differ. */
static void the_fast_class_depends_on_the_batch(void **state) {
    const tiny *t = *state;
    sf_device *a = tiny_open(t, "auto", 2), *b = tiny_open(t, "auto", 2), *first = one_by_one(t);
    static tiny_result x, y;
    tiny_feed(a, t, SF_CLASS_FAST, 0, LEN, 1, &x);
    tiny_feed(b, t, SF_CLASS_FAST, 0, LEN, 30, &y);
    assert_false(tiny_same(a, b, t, &x, &y, 0, LEN));
    assert_false(tiny_same(a, first, t, &x, &base, 0, LEN));
    tiny_close(a);
    tiny_close(b);
    tiny_close(first);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bits_do_not_depend_on_instruction_set_or_threads),
        cmocka_unit_test(bits_do_not_depend_on_how_a_sequence_is_cut),
        cmocka_unit_test(bits_do_not_depend_on_place_and_neighbours),
        cmocka_unit_test(a_rewritten_position_gives_the_same_bits),
        cmocka_unit_test(what_a_page_held_before_changes_nothing),
        cmocka_unit_test(bits_are_those_recorded),
        cmocka_unit_test(the_fast_class_depends_on_the_batch),
    };
    return cmocka_run_group_tests(tests, tiny_setup, tiny_teardown);
}
