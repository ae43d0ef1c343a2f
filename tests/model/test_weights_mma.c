/* SF_W_BF16_MMA: its layout, and the same values as in SF_W_BF16. */
#include "model/weights.h"

#include "base/bf16.h"
#include "model/gguf_priv.h"
#include "model/tiny.h"
#include "model/weights_read.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

/* The tiny model with the given slots. */
static sf_plan tiny_with(const sf_weight_desc *slots) {
    sf_plan plan = tiny_plan;
    plan.weights = slots;
    return plan;
}

static sf_code load(const sf_plan *plan, const tiny_change *c, int threads, sf_weights **out, sf_err *err) {
    gm m = tiny_file(c);
    sf_gguf *g = NULL;
    sf_pool *pool = NULL;
    assert_int_equal(sf_gguf_open_bytes("tiny.gguf", m.data, m.len, &g, err), SF_OK);
    assert_int_equal(sf_pool_create(threads, &pool, err), SF_OK);
    sf_weights *w = NULL;
    sf_code rc = sf_weights_load(plan, g, pool, false, NULL, &w, err);
    sf_pool_destroy(pool);
    sf_gguf_close(g);
    gm_fini(&m);
    *out = w;
    return rc;
}

/* A tensor's element as the model wants it at (slot, row of the part): rotary pairs of q and k as halves. */
static float wanted(const sf_wpart *p, int layer, int row, int k) {
    static const int halves[4] = {0, 2, 1, 3};
    char name[80];
    const char *d = strstr(p->tensor, "%d");
    if (p->role != SF_ROLE_PLAIN) row = row / 4 * 4 + halves[row % 4];
    if (d) {
        snprintf(name, sizeof name, "blk.%d%s", layer, d + 2);
    } else {
        snprintf(name, sizeof name, "%s", p->tensor);
    }
    return tiny_value(name, (uint64_t)row, (uint64_t)k);
}

/* The value that belongs at row m of a tile: 8 gate rows and their 8 up rows where parts alternate. */
static float value_at(const sf_weight_desc *d, int layer, int tile, int m, int k) {
    if (k >= d->k) return 0;
    if (d->interleave) {
        int feature = tile * 8 + m % 8;
        return feature < d->parts[0].rows ? wanted(&d->parts[m / 8], layer, feature, k) : 0;
    }
    int row = tile * 16 + m;
    for (int p = 0; p < d->n_parts; row -= d->parts[p++].rows) {
        if (row < d->parts[p].rows) return wanted(&d->parts[p], layer, row, k);
    }
    return 0;
}

/* Walks the memory in its order and says, from the definition, what each place holds. Returns the values. */
static size_t expect_layout(const sf_weight_desc *d, int layer, const uint16_t *at) {
    const uint16_t *begin = at;
    int tiles = d->interleave ? (d->n / 2 + 7) / 8 : (d->n + 15) / 16,
        steps = d->k <= 192 ? 16 : (d->k + 63) / 64 * 4;
    for (int group = 0; group * d->tile < tiles; group++) {
        for (int step = 0; step < steps; step++) {
            for (int tile = 0; tile < d->tile; tile++) {
                for (int i = 0; i < 256; i++, at++) {
                    int m = 0, k = 0;
                    wr_fragment(i / 8, i % 8, &m, &k);
                    float want = value_at(d, layer, group * d->tile + tile, m, step * 16 + k);
                    if (sf_bf16_to_f32(*at) != want)
                        fail_msg("%s: group %d step %d tile %d place %d: %g, expected %g", d->name, group,
                                 step, tile, i, (double)sf_bf16_to_f32(*at), (double)want);
                }
            }
        }
    }
    return (size_t)(at - begin);
}

static void fragments_stand_as_the_tensor_cores_read_them(void **state) {
    (void)state;
    for (int tile = 1; tile <= 8; tile++) {
        sf_weight_desc slots[TINY_SLOTS];
        sf_weights *w = NULL;
        sf_err err = {0};
        size_t bytes = 0;
        tiny_as_mma(tile, slots);
        const sf_plan plan = tiny_with(slots);
        if (load(&plan, &(tiny_change){0}, 2, &w, &err) != SF_OK) fail_msg("%s", err.msg);
        for (int slot = 0; slot < TINY_SLOTS; slot++) {
            for (int layer = 0; layer < (slots[slot].per_layer ? 2 : 1); layer++) {
                const void *data = sf_weights_get(w, slot, layer);
                bytes += slots[slot].format == SF_W_F32 ? 64 : 2 * expect_layout(&slots[slot], layer, data);
            }
        }
        assert_int_equal(sf_weights_bytes(w), bytes);
        sf_weights_destroy(w);
    }
}

