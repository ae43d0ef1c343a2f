#include "kit.h"

#include "odd.h"
#include "ref.h"

enum { VOCAB = 49152, ROWS = 8 };

static const odd_set *sets[SF_ISA_COUNT];
static int n_sets;
static float logits[ROWS][VOCAB], z[VOCAB], lp[VOCAB];
static unsigned char kept[VOCAB];
static _Alignas(64) uint8_t scratch[3][VOCAB * 16 + 64];
static sf_sample samples[ROWS];
static sf_row_out out[ROWS], other[ROWS];

static int find_sets(void **state) {
    (void)state;
    n_sets = odd_sets(sets);
    memset(scratch, 0xff, sizeof scratch); /* whatever it holds is not to matter */
    return n_sets > 0 ? 0 : -1;
}

static sf_sample plain(void) {
    return (sf_sample){.temperature = 1, .top_p = 1, .repetition_penalty = 1, .target = -1, .draw = true};
}

/* Logits as a model's: most far below, some near the top. */
static void make(uint32_t seed) {
    kit_random r = {seed, 0};
    for (int i = 0; i < ROWS; i++) {
        for (int j = 0; j < VOCAB; j++)
            logits[i][j] = kit_normal(&r) * 2.5f;
        for (int j = 0; j < 40; j++)
            logits[i][kit_below(&r, VOCAB)] += 5.0f + kit_normal(&r) * 3.0f;
        samples[i] = plain();
        samples[i].seed = ((uint64_t)kit_word(&r) << 32) | kit_word(&r);
        samples[i].position = kit_word(&r) % 4096;
        samples[i].choice = (uint32_t)i % 3;
    }
}

static void run(const odd_set *s, int row0, int rows, int parts, sf_row_out *o) {
    memset(o, 0xff, (size_t)rows * sizeof *o);
    const sf_cpu_args a = {.rows = rows,
                           .in = logits[row0],
                           .samples = samples + row0,
                           .results = o,
                           .scratch = scratch[0],
                           .scratch_stride = sizeof scratch[0]};
    kit_run(s->sample, &a, parts);
}

static int32_t reference(int row) {
    sf_ref_adjust(samples + row, logits[row], VOCAB, z);
    if (samples[row].temperature > 0) assert_true(sf_ref_filter(samples + row, z, VOCAB, kept) > 0);
    return sf_ref_draw(samples + row, z, VOCAB, kept);
}

static void log_probabilities_ranks_and_top_are_right(void **state) {
    (void)state;
    make(1);
    for (int i = 0; i < ROWS; i++) {
        samples[i].n_top = i % 3 == 0 ? SF_TOP_MAX : i;
        samples[i].target = i == 7 ? -1 : 1000 * i + 17;
    }
    run(sets[n_sets - 1], 0, ROWS, 2, out);
    for (int i = 0; i < ROWS; i++) {
        sf_ref_log_softmax(logits[i], VOCAB, lp);
        kit_near(out[i].logprob, lp[out[i].token], 1e-5f);
        const int32_t ids[2] = {out[i].token, samples[i].target < 0 ? out[i].token : samples[i].target};
        const int32_t ranks[2] = {out[i].rank, samples[i].target < 0 ? out[i].rank : out[i].target_rank};
        if (samples[i].target >= 0) kit_near(out[i].target_logprob, lp[samples[i].target], 1e-5f);
        for (int k = 0; k < 2; k++) {
            int rank = 1;
            for (int j = 0; j < VOCAB; j++)
                rank += logits[i][j] > logits[i][ids[k]] || (logits[i][j] == logits[i][ids[k]] && j < ids[k]);
            assert_int_equal(ranks[k], rank);
        }
        assert_int_equal(out[i].n_top, samples[i].n_top);
        for (int k = 0; k < out[i].n_top; k++) {
            int above = 0;
            for (int j = 0; j < VOCAB; j++)
                above += logits[i][j] > logits[i][out[i].top_id[k]];
            assert_int_equal(above, k);
            kit_near(out[i].top_logprob[k], lp[out[i].top_id[k]], 1e-5f);
        }
        assert_false(out[i].bad);
    }
}

