//@ template rope_append
//@ op rope_append
//@ backend cpu
//@ class both
//@ rows 1..
//@ order: element by element
//@ param HEADS int = 2 in 1..1024 from model.heads
//@ param PAGE  int = 16 in 16..1024 from config.kv_page
//@ prelude
#define KERNEL_NAME rope_append_default
enum { HEADS = 2, PAGE = 16 };
//@ end
void KERNEL_NAME(float *out) { out[0] = HEADS + PAGE; }
