//@ template attention
//@ op attention
//@ backend cpu
//@ class both
//@ rows 1..
//@ name d${HEAD_DIM}
//@ order: positions ascending
//@ param HEAD_DIM int = 8 in 2..512 from model.head_dim
//@ param CONTEXT  int = 16 in 1..1048576 from config.context
//@ prelude
#define KERNEL_NAME attention_default
enum { HEAD_DIM = 8, CONTEXT = 16 };
//@ end
void KERNEL_NAME(float *out) { out[0] = HEAD_DIM + CONTEXT; }
