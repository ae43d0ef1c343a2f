/* Lines written to a file or stdout: each is out, whole, when the call returns. */
#ifndef SF_CLI_OUTPUT_H
#define SF_CLI_OUTPUT_H

#include "base/err.h"

#include <stdbool.h>

typedef struct sf_output {
    int fd;
    const char *name; /* for messages */
    int64_t lines;    /* written */
    int64_t bytes;
    bool regular; /* a partly written line can be cut off again */
    bool broken;  /* a write has failed: nothing more will be written */
} sf_output;

/* Opens path ("-": stdout) and empties it. not_path (may be NULL) is the input: the same file is an error,
 * before anything is lost. Errors: SF_IO, SF_INVALID. */
SF_CHECKED sf_code sf_output_open(sf_output *o, const char *path, const char *not_path, sf_err *err);
/* Writes text and a line end. After an error (SF_IO: full disk, closed pipe) a regular file ends with the
 * last whole line; the message names file and lines written. */
SF_CHECKED sf_code sf_output_line(sf_output *o, const char *text, sf_err *err);
/* Some file systems report a failed write only here. */
SF_CHECKED sf_code sf_output_close(sf_output *o, sf_err *err);
/* Writes a whole file. */
SF_CHECKED sf_code sf_output_file(const char *path, const char *text, sf_err *err);

#endif
