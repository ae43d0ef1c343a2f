#include "kit.h"

#include "odd.h"
#include "ref.h"

enum { CONTEXT = 200, WIDTH = 208, DIM_MAX = 40, HEADS_MAX = 16, PAGES = 16 };

static const odd_set *sets[SF_ISA_COUNT];
static int n_sets;

static float keys[HEADS_MAX][CONTEXT][DIM_MAX], values[HEADS_MAX][CONTEXT][DIM_MAX];
static uint16_t queries[CONTEXT * WIDTH];
static uint16_t out[CONTEXT * WIDTH], other[CONTEXT * WIDTH];
static uint8_t *kv;
static _Alignas(64) uint8_t scratch[5][1 << 15];
static sf_cpu_row row[CONTEXT];
/* Pages in no order; the first table is the sequence's, the second another's. */
static const int32_t tables[2][PAGES] = {{5, 2, 9, 0, 7, 12, 1, 14, 3, 10, 6, 15, 4, 8, 11, 13}, {0}};

static int find_sets(void **state) {
    (void)state;
    n_sets = odd_sets(sets);
    return n_sets > 0 ? 0 : -1;
}

static size_t page_bytes(attn_shape s) {
    return (size_t)s.kv_heads * sf_cpu_kv_head_size(s.page, s.head_dim) * 2;
}

static void put(attn_shape s, int pos, int head, float poison) {
    uint16_t *page = (uint16_t *)(void *)(kv + (size_t)tables[0][pos / s.page] * page_bytes(s)) +
                     (size_t)head * sf_cpu_kv_head_size(s.page, s.head_dim);
    uint16_t *v = page + sf_cpu_kv_k_size(s.page, s.head_dim);
    for (int d = 0; d < s.head_dim; d++) {
        const size_t ka = sf_cpu_kv_k_at(s.head_dim, pos % s.page, d),
                     va = sf_cpu_kv_v_at(s.page, pos % s.page, d);
        page[ka] = sf_bf16_from_f32(poison != 0 ? poison : keys[head][pos][d]);
        v[va] = sf_bf16_from_f32(poison != 0 ? poison : values[head][pos][d]);
    }
}

static void make(attn_shape s, uint32_t seed) {
    kit_random r = {seed, 0};
    free(kv);
    kv = malloc(page_bytes(s) * PAGES);
    assert_non_null(kv);
    memset(kv, 0xff, page_bytes(s) * PAGES); /* NaN: what was never written must not be used */
    for (int h = 0; h < s.kv_heads; h++) {
        for (int p = 0; p < CONTEXT; p++) {
            for (int d = 0; d < s.head_dim; d++) {
                keys[h][p][d] = kit_operand(kit_normal(&r));
                values[h][p][d] = kit_operand(kit_normal(&r));
            }
            put(s, p, h, 0);
        }
    }
    for (int i = 0; i < CONTEXT * s.heads * s.head_dim; i++)
        queries[i] = sf_bf16_operand(kit_normal(&r) / sqrtf((float)s.head_dim));
}

/* Rows of positions from .. from+rows-1, as one segment. */
static void run(const odd_attention *t, int from, int rows, int parts, uint16_t *o) {
    const size_t width = (size_t)(t->shape.heads * t->shape.head_dim);
    assert_true(sf_cpu_scratch_attention(CONTEXT, t->shape.head_dim) <= sizeof scratch[0]);
    memset(scratch, 0xff, sizeof scratch);
    memset(o, 0xff, sizeof out);
    for (int i = 0; i < rows; i++)
        row[i] = (sf_cpu_row){.pos = from + i, .seg = 0, .pages = tables[0]};
    const sf_cpu_args a = {.rows = rows,
                           .in = queries + (size_t)from * width,
                           .out = o,
                           .row = row,
                           .kv = kv,
                           .page_stride = page_bytes(t->shape),
                           .scratch = scratch[0],
                           .scratch_stride = sizeof scratch[0]};
    kit_run(t->fn, &a, parts);
}

static void kernels_are_near_their_reference(void **state) {
    (void)state;
    for (int i = 0; i < ODD_ATTENTION_COUNT; i++) {
        const attn_shape s = sets[0]->attention[i].shape;
        make(s, 5u + (uint32_t)i);
        for (int v = 0; v < n_sets; v++) {
            run(&sets[v]->attention[i], 0, CONTEXT, 2, out);
            for (int p = 0; p < CONTEXT; p++) {
                for (int h = 0; h < s.heads; h++) {
                    static float k[CONTEXT * DIM_MAX], u[CONTEXT * DIM_MAX];
                    float q[DIM_MAX], want[DIM_MAX];
                    const int kvh = h / (s.heads / s.kv_heads), at = (p * s.heads + h) * s.head_dim;
                    for (int j = 0; j <= p; j++) {
                        memcpy(k + j * s.head_dim, keys[kvh][j], (size_t)s.head_dim * 4);
                        memcpy(u + j * s.head_dim, values[kvh][j], (size_t)s.head_dim * 4);
                    }
                    for (int d = 0; d < s.head_dim; d++)
                        q[d] = sf_bf16_to_f32(queries[at + d]);
                    sf_ref_attention(q, k, u, p + 1, s.head_dim, want);
                    for (int d = 0; d < s.head_dim; d++)
                        kit_near(sf_bf16_to_f32(out[at + d]), want[d], 0.01f);
                }
            }
        }
    }
}

