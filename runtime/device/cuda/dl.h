/* Opens a shared library at run time and fills a table of its functions, so that one binary runs on machines
 * with and without it. */
#ifndef SF_DEVICE_CUDA_DL_H
#define SF_DEVICE_CUDA_DL_H

#include "base/err.h"

/* One function: its name in the library and where its pointer stands in the table. */
typedef struct sf_dl_symbol {
    const char *name;
    size_t at; /* offsetof(table, field) */
} sf_dl_symbol;

/* Opens the first of `names` (ended by NULL; a plain name goes through the loader's own search, one with a
 * slash is that file) and writes the address of each symbol into table. *lib is closed by sf_dl_close.
 * Errors: SF_UNSUPPORTED, which names the library, or the symbol that it lacks; nothing stays open then. */
SF_CHECKED sf_code sf_dl_open(const char *const *names, const sf_dl_symbol *symbols, int n, void *table,
                              void **lib, sf_err *err);
void sf_dl_close(void *lib); /* NULL is fine */

#endif
