/* Inside of the safetensors reader: one file's header, and what holds the files together. */
#ifndef SF_MODEL_SAFETENSORS_PRIV_H
#define SF_MODEL_SAFETENSORS_PRIV_H

#include "model/map.h"
#include "model/safetensors.h"

#include <jansson.h>

#define SF_ST_HEADER_MAX 100000000u /* bytes, as the reference reader allows */
#define SF_ST_INDEX_MAX  ((size_t)SF_ST_HEADER_MAX)
#define SF_ST_NAME_MAX   255 /* bytes of a tensor's name */

/* The whole message: path (of the user), label, text. f is a file or the object. */
#define SF_ST_FAIL(f, code, fmt, ...)                                                                        \
    SF_FAIL_AT(err, code, ((sf_loc){(f)->path, 0, 0}), "%s" fmt, (f)->label, __VA_ARGS__)

typedef struct sf_st_file {
    const char *path; /* as the user gave it; borrowed */
    const char *name; /* in the directory, borrowed from shards; "" where path is the file */
    char *label;      /* "name: ", or "" */
    sf_map map;       /* the file; none: base is the caller's */
    const uint8_t *base;
    size_t len;
    json_t *header; /* owns the tensors' names */
    int first, n;   /* its tensors in the object's */
} sf_st_file;

struct sf_safetensors {
    const char *path;  /* borrowed */
    const char *label; /* of messages about the whole: "" */
    int n_files, n_tensors;
    sf_st_file *files;           /* [n_files] */
    sf_st_tensor *tensors;       /* [n_tensors], file by file, by offset */
    const sf_st_tensor **sorted; /* [n_tensors], by name */
    json_t *shards;              /* an object whose keys are the files' names; NULL: one file */
};

/* As sf_safetensors_open of one file, over bytes that the caller keeps until close. */
SF_CHECKED sf_code sf_safetensors_open_bytes(const char *path, const void *bytes, size_t len,
                                             sf_safetensors **out, sf_err *err);

/* Reads and checks f's header: fills header and n. */
SF_CHECKED sf_code sf_st_read_header(sf_st_file *f, sf_err *err);
/* Fills out [f->n] in the order of the data, and checks that they fill the file. */
SF_CHECKED sf_code sf_st_read_tensors(const sf_st_file *f, int file, sf_st_tensor *out, sf_err *err);
/* JSON text to an object; the error says where it is broken. */
SF_CHECKED sf_code sf_st_parse_json(const sf_st_file *f, const char *text, size_t len, json_t **out,
                                    sf_err *err);

#endif
