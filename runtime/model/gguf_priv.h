/* Inside of the GGUF reader; the parser fills it, the getters read it. */
#ifndef SF_MODEL_GGUF_PRIV_H
#define SF_MODEL_GGUF_PRIV_H

#include "model/gguf.h"
#include "model/map.h"

#include <endian.h>
#include <string.h>

#define SF_GGUF_NAME_MAX 64 /* bytes of a tensor's name (ggml/docs/gguf.md) */

typedef enum sf_gguf_vtype { /* values of the file format */
                             SF_GGUF_U8 = 0,
                             SF_GGUF_I8 = 1,
                             SF_GGUF_U16 = 2,
                             SF_GGUF_I16 = 3,
                             SF_GGUF_U32 = 4,
                             SF_GGUF_I32 = 5,
                             SF_GGUF_F32 = 6,
                             SF_GGUF_BOOL = 7,
                             SF_GGUF_STR = 8,
                             SF_GGUF_ARRAY = 9,
                             SF_GGUF_U64 = 10,
                             SF_GGUF_I64 = 11,
                             SF_GGUF_F64 = 12
} sf_gguf_vtype;

typedef struct sf_gguf_kv {
    sf_str key;
    uint32_t type;       /* sf_gguf_vtype */
    uint32_t item;       /* array: type of its items; else type */
    uint64_t count;      /* array: its items; else 1 */
    const uint8_t *data; /* first item, unaligned little-endian; a string is u64 length and bytes */
} sf_gguf_kv;

struct sf_gguf {
    const char *path; /* borrowed */
    sf_map map;       /* the file; none: base is the caller's */
    const uint8_t *base;
    size_t len;
    int n_kvs, n_tensors;                  /* filled so far, while parsing */
    sf_gguf_kv *kvs;                       /* [n_kvs], in file order */
    const sf_gguf_kv **sorted_kvs;         /* [n_kvs], by key */
    sf_gguf_tensor *tensors;               /* [n_tensors], in file order */
    const sf_gguf_tensor **sorted_tensors; /* [n_tensors], by name */
    char *names;                           /* [n_tensors][SF_GGUF_NAME_MAX + 1] */
};

/* As sf_gguf_open, over bytes that the caller keeps until close. */
SF_CHECKED sf_code sf_gguf_open_bytes(const char *path, const void *bytes, size_t len, sf_gguf **out,
                                      sf_err *err);

/* Reads and checks the whole directory of g (path, base and len are set). On error the caller closes g. */
SF_CHECKED sf_code sf_gguf_parse(sf_gguf *g, sf_err *err);

/* Bytes of `count` elements that begin with a block; of a readable type. */
size_t sf_ggml_bytes(uint32_t type, uint64_t count);
/* They as fp32: sf_gguf_dequant without its checks. */
void sf_ggml_dequant(uint32_t type, const uint8_t *p, uint64_t count, float *out);

const char *sf_gguf_vtype_name(uint32_t type); /* "u32"; "unknown type" */
uint64_t sf_gguf_vtype_size(uint32_t type);    /* bytes of a scalar; 0 for strings, arrays, unknown types */
/* Orders by bytes, then by length. */
int sf_str_compare(sf_str a, sf_str b);

/* Elements and bytes of a block of the ggml type; false for an unknown type. */
bool sf_ggml_type_block(uint32_t type, uint32_t *elements, uint32_t *bytes);

/* Little-endian loads from any address; inline, so that loops over them vectorise. */
static inline uint16_t sf_load_u16(const uint8_t *p) {
    uint16_t u;
    memcpy(&u, p, sizeof u);
    return le16toh(u);
}

static inline uint32_t sf_load_u32(const uint8_t *p) {
    uint32_t u;
    memcpy(&u, p, sizeof u);
    return le32toh(u);
}

static inline uint64_t sf_load_u64(const uint8_t *p) {
    uint64_t u;
    memcpy(&u, p, sizeof u);
    return le64toh(u);
}

#endif
