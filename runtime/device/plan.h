/* The plan: one descriptor table, written by steadfast-gen as plan.c, that says which kernels exist, what
 * they accept and what they cost. The runtime never names a kernel: "is it supported" and "run it" read the
 * same row. Everything here is constant data; all pointers have static lifetime. */
#ifndef SF_DEVICE_PLAN_H
#define SF_DEVICE_PLAN_H

#include <stdbool.h>
#include <stdint.h>

typedef enum sf_class { SF_CLASS_FAST, SF_CLASS_PINNED, SF_CLASS_COUNT } sf_class;

/* CPU instruction sets a build may hold; a CPU build's kernels are compiled once for each. */
typedef enum sf_isa { SF_ISA_GENERIC, SF_ISA_AVX2, SF_ISA_AVX512, SF_ISA_AVX512BF16, SF_ISA_COUNT } sf_isa;

typedef enum sf_op {
    SF_OP_EMBED,       /* token ids -> x */
    SF_OP_RMSNORM,     /* x -> h */
    SF_OP_GEMM,        /* out = epilogue(in * W^T (+ bias)) */
    SF_OP_ROPE_APPEND, /* qkv -> q (rotated), KV pages (k rotated, v); weight: norms of q's and k's heads */
    SF_OP_ATTENTION,   /* q, KV pages -> attn */
    SF_OP_SAMPLE,      /* logits -> tokens, log-probabilities */
    SF_OP_ATTENTION_LONG, /* the same for segments of over SF_FEW_ROWS rows, where a backend has two kernels;
                             SF_OP_ATTENTION then serves the others */
    SF_OP_COUNT
} sf_op;

#define SF_FEW_ROWS 64 /* rows of a segment that SF_OP_ATTENTION serves beside SF_OP_ATTENTION_LONG */

/* Where an op stands in a pass. HEAD ops run over the logit rows only (gathered by the final norm). */
typedef enum sf_scope { SF_SCOPE_PRE, SF_SCOPE_LAYER, SF_SCOPE_HEAD } sf_scope;

typedef enum sf_dtype { SF_F32, SF_BF16, SF_I32 } sf_dtype;

/* Activation buffers, [rows, cols] row-major. */
typedef enum sf_buf_id {
    SF_BUF_NONE,
    SF_BUF_TOKENS, /* i32  [rows, 1]                            */
    SF_BUF_X,      /* f32  [rows, hidden], the residual stream  */
    SF_BUF_H,      /* bf16 [rows, hidden], normed               */
    SF_BUF_QKV,    /* f32  [rows, (heads + 2 kv_heads) head_dim] */
    SF_BUF_Q,      /* bf16 [rows, heads * head_dim], rotated and scaled by 1/sqrt(head_dim) */
    SF_BUF_ATTN,   /* bf16 [rows, heads * head_dim]             */
    SF_BUF_ACT,    /* bf16 [rows, intermediate]                 */
    SF_BUF_LOGITS, /* f32  [logit rows, vocab]                  */
    SF_BUF_COUNT
} sf_buf_id;

typedef enum sf_wformat {
    SF_W_F32,  /* vector, fp32 as stored (norms, biases) */
    SF_W_BF16, /* matrix [n, k], packed [n_pad/16][k_pad/2][16][2] bf16: 16 outputs are a vector's lanes, two
                  consecutive k share a 32-bit word (even k low). n is padded to 16, k to 2, with zeros */
    SF_W_BF16_MMA, /* matrix [n, k] in fragments of tensor cores: [n_pad/(16 tile)][k_pad/16][tile][32][8]
                      bf16; n is padded to 16 tile, k to 64 and at least 256, with zeros
                      (templates/snippets/gemm_weight.cuh)
                    */
    SF_W_COUNT     /* further formats (int8 and int4 groups for drafts) are added here and in the loader */
} sf_wformat;

typedef enum sf_role { SF_ROLE_PLAIN, SF_ROLE_Q, SF_ROLE_K } sf_role; /* Q, K: rows are rotary pairs */

/* One checkpoint tensor that forms part of a weight. `tensor` is the canonical name (GGUF spelling), with one
 * %d for the layer when the weight is per layer: "blk.%d.attn_q.weight". */
typedef struct sf_wpart {
    const char *tensor;
    int rows; /* rows it gives (vector: its length) */
    sf_role role;
    const char *fallback; /* what a tied model has in the place of `tensor` (its own head), or NULL */
} sf_wpart;

/* A weight slot; per-layer slots have `layers` instances. Parts stand one after another in n, or, when
 * `interleave` is set (gate and up of SwiGLU), in alternating blocks of rows: 16 of part 0, 16 of part 1...;
 * in SF_W_BF16_MMA 8 and 8. */
typedef struct sf_weight_desc {
    const char *name; /* "qkv" */
    sf_wformat format;
    bool per_layer, interleave;
    int n, k; /* matrix [n, k]; a vector has n = 1, k = length */
    int n_parts;
    sf_wpart parts[3];
    int tile; /* SF_W_BF16_MMA: tiles of 16 rows in a group */
} sf_weight_desc;

struct sf_cpu_args;
typedef void sf_cpu_kernel_fn(const struct sf_cpu_args *a, int part, int parts);

/* One specialised kernel. */
typedef struct sf_kernel {
    const char *name;     /* "gemm_qkv_bf16_r8n3_cpu_pinned" */
    const char *file;     /* generated file, relative to the output folder */
    const char *template; /* its template */
    const char *order;    /* reduction order, from the template's head */
    sf_class cls;
    sf_cpu_kernel_fn *cpu[SF_ISA_COUNT]; /* NULL where the build holds none */
    const char *source;                  /* CUDA source, compiled at start; NULL: a CPU kernel */
} sf_kernel;