static void ties_go_to_the_lower_id(void **state) {
    (void)state;
    make(2);
    for (int j = 0; j < VOCAB; j++)
        logits[0][j] = j % 7 == 3 && j > 100 ? 4.0f : 1.0f;
    samples[0].temperature = 0;
    samples[0].n_top = 3;
    samples[0].target = 108;
    run(sets[n_sets - 1], 0, 1, 1, out);
    assert_int_equal(out[0].token, 101);
    assert_int_equal(out[0].rank, 1);
    assert_int_equal(out[0].target_rank, 2);
    assert_int_equal(out[0].top_id[0], 101);
    assert_int_equal(out[0].top_id[1], 108);
    assert_int_equal(out[0].top_id[2], 115);
}

static void greedy_is_the_arg_max_after_penalties(void **state) {
    (void)state;
    static const int32_t prompt[] = {5, 5, 9}, output[] = {7, 7, 7, 11};
    const sf_bias bias[] = {{20, 30.0f}, {21, -100.0f}};
    const int32_t banned[] = {40};
    make(3);
    for (int j = 0; j < VOCAB; j++)
        logits[0][j] = 0;
    logits[0][40] = 99, logits[0][5] = 40, logits[0][7] = 39, logits[0][11] = 38, logits[0][20] = 5,
    logits[0][50] = 34.9f;
    samples[0] = (sf_sample){.top_p = 1,
                             .repetition_penalty = 1.2f,
                             .frequency_penalty = 1,
                             .presence_penalty = 0.5f,
                             .prompt = prompt,
                             .n_prompt = 3,
                             .output = output,
                             .n_output = 4,
                             .bias = bias,
                             .n_bias = 2,
                             .banned = banned,
                             .n_banned = 1,
                             .target = -1,
                             .draw = true};
    run(sets[n_sets - 1], 0, 1, 1, out);
    assert_int_equal(out[0].token, 20); /* 5 + 30; token 5: 40 / 1.2; token 50: 34.9 */
    assert_int_equal(reference(0), 20);
    assert_int_equal(out[0].rank, 6); /* of the raw logits */
    samples[0].n_bias = 0;
    run(sets[n_sets - 1], 0, 1, 1, out);
    assert_int_equal(out[0].token, 50);
}

/* The same draw as a straight reference with every filter alone and all together. */
static void draws_equal_the_reference(void **state) {
    (void)state;
    static const int32_t prompt[] = {5, 77, 900, 48000}, output[] = {7, 7, 40000};
    const sf_bias bias[] = {{20, 9.0f}, {21, -3.0f}};
    for (uint32_t seed = 0; seed < 12; seed++) {
        make(100 + seed);
        for (int i = 0; i < ROWS; i++) {
            sf_sample *s = samples + i;
            s->temperature = 0.3f + 0.4f * (float)i;
            if (i & 1) s->top_k = 1 + (int)seed * 7;
            if (i & 2) s->top_p = 0.05f + 0.08f * (float)seed;
            if (i & 4) s->min_p = 0.02f * (float)(1 + seed);
            s->repetition_penalty = seed % 3 == 0 ? 1.3f : 1.0f;
            s->presence_penalty = seed % 3 == 1 ? 0.7f : 0.0f;
            s->prompt = prompt, s->n_prompt = 4, s->output = output, s->n_output = 3;
            s->bias = bias, s->n_bias = seed % 2 ? 2 : 0;
        }
        for (int v = 0; v < n_sets; v++) {
            run(sets[v], 0, ROWS, 3, v == 0 ? out : other);
            if (v > 0) assert_memory_equal(out, other, sizeof out);
        }
        for (int i = 0; i < ROWS; i++)
            assert_int_equal(out[i].token, reference(i));
    }
}

static void a_filter_leaves_only_what_the_reference_leaves(void **state) {
    (void)state;
    make(4);
    for (int trial = 0; trial < 300; trial++) {
        sf_sample s = plain();
        s.temperature = 1.5f;
        s.seed = (uint64_t)trial;
        s.top_k = trial % 3 == 0 ? 5 : 0;
        s.top_p = trial % 3 == 1 ? 0.3f : 1.0f;
        s.min_p = trial % 3 == 2 ? 0.2f : 0.0f;
        samples[0] = s;
        (void)reference(0);
        run(sets[n_sets - 1], 0, 1, 1, out);
        assert_true(kept[out[0].token]);
    }
}

