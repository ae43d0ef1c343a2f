/* A growable byte buffer, always NUL-terminated once anything was appended. */
#ifndef SF_BASE_BUF_H
#define SF_BASE_BUF_H

#include "base/err.h"

typedef struct sf_buf {
    char *data; /* [cap], data[len] == 0; NULL while empty */
    size_t len, cap;
} sf_buf; /* zero-initialise; sf_buf_fini frees */

void sf_buf_fini(sf_buf *b);
SF_CHECKED sf_code sf_buf_reserve(sf_buf *b, size_t more, sf_err *err); /* room for `more` further bytes */
SF_CHECKED sf_code sf_buf_append(sf_buf *b, const void *data, size_t len, sf_err *err);
SF_CHECKED sf_code sf_buf_printf(sf_buf *b, sf_err *err, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* Reads a whole file (at most max_bytes; more is SF_FULL) into b, appended. Errors name the path. */
SF_CHECKED sf_code sf_buf_read_file(sf_buf *b, const char *path, size_t max_bytes, sf_err *err);

/* The same, and what is no regular file is refused: a FIFO among a checkpoint's files must not be waited for.
 */
SF_CHECKED sf_code sf_buf_read_regular(sf_buf *b, const char *path, size_t max_bytes, sf_err *err);

#endif
