/* The op list of a model with shapes: what a pass computes, in order, and the weights it reads. */
#ifndef SF_GEN_OPS_H
#define SF_GEN_OPS_H

#include "machine.h"
#include "model.h"

#define SF_OPS_MAX     16
#define SF_WEIGHTS_MAX 16

/* GEMM epilogues, as templates spell them. */
typedef enum sf_epilogue { SF_EPILOGUE_STORE, SF_EPILOGUE_ADD, SF_EPILOGUE_SWIGLU } sf_epilogue;

typedef struct sf_op_spec {
    sf_op_desc desc; /* without costs and routes */
    sf_epilogue epilogue;
    int tile;          /* of its weight; 0 where it has none, or the backend no tiles */
    bool gathered;     /* rows are the logit rows, gathered from the pass's rows */
    const char *shape; /* for a person: "[rows, 576] x [960, 576]^T" */
} sf_op_spec;

typedef struct sf_ops {
    int n, n_weights;
    sf_op_spec ops[SF_OPS_MAX];
    sf_weight_desc weights[SF_WEIGHTS_MAX];
    sf_buf_desc bufs[SF_BUF_COUNT];
} sf_ops;

const char *sf_op_name(sf_op op);            /* "rmsnorm", as templates spell it */
const char *sf_epilogue_name(sf_epilogue e); /* "store" */
const char *sf_class_name(sf_class cls);     /* "fast", "pinned" */
const char *sf_dtype_name(sf_dtype d);       /* "bf16" */
int sf_dtype_bytes(sf_dtype d);
/* Tiles of 16 rows; an interleaved weight's hold 8 rows of each part. */
int sf_weight_tiles(const sf_weight_desc *w);

/* Builds the list of a llama-family model (pre-norm, grouped-query attention, SwiGLU). On cuda its matrices
 * are packed in tiles, and attention is two ops. */
SF_CHECKED sf_code sf_ops_build(sf_arena *a, const sf_model *m, const sf_machine *mc, sf_ops *out,
                                sf_err *err);

#endif