/* Both hold the same bits at every part, row and column; returns how many are not zero. */
static size_t expect_same_values(const sf_weight_desc *a, const void *in_a, const sf_weight_desc *b,
                                 const void *in_b) {
    size_t set = 0;
    for (int p = 0; p < a->n_parts; p++) {
        for (int row = 0; row < a->parts[p].rows; row++) {
            for (int k = 0; k < a->k; k++) {
                uint16_t x = wr_bits(a, in_a, p, row, k), y = wr_bits(b, in_b, p, row, k);
                if (x != y) fail_msg("%s part %d [%d, %d]: %04x and %04x", a->name, p, row, k, x, y);
                set += x != 0;
            }
        }
    }
    return set;
}

static void a_checkpoint_has_the_same_values_in_both_formats(void **state) {
    (void)state;
    sf_weight_desc slots[TINY_SLOTS];
    sf_weights *plain = NULL, *mma = NULL;
    sf_err err = {0};
    tiny_as_mma(3, slots);
    const sf_plan plan = tiny_with(slots);
    assert_int_equal(load(&tiny_plan, &(tiny_change){0}, 1, &plain, &err), SF_OK);
    assert_int_equal(load(&plan, &(tiny_change){0}, 1, &mma, &err), SF_OK);
    for (int slot = 0; slot < TINY_SLOTS; slot++) {
        for (int layer = 0; layer < (slots[slot].per_layer ? 2 : 1); layer++) {
            const void *a = sf_weights_get(plain, slot, layer), *b = sf_weights_get(mma, slot, layer);
            if (slots[slot].format == SF_W_F32) {
                assert_memory_equal(a, b, (size_t)slots[slot].k * sizeof(float));
            } else {
                assert_true(expect_same_values(&tiny_weights[slot], a, &slots[slot], b) > 0);
            }
        }
    }
    sf_weights_destroy(plain);
    sf_weights_destroy(mma);
}

/* A model of one matrix. */
static sf_plan plan_of(const sf_weight_desc *d) {
    static const sf_op_desc op = {.name = "m", .op = SF_OP_GEMM, .weight = 0, .bias = -1};
    return (sf_plan){.engine = "one",
                     .model = {.layers = 1, .head_dim = 4},
                     .n_weights = 1,
                     .weights = d,
                     .n_ops = 1,
                     .ops = &op};
}

static sf_weights *draw(const sf_plan *plan, int threads) {
    sf_weights *w = NULL;
    sf_pool *pool = NULL;
    sf_err err = {0};
    assert_int_equal(sf_pool_create(threads, &pool, &err), SF_OK);
    if (sf_weights_random(plan, 7, pool, false, NULL, &w, &err) != SF_OK) fail_msg("%s", err.msg);
    sf_pool_destroy(pool);
    return w;
}

static sf_weight_desc one_matrix(int n, int k, bool interleave) {
    sf_weight_desc d = {"m", SF_W_BF16, false, interleave, n, k, 1, {{"a", n, SF_ROLE_PLAIN, NULL}}, 0};
    if (interleave) {
        d.n_parts = 2;
        d.parts[0].rows = n / 2;
        d.parts[1] = (sf_wpart){"b", n / 2, SF_ROLE_PLAIN, NULL};
    }
    return d;
}

static void random_weights_have_the_same_values_in_both_formats(void **state) {
    (void)state;
    static const int ks[] = {1, 2, 63, 64, 65, 255, 256, 257, 515, 833};
    for (int i = 0; i < (int)(sizeof ks / sizeof *ks); i++) {
        for (int interleave = 0; interleave < 2; interleave++) {
            sf_weight_desc a = one_matrix(interleave ? 2 * (19 + i) : 101 + 7 * i, ks[i], interleave), b = a;
            const sf_plan plan_a = plan_of(&a), plan_b = plan_of(&b);
            sf_weights *plain = draw(&plan_a, 1);
            for (b.format = SF_W_BF16_MMA, b.tile = 1 + i % 2; b.tile <= 8; b.tile += 2) {
                sf_weights *mma = draw(&plan_b, 2);
                size_t set =
                    expect_same_values(&a, sf_weights_get(plain, 0, 0), &b, sf_weights_get(mma, 0, 0));
                assert_true(set > (size_t)a.n * (size_t)a.k / 2);
                sf_weights_destroy(mma);
            }
            sf_weights_destroy(plain);
        }
    }
}

