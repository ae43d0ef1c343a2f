#include "odd.h"

#include "snippets/sample_draw.h"

#define PASTE_(a, b) a##b
#define PASTE(a, b)  PASTE_(a, b)

#define GEMM_KERNEL(name, n_, k_, epilogue_, bias_, mr_, nr_, flavour_)                                      \
    static void gemm_##name(const sf_cpu_args *a, int part, int parts) {                                     \
        const gemm_shape s = {.n = n_,                                                                       \
                              .k = k_,                                                                       \
                              .epilogue = epilogue_,                                                         \
                              .bias = bias_,                                                                 \
                              .mr = mr_,                                                                     \
                              .nr = nr_,                                                                     \
                              .flavour = flavour_};                                                          \
        gemm_run(s, a, part, parts);                                                                         \
    }
ODD_GEMMS(GEMM_KERNEL)

#define ATTENTION_KERNEL(name, heads_, kv_, dim_, page_, loose_)                                             \
    static void attention_##name(const sf_cpu_args *a, int part, int parts) {                                \
        const attn_shape s = {                                                                               \
            .heads = heads_, .kv_heads = kv_, .head_dim = dim_, .page = page_, .loose = loose_};             \
        attn_run(s, a, part, parts);                                                                         \
    }
ODD_ATTENTIONS(ATTENTION_KERNEL)

static void exp16(const float x[16], float y[16]) {
    v_store(y, v_exp(v_load(x)));
}
static void log16(const float x[16], float y[16]) {
    v_store(y, v_log(v_load(x)));
}
static void operand16(const float x[16], float y[16]) {
    v_store(y, v_operand(v_load(x)));
}
static void gumbel16(const uint32_t w[16], float y[16]) {
    v_store(y, draw_gumbel(vu_load(w)));
}
static float sum16(const float x[16]) {
    return v_sum(v_load(x));
}
static void philox16(uint32_t w[4][16], uint32_t key0, uint32_t key1) {
    philox p;
    for (int i = 0; i < 4; i++)
        p.w[i] = vu_load(w[i]);
    philox_draw(&p, key0, key1);
    for (int i = 0; i < 4; i++)
        vu_store(w[i], p.w[i]);
}

#define GEMM_ROW(name, n_, k_, epilogue_, bias_, mr_, nr_, flavour_)                                         \
    {#name, {n_, k_, epilogue_, bias_, mr_, nr_, flavour_}, gemm_##name},
#define ATTENTION_ROW(name, heads_, kv_, dim_, page_, loose_)                                                \
    {#name, {heads_, kv_, dim_, page_, loose_}, attention_##name},

extern sf_cpu_kernel_fn PASTE(sample_default__, SF_ISA);
extern const odd_set PASTE(odd_set_, SF_ISA);
const odd_set PASTE(odd_set_, SF_ISA) = {
    .isa = ODD_ISA,
    .gemm = {ODD_GEMMS(GEMM_ROW)},
    .attention = {ODD_ATTENTIONS(ATTENTION_ROW)},
    .sample = PASTE(sample_default__, SF_ISA),
    .exp = exp16,
    .log = log16,
    .gumbel = gumbel16,
    .operand = operand16,
    .philox = philox16,
    .sum = sum16,
};
