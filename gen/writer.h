/* Text that grows by printf and remembers its first failure, so that long output reads as a list of lines. */
#ifndef SF_GEN_WRITER_H
#define SF_GEN_WRITER_H

#include "base/buf.h"

typedef struct sf_writer {
    sf_buf buf;
    sf_code rc; /* SF_OK until something failed; then nothing more is appended */
    sf_err *err;
} sf_writer; /* {.err = err}; sf_buf_fini(&w.buf) frees */

void sf_put(sf_writer *w, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void sf_put_bytes(sf_writer *w, const char *s, size_t len);
/* A string literal with its quotes, or NULL and null for a NULL. Bytes over 127 pass as they are. */
void sf_put_c_text(sf_writer *w, const char *s);
/* Likewise, of len bytes. */
void sf_put_c_bytes(sf_writer *w, const char *s, size_t len);
void sf_put_json_text(sf_writer *w, const char *s);

#endif
