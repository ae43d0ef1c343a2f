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

/* Where rows come from: a checkpoint or a random stream. */
typedef struct sf_wsource sf_wsource;
struct sf_wsource {
    const sf_plan *plan;
    /* Elements from .. from+count-1 of a packed row that isn't padding (of a vector, row 0), rotary pairs as
     * halves. from is a multiple of SF_PACK_STEP. Any thread. */
    SF_CHECKED sf_code (*read)(const sf_wsource *s, const sf_winst *w, int row, int from, int count,
                               float *out, sf_err *err);
    /* Fills err for a value, in that row (of a vector: that element), that the format can't hold as a finite
     * number. */
    sf_code (*not_finite)(const sf_wsource *s, const sf_winst *w, int row, sf_err *err);
    const sf_gguf *g; /* checkpoint */
    uint64_t seed;    /* random */
};

#define SF_PACK_STEP 256 /* columns converted at a time; a multiple of every ggml block */

/* A slot's packed form: `blocks` blocks of `block_bytes` each, one after another; a block is the unit of
 * work. */
typedef struct sf_wlayout {
    int blocks;
    size_t block_bytes;
} sf_wlayout;

/* Which part a packed row of the slot (of a vector: an element) belongs to, and which row of that part it is;
 * -1 for padding. */
int sf_wrow_locate(const sf_weight_desc *d, int packed, int *row);
/* Errors: SF_UNSUPPORTED for a format the loader doesn't know. */
SF_CHECKED sf_code sf_wformat_layout(const sf_weight_desc *d, sf_wlayout *out, sf_err *err);
/* Reads and packs one block to dst [block_bytes]. */
SF_CHECKED sf_code sf_wformat_pack(const sf_wsource *s, const sf_winst *w, int block, uint8_t *dst,
                                   sf_err *err);

/* Checks the checkpoint's metadata against the plan's model; errors name file, key, found and expected. What
 * the engine doesn't compute (rope scaling, experts, an unknown key of the architecture) is SF_UNSUPPORTED.
 */
SF_CHECKED sf_code sf_weights_check_metadata(const sf_plan *plan, const sf_gguf *g, sf_err *err);
/* Fills the parts of every instance and checks types and shapes; a tensor of the file that no slot uses is an
 * error. */
SF_CHECKED sf_code sf_weights_find_tensors(const sf_plan *plan, const sf_gguf *g, sf_winst *insts,
                                           int n_insts, sf_err *err);

sf_wsource sf_wsource_gguf(const sf_plan *plan, const sf_gguf *g);
sf_wsource sf_wsource_random(const sf_plan *plan, uint64_t seed);

#endif
