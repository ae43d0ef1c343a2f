/* Inside of the weights loader: check -> layout -> read rows -> pack. */
#ifndef SF_MODEL_WEIGHTS_PRIV_H
#define SF_MODEL_WEIGHTS_PRIV_H

#include "model/weights.h"
#include "model/weights_loops_priv.h"

/* One slot for one layer. */
typedef struct sf_winst {
    int slot, layer;
    const sf_weight_desc *desc;
    size_t offset;                  /* of its packed bytes */
    const sf_gguf_tensor *parts[3]; /* [desc->n_parts]; NULL with random weights */
} sf_winst;

typedef struct sf_wsource sf_wsource;

#define SF_WNAME_SIZE 128 /* bytes of a tensor's name, with its NUL */

/* About a tensor of a file. */
#define SF_WFILE_FAIL(f, t, code, fmt, ...)                                                                  \
    SF_FAIL_AT(err, code, ((sf_loc){(f)->path, 0, 0}), "%stensor %s" fmt, (f)->label((f)->file, t),          \
               (t)->name, __VA_ARGS__)

/* A checkpoint's tensors, whatever its format. */
typedef struct sf_wfile {
    const char *path; /* for messages */
    const void *file; /* sf_gguf or sf_safetensors */
    int n;            /* tensors */
    bool neighbours;  /* rows 2i, 2i+1 of a head of q and k are a rotary pair; else i, i + head_dim/2 */
    const sf_gguf_tensor *(*at)(const void *file, int i);
    /* The file's name of a canonical one; false: it has none. */
    bool (*spell)(const char *canonical, char out[SF_WNAME_SIZE]);
    int (*find)(const void *file, const char *name);                 /* -1: absent */
    const char *(*label)(const void *file, const sf_gguf_tensor *t); /* before a message about it */
    /* The descriptor of the file that holds t, and where in it t's bytes begin; -1: they are at t->data. */
    int (*place)(const void *file, const sf_gguf_tensor *t, uint64_t *offset);
    /* Whether a tensor that no slot uses may be there, or an error that says more than that. NULL: none may.
     */
    SF_CHECKED sf_code (*surplus)(const sf_wsource *s, const sf_gguf_tensor *t, bool *harmless, sf_err *err);
} sf_wfile;

#define SF_WROWS_MAX 256 /* rows of the largest group of tiles */

/* Rows of a slot and the columns from .. to-1 of them, which a thread packs next; and what it read for them.
 * A source fills tensor and at by fetch; tensor is NULL for padding, and for random weights. */
typedef struct sf_wrows {
    int n, from, to;                            /* from is a multiple of SF_PACK_STEP */
    int row[SF_WROWS_MAX];                      /* [n], as sf_wrow_locate numbers them */
    const sf_gguf_tensor *tensor[SF_WROWS_MAX]; /* [n] */
    size_t at[SF_WROWS_MAX]; /* [n], where in bytes its element `from` stands as the checkpoint has it */
    uint8_t *bytes;          /* [size], grown by fetch, freed by who made this */
    size_t size;
} sf_wrows;

/* Where rows come from: a checkpoint or a random stream. Any thread may call, with sf_wrows of its own. */
struct sf_wsource {
    const sf_plan *plan;
    /* NULL: nothing needs to be fetched. */
    SF_CHECKED sf_code (*fetch)(const sf_wsource *s, const sf_winst *w, sf_wrows *x, sf_err *err);
    /* Elements from .. from+count-1 of row x->row[i], which isn't padding, rotary pairs as halves. from is a
     * multiple of SF_PACK_STEP, the elements are among the fetched ones. */
    void (*read)(const sf_wsource *s, const sf_winst *w, const sf_wrows *x, int i, int from, int count,
                 float *out);
    /* The whole of a vector; x is scratch. */
    SF_CHECKED sf_code (*vector)(const sf_wsource *s, const sf_winst *w, sf_wrows *x, float *out,
                                 sf_err *err);
    /* Fills err for a value, in that row (of a vector: that element), that the format can't hold as a finite
     * number. */
    sf_code (*not_finite)(const sf_wsource *s, const sf_winst *w, int row, sf_err *err);
    /* Fills what a sink needs to draw a matrix itself; NULL: these are no random weights. */
    void (*describe)(const sf_wsource *s, const sf_winst *w, sf_wdraw *out);
    sf_wfile file; /* checkpoint */
    uint64_t seed; /* random */
};

#define SF_PACK_STEP 256 /* columns converted at a time; a multiple of every ggml block */

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
    uint8_t digest[16]; /* XXH3's 128 bits of the packed bytes */
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
/* Row x->row[i], or zeros where it is padding, as bf16: `count` elements from `from` on, then zeros up to
 * out [padded]. Checks that the values are finite. */
SF_CHECKED sf_code sf_wrow_bf16(const sf_wsource *s, const sf_winst *w, const sf_wrows *x, int i, int from,
                                int count, int padded, uint16_t *out, sf_err *err);
/* Errors: SF_UNSUPPORTED for a format the loader doesn't know. */
SF_CHECKED sf_code sf_wformat_layout(const sf_weight_desc *d, sf_wlayout *out, sf_err *err);
/* Reads and packs blocks block .. block+blocks-1 to dst (their bytes by sf_wlayout_offset; 64-byte aligned).
 */
SF_CHECKED sf_code sf_wformat_pack(const sf_wsource *s, const sf_winst *w, int block, int blocks, sf_wrows *x,
                                   uint8_t *dst, sf_err *err);

/* SF_W_BF16_MMA's share of the two; a block is SF_PACK_STEP columns of a group of tiles. */
void sf_wmma_layout(const sf_weight_desc *d, sf_wlayout *out);
SF_CHECKED sf_code sf_wmma_pack(const sf_wsource *s, const sf_winst *w, int block, int blocks, sf_wrows *x,
                                uint8_t *dst, sf_err *err);

/* sf_weights_check_metadata of a config.json. */
SF_CHECKED sf_code sf_weights_check_config(const sf_plan *plan, const sf_hf_config *c, sf_err *err);
/* Fills the parts of every instance and checks types and shapes; a tensor of the file that no slot uses is an
 * error. */
SF_CHECKED sf_code sf_weights_find_tensors(const sf_wsource *s, sf_winst *insts, int n_insts, sf_err *err);
/* n bytes of a tensor, from byte `offset` of its own, by reading the file: one that has been cut since it was
 * mapped is an error (SF_IO) and no signal. */
SF_CHECKED sf_code sf_wfile_read(const sf_wfile *f, const sf_gguf_tensor *t, uint64_t offset, size_t n,
                                 uint8_t *out, sf_err *err);

/* For surplus: whether `t` is the head of a model that ties it, and equal to the embedding. One that differs
 * is an error. */
SF_CHECKED sf_code sf_wfile_tied_head(const sf_wsource *s, const sf_gguf_tensor *t, const char *head,
                                      const char *embed, bool *harmless, sf_err *err);

sf_wsource sf_wsource_file(const sf_plan *plan, sf_wfile file);
sf_wsource sf_wsource_gguf(const sf_plan *plan, const sf_gguf *g);
sf_wsource sf_wsource_st(const sf_plan *plan, const sf_safetensors *st);
sf_wsource sf_wsource_random(const sf_plan *plan, uint64_t seed);

#endif
