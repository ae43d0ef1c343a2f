//@ template attention_fast
//@ op attention
//@ backend cpu
//@ class fast
//@ rows 1..
//@ name d${HEAD_DIM}
//@ order: free: even and odd dims and positions apart where there are few queries
//@ param HEADS    int = 9 in 1..1024 from model.heads
//@ param KV_HEADS int = 3 in 1..1024 from model.kv_heads
//@ param HEAD_DIM int = 64 in 2..1024 from model.head_dim
//@ param PAGE     int = 16 in 16..4096 from config.kv_page
//@ prelude
#ifndef KERNEL_NAME
#define KERNEL_NAME attention_fast_default
#endif
enum { HEADS = 9, KV_HEADS = 3, HEAD_DIM = 64, PAGE = 16 };
//@ end
#include "snippets/attention.h"

_Static_assert(HEADS % KV_HEADS == 0, "query heads share KV heads evenly");
_Static_assert(PAGE % 16 == 0 && HEAD_DIM % 2 == 0, "whole vectors of keys, pairs of dims");

SF_CPU_KERNEL(KERNEL_NAME) {
    const attn_shape shape = {
        .heads = HEADS, .kv_heads = KV_HEADS, .head_dim = HEAD_DIM, .page = PAGE, .loose = 1};
    attn_run(shape, a, part, parts);
}
