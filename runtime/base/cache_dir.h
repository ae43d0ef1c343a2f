/* The user's cache, where what can be made again is kept. */
#ifndef SF_BASE_CACHE_DIR_H
#define SF_BASE_CACHE_DIR_H

#include <stdbool.h>
#include <stddef.h>

/* ${XDG_CACHE_HOME:-~/.cache}/steadfast/<name>. False: neither variable names a directory, or the path is too
 * long. A relative XDG_CACHE_HOME is ignored, as the XDG base directory specification says. */
bool sf_cache_dir(const char *name, char *out, size_t size);
/* Makes a directory and those above it, for the user alone (0700). path is written to and put back. False:
 * errno says why. */
bool sf_make_dirs(char *path);

#endif
