#include "odd.h"

#include "snippets/sample_draw.h"
#include "snippets/vec_bf16.h"

#define PASTE_(a, b) a##b
#define PASTE(a, b)  PASTE_(a, b)

/* Shapes are n, k, epilogue, bias, rows and blocks of the tile, flavour; heads, KV heads, head_dim, page,
 * loose. */
static void gemm_odd_r1(const sf_cpu_args *a, int part, int parts) {
    gemm_run((gemm_shape){37, 51, GEMM_STORE, 1, 1, 6, GEMM_PINNED}, a, part, parts);
}
static void gemm_odd_r2(const sf_cpu_args *a, int part, int parts) {
    gemm_run((gemm_shape){37, 51, GEMM_STORE, 1, 2, 6, GEMM_PINNED}, a, part, parts);
}
static void gemm_odd_r4(const sf_cpu_args *a, int part, int parts) {
    gemm_run((gemm_shape){37, 51, GEMM_STORE, 1, 4, 6, GEMM_PINNED}, a, part, parts);
}
static void gemm_odd_r12(const sf_cpu_args *a, int part, int parts) {
    gemm_run((gemm_shape){37, 51, GEMM_STORE, 1, 12, 2, GEMM_PINNED}, a, part, parts);
}
static void gemm_add_r12(const sf_cpu_args *a, int part, int parts) {
    gemm_run((gemm_shape){100, 33, GEMM_ADD, 0, 12, 2, GEMM_PINNED}, a, part, parts);
}
static void gemm_add_r1(const sf_cpu_args *a, int part, int parts) {
    gemm_run((gemm_shape){100, 33, GEMM_ADD, 0, 1, 6, GEMM_PINNED}, a, part, parts);
}
static void gemm_act_r12(const sf_cpu_args *a, int part, int parts) {
    gemm_run((gemm_shape){46, 19, GEMM_SWIGLU, 0, 12, 2, GEMM_PINNED}, a, part, parts);
}
static void gemm_act_r1(const sf_cpu_args *a, int part, int parts) {
    gemm_run((gemm_shape){46, 19, GEMM_SWIGLU, 0, 1, 6, GEMM_PINNED}, a, part, parts);
}
static void gemm_one_k(const sf_cpu_args *a, int part, int parts) {
    gemm_run((gemm_shape){5, 1, GEMM_STORE, 0, 12, 2, GEMM_PINNED}, a, part, parts);
}
static void gemm_split_r1(const sf_cpu_args *a, int part, int parts) {
    gemm_run((gemm_shape){37, 51, GEMM_STORE, 1, 1, 6, GEMM_SPLIT}, a, part, parts);
}
static void gemm_split_r2(const sf_cpu_args *a, int part, int parts) {
    gemm_run((gemm_shape){46, 20, GEMM_SWIGLU, 0, 2, 6, GEMM_SPLIT}, a, part, parts);
}
static void attention_alone(const sf_cpu_args *a, int part, int parts) {
    attn_run((attn_shape){4, 4, 20, 32, 0}, a, part, parts);
}
static void attention_crowd(const sf_cpu_args *a, int part, int parts) {
    attn_run((attn_shape){14, 1, 8, 48, 0}, a, part, parts);
}
static void attention_loose(const sf_cpu_args *a, int part, int parts) {
    attn_run((attn_shape){6, 2, 34, 16, 1}, a, part, parts);
}

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

extern sf_cpu_kernel_fn PASTE(sample_default__, SF_ISA), PASTE(rope_append_default__, SF_ISA);
extern const odd_set PASTE(odd_set_, SF_ISA);
const odd_set PASTE(odd_set_, SF_ISA) = {
    .isa = ODD_ISA,
    .gemm =
        {
            {"odd_r1", {37, 51, GEMM_STORE, 1, 1, 6, GEMM_PINNED}, gemm_odd_r1},
            {"odd_r2", {37, 51, GEMM_STORE, 1, 2, 6, GEMM_PINNED}, gemm_odd_r2},
            {"odd_r4", {37, 51, GEMM_STORE, 1, 4, 6, GEMM_PINNED}, gemm_odd_r4},
            {"odd_r12", {37, 51, GEMM_STORE, 1, 12, 2, GEMM_PINNED}, gemm_odd_r12},
            {"add_r12", {100, 33, GEMM_ADD, 0, 12, 2, GEMM_PINNED}, gemm_add_r12},
            {"add_r1", {100, 33, GEMM_ADD, 0, 1, 6, GEMM_PINNED}, gemm_add_r1},
            {"act_r12", {46, 19, GEMM_SWIGLU, 0, 12, 2, GEMM_PINNED}, gemm_act_r12},
            {"act_r1", {46, 19, GEMM_SWIGLU, 0, 1, 6, GEMM_PINNED}, gemm_act_r1},
            {"one_k", {5, 1, GEMM_STORE, 0, 12, 2, GEMM_PINNED}, gemm_one_k},
            {"split_r1", {37, 51, GEMM_STORE, 1, 1, 6, GEMM_SPLIT}, gemm_split_r1},
            {"split_r2", {46, 20, GEMM_SWIGLU, 0, 2, 6, GEMM_SPLIT}, gemm_split_r2},
        },
    .attention =
        {
            {"alone", {4, 4, 20, 32, 0}, attention_alone},
            {"crowd", {14, 1, 8, 48, 0}, attention_crowd},
            {"loose", {6, 2, 34, 16, 1}, attention_loose},
        },
    .sample = PASTE(sample_default__, SF_ISA),
    .rope_append = PASTE(rope_append_default__, SF_ISA),
    .exp = exp16,
    .log = log16,
    .gumbel = gumbel16,
    .operand = operand16,
    .philox = philox16,
    .sum = sum16,
};
