//@ template sample
//@ op sample
//@ backend cpu
//@ class both
//@ rows 1..
//@ order: ids ascending
//@ param VOCAB int = 8 in 1..1048576 from model.vocab
//@ prelude
#define KERNEL_NAME sample_default
enum { VOCAB = 8 };
//@ end
void KERNEL_NAME(float *out) { out[0] = VOCAB; }