static void top_k_of_one_and_a_tiny_top_p_are_greedy(void **state) {
    (void)state;
    make(5);
    for (int i = 0; i < ROWS; i++) {
        samples[i].temperature = 1.7f;
        samples[i].top_k = i % 2;
        samples[i].top_p = i % 2 ? 1.0f : 1e-4f;
    }
    run(sets[n_sets - 1], 0, ROWS, 1, out);
    for (int i = 0; i < ROWS; i++)
        assert_int_equal(out[i].rank, 1);
}

static void tiny_temperatures_are_greedy_and_finite(void **state) {
    (void)state;
    static const float tiny[ROWS] = {1e-3f, 1e-5f, 1e-7f, 1e-12f, 1e-30f, 1e-38f, 1e-42f, 1e-45f};
    make(6);
    for (int i = 0; i < ROWS; i++)
        samples[i].temperature = tiny[i];
    run(sets[n_sets - 1], 0, ROWS, 1, out);
    for (int i = 0; i < ROWS; i++) {
        assert_int_equal(out[i].rank, 1);
        assert_true(isfinite(out[i].logprob) && !out[i].bad);
    }
}

static void a_row_that_is_not_numbers_is_bad(void **state) {
    (void)state;
    static const int32_t all_but_one[] = {0};
    make(7);
    logits[0][VOCAB - 1] = NAN;
    for (int j = 0; j < VOCAB; j++)
        logits[1][j] = -INFINITY, logits[4][j] = -INFINITY;
    logits[2][31] = INFINITY;
    logits[4][77] = -5;
    samples[5].banned = all_but_one, samples[5].n_banned = 1;
    for (int v = 0; v < n_sets; v++) {
        run(sets[v], 0, 6, 1, out);
        for (int i = 0; i < 6; i++)
            assert_int_equal(out[i].bad, i < 3);
        for (int i = 0; i < 3; i++)
            assert_int_equal(out[i].token, -1);
        assert_int_equal(out[4].token, 77); /* one token left */
        assert_true(out[4].logprob == 0.0f);
    }
}

static void a_row_with_everything_banned_is_bad(void **state) {
    (void)state;
    static int32_t all[VOCAB];
    make(8);
    for (int j = 0; j < VOCAB; j++)
        all[j] = j;
    samples[0].banned = all;
    samples[0].n_banned = VOCAB;
    run(sets[n_sets - 1], 0, 1, 1, out);
    assert_true(out[0].bad && out[0].token == -1);
}

static void no_draw_gives_no_token(void **state) {
    (void)state;
    make(9);
    samples[0].draw = false;
    samples[0].target = 3;
    run(sets[n_sets - 1], 0, 1, 1, out);
    assert_int_equal(out[0].token, -1);
    assert_false(out[0].bad);
    assert_true(out[0].target_logprob < 0 && out[0].target_rank > 1);
}

static void position_choice_and_seed_change_the_draw(void **state) {
    (void)state;
    make(11);
    for (int i = 1; i < ROWS; i++) {
        memcpy(logits[i], logits[0], sizeof logits[0]);
        samples[i] = samples[0];
    }
    for (int i = 0; i < ROWS; i++)
        samples[i].temperature = 3;
    samples[1].position++;
    samples[2].choice++;
    samples[3].seed ^= 1;
    samples[4].seed ^= (uint64_t)1 << 63;
    run(sets[n_sets - 1], 0, 6, 2, out);
    for (int i = 1; i < 5; i++)
        for (int j = 0; j < i; j++)
            assert_int_not_equal(out[i].token, out[j].token);
    assert_int_equal(out[5].token, out[0].token);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(log_probabilities_ranks_and_top_are_right),
        cmocka_unit_test(ties_go_to_the_lower_id),
        cmocka_unit_test(greedy_is_the_arg_max_after_penalties),
        cmocka_unit_test(draws_equal_the_reference),
        cmocka_unit_test(a_filter_leaves_only_what_the_reference_leaves),
        cmocka_unit_test(top_k_of_one_and_a_tiny_top_p_are_greedy),
        cmocka_unit_test(tiny_temperatures_are_greedy_and_finite),
        cmocka_unit_test(a_row_that_is_not_numbers_is_bad),
        cmocka_unit_test(a_row_with_everything_banned_is_bad),
        cmocka_unit_test(no_draw_gives_no_token),
        cmocka_unit_test(position_choice_and_seed_change_the_draw),
    };
    return cmocka_run_group_tests(tests, find_sets, NULL);
}
