#include "kit.h"

#include "odd.h"
#include "ref.h"

enum { ROWS_MAX = 101, N_MAX = 112, K_MAX = 64, GUARD = 32 };

static const odd_set *sets[SF_ISA_COUNT];
static int n_sets;

typedef struct problem {
    float in[ROWS_MAX * K_MAX], w[N_MAX * K_MAX], bias[N_MAX], before[ROWS_MAX * N_MAX];
    uint16_t in_bf16[ROWS_MAX * K_MAX];
    uint16_t *packed;
} problem;

typedef struct output {
    float f32[ROWS_MAX * N_MAX + GUARD]; /* or bf16, by the epilogue */
} output;

static problem prob;
static output out, other, want;
static _Alignas(64) uint8_t scratch[8][(SF_CPU_PANEL_ROWS + 16) * (K_MAX + 1) * 4 + 64];

static int find_sets(void **state) {
    (void)state;
    n_sets = odd_sets(sets);
    return n_sets > 0 ? 0 : -1;
}

static int parts_of(gemm_shape s) {
    return s.epilogue == GEMM_SWIGLU ? 2 : 1;
}
static int width_of(gemm_shape s) {
    return s.n / parts_of(s);
}

static void make(gemm_shape s, uint32_t seed) {
    kit_random r = {seed, 0};
    for (int i = 0; i < ROWS_MAX * s.k; i++) {
        prob.in_bf16[i] = sf_bf16_operand(kit_normal(&r));
        prob.in[i] = sf_bf16_to_f32(prob.in_bf16[i]);
    }
    for (int i = 0; i < s.n * s.k; i++)
        prob.w[i] = kit_operand(kit_normal(&r));
    for (int i = 0; i < s.n; i++)
        prob.bias[i] = kit_normal(&r);
    for (int i = 0; i < ROWS_MAX * width_of(s); i++)
        prob.before[i] = kit_normal(&r);
    free(prob.packed);
    prob.packed = kit_pack(prob.w, s.n, s.k, parts_of(s));
}

/* Rows row0 .. of the problem into o, whose rest stays poisoned. */
static void run(const odd_gemm *g, int row0, int rows, int parts, output *o) {
    const size_t width = (size_t)width_of(g->shape);
    memset(o, 0xff, sizeof *o);
    if (g->shape.epilogue == GEMM_ADD)
        memcpy(o->f32, prob.before + (size_t)row0 * width, (size_t)rows * width * sizeof(float));
    memset(scratch, 0xff, sizeof scratch);
    const sf_cpu_args a = {.rows = rows,
                           .in = prob.in_bf16 + (size_t)row0 * (size_t)g->shape.k,
                           .out = o->f32,
                           .weight = prob.packed,
                           .bias = g->shape.bias ? prob.bias : NULL,
                           .scratch = scratch[0],
                           .scratch_stride = sizeof scratch[0]};
    kit_run(g->fn, &a, parts);
}

static size_t out_size(gemm_shape s, int rows) {
    return (size_t)rows * (size_t)width_of(s) * (s.epilogue == GEMM_SWIGLU ? 2 : 4);
}

static void assert_untouched_past(const output *o, size_t used) {
    const uint8_t *p = (const uint8_t *)o;
    for (size_t i = used; i < sizeof *o; i++)
        assert_int_equal(p[i], 0xff);
}

static void reference(gemm_shape s, int rows) {
    static float both[ROWS_MAX * N_MAX], up[ROWS_MAX * N_MAX];
    const int width = width_of(s);
    const float *bias = s.bias ? prob.bias : NULL;
    if (s.epilogue == GEMM_SWIGLU) {
        sf_ref_gemm(prob.in, prob.w, bias, rows, width, s.k, both);
        sf_ref_gemm(prob.in, prob.w + width * s.k, NULL, rows, width, s.k, up);
        sf_ref_swiglu(both, up, rows, width, want.f32);
        return;
    }
    sf_ref_gemm(prob.in, prob.w, bias, rows, s.n, s.k, want.f32);
    for (int i = 0; s.epilogue == GEMM_ADD && i < rows * s.n; i++)
        want.f32[i] = prob.before[i] + want.f32[i];
}

static float value(gemm_shape s, const output *o, int i) {
    const uint16_t *half = (const uint16_t *)o->f32;
    return s.epilogue == GEMM_SWIGLU ? sf_bf16_to_f32(half[i]) : o->f32[i];
}

