//@ template embed
//@ op embed
//@ backend cpu
//@ class both
//@ rows 1..
//@ order: none, a copy
//@ param DIM int = 8 in 1..65536 from model.hidden
//@ prelude
#define KERNEL_NAME embed_default
enum { DIM = 8 };
//@ end
void KERNEL_NAME(const float *in, float *out) {
    for (int i = 0; i < DIM; i++)
        out[i] = in[i];
}
