/* Text written to a file or stdout: all of it is out when the call returns, also where the descriptor does
 * not block. */
#ifndef SF_CLI_OUTPUT_H
#define SF_CLI_OUTPUT_H

#include "base/err.h"

#include <stdbool.h>

typedef struct sf_output {
    int fd;
    const char *name; /* for messages */
    int64_t lines;    /* written */
    int64_t bytes;
    bool created; /* by the open: it was not there */
    unsigned long long device, inode;
    bool regular; /* a partly written line can be cut off again */
    bool broken;  /* a write has failed: nothing more will be written */
    bool partial; /* what is out ends within a line */
} sf_output;

/* Opens path ("-": stdout), making it where it is not there; what it holds stays until sf_output_empty. A
 * regular file is locked (flock) until it is closed. Errors: SF_IO, also when another process holds the lock.
 */
SF_CHECKED sf_code sf_output_open(sf_output *o, const char *path, sf_err *err);
/* Empties a regular file. */
SF_CHECKED sf_code sf_output_empty(sf_output *o, sf_err *err);
/* Writes text and a line end. After an error (SF_IO: full disk, closed pipe) a regular file ends with the
 * last whole line; the message names file and lines written. SF_CANCELLED: a signal came (sf_cli_signalled)
 * and the reader takes no more; a pipe may then end within the line. */
SF_CHECKED sf_code sf_output_line(sf_output *o, const char *text, sf_err *err);
/* Writes len bytes as they are. Errors likewise. */
SF_CHECKED sf_code sf_output_bytes(sf_output *o, const char *text, size_t len, sf_err *err);
/* Removes the file if the open made it and nothing was written to it; any other is left as it is. Open or
 * closed. */
void sf_output_discard(const sf_output *o);
/* Some file systems report a failed write only here. */
SF_CHECKED sf_code sf_output_close(sf_output *o, sf_err *err);

#endif
