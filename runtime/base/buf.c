#include "base/buf.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

void sf_buf_fini(sf_buf *b) {
    free(b->data);
    *b = (sf_buf){0};
}

sf_code sf_buf_reserve(sf_buf *b, size_t more, sf_err *err) {
    if (more >= SIZE_MAX - b->len) return SF_FAIL(err, SF_NOMEM, "buffer of %zu + %zu bytes", b->len, more);
    size_t need = b->len + more + 1;
    if (need <= b->cap) return SF_OK;
    size_t cap = b->cap < 64 ? 64 : b->cap;
    while (cap < need)
        cap = cap > SIZE_MAX / 2 ? need : cap * 2;
    char *data = realloc(b->data, cap);
    if (!data) return SF_FAIL(err, SF_NOMEM, "buffer of %zu bytes", cap);
    if (!b->data) data[0] = 0;
    b->data = data;
    b->cap = cap;
    return SF_OK;
}

sf_code sf_buf_append(sf_buf *b, const void *data, size_t len, sf_err *err) {
    SF_TRY(sf_buf_reserve(b, len, err));
    if (len) memcpy(b->data + b->len, data, len);
    b->len += len;
    b->data[b->len] = 0;
    return SF_OK;
}

sf_code sf_buf_printf(sf_buf *b, sf_err *err, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    if (n < 0) return SF_FAIL(err, SF_INVALID, "format '%s'", fmt);
    SF_TRY(sf_buf_reserve(b, (size_t)n, err));
    va_start(ap, fmt);
    vsnprintf(b->data + b->len, (size_t)n + 1, fmt, ap);
    va_end(ap);
    b->len += (size_t)n;
    return SF_OK;
}

sf_code sf_buf_read_file(sf_buf *b, const char *path, size_t max_bytes, sf_err *err) {
    sf_code rc = SF_OK;
    size_t start = b->len;
    FILE *f = fopen(path, "rb");
    if (!f) return SF_FAIL_AT(err, SF_IO, ((sf_loc){path, 0, 0}), "%s", strerror(errno));
    for (;;) {
        rc = sf_buf_reserve(b, 65536, err);
        if (rc != SF_OK) goto done;
        size_t got = fread(b->data + b->len, 1, 65536, f);
        b->len += got;
        b->data[b->len] = 0;
        if (b->len - start > max_bytes) {
            rc = SF_FAIL_AT(err, SF_FULL, ((sf_loc){path, 0, 0}), "more than %zu bytes", max_bytes);
            goto done;
        }
        if (got < 65536) break;
    }
    if (ferror(f)) rc = SF_FAIL_AT(err, SF_IO, ((sf_loc){path, 0, 0}), "%s", strerror(errno));
done:
    fclose(f);
    if (rc != SF_OK && b->data) {
        b->len = start;
        b->data[start] = 0;
    }
    return rc;
}

sf_code sf_buf_read_regular(sf_buf *b, const char *path, size_t max_bytes, sf_err *err) {
    struct stat st;
    /* asked first, as opening a FIFO waits; a directory is named as such by the read */
    if (stat(path, &st) == 0 && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode))
        return SF_FAIL_AT(err, SF_IO, ((sf_loc){path, 0, 0}), "not a regular file");
    return sf_buf_read_file(b, path, max_bytes, err);
}
