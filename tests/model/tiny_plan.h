/* The plan of a model of odd sizes: hidden 7, heads 2 (1 KV) of 4, intermediate 20, vocabulary 21, 2 layers,
 * biases, own head. */
#ifndef TESTS_MODEL_TINY_PLAN_H
#define TESTS_MODEL_TINY_PLAN_H

#include "device/plan.h"

#include <string.h>

enum { TINY_EMBED, TINY_NORM, TINY_QKV, TINY_BIAS, TINY_OUT, TINY_GATE_UP, TINY_DOWN, TINY_HEAD, TINY_SLOTS };

static const sf_weight_desc tiny_weights[TINY_SLOTS] = {
    {"embed", SF_W_BF16, false, false, 21, 7, 1, {{"token_embd.weight", 21, SF_ROLE_PLAIN, NULL}}, 0},
    {"norm", SF_W_F32, true, false, 1, 7, 1, {{"blk.%d.attn_norm.weight", 7, SF_ROLE_PLAIN, NULL}}, 0},
    {"qkv",
     SF_W_BF16,
     true,
     false,
     16,
     7,
     3,
     {{"blk.%d.attn_q.weight", 8, SF_ROLE_Q, NULL},
      {"blk.%d.attn_k.weight", 4, SF_ROLE_K, NULL},
      {"blk.%d.attn_v.weight", 4, SF_ROLE_PLAIN, NULL}},
     0},
    {"qkv_bias",
     SF_W_F32,
     true,
     false,
     1,
     16,
     3,
     {{"blk.%d.attn_q.bias", 8, SF_ROLE_Q, NULL},
      {"blk.%d.attn_k.bias", 4, SF_ROLE_K, NULL},
      {"blk.%d.attn_v.bias", 4, SF_ROLE_PLAIN, NULL}},
     0},
    {"o", SF_W_BF16, true, false, 7, 8, 1, {{"blk.%d.attn_output.weight", 7, SF_ROLE_PLAIN, NULL}}, 0},
    {"gate_up",
     SF_W_BF16,
     true,
     true,
     40,
     7,
     2,
     {{"blk.%d.ffn_gate.weight", 20, SF_ROLE_PLAIN, NULL}, {"blk.%d.ffn_up.weight", 20, SF_ROLE_PLAIN, NULL}},
     0},
    {"down", SF_W_BF16, true, false, 7, 20, 1, {{"blk.%d.ffn_down.weight", 7, SF_ROLE_PLAIN, NULL}}, 0},
    {"head",
     SF_W_BF16,
     false,
     false,
     21,
     7,
     1,
     {{"output.weight", 21, SF_ROLE_PLAIN, "token_embd.weight"}},
     0},
};

/* The same weights with the matrices in fragments of tensor cores. */
static inline void tiny_as_mma(int tile, sf_weight_desc out[TINY_SLOTS]) {
    memcpy(out, tiny_weights, sizeof tiny_weights);
    for (int i = 0; i < TINY_SLOTS; i++) {
        if (out[i].format == SF_W_BF16) {
            out[i].format = SF_W_BF16_MMA;
            out[i].tile = tile;
        }
    }
}

static const sf_op_desc tiny_ops[] = {
    {.name = "embed", .op = SF_OP_EMBED, .weight = TINY_EMBED, .bias = -1},
    {.name = "norm", .op = SF_OP_RMSNORM, .weight = TINY_NORM, .bias = -1},
    {.name = "qkv", .op = SF_OP_GEMM, .weight = TINY_QKV, .bias = TINY_BIAS},
    {.name = "head", .op = SF_OP_GEMM, .weight = TINY_HEAD, .bias = -1},
};

static const sf_plan tiny_plan = {
    .engine = "tiny-cpu",
    .model = {.name = "tiny",
              .family = "llama",
              .vocab = 21,
              .hidden = 7,
              .layers = 2,
              .heads = 2,
              .kv_heads = 1,
              .head_dim = 4,
              .intermediate = 20,
              .context = 32,
              .norm_eps = 1e-5f,
              .rope_theta = 50000,
              .qkv_bias = true},
    .n_weights = TINY_SLOTS,
    .weights = tiny_weights,
    .n_ops = 4,
    .ops = tiny_ops,
};

#endif