static void bits_do_not_depend_on_set_segments_or_parts(void **state) {
    (void)state;
    static const int cuts[] = {1, 2, 3, 5, 16, CONTEXT};
    for (int i = 0; i < ODD_ATTENTION_COUNT; i++) {
        const attn_shape s = sets[0]->attention[i].shape;
        const size_t width = (size_t)(s.heads * s.head_dim);
        if (s.loose) continue;
        make(s, 15u + (uint32_t)i);
        run(&sets[0]->attention[i], 0, CONTEXT, 1, out);
        for (int v = 0; v < n_sets; v++) {
            for (size_t c = 0; c < sizeof cuts / sizeof *cuts; c++) {
                for (int p = 0; p < CONTEXT; p += cuts[c]) {
                    const int rows = CONTEXT - p < cuts[c] ? CONTEXT - p : cuts[c];
                    run(&sets[v]->attention[i], p, rows, 1 + (p + cuts[c]) % 5, other);
                    assert_memory_equal(other, out + (size_t)p * width, (size_t)rows * width * 2);
                }
            }
        }
    }
}

/* KV past a row's own position may hold anything: later rows of the segment, or what a rollback left. */
static void later_positions_are_never_used(void **state) {
    (void)state;
    for (int i = 0; i < ODD_ATTENTION_COUNT; i++) {
        const attn_shape s = sets[0]->attention[i].shape;
        const size_t width = (size_t)(s.heads * s.head_dim);
        make(s, 25u + (uint32_t)i);
        for (int v = 0; v < n_sets; v++) {
            run(&sets[v]->attention[i], 0, CONTEXT, 1, out);
            for (int p = CONTEXT - 1; p >= CONTEXT - 40; p--) { /* poisons position p, then looks at p - 1 */
                for (int h = 0; h < s.kv_heads; h++)
                    put(s, p, h, p % 2 ? INFINITY : NAN);
                run(&sets[v]->attention[i], p - 6, 6, 1, other);
                if (!s.loose) assert_memory_equal(other, out + (size_t)(p - 6) * width, 6 * width * 2);
                for (size_t j = 0; j < 6 * width; j++)
                    assert_true(isfinite(sf_bf16_to_f32(other[j])));
                run(&sets[v]->attention[i], p - 6, 9 < CONTEXT - p + 6 ? 9 : CONTEXT - p + 6, 1, other);
                if (!s.loose) assert_memory_equal(other, out + (size_t)(p - 6) * width, 6 * width * 2);
            }
            make(s, 25u + (uint32_t)i);
        }
    }
}

static void segments_of_two_sequences_stay_apart(void **state) {
    (void)state;
    const odd_attention *t = &sets[n_sets - 1]->attention[0];
    const attn_shape s = t->shape;
    const size_t width = (size_t)(s.heads * s.head_dim);
    make(s, 35);
    for (int h = 0; h < s.kv_heads; h++) /* the other sequence's only page is page 0, the third table entry */
        for (int p = 3 * s.page; p < 4 * s.page; p++)
            put(s, p, h, 1.0f);
    run(t, 0, 20, 1, out);
    run(t, 0, 1, 1, other); /* sets row[0] */
    for (int i = 0; i < 21; i++)
        row[i] = (sf_cpu_row){.pos = i == 20 ? 7 : i, .seg = i == 20, .pages = tables[i == 20]};
    const sf_cpu_args a = {.rows = 21,
                           .in = queries,
                           .out = other,
                           .row = row,
                           .kv = kv,
                           .page_stride = page_bytes(s),
                           .scratch = scratch[0],
                           .scratch_stride = sizeof scratch[0]};
    kit_run(t->fn, &a, 2);
    assert_memory_equal(other, out, 20 * width * 2);
    for (size_t j = 0; j < width; j++) /* all its values are 1 */
        assert_true(sf_bf16_to_f32(other[20 * width + j]) == 1.0f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kernels_are_near_their_reference),
        cmocka_unit_test(bits_do_not_depend_on_set_segments_or_parts),
        cmocka_unit_test(later_positions_are_never_used),
        cmocka_unit_test(segments_of_two_sequences_stay_apart),
    };
    const int rc = cmocka_run_group_tests(tests, find_sets, NULL);
    free(kv);
    return rc;
}
