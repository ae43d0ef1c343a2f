/* weights_draw.h, which a GPU draws by: the very bytes that the host draws and packs. */
#include "model/weights.h"

#include "model/weights_draw.h"
#include "model/weights_priv.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

static const sf_op_desc op = {.name = "m", .op = SF_OP_GEMM, .weight = 1, .bias = -1};

/* A model of two matrices, the second of which is looked at: its number and its layer are told from zero. */
static sf_plan plan_of(const sf_weight_desc d[2]) {
    return (sf_plan){.engine = "two",
                     .model = {.layers = 2, .head_dim = 4},
                     .n_weights = 2,
                     .weights = d,
                     .n_ops = 1,
                     .ops = &op};
}

static sf_weight_desc matrix(int n, int k, int tile, bool interleave) {
    sf_weight_desc d = {"m", SF_W_BF16_MMA, true, interleave, n, k, 1, {{"a", n, SF_ROLE_PLAIN, NULL}}, tile};
    if (interleave) {
        d.n_parts = 2;
        d.parts[0].rows = n / 2;
        d.parts[1] = (sf_wpart){"b", n / 2, SF_ROLE_PLAIN, NULL};
    }
    return d;
}

static sf_weights *draw(const sf_plan *plan, uint64_t seed) {
    sf_weights *w = NULL;
    sf_pool *pool = NULL;
    sf_err err = {0};
    assert_int_equal(sf_pool_create(1, &pool, &err), SF_OK);
    if (sf_weights_random(plan, seed, pool, false, NULL, &w, &err) != SF_OK) fail_msg("%s", err.msg);
    sf_pool_destroy(pool);
    return w;
}

/* Values that aren't zero. */
static int expect_the_host_s_bytes(int n, int k, int tile, bool interleave, uint64_t seed) {
    const sf_weight_desc d[2] = {matrix(16, 64, 1, false), matrix(n, k, tile, interleave)};
    const sf_plan plan = plan_of(d);
    const sf_wsource source = sf_wsource_random(&plan, seed);
    const sf_winst inst = {.slot = 1, .layer = 1, .desc = &d[1]};
    sf_weights *w = draw(&plan, seed);
    const uint8_t *host = sf_weights_get(w, 1, 1);
    sf_wlayout l;
    sf_wdraw what;
    int set = 0;
    sf_wmma_layout(&d[1], &l);
    source.describe(&source, &inst, &what);
    const size_t bytes = sf_wlayout_offset(&l, l.blocks);
    for (size_t i = 0; i < bytes / 16; i++) {
        uint32_t lane[4];
        sf_wdraw_lane(&what, i, lane);
        if (memcmp(lane, host + 16 * i, sizeof lane) != 0)
            fail_msg("n %d, k %d, tile %d, interleave %d: byte %zu", n, k, tile, interleave, 16 * i);
        for (int b = 0; b < 4; b++)
            set += ((lane[b] & 0xffff) != 0) + (lane[b] >> 16 != 0);
    }
    sf_weights_destroy(w);
    return set;
}

static void every_lane_is_the_host_s(void **state) {
    (void)state;
    static const int ks[] = {1, 2, 63, 64, 65, 256, 257, 515};
    for (int i = 0; i < (int)(sizeof ks / sizeof *ks); i++) {
        for (int tile = 1; tile <= 16; tile = tile * 2 + tile % 2) {
            for (int interleave = 0; interleave < 2; interleave++) {
                const int n = interleave ? 2 * (19 + i) : 101 + 7 * i;
                const int set = expect_the_host_s_bytes(n, ks[i], tile, interleave, 7);
                assert_true(set > n * ks[i] * 9 / 10 && set <= n * ks[i]);
            }
        }
    }
}

static void both_halves_of_the_seed_count(void **state) {
    (void)state;
    (void)expect_the_host_s_bytes(33, 70, 2, false, 0xfedcba9876543210u);
    (void)expect_the_host_s_bytes(33, 70, 2, false, 0x76543210u);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_lane_is_the_host_s),
        cmocka_unit_test(both_halves_of_the_seed_count),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
