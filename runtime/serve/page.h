/* The page at /: page.html, as it stands in the binary. */
#ifndef SF_SERVE_PAGE_H
#define SF_SERVE_PAGE_H

#include <stddef.h>

extern const char sf_page[]; /* [sf_page_size], NUL-terminated */
extern const size_t sf_page_size;

#endif
