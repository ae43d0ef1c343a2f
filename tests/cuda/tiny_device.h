/* A small plan, and its device over the driver whose GPU is host memory. */
#ifndef SF_TESTS_CUDA_TINY_DEVICE_H
#define SF_TESTS_CUDA_TINY_DEVICE_H

#include "cuda/cuda_test.h"
#include "cuda/fake_driver.h"

#include "base/pool.h"
#include "device/cuda/cuda_priv.h"

enum { HIDDEN = 64, LAYERS = 2, VOCAB = 96, ROWS = 128, LOGITS = 16, PAGES = 8 };
enum { ROUTED = 1024 }; /* rows up to which a test may widen the plan */
enum { K_EMBED, K_NORM, K_GEMM, K_ROPE, K_ATTENTION, K_LONG, K_SAMPLE, KERNELS };

#define PART(tensor, rows)                                                                                   \
    {                                                                                                        \
        { tensor, rows, SF_ROLE_PLAIN, NULL }                                                                \
    }
static const sf_weight_desc weights[] = {
    {"embed", SF_W_BF16_MMA, false, false, VOCAB, HIDDEN, 1, PART("e", VOCAB), 2},
    {"norm", SF_W_F32, true, false, 1, HIDDEN, 1, PART("n", HIDDEN), 0},
    {"qkv", SF_W_BF16_MMA, true, false, 3 * HIDDEN, HIDDEN, 1, PART("q", 3 * HIDDEN), 1},
    {"final", SF_W_F32, false, false, 1, HIDDEN, 1, PART("f", HIDDEN), 0},
};
#define ROUTE(name, k) static const sf_route name[] = {{ROUTED, k, 1}}
ROUTE(r_embed, K_EMBED);
ROUTE(r_norm, K_NORM);
ROUTE(r_gemm, K_GEMM);
ROUTE(r_rope, K_ROPE);
ROUTE(r_attention, K_ATTENTION);
ROUTE(r_sample, K_SAMPLE);
static const sf_route r_long[] = {{64, -1, 0}, {ROUTED, K_LONG, 1}};
#define OP(name, op, scope, in, out, weight, n, routes, count)                                               \
    { name, op, scope, in, out, weight, -1, n, HIDDEN, 0, 0, 0, {count, count}, {routes, routes}, NULL }
static const sf_op_desc ops[] = {
    OP("embed", SF_OP_EMBED, SF_SCOPE_PRE, SF_BUF_TOKENS, SF_BUF_X, 0, HIDDEN, r_embed, 1),
    OP("norm", SF_OP_RMSNORM, SF_SCOPE_LAYER, SF_BUF_X, SF_BUF_H, 1, HIDDEN, r_norm, 1),
    OP("qkv", SF_OP_GEMM, SF_SCOPE_LAYER, SF_BUF_H, SF_BUF_QKV, 2, 3 * HIDDEN, r_gemm, 1),
    OP("rope", SF_OP_ROPE_APPEND, SF_SCOPE_LAYER, SF_BUF_QKV, SF_BUF_Q, -1, HIDDEN, r_rope, 1),
    OP("attention", SF_OP_ATTENTION, SF_SCOPE_LAYER, SF_BUF_Q, SF_BUF_ATTN, -1, HIDDEN, r_attention, 1),
    OP("long", SF_OP_ATTENTION_LONG, SF_SCOPE_LAYER, SF_BUF_Q, SF_BUF_ATTN, -1, HIDDEN, r_long, 2),
    OP("final", SF_OP_RMSNORM, SF_SCOPE_HEAD, SF_BUF_X, SF_BUF_H, 3, HIDDEN, r_norm, 1),
    OP("head", SF_OP_GEMM, SF_SCOPE_HEAD, SF_BUF_H, SF_BUF_LOGITS, 0, VOCAB, r_gemm, 1),
    OP("sample", SF_OP_SAMPLE, SF_SCOPE_HEAD, SF_BUF_LOGITS, SF_BUF_NONE, -1, 1, r_sample, 1),
};
enum { LAYER_OPS = 4, HEAD_OPS = 3 }; /* launches; one more a layer where segments may be long */
static const sf_bucket buckets[] = {{8, {1, 1}}, {ROWS, {1, 1}}};
static const sf_plan plan = {
    .engine = "tiny-cuda",
    .backend = "cuda",
    .arch = "sm_90a",
    .model = {.vocab = VOCAB,
              .hidden = HIDDEN,
              .layers = LAYERS,
              .heads = 1,
              .kv_heads = 1,
              .head_dim = 64,
              .rope_theta = 10000,
              .rope_kind = "default"},
    .page_size = 64,
    .max_rows = ROWS,
    .max_logit_rows = LOGITS,
    .max_context = 256,
    .n_weights = 4,
    .n_ops = 9,
    .n_kernels = KERNELS,
    .n_buckets = 2,
    .weights = weights,
    .ops = ops,
    .buckets = buckets,
    .bufs = {{SF_BUF_NONE, "none", SF_F32, 0, false},
             {SF_BUF_TOKENS, "tokens", SF_I32, 1, false},
             {SF_BUF_X, "x", SF_F32, HIDDEN, false},
             {SF_BUF_H, "h", SF_BF16, HIDDEN, false},
             {SF_BUF_QKV, "qkv", SF_F32, 3 * HIDDEN, false},
             {SF_BUF_Q, "q", SF_BF16, HIDDEN, false},
             {SF_BUF_ATTN, "attn", SF_BF16, HIDDEN, false},
             {SF_BUF_ACT, "act", SF_BF16, HIDDEN, false},
             {SF_BUF_LOGITS, "logits", SF_F32, VOCAB, true}},
};

