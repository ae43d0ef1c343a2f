/* rope_append against its reference, bit for bit across instruction sets: the tiny plan's kernel, which norms
 * heads of q and k, and the template as it stands, which doesn't. */
#include "odd.h"
#include "tiny.h"

#include "device/rope.h"
#include "ref.h"

enum { ROWS = 40, FIRST = 3, POSITIONS = 64, DIM_MAX = 64, HEADS_MAX = 15 };

static const int32_t pages[] = {2, 0, 3, 1};

typedef struct shape {
    int heads, kv_heads, dim, page;
    float eps;
    const float *norms; /* [2][dim], of q and of k; NULL: none */
    sf_rope rope;
    sf_cpu_kernel_fn *fn[SF_ISA_COUNT];
} shape;

typedef struct result {
    uint16_t q[ROWS * HEADS_MAX * DIM_MAX], kv[4 * POSITIONS * HEADS_MAX * DIM_MAX];
} result;

static size_t page_bytes(const shape *s) {
    return (size_t)s->kv_heads * sf_cpu_kv_head_size(s->page, s->dim) * sizeof(uint16_t);
}

static void fill(const shape *s, float *qkv) {
    kit_random rnd = {21, 0};
    for (int i = 0; i < ROWS * (s->heads + 2 * s->kv_heads) * s->dim; i++)
        qkv[i] = kit_normal(&rnd) * 3;
}

static void run(const shape *s, int isa, const float *qkv, int parts, result *out) {
    static float table[POSITIONS * DIM_MAX];
    sf_cpu_row row[ROWS];
    for (int p = 0; p < POSITIONS; p++)
        sf_rope_row(&s->rope, p, table + p * s->dim);
    for (int r = 0; r < ROWS; r++)
        row[r] = (sf_cpu_row){.pos = r + FIRST, .pages = pages};
    memset(out, 0xff, sizeof *out);
    const sf_cpu_args a = {.rows = ROWS,
                           .in = qkv,
                           .out = out->q,
                           .weight = s->norms,
                           .row = row,
                           .kv = (uint8_t *)out->kv,
                           .page_stride = page_bytes(s),
                           .rope = table};
    kit_run(s->fn[isa], &a, parts);
}

/* What a head of a row must be. */
static void want_head(const shape *s, const float *qkv, int r, int h, float *want) {
    memcpy(want, qkv + (r * (s->heads + 2 * s->kv_heads) + h) * s->dim, (size_t)s->dim * sizeof *want);
    if (h >= s->heads + s->kv_heads) return;
    if (s->norms) sf_ref_rmsnorm(want, s->norms + (h < s->heads ? 0 : s->dim), 1, s->dim, s->eps, want);
    sf_ref_rope(want, s->dim, r + FIRST, s->rope.freq, s->rope.attention);
}

static void compare(const shape *s, const float *qkv, const result *got) {
    for (int i = 0; i < ROWS * (s->heads + 2 * s->kv_heads); i++) {
        const int r = i / (s->heads + 2 * s->kv_heads), h = i % (s->heads + 2 * s->kv_heads), pos = r + FIRST;
        const int at = pos % s->page, d = s->dim;
        const uint16_t *head = got->kv + (size_t)pages[pos / s->page] * page_bytes(s) / 2 +
                               (size_t)((h - s->heads) % s->kv_heads) * sf_cpu_kv_head_size(s->page, d);
        float want[DIM_MAX];
        want_head(s, qkv, r, h, want);
        for (int j = 0; j < d; j++) {
            const uint16_t bits = h < s->heads ? got->q[(r * s->heads + h) * d + j]
                                  : h < s->heads + s->kv_heads
                                      ? head[sf_cpu_kv_k_at(d, at, j)]
                                      : head[sf_cpu_kv_k_size(s->page, d) + sf_cpu_kv_v_at(s->page, at, j)];
            kit_near(sf_bf16_to_f32(bits), h < s->heads ? want[j] / sqrtf((float)d) : want[j], 0.004f);
        }
    }
}

