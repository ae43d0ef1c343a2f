/* Lines of a file or pipe, read lazily and without blocking while there is other work. */
#ifndef SF_CLI_LINES_H
#define SF_CLI_LINES_H

#include "base/buf.h"

#include <stdbool.h>

#define SF_LINE_MAX ((size_t)64 << 20)

typedef struct sf_lines {
    int fd;
    const char *name; /* for messages; "stdin" for "-" */
    sf_buf buf;
    size_t start;   /* of the first byte not yet given out */
    size_t scanned; /* bytes from there on that hold no line's end */
    int64_t line;   /* number of the last line given out, from 1 */
    bool eof, skipping;
} sf_lines;

typedef enum sf_lines_state {
    SF_LINES_LINE,
    SF_LINES_LONG,  /* a line over SF_LINE_MAX: skipped, counted */
    SF_LINES_AGAIN, /* nothing to read yet */
    SF_LINES_END
} sf_lines_state;

/* "-" is stdin. Errors: SF_IO names the file. */
SF_CHECKED sf_code sf_lines_open(sf_lines *l, const char *path, sf_err *err);
void sf_lines_close(sf_lines *l);
/* The next line that is not blank, without its end; text is valid until the next call. wait: give
 * it a tenth of a second to come. */
SF_CHECKED sf_code sf_lines_next(sf_lines *l, bool wait, sf_lines_state *state, const char **text,
                                 size_t *len, sf_err *err);
/* Lines that are not blank, or 0 when that cannot be known without reading a pipe. */
uint64_t sf_lines_count(const char *path);

#endif
