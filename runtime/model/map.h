/* A file mapped for reading. */
#ifndef SF_MODEL_MAP_H
#define SF_MODEL_MAP_H

#include "base/err.h"

/* Maps a regular file that isn't empty; munmap ends it. A file that is cut while it is mapped raises SIGBUS
 * on access. Errors: SF_IO, SF_FORMAT (empty); the message names no file, the caller adds it. */
SF_CHECKED sf_code sf_map_file(const char *path, const uint8_t **base, size_t *len, sf_err *err);

#endif