static void check(const shape *s) {
    static float qkv[ROWS * HEADS_MAX * DIM_MAX];
    static result first, other;
    bool any = false;
    assert_true(s->dim <= DIM_MAX && s->heads + 2 * s->kv_heads <= HEADS_MAX && 4 * s->page >= POSITIONS &&
                page_bytes(s) * 4 <= sizeof first.kv);
    fill(s, qkv);
    for (int isa = 0; isa < SF_ISA_COUNT; isa++) {
        if (!s->fn[isa]) continue;
        run(s, isa, qkv, any ? 1 + isa : 2, any ? &other : &first);
        if (!any) compare(s, qkv, &first);
        if (any) assert_memory_equal(&first, &other, sizeof first);
        any = true;
    }
    assert_true(any);
}

static const float *norms_of(const tiny *t, const sf_op_desc **op) {
    for (int i = 0; i < sf_the_plan.n_ops; i++)
        if (sf_the_plan.ops[i].op == SF_OP_ROPE_APPEND) *op = sf_the_plan.ops + i;
    assert_non_null(*op);
    assert_true((*op)->weight >= 0);
    return sf_weights_get(t->weights, (*op)->weight, 1);
}

static shape tiny_shape(const tiny *t) {
    const sf_model_desc *m = &sf_the_plan.model;
    const sf_op_desc *op = NULL;
    shape s = {.heads = m->heads,
               .kv_heads = m->kv_heads,
               .dim = m->head_dim,
               .page = sf_the_plan.page_size,
               .eps = m->norm_eps,
               .norms = norms_of(t, &op)};
    sf_rope_init(m, &s.rope);
    for (int isa = 0; isa < SF_ISA_COUNT; isa++)
        if (tiny_has((sf_isa)isa))
            s.fn[isa] = sf_the_plan.kernels[op->routes[SF_CLASS_PINNED][0].kernel].cpu[isa];
    return s;
}

static void heads_are_normed_rotated_and_stored(void **state) {
    const shape s = tiny_shape(*state);
    assert_string_equal(sf_the_plan.model.rope_kind, "yarn");
    assert_true(s.rope.attention > 1.1);
    check(&s);
}

static void without_norms_heads_are_rotated_and_stored(void **state) {
    (void)state;
    const sf_model_desc m = {.head_dim = 64, .rope_theta = 100000};
    const odd_set *sets[SF_ISA_COUNT];
    shape s = {.heads = 9, .kv_heads = 3, .dim = 64, .page = 16};
    sf_rope_init(&m, &s.rope);
    for (int i = 0, n = odd_sets(sets); i < n; i++)
        s.fn[sets[i]->isa] = sets[i]->rope_append;
    check(&s);
}

/* A head's norm makes its scale vanish: only what eps is beside the squares remains. Values have no norm. */
static void a_heads_scale_does_not_matter_to_its_norm(void **state) {
    const shape s = tiny_shape(*state);
    static float qkv[2][ROWS * HEADS_MAX * DIM_MAX];
    static result out[2];
    const int width = (s.heads + 2 * s.kv_heads) * s.dim, values = (s.heads + s.kv_heads) * s.dim;
    fill(&s, qkv[0]);
    for (int i = 0; i < ROWS * width; i++)
        qkv[1][i] = qkv[0][i] * (i % width < values ? 1024 : 1);
    for (int i = 0; i < 2; i++)
        run(&s, (int)tiny_first(), qkv[i], 1, &out[i]);
    for (int i = 0; i < ROWS * s.heads * s.dim; i++)
        kit_near(sf_bf16_to_f32(out[1].q[i]), sf_bf16_to_f32(out[0].q[i]), 0.008f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(heads_are_normed_rotated_and_stored),
        cmocka_unit_test(without_norms_heads_are_rotated_and_stored),
        cmocka_unit_test(a_heads_scale_does_not_matter_to_its_norm),
    };
    return cmocka_run_group_tests(tests, tiny_setup, tiny_teardown);
}
