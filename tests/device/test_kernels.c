/* The tiny plan's kernels alone: no size is a multiple of a vector's. Products, rotation, attention and
 * sampling have tests of their own. */
#include "tiny.h"

#include "ref.h"

enum { ROWS = 40, COLS = 512, GUARD = 16 };

static const sf_plan *const plan = &sf_the_plan;
static kit_random rnd = {21, 0};

static const sf_op_desc *find_op(const char *name) {
    for (int i = 0; i < plan->n_ops; i++)
        if (strcmp(plan->ops[i].name, name) == 0) return plan->ops + i;
    fail_msg("no op %s", name);
    return NULL;
}

static sf_cpu_kernel_fn *kernel(const sf_op_desc *op, sf_class cls, int isa, int rows) {
    const sf_route *r = op->routes[cls];
    while (r->rows_max < rows)
        r++;
    return plan->kernels[r->kernel].cpu[isa];
}

static void embed_copies_rows(void **state) {
    const tiny *t = *state;
    const sf_op_desc *op = find_op("embed");
    const int n = plan->weights[op->weight].n, k = plan->weights[op->weight].k;
    const uint16_t *w = sf_weights_get(t->weights, op->weight, 0);
    for (int isa = 0; isa < SF_ISA_COUNT; isa++) {
        static float x[ROWS * COLS + GUARD];
        if (!tiny_has((sf_isa)isa)) continue;
        memset(x, 0xff, sizeof x);
        const sf_cpu_args a = {.rows = ROWS, .in = t->tokens, .out = x, .weight = w};
        kit_run(kernel(op, SF_CLASS_PINNED, isa, ROWS), &a, 3);
        for (int r = 0; r < ROWS; r++)
            for (int i = 0; i < k; i++)
                assert_true(x[r * k + i] == sf_bf16_to_f32(w[kit_packed_at(n, k, 1, t->tokens[r], i)]));
        assert_true(isnan(x[ROWS * k]));
    }
}

static void rmsnorm_is_near_its_reference(void **state) {
    (void)state;
    const char *names[] = {"attn_norm", "final_norm"};
    for (int o = 0; o < 2; o++) {
        const sf_op_desc *op = find_op(names[o]);
        static float x[ROWS * COLS], weight[COLS], want[ROWS * COLS];
        int32_t gather[ROWS];
        for (int i = 0; i < ROWS * op->k; i++)
            x[i] = kit_normal(&rnd) * 3;
        for (int i = 0; i < op->k; i++)
            weight[i] = 1 + kit_normal(&rnd) * 0.2f;
        for (int i = 0; i < ROWS / 2; i++)
            gather[i] = 2 * i + 1;
        sf_ref_rmsnorm(x, weight, ROWS, op->k, plan->model.norm_eps, want);
        const int first = (int)tiny_first();
        for (int isa = 0; isa < SF_ISA_COUNT; isa++) {
            static uint16_t y[2][ROWS * COLS + GUARD];
            const int head = op->scope == SF_SCOPE_HEAD, rows = head ? ROWS / 2 : ROWS;
            if (!tiny_has((sf_isa)isa)) continue;
            memset(y[isa > first], 0xff, sizeof y[0]);
            const sf_cpu_args a = {
                .rows = rows, .in = x, .out = y[isa > first], .weight = weight, .gather = gather};
            kit_run(kernel(op, SF_CLASS_PINNED, isa, rows), &a, 1 + isa);
            for (int r = 0; r < rows; r++)
                for (int i = 0; i < op->k; i++)
                    kit_near(sf_bf16_to_f32(y[isa > first][r * op->k + i]),
                             want[(head ? gather[r] : r) * op->k + i], 0.005f);
            assert_int_equal(y[isa > first][rows * op->k], 0xffff);
            if (isa > first) assert_memory_equal(y[0], y[1], sizeof y[0]);
        }
    }
}

/* Chi-square of 4,000 draws over 8 tokens and the rest, at fixed seeds: 8 degrees of freedom, the 99.9 %
 * point is 26.1. */
static void draws_follow_the_distribution(void **state) {
    (void)state;
    enum { TOKENS = 8, DRAWS = 4000 };
    const sf_op_desc *op = find_op("sample");
    const int vocab = plan->model.vocab;
    static _Alignas(64) uint8_t scratch[COLS * 16];
    static float logits[COLS], lp[COLS];
    double share[TOKENS + 1] = {0}, seen[TOKENS + 1] = {0}, chi = 0;
    assert_true(sf_cpu_scratch_sample(vocab) <= sizeof scratch);
    for (int j = 0; j < vocab; j++)
        logits[j] = j % 37 == 0 && j / 37 < TOKENS ? 1.0f + 0.4f * (float)(j / 37) : -3.0f;
    sf_ref_log_softmax(logits, vocab, lp);
    for (int j = 0; j < vocab; j++)
        share[j % 37 == 0 && j / 37 < TOKENS ? j / 37 : TOKENS] += exp((double)lp[j]);
    for (int i = 0; i < DRAWS; i++) {
        sf_row_out out;
        const sf_sample s = {.temperature = 1,
                             .top_p = 1,
                             .repetition_penalty = 1,
                             .seed = (uint64_t)(i % 50),
                             .position = (uint32_t)(i / 50),
                             .target = -1,
                             .draw = true};
        const sf_cpu_args a = {.rows = 1, .in = logits, .samples = &s, .results = &out, .scratch = scratch};
        kit_run(kernel(op, SF_CLASS_PINNED, (int)tiny_first(), 1), &a, 1);
        seen[out.token % 37 == 0 && out.token / 37 < TOKENS ? out.token / 37 : TOKENS]++;
    }
    for (int j = 0; j <= TOKENS; j++)
        chi += (seen[j] - share[j] * DRAWS) * (seen[j] - share[j] * DRAWS) / (share[j] * DRAWS);
    print_message("chi-square %.2f\n", chi);
    assert_true(chi < 26.1);
}

static void every_set_that_the_build_holds_has_all_kernels(void **state) {
    (void)state;
    int held = 0;
    for (int isa = 0; isa < SF_ISA_COUNT; isa++) {
        held += plan->kernels[0].cpu[isa] != NULL;
        for (int i = 0; i < plan->n_kernels; i++)
            assert_int_equal(plan->kernels[i].cpu[isa] != NULL, plan->kernels[0].cpu[isa] != NULL);
    }
    assert_true(held > 0 && tiny_has(sf_cpu_isa_best(plan)));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(embed_copies_rows),
        cmocka_unit_test(rmsnorm_is_near_its_reference),
        cmocka_unit_test(draws_follow_the_distribution),
        cmocka_unit_test(every_set_that_the_build_holds_has_all_kernels),
    };
    return cmocka_run_group_tests(tests, tiny_setup, tiny_teardown);
}
