#include "gpu/drawn.h"

#include <stdlib.h>
#include <string.h>

#include "base/progress.h"
#include "device/cuda/cuda_priv.h"

#define THREADS 8
#define SLOTS   7
#define LAYERS  2

#define ONE(rows)                                                                                            \
    {                                                                                                        \
        { "a", rows, SF_ROLE_PLAIN, NULL }                                                                   \
    }
#define TWO(rows)                                                                                            \
    {                                                                                                        \
        {"a", rows, SF_ROLE_PLAIN, NULL}, {                                                                  \
            "b", rows, SF_ROLE_PLAIN, NULL                                                                   \
        }                                                                                                    \
    }
/* Rows that fill no group or tile, columns that fill no block, parts that alternate, several units. */
static const sf_weight_desc slots[SLOTS] = {
    {"even", SF_W_BF16_MMA, true, false, 6144, 4096, 1, ONE(6144), 4},
    {"rows", SF_W_BF16_MMA, false, false, 1003, 576, 1, ONE(1003), 8},
    {"columns", SF_W_BF16_MMA, true, false, 96, 1501, 1, ONE(96), 3},
    {"few", SF_W_BF16_MMA, false, false, 5, 1, 1, ONE(5), 16},
    {"pairs", SF_W_BF16_MMA, true, true, 3072, 576, 2, TWO(1536), 2},
    {"odd pairs", SF_W_BF16_MMA, false, true, 2 * 347, 67, 2, TWO(347), 7},
    {"vector", SF_W_F32, true, false, 1, 576, 1, ONE(576), 0},
};
static const sf_plan plan = {
    .engine = "drawn", .model = {.layers = LAYERS, .head_dim = 4}, .n_weights = SLOTS, .weights = slots};

static bool is_last(int slot, int layer) {
    return slot == SLOTS - 1 && layer == LAYERS - 1;
}

/* Bytes of an instance on the host, its padding to the next included. */
static size_t host_bytes(const sf_weights *host, int slot, int layer) {
    const bool end = !plan.weights[slot].per_layer || layer == LAYERS - 1;
    const size_t next = is_last(slot, layer)
                            ? (size_t)sf_weights_bytes(host)
                            : sf_weights_offset(host, end ? slot + 1 : slot, end ? 0 : layer + 1);
    return next - sf_weights_offset(host, slot, layer);
}

/* Slots of which a byte differs. */
static int compare(kit *k, const sf_cuda *d, const sf_weights *w, const sf_weights *host) {
    int wrong = 0;
    char *back = malloc(sf_weights_bytes(w));
    if (!back || k->cu.cuMemcpyDtoH(back, d->weights, sf_weights_bytes(w)) != CUDA_SUCCESS) wrong = SLOTS;
    for (int slot = 0; slot < SLOTS && wrong < SLOTS; slot++)
        for (int layer = 0; layer < (plan.weights[slot].per_layer ? LAYERS : 1); layer++)
            wrong += memcmp(back + sf_weights_offset(w, slot, layer), sf_weights_get(host, slot, layer),
                            host_bytes(host, slot, layer)) != 0;
    free(back);
    return wrong;
}

static sf_code draw(sf_pool *pool, const sf_weights_sink *sink, sf_weights **out, double *seconds,
                    sf_err *err) {
    const double t0 = sf_now_s();
    SF_TRY(sf_weights_random(&plan, 0x123456789abcdefu, pool, false, sink, out, err));
    *seconds = sf_now_s() - t0;
    return SF_OK;
}

void weights_are_drawn_as_on_the_host(kit *k) {
    static sf_cuda d;
    sf_weights *w = NULL, *host = NULL;
    sf_pool *pool = NULL;
    sf_err err = {.msg = ""};
    double here = 0, there = 0;
    int wrong = -1;
    d = (sf_cuda){.base = {.plan = &plan}, .cfg = {.threads = THREADS, .cache = "/dev/null/none"}};
    d.cu = k->cu;
    d.gpu = k->gpu;
    d.nvrtc = k->nvrtc;
    const sf_weights_sink sink = sf_cuda_sink(&d.base);
    if (sf_pool_create(THREADS, &pool, &err) == SF_OK && sf_cuda_drawing_open(&d, &err) == SF_OK &&
        draw(pool, &sink, &w, &there, &err) == SF_OK && draw(pool, NULL, &host, &here, &err) == SF_OK)
        wrong = compare(k, &d, w, host);
    const bool same = wrong == 0 && strcmp(sf_weights_hash(w), sf_weights_hash(host)) == 0;
    kit_check(k, same, "random weights drawn on the GPU",
              "%d instances differ; %.0f MB in %.3f s, on the host %.3f %s", wrong,
              w ? (double)sf_weights_bytes(w) / 1e6 : 0, there, here, err.msg);
    sf_cuda_stages_close(&d);
    for (int i = 0; i < d.n_allocs; i++)
        k->cu.cuMemFree(d.allocs[i]);
    sf_weights_destroy(w);
    sf_weights_destroy(host);
    sf_pool_destroy(pool);
}