/* A file that CUDA sources include, by the name in their #include. */
typedef struct sf_source_file {
    const char *name, *text;
} sf_source_file;

/* Which kernel serves an op at a row count: the first route with rows <= rows_max. */
typedef struct sf_route {
    int rows_max;
    int kernel; /* index into sf_plan.kernels; -1: nothing to do at so few rows (SF_OP_ATTENTION_LONG) */
    double us_at_max; /* cost model: microseconds at rows_max rows */
} sf_route;

/* A library that may serve an op in the fast class from rows_min rows on, where it is on the machine and
 * faster than the op's routes. It reads a copy of the weight in its own layout, which `kernel` makes. */
typedef struct sf_library_route {
    const char *library; /* "cublaslt" */
    int rows_min;
    int kernel; /* index into sf_plan.kernels: from args.in, the packed weight, to args.out */
    int finish; /* likewise: from the product, bf16 [rows, n] in the order of packed rows, to the op's out;
                   -1: the product is the op's out, fp32 */
    bool adds;  /* to what the op's out holds; else it is written */
} sf_library_route;

typedef struct sf_op_desc {
    const char *name; /* "qkv" */
    sf_op op;
    sf_scope scope;
    sf_buf_id in, out;
    int weight; /* index into sf_plan.weights, -1 none */
    int bias;   /* likewise (GEMM) */
    int n, k;   /* GEMM: out features, in features; otherwise n = output columns, k = input columns */
    uint64_t weight_bytes, row_bytes, row_flops; /* read once a pass; per row */
    int n_routes[SF_CLASS_COUNT];
    const sf_route *routes[SF_CLASS_COUNT];
    const sf_library_route *library; /* NULL: none */
} sf_op_desc;

typedef struct sf_buf_desc {
    sf_buf_id id;
    const char *name;
    sf_dtype dtype;
    int cols;
    bool logit_rows; /* sized by max_logit_rows, not max_rows */
} sf_buf_desc;

/* A pass's row bucket: expected time by class (microseconds, cost model, context excluded). */
typedef struct sf_bucket {
    int rows_max;
    double us[SF_CLASS_COUNT];
} sf_bucket;

typedef struct sf_model_desc {
    const char *name;   /* "smollm2-135m" */
    const char *family; /* "llama" */
    int vocab, hidden, layers, heads, kv_heads, head_dim, intermediate;
    int context; /* positions the model was trained for */
    float norm_eps;
    double rope_theta;
    bool tied_embeddings, qkv_bias;
    int bos;      /* -1: none */
    bool add_bos; /* put one BOS before a plain prompt */
    int n_eos, eos[8];
    const char *tokenizer_split; /* "smollm" */
    const char *chat_template;   /* NULL: the checkpoint's */
    const char *rope_kind;       /* "default" (NULL too), "linear", "llama3" or "yarn" (device/rope.h) */
    double rope_factor;          /* all but default; 0 there */
    double rope_low_freq, rope_high_freq;                           /* llama3 */
    int rope_original_context;                                      /* llama3, yarn */
    double rope_beta_fast, rope_beta_slow;                          /* yarn: turns */
    double rope_attention_factor, rope_mscale, rope_mscale_all_dim; /* yarn; 0: not given */
    bool rope_exact_range; /* yarn: the blended range isn't rounded to whole pairs (truncate: false) */
    bool qk_norm;          /* RMSNorm of each head of q and k before its rotation, by norm_eps */
} sf_model_desc;

typedef struct sf_plan {
    const char *engine;   /* "smollm2-135m-cpu" */
    const char *backend;  /* "cpu" */
    const char *config;   /* build configuration's name */
    const char *gen_hash; /* SHA-256 of the inputs, as in LOCK */
    const char
        *pinned_hash; /* SHA-256 over the pinned kernels' sources and the schedule: part of the fingerprint */
    sf_model_desc model;
    int page_size;      /* KV positions per page; a multiple of 16 */
    int max_rows;       /* rows of one pass */
    int max_logit_rows; /* logit rows of one pass */
    int max_context;    /* positions per sequence */
    int max_seqs;       /* default for --max-num-seqs */
    int kv_pages;       /* default pool size */
    int window;         /* default W, 2..64 */
    int prefill_chunk;  /* default rows of prefill in one pass */
    int verify_wait;    /* default: fast passes a full window may wait for a group */
    int prefill_split; /* default: waiting rows of ordinary prompts that get fast passes of their own; 0: none
                        */
    const char *policy; /* default: "verify" or "pin" */
    const char *isas;   /* the build's, space-separated, for messages */
    const char *arch;   /* cuda: "sm_90a"; otherwise NULL */
    int sms;            /* cuda: multiprocessors the kernels were planned for */
    int n_headers;      /* cuda: what the kernels' sources include */
    const sf_source_file *headers;
    int n_weights, n_ops, n_kernels, n_buckets;
    const sf_weight_desc *weights;
    const sf_op_desc *ops; /* in order: PRE, LAYER (repeated per layer), HEAD */
    const sf_kernel *kernels;
    const sf_bucket *buckets;
    sf_buf_desc bufs[SF_BUF_COUNT]; /* indexed by sf_buf_id */
} sf_plan;

/* The one plan of this binary (plan.c). */
extern const sf_plan sf_the_plan;

#endif
