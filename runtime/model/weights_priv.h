/* Inside of the weights loader: check -> layout -> read rows -> pack. */
#ifndef SF_MODEL_WEIGHTS_PRIV_H
#define SF_MODEL_WEIGHTS_PRIV_H

#include "model/weights.h"

/* One slot for one layer. */
typedef struct sf_winst {
    int slot, layer;
    const sf_weight_desc *desc;
    size_t offset;                  /* of its packed bytes */
    const sf_gguf_tensor *parts[3]; /* [desc->n_parts]; NULL with random weights */
} sf_winst;

typedef struct sf_wsource sf_wsource;

#define SF_WNAME_SIZE 128 /* bytes of a tensor's name, with its NUL */

/* A checkpoint's tensors, whatever its format. */
typedef struct sf_wfile {
    const char *path; /* for messages */
    const void *file; /* sf_gguf or sf_safetensors */
    int n;            /* tensors */
    bool neighbours;  /* rows 2i, 2i+1 of a head of q and k are a rotary pair; else i, i + head_dim/2 */
    bool absent_head_is_tied; /* a part's fallback stands in for a tensor that is absent */
    const sf_gguf_tensor *(*at)(const void *file, int i);
    /* The file's name of a canonical one; false: it has none. */
    bool (*spell)(const char *canonical, char out[SF_WNAME_SIZE]);
    int (*find)(const void *file, const char *name);                 /* -1: absent */
    const char *(*label)(const void *file, const sf_gguf_tensor *t); /* before a message about it */
    /* Whether a tensor that no slot uses may be there, or an error that says more than that. NULL: none may.
     */
    SF_CHECKED sf_code (*surplus)(const sf_wsource *s, const sf_gguf_tensor *t, bool *harmless, sf_err *err);
} sf_wfile;

/* Where rows come from: a checkpoint or a random stream. */
struct sf_wsource {
    const sf_plan *plan;
    /* Elements from .. from+count-1 of a slot's row that isn't padding (of a vector, row 0), rotary pairs as
     * halves. from is a multiple of SF_PACK_STEP. Any thread. */
    SF_CHECKED sf_code (*read)(const sf_wsource *s, const sf_winst *w, int row, int from, int count,
                               float *out, sf_err *err);
    /* Fills err for a value, in that row (of a vector: that element), that the format can't hold as a finite
     * number. */
    sf_code (*not_finite)(const sf_wsource *s, const sf_winst *w, int row, sf_err *err);
    sf_wfile file; /* checkpoint */
    uint64_t seed; /* random */
};

#define SF_LANES     16  /* rows of a block of SF_W_BF16: a vector's lanes */
#define SF_PACK_STEP 256 /* columns converted at a time; a multiple of every ggml block */

/* The inner loops, in forms that give the same bits. */
typedef struct sf_wloops {
    /* Rounds to bf16 operands; returns whether all are finite. */
    bool (*to_bf16)(const float *restrict row, int count, uint16_t *restrict out);
    /* Two values of each of consecutive Philox counters (the first word counts up, and wraps): a sum s of
     * four 16-bit numbers gives mean + scale * (2 s - 4 * 65535). */
    void (*draw)(const uint32_t counter[4], const uint32_t key[2], float mean, float scale, int count,
                 float *restrict out);
} sf_wloops;

const sf_wloops *sf_wloops_at(int i); /* 0 is plain; NULL: the machine or the build hasn't got it */
const sf_wloops *sf_wloops_best(void);

/* A slot's packed form: groups of rows one after another, a group's columns cut in pieces that stand one
 * after another too (the last may be shorter). Such a piece is a block, numbered in the order of memory. */
typedef struct sf_wlayout {
    int blocks, pieces;              /* of the slot; of a group */
    size_t group_bytes, piece_bytes; /* of a piece that isn't the last */
    size_t unit_bytes;               /* about so much is packed and hashed as one unit */
} sf_wlayout;

/* Byte where a block begins; blocks: where the slot ends. */
size_t sf_wlayout_offset(const sf_wlayout *l, int block);

/* Work of one thread at a time: consecutive blocks of one instance. The cut depends on the plan alone, and
 * the digests of the units make up the hash, which so doesn't depend on the number of threads. */
typedef struct sf_wunit {
    int inst, block, blocks;
    char digest[65];
} sf_wunit;

struct sf_weights {
    const sf_plan *plan;
    int n_insts, n_units;
    int *first;                      /* [plan->n_weights], first instance of a slot */
    sf_winst *insts;                 /* [n_insts] */
    sf_wunit *units;                 /* [n_units] */
    uint8_t *data;                   /* [bytes]; NULL: in a sink */
    size_t bytes, align, unit_bytes; /* of all; of an instance; of the largest unit, rounded up to align */
    char hash[65];
};

/* Lays out memory and units; data stays NULL. */
SF_CHECKED sf_code sf_weights_create(const sf_plan *plan, const sf_weights_sink *sink, sf_weights **out,
                                     sf_err *err);
int sf_winst_count(const sf_plan *plan, int slot);
size_t sf_winst_round(const sf_weights *w, size_t n); /* up to the alignment of instances */

/* Which part a row of the slot (of a vector: an element) belongs to, and which row of that part it is; -1 for
 * padding. In every format a slot's rows are numbered as SF_W_BF16 packs them: alternating parts in blocks of
 * 16 rows. */
int sf_wrow_locate(const sf_weight_desc *d, int slot_row, int *row);
/* One of those rows, or zeros where it is padding, as bf16: `count` elements from `from` on, then zeros up to
 * out [padded]. Checks that the values are finite. */
SF_CHECKED sf_code sf_wrow_bf16(const sf_wsource *s, const sf_winst *w, int row, int from, int count,
                                int padded, uint16_t *out, sf_err *err);
/* Errors: SF_UNSUPPORTED for a format the loader doesn't know. */
SF_CHECKED sf_code sf_wformat_layout(const sf_weight_desc *d, sf_wlayout *out, sf_err *err);
/* Reads and packs blocks block .. block+blocks-1 to dst (their bytes by sf_wlayout_offset; 64-byte aligned).
 */
SF_CHECKED sf_code sf_wformat_pack(const sf_wsource *s, const sf_winst *w, int block, int blocks,
                                   uint8_t *dst, sf_err *err);

/* SF_W_BF16_MMA's share of the two; a block is SF_PACK_STEP columns of a group of tiles. */
void sf_wmma_layout(const sf_weight_desc *d, sf_wlayout *out);
SF_CHECKED sf_code sf_wmma_pack(const sf_wsource *s, const sf_winst *w, int block, uint8_t *dst, sf_err *err);

/* sf_weights_check_metadata of a config.json. */
SF_CHECKED sf_code sf_weights_check_config(const sf_plan *plan, const sf_hf_config *c, sf_err *err);
/* Fills the parts of every instance and checks types and shapes; a tensor of the file that no slot uses is an
 * error. */
SF_CHECKED sf_code sf_weights_find_tensors(const sf_wsource *s, sf_winst *insts, int n_insts, sf_err *err);

sf_wsource sf_wsource_file(const sf_plan *plan, sf_wfile file);
sf_wsource sf_wsource_gguf(const sf_plan *plan, const sf_gguf *g);
sf_wsource sf_wsource_st(const sf_plan *plan, const sf_safetensors *st);
sf_wsource sf_wsource_random(const sf_plan *plan, uint64_t seed);

#endif
