/* The output folder: written where its files differ from the plan's, or only compared with them. */
#ifndef SF_GEN_OUTDIR_H
#define SF_GEN_OUTDIR_H

#include "emit.h"

/* Writes each file whose content differs (a temporary file, then a rename), so that an unchanged file keeps
 * its time, and removes kernels that dir's LOCK lists and files does not. Creates dir, and its parents.
 * *changed counts what was written or removed. A source in dir/kernels that neither knows is somebody's:
 * SF_INVALID names it and nothing is written. Other errors: SF_IO names the path. */
SF_CHECKED sf_code sf_outdir_write(sf_arena *a, const char *dir, const sf_files *files, int *changed,
                                   sf_err *err);

/* Compares. Where a file differs or is missing, leaves the right content beside it as FILE.new. report gets
 * one line per difference, extra kernels included. SF_DRIFT when there is any. */
SF_CHECKED sf_code sf_outdir_check(sf_arena *a, const char *dir, const sf_files *files, sf_buf *report,
                                   sf_err *err);

#endif