/* Products are exact, so the pinned order in a straight loop gives the kernel's very bits. */
static void kernels_equal_their_reference(void **state) {
    (void)state;
    for (int i = 0; i < ODD_GEMM_COUNT; i++) {
        const gemm_shape s = sets[0]->gemm[i].shape;
        make(s, 10u + (uint32_t)i);
        for (int rows = 1; rows <= 40; rows++) {
            reference(s, rows);
            for (int v = 0; v < n_sets; v++) {
                run(&sets[v]->gemm[i], 0, rows, 1, &out);
                for (int j = 0; j < rows * width_of(s); j++) {
                    const float got = value(s, &out, j), expected = want.f32[j];
                    if (s.flavour == GEMM_PINNED && s.epilogue != GEMM_SWIGLU)
                        assert_true(got == expected);
                    else
                        kit_near(got, expected, s.epilogue == GEMM_SWIGLU ? 0.006f : 1e-4f);
                }
                assert_untouched_past(&out, out_size(s, rows));
            }
        }
    }
}

static void pinned_bits_do_not_depend_on_set_rows_parts_or_place(void **state) {
    (void)state;
    for (int i = 0; i < ODD_GEMM_COUNT; i++) {
        const gemm_shape s = sets[0]->gemm[i].shape;
        if (s.flavour != GEMM_PINNED) continue;
        make(s, 40u + (uint32_t)i);
        run(&sets[0]->gemm[i], 0, ROWS_MAX, 1, &out);
        for (int v = 0; v < n_sets; v++) {
            for (int rows = 1; rows <= 40; rows++) {
                const int row0 = (rows * 7) % (ROWS_MAX - rows), parts = 1 + rows % 5;
                run(&sets[v]->gemm[i], row0, rows, parts, &other);
                assert_memory_equal(other.f32, (const uint8_t *)out.f32 + out_size(s, row0),
                                    out_size(s, rows));
                assert_untouched_past(&other, out_size(s, rows));
            }
        }
    }
}

static void pinned_bits_do_not_depend_on_the_tile(void **state) {
    (void)state;
    make(sets[0]->gemm[0].shape, 70);
    run(&sets[0]->gemm[0], 0, ROWS_MAX, 1, &out);
    for (int v = 0; v < n_sets; v++) {
        for (int i = 1; i < 4; i++) { /* the same shape in other tiles */
            run(&sets[v]->gemm[i], 0, ROWS_MAX, 3, &other);
            assert_memory_equal(&out, &other, sizeof out);
        }
    }
}

static void infinite_neighbours_change_nothing(void **state) {
    (void)state;
    for (int i = 0; i < ODD_GEMM_COUNT; i++) {
        const gemm_shape s = sets[0]->gemm[i].shape;
        make(s, 80u + (uint32_t)i);
        for (int v = 0; v < n_sets; v++) {
            run(&sets[v]->gemm[i], 0, 17, 2, &out);
            uint16_t kept[K_MAX];
            memcpy(kept, prob.in_bf16 + 5 * s.k, (size_t)s.k * 2);
            for (int j = 0; j < 17 * s.k; j++)
                prob.in_bf16[j] = j % 3 ? 0x7f80 : 0x7fc0; /* infinity, NaN */
            memcpy(prob.in_bf16 + 5 * s.k, kept, (size_t)s.k * 2);
            run(&sets[v]->gemm[i], 0, 17, 2, &other);
            assert_memory_equal((uint8_t *)out.f32 + out_size(s, 5), (uint8_t *)other.f32 + out_size(s, 5),
                                out_size(s, 1));
            make(s, 80u + (uint32_t)i);
        }
    }
}

static void a_split_sum_has_other_bits(void **state) {
    (void)state;
    int differ = 0;
    make(sets[0]->gemm[0].shape, 90);
    for (int v = 0; v < n_sets; v++) {
        run(&sets[v]->gemm[0], 0, 40, 1, &out);
        run(&sets[v]->gemm[9], 0, 40, 1, &other);
        assert_string_equal(sets[v]->gemm[9].name, "split_r1");
        differ += memcmp(&out, &other, sizeof out) != 0;
    }
    assert_int_equal(differ, n_sets);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kernels_equal_their_reference),
        cmocka_unit_test(pinned_bits_do_not_depend_on_set_rows_parts_or_place),
        cmocka_unit_test(pinned_bits_do_not_depend_on_the_tile),
        cmocka_unit_test(infinite_neighbours_change_nothing),
        cmocka_unit_test(a_split_sum_has_other_bits),
    };
    const int rc = cmocka_run_group_tests(tests, find_sets, NULL);
    free(prob.packed);
    return rc;
}
