/* Safetensors reader (huggingface/safetensors, README "Format"), memory-mapped and read-only: one file, or
 * the shards that an index names. Every length, shape and offset is checked against the files before use;
 * nothing is allocated from an unchecked claim. Errors name the file, and the tensor. */
#ifndef SF_MODEL_SAFETENSORS_H
#define SF_MODEL_SAFETENSORS_H

#include "model/gguf.h"

typedef struct sf_safetensors sf_safetensors;

/* Described as a tensor of a GGUF file is (dims[0] the fastest, values by sf_gguf_dequant), so that one
 * loader reads both. type is SF_GGML_F32, SF_GGML_F16 or SF_GGML_BF16. */
typedef struct sf_st_tensor {
    sf_gguf_tensor t;
    int file; /* which of the files holds it */
} sf_st_tensor;

/* path: a .safetensors file, or a directory that holds model.safetensors or, where that is absent,
 * model.safetensors.index.json and its shards. It is borrowed: it outlives the object and every error record
 * that names it. The files are mapped until close and must not be written meanwhile: replace a
 * checkpoint by renaming. Where one is cut, t.data ends in SIGBUS; the weights loader reads without the
 * mapping and gets an error. Refused: a header of over 100,000,000 bytes or past the end, JSON that is broken
 * or has a key twice, a tensor whose bytes are not shape x dtype, data that overlap, leave a hole or end
 * early or late, an index that disagrees with its shards or whose shards are missing (SF_NOT_FOUND, all
 * named): SF_FORMAT; another dtype or over 4 dimensions: SF_UNSUPPORTED. Any thread may use an open object.
 */
SF_CHECKED sf_code sf_safetensors_open(const char *path, sf_safetensors **out, sf_err *err);
void sf_safetensors_close(sf_safetensors *s); /* NULL is fine */
const char *sf_safetensors_path(const sf_safetensors *s);

int sf_safetensors_n_tensors(const sf_safetensors *s);
const sf_st_tensor *sf_safetensors_tensor_at(const sf_safetensors *s, int i); /* file by file, as they lie */
const sf_st_tensor *sf_safetensors_find_tensor(const sf_safetensors *s, const char *name); /* NULL: absent */
/* What a message about the tensor says between path and text: "model-00002-of-00003.safetensors: ", or ""
 * where the path is the file. */
const char *sf_safetensors_label(const sf_safetensors *s, const sf_st_tensor *t);

#endif
