/* The real checkpoint, where it is in the cache, against values that PyPI's gguf gave (tests/golden/weights).
 */
#include "model/weights.h"

#include "model/weights_read.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#define GOLDEN    SF_TEST_DIR "/golden/weights/smollm2-135m-q4_1.txt"
#define FILE_NAME "SmolLM2-135M-Instruct.Q4_1.gguf"

#define PLAIN SF_ROLE_PLAIN
static const sf_weight_desc weights[] = {
    {"embed", SF_W_BF16, false, false, 49152, 576, 1, {{"token_embd.weight", 49152, PLAIN, NULL}}, 0},
    {"attn_norm", SF_W_F32, true, false, 1, 576, 1, {{"blk.%d.attn_norm.weight", 576, PLAIN, NULL}}, 0},
    {"qkv",
     SF_W_BF16,
     true,
     false,
     960,
     576,
     3,
     {{"blk.%d.attn_q.weight", 576, SF_ROLE_Q, NULL},
      {"blk.%d.attn_k.weight", 192, SF_ROLE_K, NULL},
      {"blk.%d.attn_v.weight", 192, PLAIN, NULL}},
     0},
    {"o", SF_W_BF16, true, false, 576, 576, 1, {{"blk.%d.attn_output.weight", 576, PLAIN, NULL}}, 0},
    {"ffn_norm", SF_W_F32, true, false, 1, 576, 1, {{"blk.%d.ffn_norm.weight", 576, PLAIN, NULL}}, 0},
    {"gate_up",
     SF_W_BF16,
     true,
     true,
     3072,
     576,
     2,
     {{"blk.%d.ffn_gate.weight", 1536, PLAIN, NULL}, {"blk.%d.ffn_up.weight", 1536, PLAIN, NULL}},
     0},
    {"down", SF_W_BF16, true, false, 576, 1536, 1, {{"blk.%d.ffn_down.weight", 576, PLAIN, NULL}}, 0},
    {"final_norm", SF_W_F32, false, false, 1, 576, 1, {{"output_norm.weight", 576, PLAIN, NULL}}, 0},
};
enum { SLOTS = sizeof weights / sizeof *weights };

static const sf_plan plan = {
    .engine = "smollm2-135m-cpu",
    .model = {.name = "smollm2-135m",
              .family = "llama",
              .vocab = 49152,
              .hidden = 576,
              .layers = 30,
              .heads = 9,
              .kv_heads = 3,
              .head_dim = 64,
              .intermediate = 1536,
              .context = 8192,
              .norm_eps = 1e-5f,
              .rope_theta = 100000,
              .tied_embeddings = true},
    .n_weights = SLOTS,
    .weights = weights,
};

/* Where a tensor's rows stand: slot, layer and part; false for a tensor the plan lacks. */
static bool find(const char *tensor, int *slot, int *layer, int *part) {
    char name[80];
    *layer = 0;
    if (sscanf(tensor, "blk.%d.", layer) != 1) *layer = 0;
    for (*slot = 0; *slot < SLOTS; ++*slot) {
        const sf_weight_desc *d = &weights[*slot];
        for (int p = 0; p < d->n_parts; p++) {
            const char *at = strstr(d->parts[p].tensor, "%d");
            if (at) {
                snprintf(name, sizeof name, "blk.%d%s", *layer, at + 2);
            } else {
                snprintf(name, sizeof name, "%s", d->parts[p].tensor);
            }
            if (strcmp(name, tensor) != 0) continue;
            *part = p;
            return true;
        }
    }
    return false;
}

static uint32_t bits_at(const sf_plan *p, const sf_weights *w, int slot, int layer, int part, int row,
                        int col) {
    uint32_t u;
    const void *data = sf_weights_get(w, slot, layer);
    if (p->weights[slot].format != SF_W_F32) return wr_bits(&p->weights[slot], data, part, row, col);
    memcpy(&u, (const float *)data + col, sizeof u);
    return u;
}

static sf_weights *load_real(const sf_plan *p) {
    const char *home = getenv("HOME"), *cache = getenv("XDG_CACHE_HOME");
    char path[512];
    if (cache && *cache) {
        snprintf(path, sizeof path, "%s/steadfast/" FILE_NAME, cache);
    } else {
        snprintf(path, sizeof path, "%s/.cache/steadfast/" FILE_NAME, home ? home : "");
    }
    if (access(path, R_OK) != 0) {
        print_message("skipped: no %s\n", path);
        return NULL;
    }
    sf_gguf *g = NULL;
    sf_pool *pool = NULL;
    sf_weights *w = NULL;
    sf_err err = {0};
    if (sf_gguf_open(path, &g, &err) != SF_OK) fail_msg("%s", err.msg);
    assert_int_equal(sf_pool_create(2, &pool, &err), SF_OK);
    double start = sf_now_s();
    if (sf_weights_load(p, g, pool, true, NULL, &w, &err) != SF_OK) fail_msg("%s", err.msg);
    print_message("loaded in %.3f s\n", sf_now_s() - start);
    sf_pool_destroy(pool);
    sf_gguf_close(g);
    return w;
}

static void expect_golden(const sf_plan *p) {
    sf_weights *w = load_real(p);
    if (!w) skip();
    FILE *f = fopen(GOLDEN, "r");
    assert_non_null(f);
    char tensor[80];
    int row = 0, col = 0, lines = 0, slot = 0, layer = 0, part = 0;
    unsigned want = 0;
    while (fscanf(f, "%79s %d %d %x", tensor, &row, &col, &want) == 4) {
        assert_true(find(tensor, &slot, &layer, &part));
        uint32_t got = bits_at(p, w, slot, layer, part, row, col);
        if (got != want) fail_msg("%s[%d, %d] is %x, expected %x", tensor, row, col, got, want);
        lines++;
    }
    assert_true(feof(f) && lines == 29 * 16);
    fclose(f);
    sf_weights_destroy(w);
}

static void packed_values_equal_the_peers(void **state) {
    (void)state;
    expect_golden(&plan);
}

static void values_in_fragments_equal_the_peers(void **state) {
    (void)state;
    sf_weight_desc slots[SLOTS];
    sf_plan mma = plan;
    memcpy(slots, weights, sizeof slots);
    for (int i = 0; i < SLOTS; i++) {
        if (slots[i].format == SF_W_BF16) {
            slots[i].format = SF_W_BF16_MMA;
            slots[i].tile = 1 + i % 8;
        }
    }
    mma.weights = slots;
    expect_golden(&mma);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(packed_values_equal_the_peers),
        cmocka_unit_test(values_in_fragments_equal_the_peers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