/* A device with kernels that need no compiler. */
static sf_cuda *make(const sf_plan *p, size_t memory) {
    sf_cuda *d = calloc(1, sizeof *d);
    assert_non_null(d);
    d->base = (sf_device){.ops = &sf_cuda_ops, .plan = p, .n_pages = PAGES, .feeds = true};
    d->cfg = (sf_cuda_config){.n_pages = PAGES, .max_seqs = 4, .threads = 2};
    d->kv_cache_page = -1;
    fake_driver_init(&d->cu, memory);
    d->gpu = (sf_gpu){.cu = &d->cu, .name = "Fake"};
    fake.streams = 1; /* the GPU's own */
    d->kernels = calloc(KERNELS, sizeof *d->kernels);
    assert_non_null(d->kernels);
    for (int i = 0; i < KERNELS; i++)
        d->kernels[i] = (sf_cuda_kernel){.name = "k", .launch = {.grid = 100, .threads = 32}};
    d->kernels[K_SAMPLE].launch.row_blocks = 8;
    d->drawing = (sf_cuda_kernel){.name = "draw", .fn = FAKE_DRAW, .launch = {.grid = 1, .threads = 256}};
    d->kernels[K_ATTENTION].launch.workspace = 4096;
    return d;
}

/* Random weights through the device's sink, then all that is made of them. */
static void make_ready(sf_cuda *d, const sf_plan *p, sf_weights **loaded) {
    sf_err err = {.msg = ""};
    sf_pool *pool = NULL;
    assert_int_equal(sf_cuda_memory_open(d, &err), SF_OK);
    const sf_weights_sink sink = sf_cuda_sink(&d->base);
    assert_int_equal(sf_pool_create(1, &pool, &err), SF_OK);
    assert_int_equal(sf_weights_random(p, 7, pool, false, &sink, loaded, &err), SF_OK);
    sf_pool_destroy(pool);
    assert_int_equal(sf_cuda_ready(&d->base, *loaded, &err), SF_OK);
}

static void no_leaks(void) {
    assert_int_equal(fake.allocs + fake.host_allocs + fake.events + fake.streams + fake.graphs, 0);
}

/* A pass of one segment from position 0, its last rows logit rows. */
typedef struct made {
    sf_pass pass;
    int32_t tokens[ROUTED], pages[PAGES], logit_row[LOGITS];
    sf_segment seg;
    sf_sample samples[LOGITS];
    sf_row_out out[LOGITS];
} made;

static void pass_of(made *m, sf_class cls, int rows, int logits) {
    *m = (made){.pass = {.cls = cls, .rows = rows, .n_segs = 1, .n_logits = logits}};
    m->pass.tokens = m->tokens;
    m->pass.segs = &m->seg;
    m->pass.logit_row = m->logit_row;
    m->pass.samples = m->samples;
    m->pass.out = m->out;
    m->seg = (sf_segment){SF_SEG_PREFILL, 0, rows, 0, m->pages};
    for (int i = 0; i < PAGES; i++)
        m->pages[i] = i;
    for (int i = 0; i < logits; i++) {
        m->logit_row[i] = rows - logits + i;
        m->samples[i] = (sf_sample){.top_p = 1, .repetition_penalty = 1, .target = -1, .draw = true};
    }
}

#endif