static void padding_of_rows_and_columns_is_zero(void **state) {
    (void)state;
    for (int interleave = 0; interleave < 2; interleave++) {
        sf_weight_desc d = one_matrix(70, 321, interleave);
        d.format = SF_W_BF16_MMA;
        d.tile = 4;
        const sf_plan plan = plan_of(&d);
        sf_weights *w = draw(&plan, 2);
        const uint16_t *p = sf_weights_get(w, 0, 0);
        int rows = wr_rows(&d), cols = wr_cols(&d), set = 0, in_matrix = 0;
        assert_int_equal(sf_weights_bytes(w), rows * cols * 2);
        for (int i = 0; i < rows * cols; i++)
            set += p[i] != 0;
        for (int part = 0; part < d.n_parts; part++) {
            for (int row = 0; row < d.parts[part].rows; row++) {
                for (int k = 0; k < d.k; k++)
                    in_matrix += wr_bits(&d, p, part, row, k) != 0;
            }
        }
        assert_true(set == in_matrix && set > 70 * 300);
        sf_weights_destroy(w);
    }
}

static void thread_counts_do_not_change_bits_or_hash(void **state) {
    (void)state;
    sf_weight_desc d = one_matrix(1000, 4100, false); /* about 8 MB, several units */
    d.format = SF_W_BF16_MMA;
    d.tile = 3;
    const sf_plan plan = plan_of(&d);
    sf_weights *one = draw(&plan, 1), *three = draw(&plan, 3);
    assert_memory_equal(sf_weights_get(one, 0, 0), sf_weights_get(three, 0, 0), sf_weights_bytes(one));
    assert_string_equal(sf_weights_hash(one), sf_weights_hash(three));
    sf_weights_destroy(one);
    sf_weights_destroy(three);
}

static void values_that_are_not_finite_are_refused_by_place(void **state) {
    (void)state;
    static const struct {
        tiny_change change;
        const char *text;
    } cases[] = {
        {{.value_tensor = "blk.1.attn_q.weight", .value_at = 15, .value = 3.4e38f},
         "tensor blk.1.attn_q.weight: row 2 has a value that is not finite in bf16"},
        {{.value_tensor = "blk.0.ffn_gate.weight", .value_at = 139, .value = -3.4e38f},
         "tensor blk.0.ffn_gate.weight: row 19 has a value that is not finite in bf16"},
        {{.value_tensor = "blk.1.ffn_up.weight", .value_at = 63, .value = 3.4e38f},
         "tensor blk.1.ffn_up.weight: row 9 has a value that is not finite in bf16"},
    };
    sf_weight_desc slots[TINY_SLOTS];
    tiny_as_mma(2, slots);
    const sf_plan plan = tiny_with(slots);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        sf_weights *w = NULL;
        sf_err err = {0};
        assert_int_equal(load(&plan, &cases[i].change, 2, &w, &err), SF_FORMAT);
        assert_string_equal(err.msg, cases[i].text);
        assert_null(w);
    }
}

static void tiles_and_parts_that_do_not_fit_are_refused(void **state) {
    (void)state;
    for (int i = 0; i < 4; i++) {
        sf_weight_desc slots[TINY_SLOTS];
        sf_weights *w = NULL;
        sf_err err = {0};
        tiny_as_mma(2, slots);
        if (i == 0) slots[TINY_GATE_UP].tile = 0;
        if (i == 1) slots[TINY_GATE_UP].tile = -1;
        if (i == 2) slots[TINY_GATE_UP].tile = 17;
        if (i == 3) { /* three alternating parts */
            slots[TINY_GATE_UP].parts[2] = slots[TINY_GATE_UP].parts[1];
            slots[TINY_GATE_UP].n_parts = 3;
            slots[TINY_GATE_UP].n = 60;
        }
        const sf_plan plan = tiny_with(slots);
        assert_int_equal(load(&plan, &(tiny_change){0}, 1, &w, &err), SF_INVALID);
        assert_non_null(strstr(err.msg, "weight gate_up does not fit together"));
        assert_null(w);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fragments_stand_as_the_tensor_cores_read_them),
        cmocka_unit_test(a_checkpoint_has_the_same_values_in_both_formats),
        cmocka_unit_test(random_weights_have_the_same_values_in_both_formats),
        cmocka_unit_test(padding_of_rows_and_columns_is_zero),
        cmocka_unit_test(thread_counts_do_not_change_bits_or_hash),
        cmocka_unit_test(values_that_are_not_finite_are_refused_by_place),
        cmocka_unit_test(tiles_and_parts_that_do_not_fit_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
