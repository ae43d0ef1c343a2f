/* A file mapped for reading. */
#ifndef SF_MODEL_MAP_H
#define SF_MODEL_MAP_H

#include "base/err.h"

/* All zero but fd, which is -1: none. */
typedef struct sf_map {
    const uint8_t *base;
    size_t len;
    int fd; /* open, for reads that a cut file answers with an error instead of SIGBUS */
} sf_map;

#define SF_MAP_NONE ((sf_map){NULL, 0, -1})

/* Maps a regular file that isn't empty. A file that is cut while it is mapped raises SIGBUS on access.
 * Errors: SF_IO, SF_FORMAT (empty); the message names no file, the caller adds it. */
SF_CHECKED sf_code sf_map_open(const char *path, sf_map *out, sf_err *err);
void sf_map_close(sf_map *m); /* to SF_MAP_NONE; one that is none is fine */

#endif
